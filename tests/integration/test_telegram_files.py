"""Files through the Telegram channel, both ways, over both libraries (SPEC CHAN-6)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from channels.telegram.http import PICTURE_LIMIT
from channels.telegram.settings import Library
from goclaw_py.model.errors import (
    ChannelError,
    ChatMoved,
    MaybeSent,
    NotSent,
    RateLimited,
    Undeliverable,
)
from goclaw_py.model.messages import Attachment, FileKind, OutboundMessage, OutFile, Target
from goclaw_py.ports.channel import Channel
from tests.botapi import BotApi, Fault, FaultKind
from tests.botapi.files import FileKind as StoredKind
from tests.botapi.files import png
from tests.support.telegram import ANN, CHAT, GROUP, TOPIC, Line, connected

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]

MB = 1 << 20


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def stored(api: BotApi, size: int) -> Attachment:
    """A file that the server keeps."""
    file = api.world.files.keep(StoredKind.DOCUMENT, bytes(size), name="a.bin")
    return Attachment(FileKind.DOCUMENT, file.id)


def out(folder: Path, content: bytes, kind: FileKind = FileKind.DOCUMENT) -> OutFile:
    path = folder / "made"
    path.write_bytes(content)
    return OutFile(kind, str(path), "plot.png" if kind is FileKind.PHOTO else "report.pdf")


# ---------------------------------------------------------------------------- coming in


async def test_a_file_that_came_with_a_message_is_fetched(line: Line, tmp_path: Path) -> None:
    content = bytes(range(256)) * 4000
    async with line.receiving():
        line.api.send(ANN, StoredKind.DOCUMENT, caption="see", content=content, file_name="a.pdf")
        await line.inbox.until_accepted("see")
        (attachment,) = line.inbox.messages[0].attachments
        assert (attachment.name, attachment.size) == ("a.pdf", len(content))
        await line.channel.fetch(attachment, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == content
    assert names(tmp_path) == ["file"]


async def test_a_download_that_hangs_delays_no_message_and_no_answer(
    line: Line, tmp_path: Path
) -> None:
    """A ``/stop`` has to work meanwhile."""
    attachment = stored(line.api, 100)
    line.api.fault(Fault("download", FaultKind.HANG, count=9))
    async with line.receiving():
        await line.ready()
        fetches = [
            asyncio.create_task(line.channel.fetch(attachment, tmp_path / str(number)))
            for number in range(4)
        ]
        await line.api.wait_calls("download", 4)
        line.api.say(ANN, "/stop")
        async with asyncio.timeout(2):
            await line.inbox.until_accepted("/stop")
            await line.channel.send(OutboundMessage(CHAT, "stopped"))
        for fetch in fetches:
            fetch.cancel()
        await asyncio.wait(fetches)
    assert names(tmp_path) == []


async def test_a_file_over_the_limit_is_not_fetched(
    api: BotApi, library: Library, tmp_path: Path
) -> None:
    """SPEC SEC-3."""
    api.say(ANN, "hello")
    async with connected(api, library, download_mb=1) as line:
        await line.channel.fetch(stored(api, MB), tmp_path / "fits")
        with pytest.raises(Undeliverable, match="more than"):
            await line.channel.fetch(stored(api, MB + 1), tmp_path / "large")
        with pytest.raises(Undeliverable, match="too big"):
            await line.channel.fetch(stored(api, 21 * MB), tmp_path / "larger")
    assert names(tmp_path) == ["fits"]
    assert api.counts()["download"] == 1


async def test_a_file_that_is_larger_than_the_server_says_is_not_kept(
    api: BotApi, library: Library, tmp_path: Path
) -> None:
    """SPEC SEC-3."""
    file = api.world.files.keep(StoredKind.DOCUMENT, bytes(2 * MB), name="a.bin", size=100)
    async with connected(api, library, download_mb=1) as line:
        with pytest.raises(Undeliverable, match="more than"):
            await line.channel.fetch(Attachment(FileKind.DOCUMENT, file.id), tmp_path / "file")
    assert names(tmp_path) == []


@pytest.mark.parametrize("ref", ["nowhere", "", "\ud83d", "../../etc/passwd"])
async def test_a_file_that_the_server_does_not_know_never_comes(
    channel: Channel, tmp_path: Path, ref: str
) -> None:
    with pytest.raises(Undeliverable):
        await channel.fetch(Attachment(FileKind.DOCUMENT, ref), tmp_path / "file")
    assert names(tmp_path) == []
    assert channel.reaches(CHAT.chat)


@pytest.mark.parametrize(
    "fault",
    [
        Fault("getFile", FaultKind.RESET),
        Fault("getFile", FaultKind.PAGE, status=404),
        Fault("download", FaultKind.PAGE, status=502),
        Fault("download", FaultKind.CUT),
    ],
    ids=lambda fault: f"{fault.method}-{fault.kind}",
)
async def test_a_download_that_fails_leaves_nothing_and_can_be_repeated(
    api: BotApi, channel: Channel, tmp_path: Path, fault: Fault
) -> None:
    attachment = stored(api, MB)
    api.fault(fault)
    with pytest.raises(NotSent):
        await channel.fetch(attachment, tmp_path / "file")
    assert names(tmp_path) == []
    await channel.fetch(attachment, tmp_path / "file")
    assert (tmp_path / "file").stat().st_size == MB


async def test_a_download_that_is_cancelled_leaves_nothing(
    api: BotApi, channel: Channel, tmp_path: Path
) -> None:
    attachment = stored(api, MB)
    api.fault(Fault("download", FaultKind.DRIP, seconds=0.01))
    fetch = asyncio.create_task(channel.fetch(attachment, tmp_path / "file"))
    await api.wait_calls("download")
    await asyncio.wait({fetch}, timeout=0.2)
    fetch.cancel()
    await asyncio.wait({fetch})
    assert fetch.cancelled()
    assert names(tmp_path) == []


async def test_a_folder_that_cannot_be_written_is_trouble_of_ours(
    api: BotApi, channel: Channel, tmp_path: Path
) -> None:
    with pytest.raises(NotSent, match="cannot be stored"):
        await channel.fetch(stored(api, 10), tmp_path / "no folder" / "file")


# ---------------------------------------------------------------------------- going out


async def test_a_picture_of_the_agent_is_shown_with_its_caption(
    api: BotApi, channel: Channel, tmp_path: Path
) -> None:
    file = out(tmp_path, png(20, 10), FileKind.PHOTO)
    number = await channel.send(OutboundMessage(CHAT, "the plot", reply_to="1", file=file))
    seen = api.view(ANN)[-1]
    assert seen.file is not None
    assert (seen.file.kind, seen.text, seen.reply_to) == (StoredKind.PHOTO, "the plot", 1)
    assert str(seen.message_id) == number


async def test_a_file_arrives_byte_for_byte_in_its_topic(
    api: BotApi, channel: Channel, tmp_path: Path
) -> None:
    api.add_group(GROUP, "Team", topics=[TOPIC])
    content = bytes(range(256)) * 5000
    target = Target("telegram", "default", str(GROUP), str(TOPIC))
    await channel.send(OutboundMessage(target, "", file=out(tmp_path, content)))
    seen = api.view(GROUP)[-1]
    assert seen.file is not None
    assert (seen.file.name, seen.thread, seen.text) == ("report.pdf", TOPIC, "")
    assert api.file(seen.file.file_id) == content


async def test_a_long_caption_is_cut(api: BotApi, channel: Channel, tmp_path: Path) -> None:
    await channel.send(OutboundMessage(CHAT, "😀" * 2000, file=out(tmp_path, b"x")))
    assert set(api.view(ANN)[-1].text) == {"😀"}


async def test_a_file_that_is_missing_or_empty_or_a_folder_is_undeliverable(
    api: BotApi, channel: Channel, tmp_path: Path
) -> None:
    (tmp_path / "empty").touch()
    for path in ("missing", "empty", ""):
        file = OutFile(FileKind.DOCUMENT, str(tmp_path / path), "x.txt")
        with pytest.raises(Undeliverable):
            await channel.send(OutboundMessage(CHAT, "x", file=file))
    assert api.texts(ANN) == []


async def test_a_file_that_is_too_large_does_not_leave(
    api: BotApi, channel: Channel, tmp_path: Path
) -> None:
    """SPEC SEC-3."""
    with (tmp_path / "large").open("wb") as large:
        large.truncate(51_000_000)
    file = OutFile(FileKind.DOCUMENT, str(tmp_path / "large"), "large.bin")
    with pytest.raises(Undeliverable, match="51000000 bytes"):
        await channel.send(OutboundMessage(CHAT, "x", file=file))
    assert api.counts().get("sendDocument", 0) == 0


@pytest.mark.parametrize("kind", [FaultKind.RESET, FaultKind.RESET_AFTER, FaultKind.FLOOD])
async def test_a_file_whose_sending_fails_can_be_sent_again(
    api: BotApi, channel: Channel, tmp_path: Path, kind: FaultKind
) -> None:
    message = OutboundMessage(CHAT, "x", file=out(tmp_path, b"hello"))
    api.fault(Fault("sendDocument", kind))
    with pytest.raises(ChannelError) as caught:
        await channel.send(message)
    assert caught.value.retryable
    await channel.send(message)
    assert len(api.texts(ANN)) == 1 + kind.after


# ---------------------------------------------------------------------------- albums


def album(folder: Path, *kinds: FileKind, target: Target = CHAT) -> list[OutboundMessage]:
    """Files of these kinds; the first one has words, and is a reply."""
    said = []
    for number, kind in enumerate(kinds):
        path = folder / f"{number}.bin"
        path.write_bytes(png(20, 10 + number) if kind is FileKind.PHOTO else bytes(number + 5))
        file = OutFile(kind, str(path), f"{number} ü.bin", "application/pdf")
        text, to = ("" if number else "here", None if number else "1")
        said.append(OutboundMessage(target, text, reply_to=to, file=file))
    return said


PHOTO, VIDEO, AUDIO = FileKind.PHOTO, FileKind.VIDEO, FileKind.AUDIO


@pytest.mark.parametrize(
    "kinds", [(PHOTO, VIDEO), (FileKind.DOCUMENT,) * 3, (AUDIO, AUDIO), (PHOTO,) * 10]
)
async def test_files_arrive_as_one_album_with_words_under_the_first(
    api: BotApi, channel: Channel, tmp_path: Path, kinds: tuple[FileKind, ...]
) -> None:
    """SPEC CHAN-6."""
    said = album(tmp_path, *kinds)
    assert len({channel.album(one.file) for one in said if one.file}) == 1
    numbers = await channel.send_album(said)
    seen = [one for one in api.view(ANN) if one.mine]
    files = [one.file for one in seen if one.file]
    assert [str(one.message_id) for one in seen] == numbers
    assert [file.kind.value for file in files] == [kind.value for kind in kinds]
    assert [one.text for one in seen] == ["here", *[""] * (len(kinds) - 1)]
    assert seen[0].reply_to == 1
    assert len({file.album for file in files}) == 1
    assert files[0].album
    for file, one in zip(files, said, strict=True):
        assert one.file is not None
        assert api.file(file.file_id) == Path(one.file.path).read_bytes()
    assert api.counts()["sendMediaGroup"] == 1


def test_what_cannot_be_in_one_album_is_in_none(channel: Channel) -> None:
    kinds = {kind: channel.album(OutFile(kind, "/a", "a")) for kind in FileKind}
    assert kinds[PHOTO] == kinds[VIDEO]
    assert kinds[FileKind.VOICE] == ""
    assert len({kinds[PHOTO], kinds[AUDIO], kinds[FileKind.DOCUMENT]}) == 3


async def test_an_album_stays_in_its_topic(api: BotApi, channel: Channel, tmp_path: Path) -> None:
    api.add_group(GROUP, "Team", topics=[TOPIC])
    target = Target("telegram", "default", str(GROUP), str(TOPIC))
    await channel.send_album(album(tmp_path, PHOTO, PHOTO, target=target))
    assert [one.thread for one in api.view(GROUP) if one.mine] == [TOPIC, TOPIC]


@pytest.mark.parametrize("bad", ["missing", "empty", "no picture", "too large", "all too large"])
async def test_an_album_with_a_file_that_is_refused_is_undeliverable_as_a_whole(
    api: BotApi, channel: Channel, tmp_path: Path, bad: str
) -> None:
    said = album(tmp_path, PHOTO, PHOTO, PHOTO)
    last = tmp_path / "2.bin"
    match bad:
        case "missing":
            last.unlink()
        case "empty" | "no picture":
            last.write_bytes(b"" if bad == "empty" else b"text")
        case "too large":
            with last.open("wb") as file:
                file.truncate(PICTURE_LIMIT + 1)
        case _:
            said = album(tmp_path, AUDIO, AUDIO, AUDIO)
            for number in range(3):
                with (tmp_path / f"{number}.bin").open("wb") as file:
                    file.truncate(20 * MB)
    with pytest.raises(Undeliverable):
        await channel.send_album(said)
    assert api.texts(ANN) == []
    assert "large" not in bad or api.counts().get("sendMediaGroup", 0) == 0, "nothing has left"


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault("sendMediaGroup", FaultKind.RESET_AFTER), MaybeSent),
        (Fault("sendMediaGroup", FaultKind.GARBAGE_AFTER), MaybeSent),
        (Fault("sendMediaGroup", FaultKind.FLOOD, seconds=7), RateLimited),
    ],
)
async def test_an_album_that_fails_says_what_is_known(
    api: BotApi, channel: Channel, tmp_path: Path, fault: Fault, error: type[ChannelError]
) -> None:
    """SPEC IO-5."""
    api.fault(fault)
    with pytest.raises(error):
        await channel.send_album(album(tmp_path, PHOTO, PHOTO))
    assert len(await channel.send_album(album(tmp_path, PHOTO, PHOTO))) == 2


async def test_a_file_for_a_group_that_moved_tells_where_to(
    api: BotApi, channel: Channel, tmp_path: Path
) -> None:
    """SPEC CHAN-7."""
    api.add_group(-500, "Team", kind="group")
    api.migrate(-500, -1009)
    target = Target("telegram", "default", "-500")
    with pytest.raises(ChatMoved) as caught:
        await channel.send(OutboundMessage(target, "", file=out(tmp_path, b"hello")))
    assert caught.value.chat == "-1009"
