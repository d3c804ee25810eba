"""Several files of one answer are sent as albums (SPEC CHAN-6)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from goclaw_py.chat.outbound.albums import in_albums
from goclaw_py.chat.outbound.rate_limit import RateLimit
from goclaw_py.core.errors import ChatMoved, MaybeSent, NotSent, RateLimited, Undeliverable
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import FileKind, OutboundMessage, OutFile, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import OutboxState
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import GatewayProcess, a_process, until
from tests.unit.chat.outbound.posts import rows

ANN = Target("telegram", "default", "-100")
PHOTO, DOCUMENT, VOICE = FileKind.PHOTO, FileKind.DOCUMENT, FileKind.VOICE


class Kinds(RecordingChannel):
    """Albums of one kind, but no voice messages in any."""

    def album(self, file: OutFile) -> str:
        return "" if file.kind is VOICE else super().album(file)


def sends(*files: tuple[FileKind, str]) -> list[OutboundMessage]:
    return [
        OutboundMessage(ANN, "", run_id=RunId("r"), file=OutFile(kind, f"/{name}", name))
        for kind, name in files
    ]


def grouped(messages: list[OutboundMessage]) -> list[list[str]]:
    """The names of the files, album by album."""
    found: dict[str, list[str]] = {}
    for number, one in enumerate(messages):
        assert one.file is not None
        found.setdefault(one.album or str(number), []).append(one.file.name)
    return list(found.values())


@pytest.mark.parametrize(
    ("files", "albums"),
    [
        ([], []),
        ([(PHOTO, "a")], [["a"]]),
        ([(PHOTO, "a"), (PHOTO, "b")], [["a", "b"]]),
        ([(VOICE, "a"), (VOICE, "b")], [["a"], ["b"]]),
        ([(PHOTO, "a"), (DOCUMENT, "b"), (PHOTO, "c"), (DOCUMENT, "d"), (VOICE, "e")], [["a", "c"],
         ["b", "d"], ["e"]]),
        ([(PHOTO, str(n)) for n in range(10)], [[str(n) for n in range(10)]]),
        ([(PHOTO, str(n)) for n in range(11)], [[str(n) for n in range(6)],
         [str(n) for n in range(6, 11)]]),
    ],
)  # fmt: skip
def test_files_that_go_together_are_one_album(
    files: list[tuple[FileKind, str]], albums: list[list[str]]
) -> None:
    assert grouped(in_albums(sends(*files), Kinds(albums=True))) == albums


def test_a_channel_without_albums_gets_files_one_by_one() -> None:
    files = sends((PHOTO, "a"), (PHOTO, "b"))
    assert in_albums(files, RecordingChannel()) == files
    assert in_albums(files, None) == files


async def put(gateway: GatewayProcess, folder: str, *names: str, missing: str = "") -> None:
    """An answer of some words and an album."""
    for name in {*names} - {missing}:
        Path(folder, name).write_bytes(name.encode())
    album = [
        replace(one, file=OutFile(PHOTO, str(Path(folder, name)), name), album="r/0")
        for name, one in zip(names, sends(*((PHOTO, name) for name in names)), strict=True)
    ]
    words = OutboundMessage(ANN, "look", run_id=RunId("r"))
    now = gateway.clock.now()
    await gateway.store.settle((), Outcome.COMPLETED, now=now, say=[words, *album])


def albums_of(channel: RecordingChannel) -> list[list[str]]:
    return [[one.file.name for one in album if one.file] for album in channel.sent_albums]


async def test_an_album_is_sent_at_once_and_each_row_has_its_own_id() -> None:
    channel = RecordingChannel(albums=True)
    with TemporaryDirectory() as folder:
        async with a_process(channels=(channel,)) as gateway:
            await put(gateway, folder, "a", "b", "c")
            await channel.until_sent(4)
            await until(lambda: not gateway.outbox.sending)
            said = await rows(gateway)
    assert albums_of(channel) == [["a", "b", "c"]]
    assert [row.external_id for row in said] == ["1", "2", "3", "4"]
    assert {row.state for row in said} == {OutboxState.SENT}
    assert {row.attempts for row in said} == {1}


@pytest.mark.parametrize(
    "error", [NotSent("no route"), RateLimited("slow down", 5.0), MaybeSent("no answer")]
)
async def test_an_album_that_fails_for_now_is_tried_again_as_an_album(error: Exception) -> None:
    channel = RecordingChannel(albums=True)
    with TemporaryDirectory() as folder:
        async with a_process(channels=(channel,)) as gateway:
            await put(gateway, folder, "a", "b")
            await channel.until_sent(1)
            channel.fail(error)
            await channel.until_sent(3)
            await until(lambda: not gateway.outbox.sending)
            said = await rows(gateway)
    assert albums_of(channel) == [["a", "b"]]
    assert [row.attempts for row in said] == [1, 2, 2]
    unsure = isinstance(error, MaybeSent)
    assert [row.possible_duplicate for row in said] == [False, unsure, unsure]


async def test_an_album_goes_where_its_chat_has_moved_to() -> None:
    channel = RecordingChannel(albums=True)
    with TemporaryDirectory() as folder:
        async with a_process(channels=(channel,)) as gateway:
            await put(gateway, folder, "a", "b")
            await channel.until_sent(1)
            channel.fail(ChatMoved("moved", "-1009"))
            await channel.until_sent(3)
    assert albums_of(channel) == [["a", "b"]]
    assert [one.target.chat for one in channel.sent] == ["-100", "-1009", "-1009"]


async def test_the_rest_of_an_album_is_sent_though_one_of_its_files_is_refused() -> None:
    """SPEC IO-3: and the chat reads which one was not."""
    channel = RecordingChannel(albums=True)
    with TemporaryDirectory() as folder:
        async with a_process(channels=(channel,)) as gateway:
            await put(gateway, folder, "a", "b", "c", missing="b")
            await channel.until_sent(4)
            said = await rows(gateway)
    assert [one.file.name for one in channel.sent if one.file] == ["a", "c"]
    assert albums_of(channel) == []
    assert "could not send the file “b”" in channel.texts()[-1]
    states = [row.state.value for row in said if row.message.file]
    assert states == ["sent", "failed", "sent"]


async def test_an_album_of_a_channel_that_has_none_any_more_is_sent_one_by_one() -> None:
    class Without(RecordingChannel):
        async def send_album(self, messages: object) -> list[str]:
            raise Undeliverable("this channel has no albums")

    channel = Without()
    with TemporaryDirectory() as folder:
        async with a_process(channels=(channel,)) as gateway:
            await put(gateway, folder, "a", "b")
            await channel.until_sent(3)
    assert [one.file.name for one in channel.sent if one.file] == ["a", "b"]


async def test_an_album_counts_as_many_messages_as_it_has_files() -> None:
    """SPEC IO-4."""
    channel = RecordingChannel(albums=True, limits=RateLimit(per_minute=5))
    loop = asyncio.get_running_loop()
    with TemporaryDirectory() as folder:
        async with a_process(channels=(channel,)) as gateway:
            begun = loop.time()
            await put(gateway, folder, "a", "b", "c", "d")
            await channel.until_sent(5)
            assert loop.time() - begun < 5, "five fit"
            await put(gateway, folder, "e", "f")
            await channel.until_sent(8)
            assert 59 <= loop.time() - begun < 65, "and no more within a minute"
