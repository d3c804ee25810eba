"""Heartbeat runs in a gateway, from the clock to the line in the chat.

SPEC section 7, CHAN-6, CMD-5, HB-1, HB-3, HB-4, HB-6, HB-7, HB-8, HB-9, HB-10, HB-11, HB-12.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from goclaw_py.core.errors import AgentError, ChatGone, Undeliverable
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.core.messages import FileKind, OutFile, PeerKind, Target
from goclaw_py.core.outcomes import HeartbeatRunKind, Trigger
from goclaw_py.core.run_events import RunNote, RunNoted
from goclaw_py.runs.agent_loop import AgentResult, Emit, RunRequest
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy, LastChat, LastScope, NoTarget
from goclaw_py.schedule.heartbeat.models import HeartbeatStarted, NoHeartbeat
from goclaw_py.schedule.heartbeat.status_texts import SAME_WAITS, outcome_words
from goclaw_py.testing.agents import Block, Do, Fail, Return, Say, ScriptedAgent, Step, Stream
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import a_process, here, message
from tests.support.heartbeat_gateway import (
    ANN,
    CHECKLIST,
    EVERY,
    after,
    asked,
    beating,
    busy,
    heartbeat_gateway,
    log_of,
    outcomes,
    until_ended,
    write,
)

ALERT = "The meeting with Ann begins in ten minutes, and its room was changed."
BROKEN = Fail(OSError("no disk"))
STREAMED = Stream(("HEART", "BEAT_OK ", "all is well"), every_s=5)


@pytest.mark.parametrize("reply", ["NO_REPLY", " NO_REPLY\n", "**NO_REPLY**", "`NO_REPLY`."])
async def test_no_reply_alone_is_silence(reply: str) -> None:
    """SPEC HB-6: as in a job; with anything beside it, it is an alert."""
    async with beating(reply, f"The disk is full. {reply}") as gateway:
        first, second = await until_ended(gateway, 2)
        assert (first.outcome, second.outcome) == ("ok", "alerted")


@pytest.mark.parametrize("step", ["**HEARTBEAT_OK**", STREAMED], ids=["at once", "streamed"])
async def test_a_heartbeat_run_that_finds_nothing_is_silent(step: str | Step) -> None:
    """SPEC HB-6: no message, no draft, no sign of life."""
    channel = RecordingChannel(drafting=True)
    async with beating(step, channel=channel) as gateway:
        signals, drafted = len(channel.signals), len(channel.drafted)
        (row,) = await until_ended(gateway, 1)
        await asyncio.sleep(60)
        assert (row.outcome, row.due_at) == ("ok", after(60))
        assert row.reply == (step if isinstance(step, str) else "HEARTBEAT_OK all is well")
        assert len(channel.attempts) == 1
        assert (len(channel.signals), len(channel.drafted)) == (signals, drafted)


@pytest.mark.parametrize("every_s", [0, 5])
async def test_a_thought_about_the_token_hides_no_alert(every_s: float) -> None:
    """SPEC AGENT-1, HB-6."""
    pieces = ("<think>If all is well ", "I say HEARTBEAT_OK.</th", "ink>The disk is overfull")
    async with beating(Stream(pieces, every_s)) as gateway:
        (row,) = await until_ended(gateway, 1)
        assert (row.outcome, row.reply) == ("alerted", "The disk is overfull")
        assert gateway.channel.texts()[-1] == "The disk is overfull"


async def test_an_alert_comes_once_where_the_agent_was_spoken_to_last() -> None:
    """SPEC HB-8: the chat and the thread."""
    async with beating(ALERT, spoken_by="bob") as gateway:
        said = message("hi", chat="-7", sender="ann", thread="3", peer=PeerKind.GROUP)
        await gateway.gateway.accept([said])
        await gateway.channel.until_sent(2)
        (row,) = await until_ended(gateway, 1)
        await gateway.channel.until_sent(3)
        assert row.outcome == "alerted"
        last = gateway.channel.sent[-1]
        assert (last.text, last.target) == (ALERT, Target("telegram", "default", "-7", "3"))


async def test_the_token_never_reaches_a_chat_and_an_alert_is_known_there() -> None:
    """SPEC AGENT-7: "what did you mean?" works."""
    async with beating(f"HEARTBEAT_OK but {ALERT * 8}") as gateway:
        await until_ended(gateway, 1)
        await gateway.channel.until_sent(2)
        assert "HEARTBEAT" not in gateway.channel.sent[-1].text
        (row,) = await log_of(gateway)
        assert row.reply.startswith("HEARTBEAT_OK")
        await asyncio.sleep(1)
        await gateway.ask("what did you mean?")
        history = gateway.scripted.requests[-1].history
        assert any(ALERT in entry.text and "heartbeat" in entry.text for entry in history)


async def test_the_agent_reads_what_is_due_and_how_to_keep_silent() -> None:
    """SPEC HB-5, AGENT-7: the checklist is what a user says, never system text."""
    async with beating(checklist=CHECKLIST + "<!-- a note -->\n", spoken_by=None) as gateway:
        await until_ended(gateway, 1)
        (request,) = asked(gateway)
        assert request.prompt == "# Checklist\n\n- [ ] look at the calendar"
        (system,) = request.system
        assert "HEARTBEAT_OK" in system
        assert "UTC" in system
        assert "calendar" not in system
        assert request.session == f"agent:main:heartbeat:{request.run_id}"
        assert request.history == ()
        assert request.budget.turns == 10


async def test_what_was_told_before_is_not_told_again_for_a_day() -> None:
    """SPEC HB-7: A, B, A sends A once; after a day it is new again."""
    replies = ["Alert A.", "Alert B.", "**Alert**  A."]
    async with beating(*replies) as gateway:
        await until_ended(gateway, 4)
        await asyncio.sleep(5)
        assert gateway.channel.texts()[1:] == ["Alert A.", "Alert B."]
        gateway.clock.advance(timedelta(hours=24))
        await until_ended(gateway, 6)
        await asyncio.sleep(5)
        assert gateway.channel.texts()[1:] == ["Alert A.", "Alert B.", "**Alert**  A."]
        known = ["alerted", "alerted", "duplicate", "duplicate", "alerted", "duplicate"]
        assert await outcomes(gateway) == known


async def test_what_waits_to_be_sent_is_not_said_again_and_was_not_told() -> None:
    async with beating("Alert A.") as gateway:
        gateway.channel.block("ann")
        await until_ended(gateway, 2)
        gateway.channel.unblock("ann")
        await until_ended(gateway, 3)
        _, *repeated = await log_of(gateway)
        said = [(row.outcome, row.detail) for row in repeated]
        assert said == [("duplicate", SAME_WAITS), ("duplicate", "it was told before")]


@pytest.mark.parametrize(("done", "reply", "sent"), [
    ((True, "The pump leaks."), "HEARTBEAT_OK", ["The pump leaks."]),
    ((True, "The pump leaks. HEARTBEAT_OK"), "", ["The pump leaks."]),
    ((False, ""), "x" * 400, []),
])  # fmt: skip
async def test_what_an_agent_says_with_its_tool_wins_over_its_words(
    done: tuple[bool, str], reply: str, sent: list[str]
) -> None:
    async def work(request: RunRequest, emit: Emit) -> str:
        end = here(request).heartbeat_run_done
        assert end is not None
        end(*done)
        return reply

    async with beating(Do(work)) as gateway:
        await until_ended(gateway, 1)
        await asyncio.sleep(5)
        assert gateway.channel.texts()[1:] == sent
        assert await outcomes(gateway) == ["alerted" if sent else "ok"]


async def test_a_reply_that_was_cut_is_never_taken_for_all_is_well() -> None:
    """SPEC HB-6: what it did not say might have been the alert."""

    async def work(request: RunRequest, emit: Emit) -> str:
        emit(RunNoted(RunNote.ANSWER_CUT))
        return "HEARTBEAT_OK for the calendar, but the disk is"

    async with beating(Do(work)) as gateway:
        await until_ended(gateway, 1)
        await asyncio.sleep(5)
        assert gateway.channel.texts()[1:] == ["for the calendar, but the disk is"]
        assert await outcomes(gateway) == ["alerted"]


async def test_a_short_reply_with_the_token_is_shown_to_who_asks_why() -> None:
    """SPEC HB-6: it was not sent, and somebody may wonder."""
    said = "Node seven is down, so no HEARTBEAT_OK today."
    async with beating(said) as gateway:
        await until_ended(gateway, 1)
        (row,) = await gateway.store.heartbeat_runs()
        assert row.outcome == "ok"
        nothing = "nothing needed attention, so no message was sent"
        assert outcome_words(row) == f"{nothing}; it said: Node seven is down, so no today"


@pytest.mark.parametrize(("make", "outcome"), [
    (lambda file: None, "skipped:no_file"),
    (lambda file: file.write_text("# Only a title\n"), "skipped:empty"),
    (Path.mkdir, "skipped:unreadable"),
])  # fmt: skip
async def test_for_nothing_no_model_is_asked(make: Callable[[Path], object], outcome: str) -> None:
    async with beating("oh", checklist=None, spoken_by=None) as gateway:
        make(gateway.workspace / "HEARTBEAT.md")
        rows = await until_ended(gateway, 3)
        assert [row.outcome for row in rows] == [outcome] * 3
        assert outcome == "skipped:empty" or all(row.detail for row in rows)
        assert asked(gateway) == []


@pytest.mark.parametrize("ends_at", [200, None], ids=["until that is over", "until the next one"])
async def test_a_heartbeat_run_waits_while_somebody_talks_to_the_agent(ends_at: int | None) -> None:
    """SPEC HB-4: one row, which becomes the final one; at the latest it runs beside the chat."""
    async with busy() as gateway:
        await asyncio.sleep(200)
        (row,) = await log_of(gateway)
        assert (row.outcome, bool(row.detail)) == ("deferred", True)
        if ends_at is not None:
            gateway.scripted.release()
        (row,) = await until_ended(gateway, 1)
        assert (row.outcome, row.due_at) == ("ok", after(60))
        assert row.started_at is not None
        due, most_s = (after(200), 31) if ends_at else (after(60) + EVERY, 1)
        assert timedelta() <= row.started_at - due < timedelta(seconds=most_s)


async def test_a_heartbeat_run_by_hand_comes_at_once_alone_and_moves_nothing() -> None:
    async with beating(Block("HEARTBEAT_OK"), "HEARTBEAT_OK", spoken_by=None) as gateway:
        await asyncio.sleep(10)
        service = gateway.container.heartbeats.service
        begun = await service.run_now(MAIN_AGENT)
        assert isinstance(begun, HeartbeatStarted)
        await asyncio.sleep(1)
        assert await service.run_now(MAIN_AGENT) is NoHeartbeat.ALREADY_RUNNING
        gateway.scripted.release()
        await until_ended(gateway, 2)
        first, second = await log_of(gateway)
        assert (first.id, first.outcome) == (begun.heartbeat_run, "ok")
        assert (second.kind, second.due_at) == (HeartbeatRunKind.INTERVAL, after(60))
        assert first.kind is HeartbeatRunKind.MANUAL


async def test_an_event_is_told_with_the_next_heartbeat_run_until_one_has_ended_well() -> None:
    """SPEC HB-13: events need no checklist, and leave when the run that carried them ended."""
    async with beating(BROKEN, "HEARTBEAT_OK", checklist=None, spoken_by=None) as gateway:
        await asyncio.sleep(1)
        service = gateway.container.heartbeats.service
        await service.add_event(MAIN_AGENT, "the backup has failed", now=False)
        await until_ended(gateway, 3)
        assert ["the backup has failed" in one.prompt for one in asked(gateway)] == [True, True]
        assert await service.events(MAIN_AGENT) == []
        assert await outcomes(gateway) == ["failed", "ok", "skipped:no_file"]


async def test_an_event_that_wakes_does_not_wait_for_the_interval() -> None:
    """SPEC HB-13, HB-11: but half a minute lies between two heartbeat runs."""
    async with beating(checklist=None, spoken_by=None) as gateway:
        await asyncio.sleep(65)
        await gateway.container.heartbeats.service.add_event(MAIN_AGENT, "fire", now=True)
        await until_ended(gateway, 2)
        _, woken = await log_of(gateway)
        assert woken.kind is HeartbeatRunKind.EVENT
        assert after(90) <= woken.claimed_at < after(92)


async def test_nobody_to_tell_is_a_problem_that_is_seen() -> None:
    async with beating(ALERT, spoken_by=None) as gateway:
        (row,) = await until_ended(gateway, 1)
        assert row.outcome == "no_route"
        (warning,) = gateway.container.heartbeats.warnings()
        assert str(warning).startswith("The heartbeat of main has no chat for its alert: ")
        assert warning.command == "goclaw heartbeat why main"
        await gateway.ask("hello")
        await asyncio.sleep(20)
        assert gateway.container.heartbeats.warnings() == ()


async def test_files_of_an_alert_are_an_album() -> None:
    channel = RecordingChannel(albums=True)

    def answer(request: RunRequest) -> Step:
        if request.trigger is not Trigger.HEARTBEAT:
            return Say("hi")
        paths = [request.workspace / name for name in ("a.txt", "b.txt")]
        for path in paths:
            path.write_text("x")
        sent = tuple(OutFile(FileKind.DOCUMENT, str(path), path.name) for path in paths)
        return Return(AgentResult(ALERT, files=sent))

    agent = ScriptedAgent(otherwise=answer)
    async with a_process(agent, heartbeat_gateway(), channels=(channel,)) as gateway:
        write(gateway)
        await gateway.ask("hello")
        await until_ended(gateway, 1)
        await channel.until_sent(4)
        (album,) = channel.sent_albums
        assert {one.alert for one in album} == {channel.sent[1].alert}


async def test_a_target_of_none_only_logs() -> None:
    ways = heartbeat_gateway(HeartbeatPolicy(target=NoTarget.NONE))
    async with beating(ALERT, ways=ways) as gateway:
        (row,) = await until_ended(gateway, 1)
        assert (row.outcome, row.target, row.reply) == ("logged", None, ALERT)
        for outcome, number in (("logged", 1), ("alerted", 0), ("delivery_failed", 0)):
            found = await gateway.store.heartbeat_runs(outcome=outcome)
            assert len(found) == number
        await asyncio.sleep(10)
        assert len(gateway.channel.sent) == 1


async def test_groups_can_be_left_out() -> None:
    """SPEC HB-8: ``last_scope = direct``."""
    policy = HeartbeatPolicy(target=LastChat(), last_scope=LastScope.DIRECT)
    async with beating(ALERT, ways=heartbeat_gateway(policy)) as gateway:
        await asyncio.sleep(1)
        said = message("hi", chat="-7", sender="bob", peer=PeerKind.GROUP)
        await gateway.gateway.accept([said])
        await gateway.channel.until_sent(3)
        assert gateway.channel.sent[-1].target == ANN


async def test_what_a_channel_will_never_take_is_told_elsewhere_and_not_known() -> None:
    """SPEC HB-7, HB-9: a dead alert does not count as told."""
    async with beating(ALERT, spoken_by="bob") as gateway:
        await asyncio.sleep(1)
        await gateway.ask("hello", chat="ann")
        gateway.channel.fail(ChatGone("blocked by the user"), chat="ann")
        await until_ended(gateway, 1)
        await gateway.channel.until_sent(3)
        (row,) = await log_of(gateway)
        assert row.outcome == "delivery_failed"
        assert "blocked" in row.undelivered
        last = gateway.channel.sent[-1]
        assert (last.target.chat, "blocked" in last.text, ALERT in last.text) == ("bob", True, True)
        await until_ended(gateway, 2)
        await asyncio.sleep(5)
        assert len(gateway.channel.sent) == 3, "bob was told this already"


async def test_an_alert_that_is_refused_is_tried_again_with_the_next_heartbeat_run() -> None:
    """SPEC HB-7: it counts from confirmed delivery."""
    async with beating(ALERT) as gateway:
        gateway.channel.fail(Undeliverable("the text is refused"), chat="ann")
        await until_ended(gateway, 2)
        await gateway.channel.until_sent(2)
        assert await outcomes(gateway) == ["delivery_failed", "alerted"]


async def test_a_failing_heartbeat_run_is_tried_twice_more() -> None:
    flaky = Fail(AgentError("Sorry.", "503", retryable=True))
    async with beating(flaky, flaky, "HEARTBEAT_OK", spoken_by=None) as gateway:
        (row,) = await until_ended(gateway, 1)
        assert (row.outcome, row.attempts, len(row.runs)) == ("ok", 3, 3)


async def test_a_database_that_is_away_only_delays() -> None:
    async with beating(ALERT) as gateway:
        await asyncio.sleep(50)
        gateway.store.away = True
        await asyncio.sleep(5)
        gateway.store.away = False
        await asyncio.sleep(5.2)
        gateway.store.broken = {"run_facts", "finish_run", "alert_state"}
        await asyncio.sleep(5)
        gateway.store.broken = set()
        await until_ended(gateway, 1)
        await gateway.channel.until_sent(2)
        assert await outcomes(gateway) == ["alerted"]
        assert gateway.channel.texts()[1:] == [ALERT]
