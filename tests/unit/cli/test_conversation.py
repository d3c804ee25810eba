"""A person at a terminal talks to an agent, and what that looks like (SPEC CHAN-9, IO-6).

No terminal, no gateway, no real time.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from goclaw_py.chat.terminals import ChatEvent, OpenButtons, TerminalMessage
from goclaw_py.cli.chats.chat import LocalChat
from goclaw_py.cli.chats.conversation import SEEN_ROWS, TerminalConversation, agent_for, settled
from goclaw_py.cli.chats.markdown import MarkdownTranscript
from goclaw_py.cli.chats.transcript import PROMPT, ChatDisplay, Transcript
from goclaw_py.cli.client.control import STREAM_SILENCE_S, while_alive
from goclaw_py.core.approvals import ABOUT_APPROVAL, ABOUT_OUTCOME, Decision
from goclaw_py.core.chat_commands import approval_buttons
from goclaw_py.core.errors import NoGateway, NotFound, StoreUnavailable
from goclaw_py.core.ids import ApprovalId, RunId
from goclaw_py.core.messages import Button, FileKind, OutboundMessage, OutFile, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import (
    ButtonsUsed,
    LineReceived,
    PressAnswered,
    RunEnded,
    RunStarted,
    RunText,
    RunTool,
    RunWaiting,
)
from goclaw_py.records import OutboxState
from goclaw_py.web.api.wire import MAX_LIMIT
from tests.unit.web import fakes
from tests.unit.web.fake_terminals import FakeTerminals
from tests.unit.web.fakes import FakeControl

HERE = Target("console", "default", "local")
A, B = RunId("a"), RunId("b")


def started(run: RunId = A) -> ChatEvent:
    return RunStarted(run, HERE)


def text(words: str, run: RunId = A) -> ChatEvent:
    return RunText(run, HERE, words)


def ended(run: RunId = A, outcome: Outcome = Outcome.COMPLETED) -> ChatEvent:
    return RunEnded(run, HERE, outcome)


def said(words: str, run: RunId | None = A) -> ChatEvent:
    return TerminalMessage("receipt", words, run)


def piped(*events: ChatEvent) -> str:
    """What a pipe gets."""
    transcript = Transcript(interactive=False)
    return "".join(transcript.show(event) for event in events) + transcript.leave()


@pytest.mark.parametrize(("events", "shown"), [
    ([started(), text("Hel"), text("lo"), ended(), said("Hello")], "Hello\n"),
    # Blanks around it do not make it another one.
    ([started(), text("Hello\n"), ended(), said("Hello")], "Hello\n\n"),
    # The rest that was not streamed is added.
    ([started(), text("Hel"), said("Hello, world"), ended()], "Hello, world\n"),
    # What was streamed otherwise, or not at all, is written whole.
    ([started(), text("draft"), ended(), said("final")], "draft\nfinal\n"),
    ([started(), ended(), said("Hello")], "Hello\n"),
    # The message of a failed run follows what it had streamed.
    ([started(), text("Hel"), ended(A, Outcome.FAILED), said("Sorry.")], "Hel\nSorry.\n"),
    # A message between two pieces of a stream has its own line.
    (
        [text("one "), said("stopped", None), text("two"), ended(), said("one two")],
        "one \nstopped\ntwo\n",
    ),
    # Of two runs at once one streams, and the other one is written at its end.
    ([text("a1"), text("b1", B), text("a2"), ended(), said("a1a2"), text("b2", B)], "a1a2\n"),
    (
        [text("a1"), text("b1", B), ended(B), said("b1b2", B), text("a2"), said("a1a2")],
        "a1\nb1b2\na2\n",
    ),
    # Leaving ends the line of an open stream.
    ([text("Hel")], "Hel\n"),
    # SPEC SEC-1: a chat cannot take over the terminal.
    ([text("a\x1b[2J\x07b"), said("a\x1b[2J\x07b")], "a[2Jb\n"),
    ([said("\x9b31mred\r\x08\ttab", None)], "31mred\ttab\n"),
])  # fmt: skip
def test_each_reply_is_written_once(events: list[ChatEvent], shown: str) -> None:
    assert piped(*events) == shown


def test_a_run_without_an_answer_says_so_to_a_person() -> None:
    """Otherwise its message would look lost. A pipe gets answers only."""
    silent = RunEnded(A, HERE, Outcome.COMPLETED, silent=True)
    transcript = Transcript(interactive=True)
    assert transcript.show(silent) == f"\x1b[2m(no answer)\x1b[0m\n{PROMPT}"
    assert MarkdownTranscript(lambda _: None).show(silent) == "\x1b[2m(no answer)\x1b[0m\n"
    assert piped(started(), silent) == ""
    # What was streamed before a tool call was something.
    assert "no answer" not in "".join(map(transcript.show, (text("Hel"), silent)))


def test_a_run_that_streams_on_behind_another_one_is_not_written_twice() -> None:
    transcript = Transcript(interactive=False)
    shown = "".join(
        transcript.show(event)
        for event in (text("a1"), said("x", None), text("b1", B), text("a2"), said("b1", B))
    )
    assert shown == "a1\nx\nb1\n"
    assert transcript.show(said("a1a2")) == ""


def test_a_person_is_prompted_again_after_each_reply() -> None:
    transcript = Transcript(interactive=True)
    assert transcript.prompt() == PROMPT
    assert transcript.prompt() == ""
    transcript.entered()
    assert transcript.show(started()) == ""
    assert transcript.show(text("Hello")) == "Hello"
    assert transcript.prompt() == ""
    assert transcript.show(said("Hello")) == "\n" + PROMPT
    assert transcript.leave() == "\n"
    # What comes at the prompt takes its line.
    transcript = Transcript(interactive=True)
    transcript.prompt()
    assert transcript.show(said("Ding", None)) == f"\r\x1b[KDing\n{PROMPT}"
    # A note is for people only.
    assert Transcript(interactive=False).note("x") == ""
    assert Transcript(interactive=True).note("x") == f"\x1b[2mx\x1b[0m\n{PROMPT}"


@pytest.mark.parametrize("outcome", [Outcome.CANCELLED, Outcome.TIMED_OUT])
def test_a_person_sees_how_a_cut_reply_ended(outcome: Outcome) -> None:
    transcript = Transcript(interactive=True)
    transcript.show(text("Hel"))
    got = transcript.show(ended(A, outcome))
    assert got == f"\n\x1b[2m{outcome.value.replace('_', ' ')}\x1b[0m\n{PROMPT}"


def test_what_interrupts_a_reply_begins_no_new_line_in_the_end() -> None:
    transcript = Transcript(interactive=False)
    transcript.show(text("Hel"))
    transcript.show(said("x", None))
    assert transcript.show(ended(A, Outcome.CANCELLED)) == ""
    # Replies that never come are forgotten in the end.
    transcript = Transcript(interactive=False)
    transcript.show(text("old"))
    for number in range(100):
        run = RunId(str(number))
        transcript.show(said("x", None))
        transcript.show(text("y", run))
    assert transcript.show(said("old")) == "\nold\n"


@pytest.mark.parametrize(("events", "shown", "draft"), [
    ([started(), text("Hel"), text("lo")], "", "Hello"),
    ([text("Hel"), ended(), said("Hello **you**")], "Hello you\n", ""),
    # The lines of an answer stay lines.
    ([said("one\ntwo")], "one\ntwo\n", ""),
    # Of two runs at once one is drafted, and the other one is written at its end.
    ([text("a"), text("b", B), ended(B), said("b", B), text("a")], "b\n", "aa"),
    # What was drafted otherwise is written too.
    ([text("draft"), ended(), said("final")], "draft\nfinal\n", ""),
    ([text("draft"), said("a note"), text("ed")], "a note\n", "drafted"),
    ([text("Hel"), ended(A, Outcome.FAILED), said("Sorry.")], "Hel\nfailed\nSorry.\n", ""),
    ([started(), ended(A, Outcome.CANCELLED)], "cancelled\n", ""),
    # A message that is late, or goes to another terminal, loses nothing and doubles nothing.
    ([text("a"), ended(), text("b", B)], "a\n", "b"),
    ([text("a"), ended(), text("b", B), said("a")], "a\n", "b"),
    ([RunTool(A, HERE, "pay", None), RunTool(A, HERE, "pay", ok=True)], "⚙ pay\n", ""),
    ([RunTool(A, HERE, "pay", ok=False)], "⚙ pay failed\n", ""),
    ([RunTool(A, HERE, "pay", ok=False, denied=True)], "⚙ pay denied\n", ""),
    ([RunWaiting(A, HERE, "⏳ Waiting …"), RunWaiting(A, HERE, "")], "⏳ Waiting …\n", ""),
    # Replies of commands are no Markdown. SPEC SEC-1: a chat cannot take over the terminal.
    ([said("**a**\n\n\n b\x1b[2J", None)], "**a**\n\n\n b[2J\n", ""),
    ([said("[a](http://b)\x1b[2J\x07")], "a (http://b)[2J\n", ""),
])  # fmt: skip
def test_above_an_input_line_each_answer_is_written_once_as_markdown(
    events: list[ChatEvent], shown: str, draft: str
) -> None:
    drafts = [""]
    transcript = MarkdownTranscript(drafts.append)
    written = "".join(transcript.show(event) for event in events)
    assert re.sub(r"\x1b\[[0-9;]*m", "", written) == shown
    assert drafts[-1] == draft
    # Leaving writes what was drafted.
    assert transcript.leave() == (f"{draft}\n" if draft else "")


QUESTION = "🔐 May I call this tool?\n\npay\n  amount: 5"
HOW = "Answer with /approve, /approve conversation, /approve always, or /deny."


def asks(*decisions: Decision) -> TerminalMessage:
    buttons = approval_buttons(decisions, ApprovalId("0123456789abcdef"))
    return TerminalMessage("asked", QUESTION, None, buttons=buttons)


@pytest.mark.parametrize(("events", "shown"), [
    ([asks(*ABOUT_APPROVAL)], f"{QUESTION}\n\n{HOW}\n"),
    (
        [asks(*ABOUT_OUTCOME)],
        f"{QUESTION}\n\nAnswer with /approve to call it again, or /deny to skip it.\n",
    ),
    # A terminal that attaches later gets it, too; other buttons have no commands.
    ([OpenButtons(asks(*ABOUT_APPROVAL))], f"{QUESTION}\n\n{HOW}\n"),
    ([OpenButtons(TerminalMessage("a", "b", None, buttons=((Button("x", "y"),),)))], ""),
    ([ended(A, Outcome.INTERRUPTED)], ""),
])  # fmt: skip
def test_a_question_about_a_tool_call_says_how_to_answer(
    events: list[ChatEvent], shown: str
) -> None:
    assert piped(*events) == shown
    assert edited(*events) == shown


ANSWERED, REPLY = said(f"{QUESTION}\n\n🚫 Denied by local.", None), "pay: 🚫 Denied by local."
REFUSED = [RunTool(A, HERE, "pay"), RunTool(A, HERE, "pay", ok=False), ended()]


@pytest.mark.parametrize(("events", "shown"), [
    ([ANSWERED, said(REPLY, None)], "🚫 Denied by local.\n"),
    ([said(REPLY, None), ANSWERED], f"{REPLY}\n"),
    # Given in the dashboard.
    ([ANSWERED, *REFUSED], "🚫 Denied by local.\n"),
    ([said(f"{QUESTION}\n\n✅ Allowed once by x.", None), REFUSED[1]],
     "✅ Allowed once by x.\n⚙ pay failed\n"),
    ([ANSWERED, *REFUSED, *REFUSED[:2]], "🚫 Denied by local.\n⚙ pay\n⚙ pay failed\n"),
])  # fmt: skip
def test_an_answer_to_a_question_is_said_once(events: list[ChatEvent], shown: str) -> None:
    begin = f"{QUESTION}\n\n{HOW}\n"
    assert edited(asks(*ABOUT_APPROVAL), *events) == begin + shown


def test_what_is_said_again_is_shown_again() -> None:
    twice = [said("Stand up.", None), said("Stand up.", None), said("up.", None)]
    assert edited(*twice) == "Stand up.\nStand up.\nup.\n"
    assert piped(*twice) == "Stand up.\nStand up.\nup.\n"
    first, second = (replace(asks(*ABOUT_APPROVAL), receipt=name) for name in ("a", "b"))
    assert edited(first, first, second) == 2 * f"{QUESTION}\n\n{HOW}\n"


def test_replies_of_commands_break_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    shown = edited(said("- /queue default: as the settings of this gateway say", None))
    assert shown == "- /queue default: as the settings of\nthis gateway say\n"


def edited(*events: ChatEvent) -> str:
    """Return what is above an input line, without colours."""
    transcript = MarkdownTranscript(lambda _: None)
    written = "".join(transcript.show(event) for event in events)
    return re.sub(r"\x1b\[[0-9;]*m", "", written)


class FakeTerminal:
    """A terminal whose keys are a queue and whose screen is a list."""

    def __init__(self, *, interactive: bool = True) -> None:
        self.interactive = interactive
        self.keys: asyncio.Queue[str | None] = asyncio.Queue()
        self.screen: list[str] = []
        self.broken = False
        self.slow: asyncio.Event | None = None

    async def read(self) -> str | None:
        return await self.keys.get()

    async def write(self, text: str) -> None:
        if self.slow is not None and "slow" in text:
            await self.slow.wait()
        if self.broken:
            raise BrokenPipeError("closed")
        self.screen.append(text)

    def type(self, *lines: str | None) -> None:
        for line in lines:
            self.keys.put_nowait(line)

    @property
    def text(self) -> str:
        return "".join(self.screen)


class Gone(FakeTerminals):
    async def say(self, chat: str, message_id: str, text: str, **more: object) -> None:
        raise NoGateway("the gateway has shut down or closed the connection")


async def yes() -> bool:
    return True


class Talk:
    """A conversation going on."""

    def __init__(self, *, interactive: bool = True, wait_s: float = 60, missed: int = 0) -> None:
        self.service = FakeTerminal(interactive=interactive)
        self.terminals = FakeTerminals()
        self.conversation = TerminalConversation(self.terminals, self.service, "local")
        self.looks = 0
        self.busy = 0
        self.task = asyncio.ensure_future(self.conversation.run(self._settled, wait_s, missed))

    async def _settled(self) -> bool:
        self.looks += 1
        return self.looks > self.busy

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(1000):
            while not condition():
                await asyncio.sleep(0.01)

    def hears(self, *events: ChatEvent | None) -> None:
        for event in events:
            self.terminals.events.put_nowait(event)

    async def end(self) -> bool:
        self.service.type(None)
        return await self.task


async def test_what_is_typed_is_said_line_by_line_and_blank_lines_are_not() -> None:
    talk = Talk()
    talk.service.type("hello", "  ", "again")
    assert await talk.end()
    assert talk.terminals.texts == ["hello", "again"]
    assert {chat for chat, _, _ in talk.terminals.said} == {"local"}
    assert len({message_id for _, message_id, _ in talk.terminals.said}) == 2
    assert (talk.terminals.attached, talk.terminals.detached) == (["local"], 1)


async def test_a_message_is_confirmed_only_after_it_was_written() -> None:
    talk = Talk()
    talk.service.slow = asyncio.Event()
    talk.hears(TerminalMessage("r1", "slow", None))
    await asyncio.sleep(1)
    assert talk.terminals.confirmed == []
    talk.service.slow.set()
    await talk.until(lambda: talk.terminals.confirmed)
    assert "slow\n" in talk.service.text
    await talk.end()


async def test_a_reply_grows_on_the_screen() -> None:
    talk = Talk()
    talk.hears(*(RunText(fakes.RUN_ID, fakes.LOCAL, words) for words in ("Hel", "lo")))
    talk.hears(TerminalMessage("r1", "Hello", fakes.RUN_ID))
    await talk.until(lambda: talk.terminals.confirmed)
    assert talk.service.screen == [PROMPT, "\r\x1b[KHel", "lo", "\n" + PROMPT]
    talk.hears(RunText(fakes.RUN_ID, fakes.LOCAL, "Hel"))
    talk.hears(RunEnded(fakes.RUN_ID, fakes.LOCAL, Outcome.CANCELLED))
    await talk.until(lambda: "cancelled" in talk.service.text)
    await talk.end()


async def test_a_line_that_is_not_committed_is_said_again_under_the_same_id() -> None:
    """SPEC IO-1: saying it again is harmless, losing it is not."""
    talk = Talk()
    talk.terminals.refusals = 6
    talk.service.type("hello", "second")
    await talk.until(lambda: len(talk.terminals.said) == 2)
    assert talk.terminals.texts == ["hello", "second"]
    assert talk.service.text.count("Not sent yet: your message is kept") == 1
    await talk.end()


async def test_ctrl_c_stops_the_run_and_again_within_two_seconds_leaves() -> None:
    talk = Talk()
    await asyncio.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
    await talk.until(lambda: talk.terminals.said)
    assert talk.terminals.texts == ["/stop"]
    assert "Ctrl-C again quits" in talk.service.text
    await asyncio.sleep(2.5)
    talk.conversation.interrupt()
    await talk.until(lambda: len(talk.terminals.said) == 2)
    assert not talk.task.done()
    await asyncio.sleep(1.9)
    talk.conversation.interrupt()
    assert await talk.task
    assert talk.terminals.texts == ["/stop", "/stop"]


@pytest.mark.parametrize("interactive", [True, False])
async def test_of_many_missed_messages_a_person_sees_the_newest(interactive: bool) -> None:
    talk = Talk(interactive=interactive, missed=25)
    missed = [TerminalMessage(f"r{number}", f"<{number}>", None) for number in range(25)]
    asks = replace(missed[1], buttons=((Button("Yes", "y"),),))
    talk.hears(missed[0], asks, *missed[2:], TerminalMessage("new", "<new>", None))
    await talk.until(lambda: len(talk.terminals.confirmed) == 26)
    shown = re.findall("<([0-9a-z]+)>", talk.service.text)
    # A question is never left out; a pipe gets all.
    expected = (
        ["1", *map(str, range(6, 25)), "new"] if interactive else [*map(str, range(25)), "new"]
    )
    assert shown == expected
    note = "5 earlier messages, not shown: goclaw deliveries list --chat console/default/local"
    assert (note in talk.service.text) == interactive
    await talk.end()


async def test_ctrl_d_leaves_a_terminal_at_once() -> None:
    talk = Talk()
    talk.busy = 1000
    assert await talk.end()
    assert talk.looks == 0
    assert talk.service.text == PROMPT + "\n"


async def test_the_end_of_a_pipe_waits_for_the_answers_in_bounded_time() -> None:
    talk = Talk(interactive=False)
    talk.busy = 20
    talk.service.type("hello", None)
    await talk.until(lambda: talk.looks > 10)
    talk.hears(TerminalMessage("r1", "Hi", None))
    assert await talk.task
    assert talk.service.text == "Hi\n"
    assert talk.looks == 22
    talk = Talk(interactive=False, wait_s=5)
    talk.busy = 1000
    before = asyncio.get_running_loop().time()
    assert not await talk.end()
    assert asyncio.get_running_loop().time() - before < 6


async def test_a_pipe_sends_each_line_after_the_answer_to_the_one_before() -> None:
    """Together they would be one message (SPEC QUEUE-4); a stop does not wait.

    Found by use: the answer to a command stood above, or within, the answer before it.
    """
    talk = Talk(interactive=False)
    talk.busy = 20
    talk.service.type("one", "/status")
    await talk.until(lambda: talk.looks > 10)
    assert talk.terminals.texts == ["one"]
    await talk.until(lambda: len(talk.terminals.said) == 2)
    talk.busy = 1000
    talk.service.type("/stop")
    await talk.until(lambda: len(talk.terminals.said) == 3)
    talk.busy = 0
    assert await talk.end()
    assert talk.terminals.texts == ["one", "/status", "/stop"]


async def test_how_a_run_without_an_answer_ended_is_known() -> None:
    talk = Talk(interactive=False)
    talk.service.type("error")
    await talk.until(lambda: talk.terminals.said)
    # That of another terminal, such as one that this one stops.
    talk.hears(RunEnded(RunId("other"), fakes.LOCAL, Outcome.CANCELLED))
    talk.hears(RunStarted(fakes.RUN_ID, fakes.LOCAL, (talk.terminals.said[0][1],)))
    talk.hears(RunEnded(fakes.RUN_ID, fakes.LOCAL, Outcome.INTERRUPTED))
    await asyncio.sleep(1)
    known = [talk.conversation.failed]
    talk.hears(RunEnded(fakes.RUN_ID, fakes.LOCAL, Outcome.FAILED))
    await talk.until(lambda: talk.conversation.failed)
    assert [*known, talk.conversation.failed] == [None, Outcome.FAILED]
    assert await talk.end()


async def test_a_gateway_that_goes_away_ends_the_conversation() -> None:
    service = FakeTerminal()
    service.type("hello")
    with pytest.raises(NoGateway):
        await TerminalConversation(Gone(), service, "local").run(yes, 60)
    conversation = TerminalConversation(Gone(), FakeTerminal(), "local")
    task = asyncio.ensure_future(conversation.run(yes, 60))
    await asyncio.sleep(0.01)
    conversation.interrupt()
    assert await task
    talk = Talk()
    talk.hears(None)
    assert await talk.task


class Restarting(FakeTerminals):
    """Three gateways end when the event None comes, two of them at once."""

    async def attach(self, chat: str) -> AsyncIterator[ChatEvent]:
        async for event in super().attach(chat):
            yield event
        if len(self.attached) < 4:
            raise NoGateway("the gateway has shut down or closed the connection")


async def test_a_terminal_waits_for_a_gateway_that_restarts() -> None:
    terminals, service = Restarting(), FakeTerminal()
    conversation = TerminalConversation(terminals, service, "local", outlives=True)
    task = asyncio.ensure_future(conversation.run(yes, 60))
    terminals.refusals = 3
    message = TerminalMessage("r1", "Hello", None)
    terminals.events.put_nowait(message)
    for _ in range(3):
        terminals.events.put_nowait(None)
    service.type("typed meanwhile")
    await asyncio.sleep(5)
    assert service.text.count("This chat goes on when it is back") == 1
    # What was not confirmed comes again, and is shown once.
    terminals.events.put_nowait(message)
    await asyncio.sleep(5)
    assert service.text.count("Hello") == 1
    assert terminals.confirmed == ["r1", "r1"]
    assert terminals.texts == ["typed meanwhile"]
    service.type(None)
    assert await task


async def test_what_is_typed_in_another_terminal_is_shown() -> None:
    talk = Talk()
    talk.service.type("mine")
    await talk.until(lambda: talk.terminals.said)
    own = talk.terminals.said[0][1]
    talk.hears(LineReceived(HERE, own, "mine"), LineReceived(HERE, "other-1", "theirs"))
    await talk.until(lambda: "theirs" in talk.service.text)
    assert "mine" not in talk.service.text
    await talk.end()


async def test_a_screen_that_nobody_reads_ends_the_conversation() -> None:
    talk = Talk(interactive=False)
    talk.service.broken = True
    talk.hears(TerminalMessage("r1", "Hi", None))
    assert await talk.task
    assert talk.terminals.confirmed == []


@pytest.mark.real_time
async def test_in_another_thread_the_signals_stay_where_they_are() -> None:
    def talk() -> bool:
        async def leave() -> bool:
            service = FakeTerminal()
            service.type(None)
            return await TerminalConversation(FakeTerminals(), service, "local").run(yes, 60)

        return asyncio.run(leave())

    before = signal.getsignal(signal.SIGINT)
    assert await asyncio.to_thread(talk)
    assert signal.getsignal(signal.SIGINT) == before


async def test_a_chat_is_settled_when_nothing_runs_and_nothing_waits_to_be_shown() -> None:
    assert SEEN_ROWS == MAX_LIMIT  # as many as the gateway gives at once
    control = FakeControl()
    control.messages.rows = []
    assert not await settled(control, "local")
    assert await settled(control, "other")
    control.snapshot = replace(control.snapshot, runs=())
    assert await settled(control, "local")
    for state in (OutboxState.WAITING, OutboxState.SENDING):
        control.messages.rows = [replace(fakes.DEAD, state=state)]
        assert not await settled(control, "local")
    elsewhere = OutboundMessage(Target("telegram", "default", "local"), "x")
    pending = replace(fakes.DEAD, state=OutboxState.WAITING)
    control.messages.rows = [replace(pending, message=elsewhere)]
    assert await settled(control, "local")
    control.messages.rows = [*[replace(pending, message=elsewhere)] * (SEEN_ROWS - 1), pending]
    assert not await settled(control, "local")


async def test_a_chat_says_which_it_is_and_what_was_missed(tmp_path: Path) -> None:
    control = FakeControl()
    control.messages.rows = [replace(fakes.DEAD, state=OutboxState.WAITING)]
    first, missed = await LocalChat(tmp_path, "local").greeting(control)
    assert first == "Chat local with agent main. /help lists the commands, Ctrl-D exits."
    assert missed == "1 message came while no terminal was open:"
    assert await LocalChat(tmp_path, "new").greeting(control) == [
        "Chat new. /help lists the commands, Ctrl-D exits."
    ]


async def arriving(*after_s: float) -> AsyncIterator[bytes]:
    for seconds in after_s:
        await asyncio.sleep(seconds)
        yield b"x"


async def test_a_silent_stream_is_given_up_in_bounded_time() -> None:
    got = [chunk async for chunk in while_alive(arriving(*[STREAM_SILENCE_S - 1] * 5))]
    assert got == [b"x"] * 5
    # What came during Ctrl-Z is looked at before the gateway is given up.
    """On ``fg`` the time is over and the bytes are there, but the loop has not read them yet."""
    got = [chunk async for chunk in while_alive(arriving(STREAM_SILENCE_S + 0.1))]
    assert got == [b"x"]
    # A silent one is given up.
    before = asyncio.get_running_loop().time()
    with pytest.raises(NoGateway, match="in time"):
        await anext(while_alive(arriving(10 * STREAM_SILENCE_S)))
    assert asyncio.get_running_loop().time() - before <= STREAM_SILENCE_S + 1


FILE = OutFile(FileKind.DOCUMENT, "/w/a\x1b[2J.txt", "a.txt")


@pytest.mark.parametrize("transcript", [Transcript(interactive=True), MarkdownTranscript(print)])
def test_of_a_sent_file_name_and_path_are_shown(transcript: ChatDisplay) -> None:
    shown = transcript.show(TerminalMessage("r", "", None, FILE))
    assert "[a.txt: /w/a" in shown
    assert "\x1b[2J" not in shown
    asked = TerminalMessage("r", "Tea!", None, None, ((Button("Done", "job:x"),),))
    for event in (OpenButtons(asked), ButtonsUsed(HERE, "r"), PressAnswered(HERE, "p", "Done")):
        assert transcript.show(event) == ""


@pytest.mark.parametrize(
    ("chat", "wanted", "agent"),
    [("local", None, "main"), ("local", "main", "main"), ("new", None, None), ("new", "x", "x")],
)
async def test_a_chat_keeps_its_agent(chat: str, wanted: str | None, agent: str | None) -> None:
    control = FakeControl()
    assert await agent_for(control, chat, wanted) == agent
    with pytest.raises(NotFound, match="is a conversation with agent main"):
        await agent_for(control, "local", "coder")
    control.failure = StoreUnavailable("away")
    assert await agent_for(control, "local", "coder") == "coder"
