"""Files through the Telegram channel, both ways, over both libraries (SPEC CHAN-6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from channels.telegram.http import PICTURE_LIMIT
from goclaw_py.model.errors import (
    ChannelError,
    MaybeSent,
    RateLimited,
    Undeliverable,
)
from goclaw_py.model.messages import FileKind, OutboundMessage, OutFile, Target
from goclaw_py.ports.channel import Channel
from tests.botapi import BotApi, Fault, FaultKind
from tests.botapi.files import png
from tests.support.telegram import ANN, CHAT

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]

MB = 1 << 20


# ---------------------------------------------------------------------------- coming in


# ---------------------------------------------------------------------------- going out


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
