"""Heartbeat runs in a gateway, from the clock to the line in the chat.

SPEC section 7, CHAN-6, CMD-5, HB-1, HB-3, HB-4, HB-6, HB-7, HB-8, HB-9, HB-10, HB-11, HB-12.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from decimal import Decimal

import pytest

from goclaw_py.heartbeat.decisions import HeartbeatPolicy, LastChat, LastScope, NoTarget
from goclaw_py.heartbeat.status_texts import SAME_WAITS, outcome_words
from goclaw_py.model.errors import AgentError, ChatGone, Undeliverable
from goclaw_py.model.ids import MAIN_AGENT
from goclaw_py.model.messages import FileKind, OutFile, PeerKind, Target
from goclaw_py.model.outcomes import HeartbeatRunKind, Trigger
from goclaw_py.model.run_events import Usage
from goclaw_py.ports.agent import AgentResult, Emit, RunRequest
from goclaw_py.ports.heartbeat import HeartbeatStarted, NoHeartbeat
from goclaw_py.testing.agents import Block, Do, Fail, Return, Say, ScriptedAgent, Stream
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.testing.clock import START
from tests.support.harness import a_process, here, message
from tests.support.heartbeat_gateway import (
    ANN,
    CHECKLIST,
    EVERY,
    after,
    asked,
    heartbeat_gateway,
    log_of,
    outcomes,
    saying,
    until_ended,
    write,
)

ALERT = "The meeting with Ann begins in ten minutes, and its room was changed."


async def test_a_heartbeat_run_that_finds_nothing_is_silent() -> None:
    """SPEC HB-6: no message, no sign of life."""
    async with a_process(saying("**HEARTBEAT_OK**"), heartbeat_gateway()) as gateway:
        write(gateway)
        await gateway.ask("hello")
        signals = len(gateway.channel.signals)
        (heartbeat_run,) = await until_ended(gateway, 1)
        assert (heartbeat_run.outcome, heartbeat_run.due_at, heartbeat_run.reply) == (
            "ok",
            after(60),
            "**HEARTBEAT_OK**",
        )
        assert len(gateway.channel.attempts) == 1
        assert len(gateway.channel.signals) == signals


async def test_an_alert_comes_once_where_the_agent_was_spoken_to_last() -> None:
    """SPEC HB-8: the chat and the thread."""
    async with a_process(saying(ALERT), heartbeat_gateway()) as gateway:
        write(gateway)
        await gateway.ask("hello", chat="bob")
        said = message("hi", chat="-7", sender="ann", thread="3", peer=PeerKind.GROUP)
        await gateway.gateway.accept([said])
        await gateway.channel.until_sent(2)
        (heartbeat_run,) = await until_ended(gateway, 1)
        await gateway.channel.until_sent(3)
        assert heartbeat_run.outcome == "alerted"
        last = gateway.channel.sent[-1]
        assert (last.text, last.target) == (ALERT, Target("telegram", "default", "-7", "3"))


async def test_nothing_of_a_heartbeat_run_is_streamed() -> None:
    pieces = ("HEART", "BEAT_OK ", "all is well")
    channel = RecordingChannel(drafting=True)
    agent = saying(Stream(pieces, every_s=5))
    async with a_process(agent, heartbeat_gateway(), channels=(channel,)) as gateway:
        write(gateway)
        await gateway.ask("hello")
        signals, drafted = len(channel.signals), len(channel.drafted)
        await until_ended(gateway, 1)
        await asyncio.sleep(60)
        assert await outcomes(gateway) == ["ok"]
        assert (len(channel.signals), len(channel.drafted)) == (signals, drafted)
        assert len(channel.sent) == 1


async def test_the_token_never_reaches_a_chat() -> None:
    async with a_process(saying(f"HEARTBEAT_OK but {ALERT * 8}"), heartbeat_gateway()) as gateway:
        write(gateway)
        await gateway.ask("hello")
        await until_ended(gateway, 1)
        await gateway.channel.until_sent(2)
        assert "HEARTBEAT" not in gateway.channel.sent[-1].text
        (heartbeat_run,) = await log_of(gateway)
        assert heartbeat_run.reply.startswith("HEARTBEAT_OK")


async def test_the_agent_reads_what_is_due_and_how_to_keep_silent() -> None:
    """SPEC HB-5, AGENT-7: the checklist is what a user says, never system text."""
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway()) as gateway:
        write(gateway, CHECKLIST + "<!-- a note -->\n")
        await until_ended(gateway, 1)
        (request,) = asked(gateway)
        assert request.prompt == "# Checklist\n\n- [ ] look at the calendar"
        (system,) = request.system
        assert "HEARTBEAT_OK" in system
        assert "UTC" in system
        assert "calendar" not in system
        assert request.session == f"agent:main:heartbeat:{request.run_id}"
        assert request.history == ()
        assert request.budget is not None
        assert request.budget.turns == 10


async def test_what_was_told_before_is_not_told_again_for_a_day() -> None:
    """SPEC HB-7: A, B, A sends A once; after a day it is new again."""
    replies = ["Alert A.", "Alert B.", "**Alert**  A."]
    async with a_process(saying(*replies), heartbeat_gateway()) as gateway:
        write(gateway)
        await gateway.ask("hello")
        await until_ended(gateway, 4)
        await asyncio.sleep(5)
        assert gateway.channel.texts()[1:] == ["Alert A.", "Alert B."]
        gateway.clock.put_forward(timedelta(hours=24))
        await until_ended(gateway, 6)
        await asyncio.sleep(5)
        assert gateway.channel.texts()[1:] == ["Alert A.", "Alert B.", "**Alert**  A."]
        known = ["alerted", "alerted", "duplicate", "duplicate", "alerted", "duplicate"]
        assert await outcomes(gateway) == known


async def test_what_waits_to_be_sent_is_not_said_again_and_was_not_told() -> None:
    async with a_process(saying("Alert A."), heartbeat_gateway()) as gateway:
        write(gateway)
        await gateway.ask("hello")
        gateway.channel.block("ann")
        await until_ended(gateway, 2)
        _, second = sorted(
            await gateway.store.heartbeat_runs(), key=lambda heartbeat_run: heartbeat_run.claimed_at
        )
        assert (second.outcome, second.detail) == ("duplicate", SAME_WAITS)
        gateway.channel.unblock("ann")
        await until_ended(gateway, 3)
        *_, third = sorted(
            await gateway.store.heartbeat_runs(), key=lambda heartbeat_run: heartbeat_run.claimed_at
        )
        assert (third.outcome, third.detail) == ("duplicate", "it was told before")


@pytest.mark.parametrize(("done", "reply", "sent"), [
    ((True, "The pump leaks."), "HEARTBEAT_OK", ["The pump leaks."]),
    ((True, "The pump leaks. HEARTBEAT_OK"), "", ["The pump leaks."]),
    ((False, ""), "x" * 400, []),
])  # fmt: skip
async def test_what_an_agent_says_with_its_tool_wins_over_its_words(
    done: tuple[bool, str], reply: str, sent: list[str]
) -> None:
    async def heartbeat_run(request: RunRequest, emit: Emit) -> str:
        end = here(request).heartbeat_run_done
        assert end is not None
        end(*done)
        return reply

    async with a_process(saying(Do(heartbeat_run)), heartbeat_gateway()) as gateway:
        write(gateway)
        await gateway.ask("hello")
        await until_ended(gateway, 1)
        await asyncio.sleep(5)
        assert gateway.channel.texts()[1:] == sent
        assert await outcomes(gateway) == ["alerted" if sent else "ok"]


async def test_a_short_reply_with_the_token_is_shown_to_who_asks_why() -> None:
    """SPEC HB-6: it was not sent, and somebody may wonder."""
    said = "Node seven is down, so no HEARTBEAT_OK today."
    async with a_process(saying(said), heartbeat_gateway()) as gateway:
        write(gateway)
        await gateway.ask("hello")
        await until_ended(gateway, 1)
        (row,) = await gateway.store.heartbeat_runs()
        assert row.outcome == "ok"
        assert outcome_words(row) == (
            "nothing needed attention, so no message was sent; it said: Node seven is down, "
            "so no today"
        )


async def test_a_clock_that_jumps_gives_one_heartbeat_run_for_all_that_were_missed() -> None:
    """SPEC HB-1: and the grid stays."""
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway()) as gateway:
        write(gateway)
        await until_ended(gateway, 1)
        gateway.clock.put_forward(timedelta(hours=5, seconds=17))
        await until_ended(gateway, 3)
        due = [heartbeat_run.due_at for heartbeat_run in await log_of(gateway)]
        assert due[1] == after(60) + EVERY
        assert (due[2] - due[0]) % EVERY == timedelta()
        assert timedelta(hours=5) < due[2] - due[0] < timedelta(hours=5, minutes=10)


async def test_an_alert_is_known_in_its_chat() -> None:
    """SPEC AGENT-7: "what did you mean?" works."""
    async with a_process(saying(ALERT), heartbeat_gateway()) as gateway:
        write(gateway)
        await gateway.ask("hello")
        await until_ended(gateway, 1)
        await gateway.channel.until_sent(2)
        await asyncio.sleep(1)
        await gateway.ask("what did you mean?")
        history = gateway.scripted.requests[-1].history
        assert any(ALERT in entry.text and "heartbeat" in entry.text for entry in history)


# ---------------------------------------------------------------------- what costs nothing


@pytest.mark.parametrize(
    ("text", "outcome"),
    [(None, "skipped:no_file"), ("# Only a title\n", "skipped:empty")],
)
async def test_without_anything_to_do_no_model_is_asked(text: str | None, outcome: str) -> None:
    async with a_process(saying("oh"), heartbeat_gateway()) as gateway:
        if text is not None:
            write(gateway, text)
        await until_ended(gateway, 3)
        assert await outcomes(gateway) == [outcome] * 3
        assert asked(gateway) == []


async def test_a_folder_in_the_place_of_the_checklist_is_a_reason() -> None:
    """Issue F: bad input."""
    async with a_process(saying("oh"), heartbeat_gateway()) as gateway:
        (gateway.workspace / "HEARTBEAT.md").mkdir()
        (heartbeat_run,) = await until_ended(gateway, 1)
        assert heartbeat_run.outcome == "skipped:unreadable"
        assert heartbeat_run.detail
        assert asked(gateway) == []


async def test_a_muted_heartbeat_is_silent_until_its_time() -> None:
    async with a_process(saying(ALERT), heartbeat_gateway()) as gateway:
        write(gateway)
        await asyncio.sleep(1)
        await gateway.container.heartbeats.service.mute(MAIN_AGENT, after(600))
        await until_ended(gateway, 3)
        assert await outcomes(gateway) == ["skipped:muted", "skipped:muted", "no_route"]


async def test_a_heartbeat_that_is_switched_off_does_not_heartbeat_and_comes_back_on_its_grid() -> (
    None
):
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway()) as gateway:
        write(gateway)
        await asyncio.sleep(100)
        view = await gateway.container.heartbeats.service.switch(MAIN_AGENT, on=False)
        assert view.heartbeat.next_at is None
        await asyncio.sleep(2_000)
        view = await gateway.container.heartbeats.service.switch(MAIN_AGENT, on=True)
        next_at = view.heartbeat.next_at
        assert next_at is not None
        assert (next_at - after(60)) % EVERY == timedelta()
        await until_ended(gateway, 2)
        assert [heartbeat_run.due_at for heartbeat_run in await log_of(gateway)] == [
            after(60),
            next_at,
        ]


# ---------------------------------------------------------------------- busy


async def test_a_heartbeat_run_waits_while_somebody_talks_to_the_agent() -> None:
    """SPEC HB-4: one row, which becomes the final one."""
    agent = saying("HEARTBEAT_OK")
    agent.script = (Block("done"),)
    async with a_process(agent, heartbeat_gateway()) as gateway:
        write(gateway)
        await gateway.say("think about it")
        await asyncio.sleep(200)
        (heartbeat_run,) = await log_of(gateway)
        assert heartbeat_run.outcome == "deferred"
        assert heartbeat_run.detail
        agent.release()
        await until_ended(gateway, 1)
        (heartbeat_run,) = await log_of(gateway)
        assert heartbeat_run.outcome == "ok"
        assert heartbeat_run.due_at == after(60)
        assert heartbeat_run.started_at is not None
        assert after(200) < heartbeat_run.started_at < after(231)


async def test_at_the_next_due_time_it_runs_beside_the_chat() -> None:
    agent = saying("HEARTBEAT_OK")
    agent.script = (Block("done"),)
    async with a_process(agent, heartbeat_gateway()) as gateway:
        write(gateway)
        await gateway.say("think about it")
        (heartbeat_run,) = await until_ended(gateway, 1)
        assert heartbeat_run.outcome == "ok"
        assert heartbeat_run.started_at is not None
        assert timedelta() <= heartbeat_run.started_at - (after(60) + EVERY) < timedelta(seconds=1)


# ---------------------------------------------------------------------- by hand, and woken


async def test_a_heartbeat_run_by_hand_comes_at_once_and_moves_nothing() -> None:
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway()) as gateway:
        write(gateway)
        await asyncio.sleep(10)
        service = gateway.container.heartbeats.service
        begun = await service.run_now(MAIN_AGENT)
        assert isinstance(begun, HeartbeatStarted)
        await until_ended(gateway, 2)
        first, second = await log_of(gateway)
        assert (first.id, first.kind, first.outcome) == (
            begun.heartbeat_run,
            HeartbeatRunKind.MANUAL,
            "ok",
        )
        assert (second.kind, second.due_at) == (HeartbeatRunKind.INTERVAL, after(60))


async def test_only_one_heartbeat_run_of_an_agent_is_under_way() -> None:
    agent = saying(Block("HEARTBEAT_OK"))
    async with a_process(agent, heartbeat_gateway()) as gateway:
        write(gateway)
        await asyncio.sleep(10)
        service = gateway.container.heartbeats.service
        assert isinstance(await service.run_now(MAIN_AGENT), HeartbeatStarted)
        await asyncio.sleep(1)
        assert await service.run_now(MAIN_AGENT) is NoHeartbeat.ALREADY_RUNNING
        await asyncio.sleep(120)
        assert len(await log_of(gateway)) == 1


async def test_an_event_is_told_once_with_the_next_heartbeat_run() -> None:
    """SPEC HB-13: events need no checklist."""
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway()) as gateway:
        await asyncio.sleep(1)
        service = gateway.container.heartbeats.service
        await service.add_event(MAIN_AGENT, "the backup has failed", wake=False)
        await until_ended(gateway, 2)
        (request,) = asked(gateway)
        assert "the backup has failed" in request.prompt
        assert await service.events(MAIN_AGENT) == []
        assert await outcomes(gateway) == ["ok", "skipped:no_file"]


async def test_an_event_that_wakes_does_not_wait_for_the_interval() -> None:
    """SPEC HB-13, HB-11: but half a minute lies between two heartbeat runs."""
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway()) as gateway:
        await asyncio.sleep(65)
        service = gateway.container.heartbeats.service
        await service.add_event(MAIN_AGENT, "fire", wake=True)
        await until_ended(gateway, 2)
        _, woken = await log_of(gateway)
        assert woken.kind is HeartbeatRunKind.EVENT
        assert after(90) <= woken.claimed_at < after(92)


async def test_events_of_a_failed_heartbeat_run_are_told_again() -> None:
    """SPEC HB-13: they leave when the heartbeat run that carried them ended."""
    agent = saying(Fail(OSError("broken")), "HEARTBEAT_OK")
    async with a_process(agent, heartbeat_gateway()) as gateway:
        await asyncio.sleep(1)
        await gateway.container.heartbeats.service.add_event(MAIN_AGENT, "fire", wake=False)
        await until_ended(gateway, 2)
        assert await outcomes(gateway) == ["failed", "ok"]
        assert ["fire" in request.prompt for request in asked(gateway)] == [True, True]


# ---------------------------------------------------------------------- where it goes


async def test_nobody_to_tell_is_a_problem_that_is_seen() -> None:
    async with a_process(saying(ALERT), heartbeat_gateway()) as gateway:
        write(gateway)
        (heartbeat_run,) = await until_ended(gateway, 1)
        assert heartbeat_run.outcome == "no_route"
        assert "main" in gateway.container.heartbeats.warnings()[0]


async def test_files_of_an_alert_are_an_album() -> None:
    channel = RecordingChannel(albums=True)

    def files(request: RunRequest) -> AgentResult:
        found = [request.workspace / name for name in ("a.txt", "b.txt")]
        sent = tuple(OutFile(FileKind.DOCUMENT, str(path), path.name) for path in found)
        return AgentResult(ALERT, files=sent)

    agent = ScriptedAgent(
        otherwise=lambda request: (
            Return(files(request)) if request.trigger is Trigger.HEARTBEAT else Say("hi")
        )
    )
    async with a_process(agent, heartbeat_gateway(), channels=(channel,)) as gateway:
        for name in ("a.txt", "b.txt"):
            (gateway.workspace / name).write_text("x")
        write(gateway)
        await gateway.ask("hello", chat="ann")
        await until_ended(gateway, 1)
        await channel.until_sent(4)
        (album,) = channel.sent_albums
        assert {one.alert for one in album} == {channel.sent[1].alert}


async def test_a_target_of_none_only_logs() -> None:
    ways = heartbeat_gateway(HeartbeatPolicy(target=NoTarget.NONE))
    async with a_process(saying(ALERT), ways) as gateway:
        write(gateway)
        await gateway.ask("hello")
        (heartbeat_run,) = await until_ended(gateway, 1)
        assert (heartbeat_run.outcome, heartbeat_run.target, heartbeat_run.reply) == (
            "alerted",
            None,
            ALERT,
        )
        await asyncio.sleep(10)
        assert len(gateway.channel.sent) == 1


async def test_groups_can_be_left_out() -> None:
    """SPEC HB-8: ``last_scope = direct``."""
    policy = HeartbeatPolicy(target=LastChat(), last_scope=LastScope.DIRECT)
    async with a_process(saying(ALERT), heartbeat_gateway(policy)) as gateway:
        write(gateway)
        await gateway.ask("hello", chat="ann")
        await asyncio.sleep(1)
        said = message("hi", chat="-7", sender="bob", peer=PeerKind.GROUP)
        await gateway.gateway.accept([said])
        await gateway.channel.until_sent(3)
        assert gateway.channel.sent[-1].target == ANN


async def test_what_a_channel_will_never_take_is_told_elsewhere_and_not_known() -> None:
    """SPEC HB-7, HB-9: a dead alert does not count as told."""
    async with a_process(saying(ALERT), heartbeat_gateway()) as gateway:
        write(gateway)
        await gateway.ask("hello", chat="bob")
        await asyncio.sleep(1)
        await gateway.ask("hello", chat="ann")
        gateway.channel.fail(ChatGone("blocked by the user"), chat="ann")
        await until_ended(gateway, 1)
        await gateway.channel.until_sent(3)
        (heartbeat_run,) = await log_of(gateway)
        assert heartbeat_run.outcome == "delivery_failed"
        assert "blocked" in heartbeat_run.undelivered
        last = gateway.channel.sent[-1]
        assert last.target.chat == "bob"
        assert "blocked" in last.text
        assert ALERT in last.text
        await until_ended(gateway, 2)
        await asyncio.sleep(5)
        assert len(gateway.channel.sent) == 3, "bob was told this already"


async def test_an_alert_that_is_refused_is_tried_again_with_the_next_heartbeat_run() -> None:
    """SPEC HB-7: it counts from confirmed delivery."""
    async with a_process(saying(ALERT), heartbeat_gateway()) as gateway:
        write(gateway)
        await gateway.ask("hello", chat="ann")
        gateway.channel.fail(Undeliverable("the text is refused"), chat="ann")
        await until_ended(gateway, 2)
        await gateway.channel.until_sent(2)
        assert await outcomes(gateway) == ["delivery_failed", "alerted"]


# ---------------------------------------------------------------------- trouble


async def test_a_failing_heartbeat_run_is_tried_twice_more() -> None:
    flaky = Fail(AgentError("Sorry.", "503", retryable=True))
    async with a_process(saying(flaky, flaky, "HEARTBEAT_OK"), heartbeat_gateway()) as gateway:
        write(gateway)
        (heartbeat_run,) = await until_ended(gateway, 1)
        assert (heartbeat_run.outcome, heartbeat_run.attempts, len(heartbeat_run.runs)) == (
            "ok",
            3,
            3,
        )


async def test_owners_are_told_of_the_third_failure_in_a_row_once() -> None:
    async with a_process(saying(Fail(OSError("no disk"))), heartbeat_gateway()) as gateway:
        write(gateway)
        await gateway.ask("hello", chat="ann")
        await until_ended(gateway, 5)
        await asyncio.sleep(5)
        told = gateway.channel.texts("ann")[1:]
        assert len(told) == 1
        assert "three times" in told[0]
        assert "no disk" in told[0]


async def test_the_budget_of_a_day_ends_with_the_day() -> None:
    dear = Return(AgentResult("HEARTBEAT_OK", usage=Usage(requests=1, cost_usd=Decimal("0.5"))))
    async with a_process(saying(dear), heartbeat_gateway()) as gateway:
        write(gateway)
        await until_ended(gateway, 3)
        assert await outcomes(gateway) == ["ok", "ok", "skipped:budget"]
        gateway.clock.put_forward(timedelta(hours=24) - (gateway.clock.now() - START))
        await until_ended(gateway, 4)
        assert (await outcomes(gateway))[3] == "ok"


async def test_a_database_that_is_away_only_delays() -> None:
    async with a_process(saying(ALERT), heartbeat_gateway()) as gateway:
        write(gateway)
        await gateway.ask("hello")
        await asyncio.sleep(50)
        gateway.store.away = True
        await asyncio.sleep(5)
        gateway.store.away = False
        await asyncio.sleep(5.2)
        gateway.store.broken = {"look", "finish_run", "alert_known"}
        await asyncio.sleep(5)
        gateway.store.broken = set()
        await until_ended(gateway, 1)
        await gateway.channel.until_sent(2)
        assert await outcomes(gateway) == ["alerted"]
        assert gateway.channel.texts()[1:] == [ALERT]
