"""Replies that people see grow (SPEC CHAN-4, IO-5, CMD-3)."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from goclaw_py.chat.outbound import texts
from goclaw_py.core.errors import AgentError
from goclaw_py.core.messages import FileKind, OutFile, PeerKind
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import TextDelta, ToolEnded, ToolStarted
from goclaw_py.runs.agent_loop import AgentResult, Emit, RunRequest
from goclaw_py.runs.replies.streaming import EDIT_EVERY_S, FIRST_AFTER_S
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import (
    Block,
    Do,
    Emitting,
    Fail,
    Ignore,
    Return,
    Say,
    ScriptedAgent,
    Step,
    Stream,
)
from tests.support.drafting import DraftingChannel, only_row, outbox, replying
from tests.support.harness import Ways, a_process, message, until

AT_ONCE = Ways(QueuePolicy(), QueuePolicy(concurrency=3))
SLOW = Stream(tuple(f"{number}," for number in range(10)), every_s=0.5)
SLOW_TEXT = "".join(SLOW.pieces)
JITTER_S = 1e-6
BLOCKED = Emitting((TextDelta("so far"),), Block("the end"))


@pytest.mark.parametrize(
    "step",
    [
        Say("at once"),
        Stream(("not ", "long"), every_s=FIRST_AFTER_S - 0.1),
        Say("silence", after_s=60),
    ],
)
async def test_a_reply_that_comes_at_once_or_after_silence_needs_no_draft(step: Step) -> None:
    async with replying(step) as (gateway, channel):
        await channel.until_sent(1)
        await asyncio.sleep(60)
        assert channel.asked == []
        assert gateway.store.calls["open_draft"] == 0
        assert channel.sent[0].draft is None


async def test_a_slow_reply_grows_in_one_draft_and_ends_in_it() -> None:
    async with replying(SLOW) as (gateway, channel):
        await channel.until_sent(1)
        assert list(channel.drafted) == ["draft-1"]
        shown = channel.drafted["draft-1"]
        assert shown[-1] == SLOW_TEXT
        assert len(shown) >= 4
        assert all(later.startswith(earlier) for earlier, later in pairwise(shown))
        assert await only_row(gateway) == ("draft-1", False)
        assert channel.visible() == [SLOW_TEXT]
        assert channel.closed_drafts() == []
        assert await gateway.store.drafts() == []


async def test_edits_are_at_least_a_second_apart() -> None:
    async with replying(Stream(("x",) * 300, every_s=0.07)) as (_, channel):
        await channel.until_sent(1)
        edits = channel.edits
        assert len(edits) > 10
        assert all(later - earlier > EDIT_EVERY_S - JITTER_S for earlier, later in pairwise(edits))


async def test_nothing_is_edited_while_nothing_new_is_said() -> None:
    async with replying(Stream(("one ", "two"), every_s=60)) as (_, channel):
        await asyncio.sleep(59)
        assert [text.text for _, text in channel.asked] == ["one "]


async def test_a_draft_is_noted_before_it_is_posted_and_its_id_before_it_is_edited() -> None:
    seen: list[str | None] = []
    async with replying(SLOW) as (gateway, channel):
        gateway.store.slow_before_s["draft_posted"] = 2.0

        def note() -> None:
            (draft,) = gateway.database.drafts.values()
            seen.append(draft.external_id)

        channel.before_post = channel.before_edit = note
        await channel.until_sent(1)
        assert seen[:2] == [None, "draft-1"]


async def test_a_long_reply_ends_in_the_draft_and_goes_on_in_new_messages() -> None:
    """SPEC CHAN-3: only the first part is a reply."""
    agent = ScriptedAgent(Stream(("a" * 60, " b" * 60), every_s=2))
    channel = DraftingChannel(part_limit=100)
    async with a_process(agent, AT_ONCE, channels=(channel,)) as gateway:
        asked = message("hello", peer=PeerKind.GROUP)
        await gateway.gateway.accept([asked])
        await until(lambda: not gateway.database.unsent and len(channel.sent) >= 2)
        first, *more = channel.sent
        assert (first.draft, first.reply_to) == ("draft-1", asked.message_id)
        assert all((part.draft, part.reply_to) == (None, None) for part in more)
        assert all(text.reply_to == asked.message_id for _, text in channel.asked)


async def test_a_channel_without_drafts_is_never_asked_for_one() -> None:
    async with a_process(ScriptedAgent(SLOW), AT_ONCE) as gateway:
        assert await gateway.ask("hello") == SLOW_TEXT
        assert gateway.channel.drafted == {}


async def test_a_stop_marks_the_draft_below_what_it_shows() -> None:
    """By a message, so that no crash leaves it open."""
    async with replying(BLOCKED) as (gateway, channel):
        await asyncio.sleep(5)
        await gateway.say("/stop", apart_s=5)
        assert channel.closed_drafts() == []
        assert channel.visible() == ["so far\n\n⏹ Stopped."]
        assert [row.message.draft for row in await outbox(gateway)] == ["draft-1"]
        assert await gateway.store.drafts() == []


async def test_a_stop_is_answered_where_the_run_does_not_end_soon() -> None:
    """SPEC CMD-1: its growing reply cannot say so yet."""
    async with replying(Emitting((TextDelta("so far"),), Ignore(5.0))) as (gateway, channel):
        await asyncio.sleep(3)
        await gateway.say("/stop", apart_s=1.5)
        assert "Stopped." in channel.visible()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (AgentError("My model is away.", "503"), "My model is away."),
        (ValueError("a bug"), texts.FAILED),
    ],
)
async def test_a_failure_comes_below_what_was_said(error: Exception, words: str) -> None:
    """Alone where there is no draft."""
    for after_s, visible in ((5, f"I begin\n\n{words}"), (0, words)):
        step = Emitting((TextDelta("I begin"),), Fail(error, after_s=after_s))
        async with replying(step) as (_, channel):
            await channel.until_sent(1)
            assert channel.visible() == [visible]
            assert not any(end.silent for end in channel.ended())
            assert channel.sent[0].draft == ("draft-1" if after_s else None)


async def test_a_run_that_took_too_long_says_so_below_what_was_said() -> None:
    """SPEC QUEUE-9."""
    ways, channel = Ways(QueuePolicy(), run_timeout_s=20), DraftingChannel()
    async with a_process(ScriptedAgent(BLOCKED), ways, channels=(channel,)) as gateway:
        await gateway.say("hello")
        await channel.until_sent(1)
        words = texts.timed_out(Reason.RUN_TIMEOUT)
        assert channel.visible() == [f"so far\n\n{words}"]


class Blank(DraftingChannel):
    """Finds nothing to show in a comment."""

    def parts(self, text: str) -> list[str]:
        return [] if text.startswith("<!--") else super().parts(text)


@pytest.mark.parametrize(("begins", "ends"), [("hm", ""), ("<!-- ", "<!-- hidden -->")])
async def test_a_draft_is_removed_if_there_is_nothing_in_the_reply(begins: str, ends: str) -> None:
    """A reply of nothing but a comment is no message, and no draft may stay open."""
    step = Emitting((TextDelta(begins),), Block(ends))
    async with replying(step, Blank()) as (gateway, channel):
        await asyncio.sleep(5)
        gateway.scripted.release()
        await until(lambda: bool(channel.ended()))
        await until(lambda: channel.deleted == {"draft-1"})
        await asyncio.sleep(60)
        assert channel.sent == []
        assert [end.silent for end in channel.ended()] == [True]


async def test_a_line_about_a_file_finishes_the_draft_though_the_reply_is_empty() -> None:
    """One of the two may have the draft: the signal or the message."""
    missing = OutFile(FileKind.DOCUMENT, "/nowhere/x.txt", "x.txt")

    class Thinking(ScriptedAgent):
        async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
            emit(TextDelta("hm"))
            await asyncio.sleep(5)
            return await super().run(request, emit)

    async with replying(Thinking(Return(AgentResult("", files=(missing,))))) as (_, channel):
        await channel.until_sent(1)
        assert channel.closed_drafts() == []
        assert channel.sent[0].draft == "draft-1"
        assert "x.txt" in channel.sent[0].text


class Uncuttable(DraftingChannel):
    """Meets a bug when it cuts an answer."""

    def parts(self, text: str) -> list[str]:
        raise ValueError(text)


async def test_a_reply_that_meets_a_bug_still_ends_its_draft() -> None:
    async with replying(SLOW, Uncuttable()) as (gateway, channel):
        await channel.until_sent(1)
        assert channel.sent[0].draft == "draft-1"
        assert channel.visible() == [texts.FAILED]
        assert channel.closed_drafts() == []
        assert [end.outcome for end in channel.ended()] == [Outcome.FAILED]
        assert await gateway.outcomes() == [Outcome.FAILED]


async def test_a_stop_whose_words_meet_a_bug_still_closes_its_draft() -> None:
    async with replying(BLOCKED, Uncuttable()) as (gateway, channel):
        await asyncio.sleep(5)
        await gateway.say("/stop", apart_s=5)
        assert [draft for draft, *_ in channel.closed_drafts()] == ["draft-1"]
        assert await gateway.outcomes() == [Outcome.CANCELLED]


@pytest.mark.parametrize(("works_s", "waits_s"), [(5, 0), (0, 5)])
async def test_people_see_which_tools_are_in_use(works_s: float, waits_s: float) -> None:
    """SPEC AGENT-1: what happens to tools reaches the chat."""

    async def look_up(request: RunRequest, emit: Emit) -> str:
        emit(ToolStarted("1", "web_search", "{}"))
        await asyncio.sleep(works_s)
        emit(ToolEnded("1", "web_search", ok=True))
        await asyncio.sleep(waits_s)
        return "found"

    async with replying(Do(look_up)) as (_, channel):
        await channel.until_sent(1)
        assert channel.sent[0].text == "found"
        assert list(channel.drafted) == (["draft-1"] if works_s else [])
        for shown in channel.drafted.values():
            assert (shown[0], shown[-1]) == ("⚙ web_search …", "found")
