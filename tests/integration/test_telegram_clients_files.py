"""Files through both Telegram clients, against a strict Bot API emulator."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from channels.telegram.client import BotClient, ChatPlace, FileTooBig, MarkupRefused, Text, Upload
from channels.telegram.http import UPLOAD_LIMIT
from goclaw_py.model.errors import ChatGone, NotSent, RateLimited, Undeliverable
from goclaw_py.model.messages import FileKind
from tests.botapi import BotApi, Fault, FaultKind
from tests.botapi.files import FileKind as StoredKind
from tests.botapi.files import png

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


# ---------------------------------------------------------------------------- sent


async def test_a_document_arrives_byte_for_byte(
    api: BotApi, client: BotClient, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 1000
    number = await client.send_file(
        HERE,
        upload(tmp_path, content, name="Bericht für Ann.pdf", mime="application/pdf"),
        caption=Text("a <b>bold</b> word", html=True),
        reply_to=1,
    )
    message = api.world.chats[ANN].messages[number]
    document = message["document"]
    assert isinstance(document, dict)
    assert document["file_name"] == "Bericht für Ann.pdf"
    assert document["mime_type"] == "application/pdf"
    assert message["caption"] == "a bold word"
    assert isinstance(message["reply_to_message"], dict)
    to = tmp_path / "back"
    assert await client.fetch_file(document["file_id"], to, limit_bytes=MB) == len(content)
    assert to.read_bytes() == content


async def test_a_picture_is_shown_as_one(api: BotApi, client: BotClient, tmp_path: Path) -> None:
    number = await client.send_file(
        HERE, upload(tmp_path, png(), FileKind.PHOTO, name="plot.png"), reply_to=None
    )
    message = api.world.chats[ANN].messages[number]
    assert "photo" in message
    assert "caption" not in message
    assert "reply_to_message" not in message


@pytest.mark.parametrize("content", [png(9000, 2000), b"no picture"])
async def test_what_is_no_picture_to_the_server_is_sent_as_a_document(
    api: BotApi, client: BotClient, tmp_path: Path, content: bytes
) -> None:
    number = await client.send_file(
        HERE,
        upload(tmp_path, content, FileKind.PHOTO, name="plot.png"),
        caption=Text("see"),
        reply_to=None,
    )
    message = api.world.chats[ANN].messages[number]
    document = message["document"]
    assert isinstance(document, dict)
    assert document["file_name"] == "plot.png"
    assert document["file_size"] == len(content)
    assert message["caption"] == "see"
    assert [call.method for call in api.transcript()] == ["sendPhoto", "sendDocument"]


async def test_a_voice_message_is_one_unless_it_is_not_wanted(
    api: BotApi, client: BotClient, tmp_path: Path
) -> None:
    voice = upload(tmp_path, b"OggS" + bytes(100), FileKind.VOICE, name="note.ogg")
    number = await client.send_file(HERE, voice, reply_to=None)
    assert "voice" in api.world.chats[ANN].messages[number]
    words = "Bad Request: VOICE_MESSAGES_FORBIDDEN"
    api.fault(Fault("sendVoice", FaultKind.ERROR, status=400, words=words))
    number = await client.send_file(HERE, voice, reply_to=None)
    assert "document" in api.world.chats[ANN].messages[number]


async def test_a_file_goes_into_its_topic(api: BotApi, client: BotClient, tmp_path: Path) -> None:
    """SPEC CHAN-6."""
    api.add_group(-1001, "Team", topics=[55])
    number = await client.send_file(ChatPlace(-1001, 55), upload(tmp_path), reply_to=None)
    assert api.world.chats[-1001].messages[number]["message_thread_id"] == 55


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


async def test_what_cannot_be_sent_never_leaves(
    api: BotApi, client: BotClient, tmp_path: Path
) -> None:
    gone = Upload(FileKind.DOCUMENT, tmp_path / "gone", "gone.txt")
    with pytest.raises(Undeliverable, match=r"gone\.txt: cannot be read"):
        await client.send_file(HERE, gone, reply_to=None)
    large = upload(tmp_path)
    with large.path.open("wb") as file:
        file.truncate(UPLOAD_LIMIT + 1)
    with pytest.raises(FileTooBig):
        await client.send_file(HERE, large, reply_to=None)
    with pytest.raises(Undeliverable):
        await client.send_file(HERE, upload(tmp_path), caption=Text("lone \ud83d"), reply_to=None)
    assert api.transcript() == []


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


async def test_hanging_files_delay_no_text(api: BotApi, client: BotClient, tmp_path: Path) -> None:
    api.fault(Fault("sendDocument", FaultKind.HANG, count=4))
    sends = [
        asyncio.create_task(client.send_file(HERE, upload(tmp_path), reply_to=None))
        for _ in range(4)
    ]
    await api.wait_calls("sendDocument", 4)
    async with asyncio.timeout(0.8):
        await client.send_message(HERE, Text("through"))
        await client.send_action(HERE, "upload_document")
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


# ---------------------------------------------------------------------------- fetched


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


async def test_a_file_over_the_limit_is_not_fetched(
    api: BotApi, client: BotClient, tmp_path: Path
) -> None:
    told = kept(api, bytes(1001))
    with pytest.raises(FileTooBig, match="1001 bytes"):
        await client.fetch_file(told, tmp_path / "file", limit_bytes=1000)
    assert api.transcript("download") == []
    untold = api.world.files.keep(StoredKind.DOCUMENT, bytes(MB), size=1000).id
    with pytest.raises(FileTooBig, match="more than 1000"):
        await client.fetch_file(untold, tmp_path / "file", limit_bytes=1000)
    large = api.world.files.keep(StoredKind.DOCUMENT, b"", size=21 * MB).id
    with pytest.raises(FileTooBig, match="too big"):
        await client.fetch_file(large, tmp_path / "file", limit_bytes=99 * MB)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault("getFile", FaultKind.RESET_AFTER), NotSent),
        (Fault("getFile", FaultKind.FLOOD), RateLimited),
        # Twice: what is fetched, unlike what is sent, aiohttp asks for again by itself.
        (Fault("download", FaultKind.RESET, count=2), NotSent),
        (Fault("download", FaultKind.PAGE, status=404), NotSent),
        (Fault("download", FaultKind.PAGE, status=502), NotSent),
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
