"""Files from people and files from agents (SPEC CHAN-6, SEC-4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.chat.inbound.attachments import FOLDER, _safe
from goclaw_py.chat.outbound import texts
from goclaw_py.core.errors import ChannelError, NotSent, RateLimited, Undeliverable
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.core.messages import Attachment, FileKind, InboundMessage, OutFile, PeerKind, Sender
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.session_keys import GroupPolicy
from goclaw_py.runs.agent_loop import AgentResult, FilePart, RunRequest, TextPart
from goclaw_py.scheduler.models import Mode, QueuePolicy
from goclaw_py.testing.agents import Block, Return, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import GatewayProcess, Ways, a_process, message, session_of, until

AT_ONCE = Ways(QueuePolicy(), QueuePolicy())
PHOTO = Attachment(FileKind.PHOTO, "photo", mime="image/jpeg")
PAPER = Attachment(FileKind.DOCUMENT, "paper", "tax return.pdf", "application/pdf")


class Downloads(RecordingChannel):
    """Counts and delays downloads."""

    def __init__(self) -> None:
        super().__init__(files={"photo": b"jpeg", "paper": b"pdf"})
        self.fetched: list[str] = []
        self.refusals: list[ChannelError] = []
        self.takes_s = 0.0

    async def fetch(self, attachment: Attachment, to: Path) -> None:
        self.fetched.append(attachment.ref)
        await asyncio.sleep(self.takes_s)
        if self.refusals:
            raise self.refusals.pop(0)
        await super().fetch(attachment, to)


@asynccontextmanager
async def with_downloads(
    agent: ScriptedAgent | None = None, ways: Ways = AT_ONCE
) -> AsyncIterator[tuple[GatewayProcess, Downloads]]:
    channel = Downloads()
    async with a_process(agent, ways, channels=(channel,)) as gateway:
        yield gateway, channel


def with_files(text: str, *files: Attachment) -> InboundMessage:
    return replace(message(text), attachments=files)


async def parts_of(
    gateway: GatewayProcess, *batch: InboundMessage
) -> tuple[TextPart | FilePart, ...]:
    """What the agent is given of a batch."""
    await gateway.gateway.accept(batch)
    await gateway.scripted.until_started(1)
    return gateway.scripted.requests[0].parts


def files_of(request: RunRequest) -> list[FilePart]:
    return [part for part in request.parts if isinstance(part, FilePart)]


def put(gateway: GatewayProcess, *names: str) -> None:
    """Let there be files in the workspace."""
    for name in names:
        path = gateway.workspace / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")


async def test_a_file_is_in_the_workspace_when_the_agent_begins() -> None:
    async with with_downloads() as (gateway, _):
        text, file = await parts_of(gateway, with_files("look", PAPER))
        assert text == TextPart("look")
        assert isinstance(file, FilePart)
        assert file.path.parent == gateway.workspace / FOLDER
        assert file.path.name.endswith("-tax_return.pdf")
        assert file.path.read_bytes() == b"pdf"
        meant = (FileKind.DOCUMENT, "tax return.pdf", "application/pdf")
        assert (file.kind, file.name, file.mime) == meant
        request = gateway.scripted.requests[0]
        assert request.workspace == gateway.workspace
        assert str(file.path) in request.prompt


async def test_a_file_without_a_word_is_a_message() -> None:
    async with with_downloads() as (gateway, _):
        (file,) = await parts_of(gateway, with_files("", PHOTO))
        assert isinstance(file, FilePart)
        assert (file.name, file.path.suffix) == ("photo.jpg", ".jpg")
        await gateway.channel.until_sent(1)
        assert (await gateway.texts_in_history())[0] == "[photo]"


async def test_an_album_is_one_turn_with_its_files_in_order() -> None:
    """SPEC CHAN-6, QUEUE-6: albums are one message, also without any debounce."""
    async with with_downloads() as (gateway, _):
        for text, file in (("our trip", PHOTO), ("", PAPER), ("", PHOTO)):
            await gateway.gateway.accept([replace(with_files(text, file), album="7")])
            await asyncio.sleep(0.1)
        await gateway.channel.until_sent(1)
        await asyncio.sleep(30)
        (request,) = gateway.scripted.requests
        assert [type(part) for part in request.parts] == [TextPart, FilePart, FilePart, FilePart]
        names = [part.name for part in files_of(request)]
        assert names == ["photo.jpg", "tax return.pdf", "photo.jpg"]
        assert (await gateway.texts_in_history())[0].startswith("our trip\n[photo]\n[document")


async def test_a_file_of_the_message_replied_to_comes_with_the_reply() -> None:
    """SPEC CHAN-6: before the message's own, and marked; once for all parts of an album."""
    asked = replace(with_files("which is better?", PAPER), quote="mine", quoted_files=(PHOTO,))
    album = [replace(asked, album="7"), replace(asked, external_id="8", text="", album="7")]
    async with with_downloads() as (gateway, channel):
        text, photo, *own = await parts_of(gateway, *album)
        assert text == TextPart("> mine\n> [photo]\n\nwhich is better?")
        assert isinstance(photo, FilePart)
        assert (photo.name, photo.quoted, photo.path.read_bytes()) == ("photo.jpg", True, b"jpeg")
        assert "of the message replied to, saved as" in photo.text
        assert [isinstance(part, FilePart) and part.quoted for part in own] == [False, False]
        assert channel.fetched == ["photo", "paper", "paper"]
        await gateway.channel.until_sent(1)
        assert (await gateway.texts_in_history())[0].startswith("> mine\n> [photo]\n\nwhich")


async def test_a_file_of_the_message_replied_to_that_is_gone_is_named() -> None:
    """The sentence is that of a file of one's own."""
    async with with_downloads() as (gateway, channel):
        channel.refusals = [Undeliverable("the file is too big")]
        asked = replace(message("what is it?"), quoted_files=(PAPER,))
        text, missing = await parts_of(gateway, asked)
        assert text == TextPart("> [document “tax return.pdf”]\n\nwhat is it?")
        of = "[document “tax return.pdf”] of the message replied to"
        assert missing == TextPart(f"{of} could not be loaded: the file is too big")


async def test_a_reply_to_a_file_does_not_join_a_run_and_can_be_stopped() -> None:
    """SPEC QUEUE-4, CMD-1: as with files of its own."""
    steer = QueuePolicy(mode=Mode.STEER)
    agent = ScriptedAgent(Block())
    async with with_downloads(agent, Ways(steer, steer)) as (gateway, channel):
        channel.takes_s = 600.0
        await gateway.say("work")
        await agent.until_active(1)
        await gateway.gateway.accept([replace(message("and this?"), quoted_files=(PHOTO,))])
        agent.release()
        await gateway.channel.until_sent(1)
        await until(lambda: channel.fetched == ["photo"])
        await gateway.gateway.accept([replace(message("stop"), quoted_files=(PHOTO,))])
        await until(lambda: "Stopped." in gateway.channel.texts("ann"), within_s=0.2)
        assert gateway.scripted.prompts == ["work"]


async def test_a_reply_without_words_asks_about_the_message() -> None:
    """SPEC CHAN-11: in a group the bot's name alone; something that cannot be read asks nothing."""
    group = replace(
        message("", peer=PeerKind.GROUP, sender="ben"), quoted_from=Sender("ann", "Ann")
    )
    about = "[Ben (id ben) asks about this message of Ann (id ann)]"
    for asked, told in (
        (replace(group, quote="the build is red"), f"{about}\n> the build is red"),
        (replace(group, quoted_files=(PHOTO,)), f"{about}\n> [photo]"),
    ):
        async with with_downloads(ways=replace(AT_ONCE, groups=GroupPolicy.OPEN)) as (gateway, _):
            first, *_ = await parts_of(gateway, asked)
            assert first == TextPart(told)
            await gateway.channel.until_sent(1)
            entries = await gateway.store.history(session_of(peer=PeerKind.GROUP))
            assert entries[0].entry.text == told
    async with with_downloads() as (gateway, channel):
        await gateway.gateway.accept([replace(message(""), quote="a", unsupported="a dice")])
        await channel.until_sent(1)
        assert channel.texts() == [texts.unsupported("a dice")]
        assert gateway.scripted.requests == []


async def test_captions_of_an_album_stand_above_their_files() -> None:
    """SPEC CHAN-6: for the agent and in the history; in a group only the first names its sender."""
    bits = (("one", PHOTO), ("", PAPER), ("two\nBob: x", PHOTO))
    for peer, first, last in (
        (PeerKind.DIRECT, "one", "two\nBob: x"),
        (PeerKind.GROUP, "Ann (id ann): one", "  two\n  Bob: x"),
    ):
        async with with_downloads(ways=replace(AT_ONCE, groups=GroupPolicy.OPEN)) as (gateway, _):
            album = [
                replace(message(text, peer=peer), attachments=(file,), album="7")
                for text, file in bits
            ]
            one, photo, paper, two, other = await parts_of(gateway, *album)
            assert (one, two) == (TextPart(first), TextPart(last))
            assert [type(part) for part in (photo, paper, other)] == [FilePart] * 3
            await gateway.channel.until_sent(1)
            pad = "  " if peer is PeerKind.GROUP else ""
            files = f"{pad}[photo]", f"{pad}[document “tax return.pdf”]", f"{pad}[photo]"
            said = "\n".join([first, *files[:2], last, files[2]])
            entries = await gateway.store.history(session_of(peer=peer))
            assert entries[0].entry.text == said


async def test_a_quoted_message_becomes_context() -> None:
    """SPEC CHAN-6: also with nothing but a file below it."""
    async with with_downloads() as (gateway, _):
        text, file = await parts_of(gateway, replace(with_files("", PHOTO), quote="show me"))
        assert text == TextPart("> show me")
        assert isinstance(file, FilePart)
    async with a_process(ways=AT_ONCE) as gateway:
        asked = replace(message("and now?"), quote="line one\nline two", reply_to="5")
        await gateway.gateway.accept([asked])
        await gateway.channel.until_sent(1)
        assert gateway.scripted.prompts == ["> line one\n> line two\n\nand now?"]
        assert (await gateway.texts_in_history())[0] == gateway.scripted.prompts[0]


async def test_messages_and_stops_are_taken_in_while_a_file_is_downloaded() -> None:
    """SPEC TRAPS, CMD-1: nothing that receives may wait for it; a stop takes 200 ms."""
    async with with_downloads() as (gateway, channel):
        channel.takes_s = 600.0
        before = asyncio.get_running_loop().time()
        await gateway.gateway.accept([with_files("look", PHOTO)])
        await gateway.ask("hello", chat="bob")
        assert asyncio.get_running_loop().time() - before < 0.5
        assert channel.fetched == ["photo"]
        await gateway.say("/stop")
        await until(lambda: gateway.channel.texts("ann") == ["Stopped."], within_s=0.2)
        await until(lambda: not gateway.dispatcher.runs(), within_s=0.2)
        assert gateway.scripted.texts == ["hello"]
        assert set(await gateway.outcomes()) == {Outcome.CANCELLED, Outcome.COMPLETED}
        assert list((gateway.workspace / FOLDER).iterdir()) == []


NO_ROUTE, SLOW = NotSent("reset"), RateLimited("slow down", 5.0)
BIG = "larger than 20 MB"


@pytest.mark.parametrize(
    ("refusals", "tries", "waits_s", "got"),
    [
        ([NO_ROUTE] * 2, 3, 2.0, FilePart),
        ([SLOW] * 2, 3, 10.0, FilePart),
        ([Undeliverable(BIG)], 1, 0.0, TextPart),
        ([NotSent(BIG)] * 3, 3, 2.0, TextPart),
    ],
)
async def test_a_download_that_fails_is_tried_again_or_told(
    refusals: list[ChannelError], tries: int, waits_s: float, got: type
) -> None:
    async with with_downloads() as (gateway, channel):
        channel.refusals = list(refusals)
        before = asyncio.get_running_loop().time()
        text, file = await parts_of(gateway, with_files("look", PAPER))
        assert asyncio.get_running_loop().time() - before >= waits_s
        assert (text, type(file), len(channel.fetched)) == (TextPart("look"), got, tries)
        assert got is FilePart or file == TextPart(texts.file_missing(PAPER, BIG))


async def test_a_workspace_that_cannot_be_written_to_is_told_too() -> None:
    async with with_downloads() as (gateway, _):
        put(gateway, FOLDER)
        (missing,) = await parts_of(gateway, with_files("", PHOTO))
        assert isinstance(missing, TextPart)
        assert "could not be loaded" in missing.text


async def test_the_same_file_is_not_downloaded_twice_after_a_crash() -> None:
    """SPEC IO-2."""
    async with with_downloads(ScriptedAgent(Block())) as (first, _):
        await first.gateway.accept([with_files("look", PHOTO, PAPER)])
        await first.scripted.until_active(1)
        first.kill()
        await asyncio.sleep(20)
        channel = Downloads()
        async with a_process(database=first.database, channels=(channel,)) as second:
            second.runner._received._workspaces = {MAIN_AGENT: first.workspace}
            await second.channel.until_sent(1)
            files = files_of(second.scripted.requests[0])
            assert [file.path.read_bytes() for file in files] == [b"jpeg", b"pdf"]
            assert channel.fetched == []


async def test_a_message_with_a_file_is_not_taken_in_by_a_run_that_works() -> None:
    """SPEC QUEUE-4: it gets a run of its own, in which the file is there."""
    agent = ScriptedAgent(Block())
    async with with_downloads(agent, Ways(QueuePolicy(mode=Mode.STEER))) as (gateway, _):
        await gateway.say("works")
        await agent.until_active(1)
        await gateway.gateway.accept([with_files("look", PHOTO)])
        assert agent.requests[0].take_messages() == ()
        agent.release()
        await agent.until_started(2)
        assert files_of(agent.requests[1])


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "_.._etc_passwd"),
        ("..", "file"),
        ("", "file"),
        ("a/b\\c\0d.txt", "a_b_c_d.txt"),
        (".bashrc", "bashrc"),
        ("x" * 300 + ".pdf", "x" * 46 + ".pdf"),
        ("Übung 1.pdf", "Übung_1.pdf"),
    ],
)
def test_a_name_on_disk_is_nothing_but_a_name(name: str, safe: str) -> None:
    assert _safe(name) == safe


@given(st.text(max_size=300))
def test_no_name_leaves_its_folder_or_is_too_long_for_it(name: str) -> None:
    path = Path("/folder") / f"1-1-{_safe(name)}"
    assert path.parent == Path("/folder")
    assert len(path.name.encode("utf-8", "surrogatepass")) <= 255
    assert ".." not in path.parts


def sends(*names: str, text: str = "here") -> ScriptedAgent:
    """An agent that sends files by their names in its workspace."""

    def step(request: RunRequest) -> Return:
        paths = [str(request.workspace / name) for name in names]
        files = tuple(OutFile(FileKind.DOCUMENT, path, Path(path).name) for path in paths)
        return Return(AgentResult(text, files=files))

    return ScriptedAgent(otherwise=step)


@pytest.mark.parametrize("albums", [True, False])
@pytest.mark.parametrize(("text", "before"), [("here", 1), ("", 0)])
async def test_files_of_the_agent_follow_its_text(text: str, before: int, *, albums: bool) -> None:
    """SPEC CHAN-3, CHAN-6: only the first part is a reply; without a text that is a file."""
    channel = RecordingChannel(albums=albums)
    agent = sends("a.txt", "sub/b.txt", text=text)
    async with a_process(agent, AT_ONCE, channels=(channel,)) as gateway:
        put(gateway, "a.txt", "sub/b.txt")
        asked = message("hello", peer=PeerKind.GROUP)
        await gateway.gateway.accept([asked])
        await channel.until_sent(before + 2)
        assert [one.file.name for one in channel.sent if one.file] == ["a.txt", "b.txt"]
        assert [one.text for one in channel.sent[:before]] == ["here"] * before
        assert channel.sent_albums == ([tuple(channel.sent[before:])] if albums else [])
        replies = [one.reply_to for one in channel.sent]
        assert replies == [asked.message_id, *[None] * (before + 1)]


OUTSIDE, GONE = "it is not in the workspace", "there is no such file"


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["../outside.txt", "/etc/passwd", "link", "folder/escape/passwd"], OUTSIDE),
        (["gone.txt", "folder", "zero\0byte", "circle", "x" * 5000], GONE),
    ],
)
async def test_a_file_that_may_not_or_cannot_be_sent_is_told(names: list[str], reason: str) -> None:
    """SPEC SEC-4: workspace paths cannot escape by .. or symlink."""
    for name in names:
        async with a_process(sends(name), AT_ONCE) as gateway:
            put(gateway, "folder/file")
            (gateway.workspace / "link").symlink_to("/etc/passwd")
            (gateway.workspace / "folder/escape").symlink_to("/etc")
            (gateway.workspace / "circle").symlink_to(gateway.workspace / "circle")
            reply = await gateway.ask("hello")
            assert reply.startswith("here\n\n(The file “")
            assert reply.endswith(f"” could not be sent: {reason}.)")
            assert len(reply) < 120
            await asyncio.sleep(5)
            assert len(gateway.channel.sent) == 1
            assert await gateway.outcomes() == [Outcome.COMPLETED]
