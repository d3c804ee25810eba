"""The invariants hold in forty scenarios, which can be repeated; faults and bugs show."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from goclaw_py.chat.inbound.ingestion import MessageIngestor
from goclaw_py.chat.outbound import texts
from goclaw_py.chat.outbound.outbox_sender import OutboxSender
from goclaw_py.cluster.membership import Membership
from tests.chaos.invariants import Rule
from tests.simulation import scenes
from tests.simulation.cluster import Played, play
from tests.simulation.faults import FAULTS, Fault, planted
from tests.simulation.plan import Plan, Saying, plan
from tests.simulation.pool import verdicts

SCENARIOS = 40


def test_the_invariants_hold_whatever_goes_wrong() -> None:
    """SPEC IO-1, 2, 4, 5, CRON-5, HB-7, 12, QUEUE-2, NODE-1, 3.

    A scenario that breaks it is played again by ``python -m tests.simulation --seeds 1 --seed N``.
    """
    found = list(verdicts(range(1, SCENARIOS + 1)))
    assert len(found) == SCENARIOS
    assert [one for one in found if one.wrongs] == []


@pytest.mark.parametrize("seed", [10, 38])
def test_a_seed_makes_one_world(seed: int, tmp_path: Path) -> None:
    first, second = play(seed, tmp_path), play(seed, tmp_path)
    assert len(first.trace) > 100
    assert list(first.story()) == list(second.story())
    assert first.facts == second.facts


def test_another_seed_makes_another_world(tmp_path: Path) -> None:
    assert plan(1) != plan(2)
    assert play(1, tmp_path).facts != play(2, tmp_path).facts


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_shows_where_all_is_well_without_it(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    sound = play(fault.scene, tmp_path)
    assert (sound.breaches, sound.bugs) == ([], [])
    with planted(fault):
        assert fault.breaks in {breach.rule for breach in play(fault.scene, tmp_path).breaches}


def test_a_fault_without_a_place_is_refused() -> None:
    nowhere = Fault(OutboxSender, "_failed", (("no such text", ""),), Rule.UNSEEN, scenes.NOTHING)
    with pytest.raises(LookupError, match="0 times in _failed"), planted(nowhere):
        pass


def test_a_gateway_falls_between_the_effect_of_a_call_and_its_answer(tmp_path: Path) -> None:
    played = play(scenes.KILLED_AS_IT_ACCEPTS, tmp_path)
    assert (played.breaches, played.bugs) == ([], [])
    calls = [one for one in _calls(played) if one[1] in ("accept", "begin_run")]
    assert calls[0] == ("g1", "accept")
    assert ("g2", "begin_run") in calls
    assert ("g1", "begin_run") not in calls


def test_others_go_on_before_a_call_has_its_effect(tmp_path: Path) -> None:
    """Both gateways ask for the same row at the same instant; who is kept waiting loses it."""
    assert _sender(play(scenes.NOTHING, tmp_path)) == "g1"
    assert _sender(play(scenes.HELD_UP, tmp_path)) == "g2"


@pytest.mark.parametrize("at_s", [3.5, 5.0, 9.0, 12.0, 14.0, 17.0])
@pytest.mark.parametrize("command", ["/stop", "/stopall"])
def test_a_stop_that_was_answered_holds_although_the_lease_has_ended(
    at_s: float, command: str, tmp_path: Path
) -> None:
    """SPEC CMD-1: after the answer no run starts with a message that came before the stop."""
    scene = scenes.STOPPED_WHILE_AWAY
    others = [one for one in scene.events if one != Saying(5.0, "ann", "/stop")]
    events = sorted([*others, Saying(at_s, "ann", command)], key=lambda one: one.at)
    played = play(replace(scene, events=tuple(events)), tmp_path)
    assert (played.breaches, played.bugs) == ([], [])
    answered = min(one.at for one in played.facts.seen if one.text.startswith("Stopped"))
    assert answered < at_s + 2.0 or answered > 18.0  # at once, or by whoever owns the session then
    assert [work for work in played.facts.worked if work.began > answered] == []
    outcomes = {row.text: row.outcome for row in played.facts.messages}
    assert outcomes["m1"] == "cancelled"


def test_what_has_ended_before_a_stop_of_everything_does_not_run_again(tmp_path: Path) -> None:
    """SPEC CMD-1: its end could not be stored, and the lease has ended since."""
    played = play(scenes.FINISHED_WHILE_AWAY, tmp_path)
    assert (played.breaches, played.bugs) == ([], [])
    assert len(played.facts.worked) == 1
    outcomes = {row.text: row.outcome for row in played.facts.messages}
    assert outcomes == {"m1": "cancelled", "/stopall": "completed"}
    assert "Stopped before I could store" in played.facts.seen[-1].text


_HELD = {
    "held": scenes.HELD,
    "killed": scenes.HELD_AND_KILLED,
    "restarted": scenes.HELD_AND_RESTARTED,
    "database away": scenes.HELD_WHILE_AWAY,
}
_BACK_AT_S = 25.0
_STOP_AT_S = (4.8, 12.0, 24.9)


@pytest.mark.parametrize("scene", _HELD.values(), ids=_HELD)
def test_messages_held_for_a_provider_are_answered_when_it_is_back(
    scene: Plan, tmp_path: Path
) -> None:
    """SPEC AGENT-8: also by another process, and tried at most a minute apart."""
    played = play(scene, tmp_path)
    assert (played.breaches, played.bugs) == ([], [])
    assert {row.text: row.outcome for row in played.facts.messages} == {
        "m1": "completed",
        "m2": "completed",
    }
    ends = [row.ended for row in played.facts.messages if row.ended is not None]
    assert min(ends) > _BACK_AT_S
    assert max(ends) < _BACK_AT_S + 70.0
    assert any(one.text == texts.KEPT for one in played.facts.seen)


@pytest.mark.parametrize("command", ["/stop", "/stopall"])
@pytest.mark.parametrize("at_s", _STOP_AT_S)
@pytest.mark.parametrize("scene", _HELD.values(), ids=_HELD)
def test_a_message_held_for_a_provider_can_be_stopped(
    scene: Plan, at_s: float, command: str, tmp_path: Path
) -> None:
    """SPEC AGENT-8, CMD-1."""
    events = sorted([*scene.events, Saying(at_s, "ann", command)], key=lambda one: one.at)
    played = play(replace(scene, events=tuple(events)), tmp_path)
    assert (played.breaches, played.bugs) == ([], [])
    outcomes = {row.text: row.outcome for row in played.facts.messages}
    assert outcomes == {"m1": "cancelled", "m2": "completed", command: "completed"}


def _sender(played: Played) -> str:
    (sender,) = [who for who, call in _calls(played) if call.startswith("chat send")]
    return sender


def _calls(played: Played) -> list[tuple[str, str]]:
    """Who called what, in order."""
    return [(str(who), str(call[0])) for _, who, *call in played.trace if call]


# ---------------------------------------------------------------- bugs


def test_a_bug_at_the_start_ends_the_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_: Membership) -> None:
        raise KeyError("join")

    monkeypatch.setattr(Membership, "join", broken)
    bugs = play(1, tmp_path).bugs
    assert "g1 did not come up: KeyError('join')" in bugs


def test_a_bug_in_a_task_that_nobody_waits_for_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept = MessageIngestor.accept

    async def broken() -> None:
        raise KeyError("aside")

    async def accept_and_break(*arguments: Any, **options: Any) -> None:
        asyncio.create_task(broken(), name="aside")  # noqa: RUF006 - that is the bug
        await accept(*arguments, **options)

    monkeypatch.setattr(MessageIngestor, "accept", accept_and_break)
    bugs = play(scenes.NOTHING, tmp_path).bugs
    assert any("nobody heard that aside raised KeyError('aside')" in bug for bug in bugs)


def test_a_bug_in_a_callback_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accept = MessageIngestor.accept

    def broken() -> None:
        raise KeyError("called")

    async def accept_and_break(*arguments: Any, **options: Any) -> None:
        asyncio.get_running_loop().call_soon(broken)
        await accept(*arguments, **options)

    monkeypatch.setattr(MessageIngestor, "accept", accept_and_break)
    assert any("KeyError('called')" in bug for bug in play(scenes.NOTHING, tmp_path).bugs)


def test_a_task_that_never_ends_does_not_keep_a_world_going(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept = MessageIngestor.accept

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(1.0)
            except asyncio.CancelledError:
                continue

    kept = []

    async def accept_and_stay(*arguments: Any, **options: Any) -> None:
        kept.append(asyncio.create_task(stubborn(), name="stubborn"))
        await accept(*arguments, **options)

    monkeypatch.setattr(MessageIngestor, "accept", accept_and_stay)
    assert play(scenes.NOTHING, tmp_path).bugs == ["stubborn does not end"]
