"""``channels.telegram.http``: files that go out and come in."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from channels.telegram.answers import KindRefused
from channels.telegram.client import FileTooBig, Upload
from channels.telegram.http import (
    PICTURE_LIMIT,
    UPLOAD_LIMIT,
    FormFile,
    HttpPool,
    opened,
    save,
    send_opened,
)
from goclaw_py.core.errors import ChannelError, MaybeSent, NotSent, RateLimited, Undeliverable
from goclaw_py.core.messages import FileKind

MB = 1_000_000


def upload(path: Path, kind: FileKind = FileKind.DOCUMENT, **more: str) -> Upload:
    return Upload(kind, path, more.get("name", path.name), more.get("mime", ""))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "report.txt"
    path.write_text("hello")
    return path


def sparse(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
    return path


def test_a_file_is_open_while_it_is_sent(file: Path) -> None:
    with opened(upload(file, mime="text/plain")) as part:
        assert (part.content.read(), part.name, part.mime) == (b"hello", "report.txt", "text/plain")
    assert part.content.closed


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Bericht für Ann.pdf", "Bericht für Ann.pdf"),
        ('a"b\\c/../d', "a_b_c_.._d"),
        ("a\r\nContent-Type: x", "a__Content-Type: x"),
        ("lone \ud83d", "lone \ufffd"),
        ("", "file"),
    ],
)
def test_a_name_cannot_break_the_form(file: Path, name: str, shown: str) -> None:
    """SEC-4."""
    with opened(upload(file, name=name)) as part:
        assert part.name == shown


@pytest.mark.parametrize("mime", ["", "text", "text/plain\r\nX: y", "text/plain; x=y"])
def test_a_type_that_is_none_is_not_told(file: Path, mime: str) -> None:
    with opened(upload(file, mime=mime)) as part:
        assert part.mime == "application/octet-stream"


def test_what_cannot_be_read_is_undeliverable(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, words in [
        (tmp_path / "nothing", "No such file"),
        (tmp_path, "not a regular file"),
        (pipe, "not a regular file"),
        (tmp_path / "nu\0ll", "null"),
    ]:
        with pytest.raises(Undeliverable, match=words), opened(upload(path)):
            pytest.fail("it was opened")


def test_of_a_file_over_the_limit_nothing_is_sent(tmp_path: Path) -> None:
    with opened(upload(sparse(tmp_path / "fits", UPLOAD_LIMIT))):
        pass
    with pytest.raises(FileTooBig), opened(upload(sparse(tmp_path / "big", UPLOAD_LIMIT + 1))):
        pytest.fail("it was opened")


class Sender:
    """Refuses pictures and voices, if told so; keeps what was asked."""

    def __init__(self, *, refuses: tuple[FileKind, ...] = ()) -> None:
        self.refuses = refuses
        self.asked: list[tuple[FileKind, bytes]] = []

    async def send(self, kind: FileKind, part: FormFile) -> int:
        with part.content as content:  # as a request does when it has sent the file
            self.asked.append((kind, content.read(5)))
        if kind in self.refuses:
            raise KindRefused("IMAGE_PROCESS_FAILED")
        return 7


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        (FileKind.PHOTO, FileKind.PHOTO),
        (FileKind.VOICE, FileKind.VOICE),
        (FileKind.DOCUMENT, FileKind.DOCUMENT),
        (FileKind.AUDIO, FileKind.DOCUMENT),
        (FileKind.VIDEO, FileKind.DOCUMENT),
    ],
)
async def test_only_pictures_and_voices_are_shown_as_such(
    file: Path, kind: FileKind, shown: FileKind
) -> None:
    sender = Sender()
    assert await send_opened(upload(file, kind), sender.send) == 7
    assert sender.asked == [(shown, b"hello")]


@pytest.mark.parametrize("kind", [FileKind.PHOTO, FileKind.VOICE])
async def test_what_is_not_taken_as_such_is_sent_as_a_document(file: Path, kind: FileKind) -> None:
    sender = Sender(refuses=(kind,))
    assert await send_opened(upload(file, kind), sender.send) == 7
    assert sender.asked == [(kind, b"hello"), (FileKind.DOCUMENT, b"hello")]


async def test_a_document_that_is_refused_is_not_sent_again(file: Path) -> None:
    sender = Sender(refuses=(FileKind.DOCUMENT,))
    with pytest.raises(KindRefused):
        await send_opened(upload(file), sender.send)
    assert len(sender.asked) == 1


async def test_a_picture_over_the_limit_is_a_document_from_the_start(tmp_path: Path) -> None:
    sender = Sender()
    path = sparse(tmp_path / "big.png", PICTURE_LIMIT + 1)
    await send_opened(upload(path, FileKind.PHOTO), sender.send)
    assert [kind for kind, _ in sender.asked] == [FileKind.DOCUMENT]


async def pieces(*parts: bytes | BaseException) -> AsyncGenerator[bytes, None]:
    for part in parts:
        if isinstance(part, BaseException):
            raise part
        yield part


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    to = tmp_path / "file"
    to.write_text("the old one")
    seen: list[list[str]] = []

    async def watched() -> AsyncGenerator[bytes, None]:
        for part in (b"one ", b"two"):
            seen.append([to.read_text(), str(len(names(tmp_path)))])
            yield part

    assert await save(watched(), to, limit_bytes=7) == 7
    assert to.read_bytes() == b"one two"
    assert seen == [["the old one", "2"], ["the old one", "2"]]
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize(
    ("failure", "raised"),
    [
        (b"1234", FileTooBig),
        (NotSent("broken off"), NotSent),
        (ZeroDivisionError(), ZeroDivisionError),
        (asyncio.CancelledError(), asyncio.CancelledError),
        (OSError(errno.ENOSPC, "No space left on device"), NotSent),
    ],
)
async def test_of_a_file_that_is_not_whole_nothing_is_left(
    tmp_path: Path, failure: bytes | BaseException, raised: type[BaseException]
) -> None:
    with pytest.raises(raised):
        await save(pieces(b"1234", failure), tmp_path / "file", limit_bytes=7)
    assert names(tmp_path) == []


async def test_a_folder_that_is_not_there_can_be_made_until_the_next_try(tmp_path: Path) -> None:
    with pytest.raises(NotSent, match="cannot be stored: No such file"):
        await save(pieces(b"x"), tmp_path / "gone" / "file", limit_bytes=7)


class FileServer:
    """Serves what it is told to, at any address."""

    def __init__(self) -> None:
        self.status = 200
        self.body: tuple[bytes, ...] = ()
        self.headers: dict[str, str] = {}
        self.cut = False
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=self.status, headers=self.headers)
        await response.prepare(request)
        for piece in self.body:
            await response.write(piece)
        if self.cut and request.transport is not None:
            request.transport.close()
        return response


@pytest.fixture
async def server() -> AsyncIterator[FileServer]:
    server = FileServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/file"
    yield server
    await runner.cleanup()


@pytest.fixture
async def pool() -> AsyncIterator[HttpPool]:
    pool = HttpPool(2, connect_s=1, silence_s=5)
    await pool.open()
    yield pool
    await pool.close()


async def fetched(pool: HttpPool, server: FileServer, to: Path, limit: int = 10 * MB) -> int:
    return await save(pool.stream(server.url), to, limit_bytes=limit)


@pytest.mark.parametrize("told", [{}, {"Content-Length": str(3 * MB)}])
async def test_the_limit_holds_whatever_the_server_says(
    pool: HttpPool, server: FileServer, tmp_path: Path, told: dict[str, str]
) -> None:
    server.body, server.headers = (b"a" * MB,) * 3, told
    with pytest.raises(FileTooBig):
        await fetched(pool, server, tmp_path / "file", limit=2 * MB)
    assert names(tmp_path) == []


async def test_a_file_that_is_cut_is_no_file(
    pool: HttpPool, server: FileServer, tmp_path: Path
) -> None:
    server.body, server.headers, server.cut = (b"a" * 9,), {"Content-Length": "10"}, True
    with pytest.raises(MaybeSent, match="no answer"):
        await fetched(pool, server, tmp_path / "file")
    assert names(tmp_path) == []


REFUSED = b'{"ok": false, "error_code": %d, "description": "Some words"}'


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (404, REFUSED % 404, Undeliverable),
        (401, REFUSED % 401, Undeliverable),
        (400, REFUSED % 400, Undeliverable),
        (429, REFUSED % 429, RateLimited),
        (404, b"<html>nothing here</html>", NotSent),
        (302, b"", NotSent),
        (502, b"<html>trouble</html>", MaybeSent),
        (206, b'{"ok": true, "result": 5}', NotSent),
    ],
)
async def test_an_answer_that_is_no_file_refuses_the_file_and_not_the_bot(
    pool: HttpPool, server: FileServer, tmp_path: Path, status: int, body: bytes, kind: type
) -> None:
    """SPEC CHAN-8."""
    server.status, server.body = status, (body,)
    with pytest.raises(ChannelError) as caught:
        await fetched(pool, server, tmp_path / "file")
    assert type(caught.value) is kind
    assert names(tmp_path) == []


async def test_a_closed_pool_sends_nothing(server: FileServer) -> None:
    """SPEC IO-5."""
    pool = HttpPool(2, connect_s=1, silence_s=5)
    with pytest.raises(NotSent, match="closed"):
        await pool.post(server.url, {})
    await pool.open()
    await pool.open()
    await pool.close()
    await pool.close()
    with pytest.raises(NotSent, match="closed"):
        await anext(pool.stream(server.url))


async def test_what_has_no_utf8_is_refused_before_it_leaves(
    pool: HttpPool, server: FileServer, file: Path
) -> None:
    """SPEC IO-5: a model may write lone surrogates."""
    with pytest.raises(Undeliverable, match="JSON"):
        await pool.post(server.url, {"text": "lone \ud83d"})
    with opened(upload(file)) as part, pytest.raises(Undeliverable, match="JSON"):
        await pool.post(server.url, {"caption": "lone \ud83d"}, {"document": part})


async def test_a_silent_server_is_given_up(pool: HttpPool, server: FileServer) -> None:
    """Also one that sends something now and then: an answer that drips is no answer."""

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await asyncio.sleep(4)
            await response.write(b" ")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", drip)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    began = asyncio.get_running_loop().time()
    with pytest.raises(MaybeSent, match="no answer"):
        await pool.post(f"http://127.0.0.1:{runner.addresses[0][1]}/", {})
    assert asyncio.get_running_loop().time() - began < 30
    await runner.cleanup()
