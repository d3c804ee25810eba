"""Files through both Telegram clients, against a strict Bot API emulator."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from channels.telegram.client import (
    BotClient,
    ChatPlace,
    FileTooBig,
    MarkupRefused,
    MessageGone,
    Text,
    Upload,
)
from channels.telegram.settings import Library
from goclaw_py.core.errors import ChatGone, NotSent, RateLimited, Undeliverable
from goclaw_py.core.messages import FileKind
from tests.botapi import BotApi, Fault, FaultKind
from tests.botapi.files import FileKind as StoredKind
from tests.botapi.files import png
from tests.support.bot_clients import connected

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]

ANN = 7
HERE = ChatPlace(ANN)
MB = 1 << 20


def upload(
    folder: Path,
    content: bytes = b"hello",
    kind: FileKind = FileKind.DOCUMENT,
    *,
    name: str = "report.txt",
    mime: str = "text/plain",
) -> Upload:
    path = folder / "stored"
    path.write_bytes(content)
    return Upload(kind, path, name, mime)


def kept(api: BotApi, content: bytes) -> str:
    """The id of a file that the server keeps."""
    return api.world.files.keep(StoredKind.DOCUMENT, content, name="a b.bin").id


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_caption_is_edited_and_removed(
    api: BotApi, client: BotClient, tmp_path: Path
) -> None:
    number = await client.send_file(HERE, upload(tmp_path), caption=Text("see"), reply_to=None)
    bold = Text("a <b>bold</b> word", html=True)
    for caption, shown, html in [
        (bold, "a bold word", bold.text),
        (bold, "a bold word", bold.text),
        (Text("1 < 2"), "1 < 2", None),
        (None, "", None),
        (None, "", None),
    ]:
        await client.edit_caption(ANN, number, caption)
        seen = api.view(ANN)[-1]
        assert (seen.text, seen.html, seen.file is None) == (shown, html, False)


@pytest.mark.parametrize(
    ("message", "caption", "error"),
    [
        (99, Text("x"), MessageGone),
        (1, Text("x"), MessageGone),
        (2, Text("x"), Undeliverable),
        (3, Text("x" * 1025), Undeliverable),
        (3, Text("<b>", html=True), MarkupRefused),
    ],
)
async def test_a_caption_that_cannot_be_edited_says_why(
    client: BotClient, tmp_path: Path, message: int, caption: Text, error: type[Exception]
) -> None:
    """A text has none; 1 is of somebody else."""
    assert await client.send_message(HERE, Text("text")) == 2
    assert await client.send_file(HERE, upload(tmp_path), reply_to=None) == 3
    with pytest.raises(error):
        await client.edit_caption(ANN, message, caption)


async def test_a_document_arrives_byte_for_byte(
    api: BotApi, client: BotClient, tmp_path: Path
) -> None:
    """SPEC CHAN-6: with its words, as a reply, in its topic."""
    content = bytes(range(256)) * 1000
    api.add_group(-1001, "Team", topics=[55])
    question = api.say(ANN, "?", chat_id=-1001, thread=55)[0]["message_id"]
    assert isinstance(question, int)
    file = upload(tmp_path, content, name="Bericht für Ann.pdf", mime="application/pdf")
    words = Text("a <b>bold</b> word", html=True)
    place = ChatPlace(-1001, 55)
    number = await client.send_file(place, file, caption=words, reply_to=question)
    message = api.world.chats[-1001].messages[number]
    document = message["document"]
    assert isinstance(document, dict)
    assert document["file_name"] == "Bericht für Ann.pdf"
    assert document["mime_type"] == "application/pdf"
    assert (message["caption"], message["message_thread_id"]) == ("a bold word", 55)
    assert isinstance(message["reply_to_message"], dict)
    to = tmp_path / "back"
    assert await client.fetch_file(document["file_id"], to, limit_bytes=MB) == len(content)
    assert to.read_bytes() == content


async def test_pictures_and_voices_are_shown_as_such_unless_the_server_refuses(
    api: BotApi, client: BotClient, tmp_path: Path
) -> None:
    async def sent(content: bytes, kind: FileKind, caption: str = "") -> Mapping[str, object]:
        file = upload(tmp_path, content, kind, name="plot.png")
        words = Text(caption) if caption else None
        number = await client.send_file(HERE, file, caption=words, reply_to=None)
        return api.world.chats[ANN].messages[number]

    picture = await sent(png(), FileKind.PHOTO)
    assert "photo" in picture
    assert not {"caption", "reply_to_message"} & set(picture)
    for content in (png(9000, 2000), b"no picture"):
        message = await sent(content, FileKind.PHOTO, "see")
        document = message["document"]
        assert isinstance(document, dict)
        assert (document["file_name"], document["file_size"]) == ("plot.png", len(content))
        assert message["caption"] == "see"
        assert [call.method for call in api.transcript()][-2:] == ["sendPhoto", "sendDocument"]
    voice = b"OggS" + bytes(100)
    assert "voice" in await sent(voice, FileKind.VOICE)
    words = "Bad Request: VOICE_MESSAGES_FORBIDDEN"
    api.fault(Fault("sendVoice", FaultKind.ERROR, status=400, words=words))
    assert "document" in await sent(voice, FileKind.VOICE)


async def test_what_the_server_refuses_about_a_file(
    api: BotApi, client: BotClient, tmp_path: Path
) -> None:
    with pytest.raises(MarkupRefused):
        await client.send_file(
            HERE, upload(tmp_path), caption=Text("<b>", html=True), reply_to=None
        )
    with pytest.raises(ChatGone):
        await client.send_file(ChatPlace(99), upload(tmp_path), reply_to=None)
    with pytest.raises(Undeliverable, match="non-empty"):
        await client.send_file(HERE, upload(tmp_path, b""), reply_to=None)
    api.fault(Fault("sendDocument", FaultKind.PAGE, status=413))
    with pytest.raises(FileTooBig):
        await client.send_file(HERE, upload(tmp_path), reply_to=None)


async def test_an_upload_that_is_cancelled_closes_its_file_and_its_connection(
    api: BotApi, client: BotClient, tmp_path: Path
) -> None:
    api.fault(Fault("sendDocument", FaultKind.HANG, count=8))
    for _ in range(8):  # more than there are connections
        send = asyncio.create_task(
            client.send_file(HERE, upload(tmp_path, bytes(MB)), reply_to=None)
        )
        await asyncio.wait({send}, timeout=0.05)
        send.cancel()
        await asyncio.wait({send})
    api.clear_faults()
    await client.send_file(HERE, upload(tmp_path), reply_to=None)


async def test_hanging_files_delay_no_text(api: BotApi, library: Library, tmp_path: Path) -> None:
    api.say(ANN, "hello")
    api.fault(Fault("sendDocument", FaultKind.HANG, count=4))
    async with connected(library, api.url, timeout_s=30) as client:
        sends = [
            asyncio.create_task(client.send_file(HERE, upload(tmp_path), reply_to=None))
            for _ in range(4)
        ]
        await api.wait_calls("sendDocument", 4)
        await client.send_message(HERE, Text("through"))
        await client.send_action(HERE, "upload_document")
        assert not any(send.done() for send in sends)
        for send in sends:
            send.cancel()
        await asyncio.wait(sends)


async def test_more_files_than_connections_wait_for_each_other(
    api: BotApi, client: BotClient, tmp_path: Path
) -> None:
    """An album of ten must not fail because a slow line takes longer than a connection may."""
    api.fault(Fault("sendDocument", FaultKind.DELAY, count=5, seconds=1.2))
    await asyncio.gather(
        *(client.send_file(HERE, upload(tmp_path), reply_to=None) for _ in range(5))
    )
    assert len(api.transcript("sendDocument", ok=True)) == 5


async def test_a_path_that_exists_here_too_is_still_fetched_from_the_server(
    api: BotApi, client: BotClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """python-telegram-bot takes such a path for a file of a server on this machine."""
    file = kept(api, b"from the server")
    monkeypatch.chdir(tmp_path)
    here = tmp_path / api.world.files.open(file).path
    here.parent.mkdir()
    here.write_text("from here")
    assert await client.fetch_file(file, tmp_path / "file", limit_bytes=MB) == 15
    assert (tmp_path / "file").read_text() == "from the server"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault("getFile", FaultKind.FLOOD), RateLimited),
        (Fault("download", FaultKind.ERROR, status=404, words="Not Found"), Undeliverable),
        (Fault("download", FaultKind.CUT), NotSent),
        (Fault("download", FaultKind.HANG), NotSent),
    ],
    ids=lambda value: f"{value.method}-{value.kind}" if isinstance(value, Fault) else "",
)
async def test_a_file_that_does_not_come_can_be_asked_for_again(
    api: BotApi, client: BotClient, tmp_path: Path, fault: Fault, kind: type
) -> None:
    """SPEC CHAN-8: not even a 404 in the Bot API's words is a verdict on the token here."""
    file = kept(api, bytes(MB))
    api.fault(fault)
    with pytest.raises(kind):
        await client.fetch_file(file, tmp_path / "file", limit_bytes=2 * MB)
    assert names(tmp_path) == []
    assert await client.fetch_file(file, tmp_path / "file", limit_bytes=2 * MB) == MB


async def test_a_download_that_is_cancelled_leaves_nothing(
    api: BotApi, client: BotClient, tmp_path: Path
) -> None:
    file = kept(api, bytes(MB))
    api.fault(Fault("download", FaultKind.DRIP, seconds=0.05, count=8))
    for _ in range(8):
        fetch = asyncio.create_task(client.fetch_file(file, tmp_path / "file", limit_bytes=2 * MB))
        await asyncio.wait({fetch}, timeout=0.1)
        fetch.cancel()
        await asyncio.wait({fetch})
        assert fetch.cancelled()
    assert names(tmp_path) == []
    assert await client.fetch_file(file, tmp_path / "file", limit_bytes=2 * MB) == MB
