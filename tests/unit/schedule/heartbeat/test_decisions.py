"""Whether a heartbeat run comes to its agent (SPEC HB-1 to HB-4, HB-12, AGENT-5, HB-11, HB-13)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product

import pytest

from goclaw_py.core.budget import Budget
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.core.run_events import Usage
from goclaw_py.schedule.heartbeat.active_hours import ActiveHours
from goclaw_py.schedule.heartbeat.checklist.checklist import DueItems, parse
from goclaw_py.schedule.heartbeat.decisions import (
    AskAgent,
    Deferred,
    HeartbeatFacts,
    HeartbeatPolicy,
    Need,
    Skipped,
    decide,
    for_one,
    is_used_up,
)
from goclaw_py.schedule.heartbeat.models import HeartbeatEvent, PreconditionQuery, Skip

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)
NIGHT = ActiveHours(22 * 60, 6 * 60, "UTC")
LIST = parse("- [ ] look at the calendar\n")
EMPTY = parse("# nothing\n")
LATER = parse("- weekdays 09:00: plan the day\n")
EVENT = HeartbeatEvent(1, MAIN_AGENT, "fire", NOON)
DEAR = Usage(requests=9, input_tokens=10, cost_usd=Decimal(1))
LONG = Usage(requests=9, input_tokens=150_000, output_tokens=50_000)
POLICY = HeartbeatPolicy()

ALL_WELL = HeartbeatFacts(
    HeartbeatRunKind.INTERVAL, NOON, POLICY, checklist=LIST, looks=PreconditionQuery()
)


def test_a_heartbeat_run_with_something_to_do_comes_to_its_agent() -> None:
    decided = decide(ALL_WELL)
    assert decided == AskAgent(DueItems("- [ ] look at the calendar"), ())
    # A mute ends at its time.
    assert decide(replace(ALL_WELL, muted_until=NOON)) == decided


@pytest.mark.parametrize(("change", "skip"), [
    ({"is_on": False}, Skip.DISABLED),
    ({"muted_until": NOON + timedelta(seconds=1)}, Skip.MUTED),
    ({"policy": replace(POLICY, hours=NIGHT)}, Skip.QUIET_HOURS),
    ({"checklist": Skip.NO_FILE}, Skip.NO_FILE),
    ({"checklist": Skip.UNREADABLE}, Skip.UNREADABLE),
    ({"checklist": EMPTY}, Skip.EMPTY),
    ({"checklist": LATER}, Skip.NOTHING_DUE),
    ({"looks": PreconditionQuery(spent=DEAR)}, Skip.BUDGET),
    ({"looks": PreconditionQuery(spent=LONG)}, Skip.BUDGET),
])  # fmt: skip
def test_each_check_alone_stops_a_heartbeat_run(change: dict[str, object], skip: Skip) -> None:
    decided = decide(replace(ALL_WELL, **change))  # type: ignore[arg-type]
    assert isinstance(decided, Skipped)
    assert decided.skip is skip
    # An item that is seen for the first time is noted though nothing is due.
    assert len(decided.noted) == (skip is Skip.NOTHING_DUE)


def test_the_first_check_that_stops_a_heartbeat_run_is_its_reason() -> None:
    """SPEC HB-1: cheapest first."""
    stops: list[tuple[dict[str, object], Skip]] = [
        ({"is_on": False}, Skip.DISABLED),
        ({"muted_until": NOON + timedelta(hours=1)}, Skip.MUTED),
        ({"policy": replace(POLICY, hours=NIGHT)}, Skip.QUIET_HOURS),
        ({"checklist": EMPTY}, Skip.EMPTY),
    ]
    for chosen in product((False, True), repeat=len(stops)):
        facts = ALL_WELL
        reasons: list[Skip] = []
        for (change, skip), is_so in zip(stops, chosen, strict=True):
            if is_so:
                facts, reasons = replace(facts, **change), [*reasons, skip]  # type: ignore[arg-type]
        decided = decide(facts)
        if reasons:
            assert isinstance(decided, Skipped)
            assert decided.skip is reasons[0]
        else:
            assert isinstance(decided, AskAgent)


def test_nothing_is_found_out_for_a_heartbeat_run_that_is_stopped_before() -> None:
    unknown = replace(ALL_WELL, checklist=None, looks=None)
    assert decide(replace(unknown, is_on=False)) == Skipped(Skip.DISABLED)
    assert decide(unknown) is Need.CHECKLIST
    assert decide(replace(unknown, checklist=EMPTY)) is Need.LOOKS


@pytest.mark.parametrize("checklist", [Skip.NO_FILE, Skip.UNREADABLE, EMPTY, LATER])
def test_events_are_told_without_any_checklist(checklist: object) -> None:
    facts = replace(ALL_WELL, checklist=checklist, looks=PreconditionQuery(events=(EVENT,)))  # type: ignore[arg-type]
    decided = decide(facts)
    assert isinstance(decided, AskAgent)
    assert (decided.due.text, decided.events) == ("", (EVENT,))


def test_a_heartbeat_run_by_hand_heeds_neither_mute_nor_quiet_hours() -> None:
    night = replace(ALL_WELL, policy=replace(POLICY, hours=NIGHT))
    day = NOON + timedelta(days=1)
    facts = replace(night, kind=HeartbeatRunKind.MANUAL, muted_until=day)
    assert isinstance(decide(facts), AskAgent)
    assert decide(replace(facts, looks=PreconditionQuery(spent=DEAR))) == Skipped(Skip.BUDGET)
    assert decide(replace(facts, is_on=False)) == Skipped(Skip.DISABLED)
    for wake in (HeartbeatRunKind.EVENT, HeartbeatRunKind.JOB):
        assert decide(replace(night, kind=wake)) == Skipped(Skip.QUIET_HOURS)


def test_a_busy_agent_is_waited_for_until_the_next_heartbeat_run_is_due() -> None:
    next_at = NOON + timedelta(minutes=1)
    busy = replace(ALL_WELL, looks=PreconditionQuery(is_busy=True), next_at=next_at)
    assert decide(busy) == Deferred()
    assert isinstance(decide(replace(busy, now=next_at)), AskAgent)
    assert decide(replace(busy, next_at=None)) == Deferred()
    # But not by who has nothing to ask.
    assert decide(replace(busy, checklist=EMPTY)) == Skipped(Skip.EMPTY)


@pytest.mark.parametrize(("spent", "is_over"), [
    (None, False), (Usage(), False), (DEAR, True),
    (replace(DEAR, cost_usd=Decimal("0.999999")), False),
    (replace(DEAR, cost_usd=Decimal(0), input_tokens=900_000), False),
    (LONG, True), (replace(LONG, input_tokens=149_999), False),
])  # fmt: skip
def test_money_counts_where_it_is_known_and_else_tokens(spent: Usage, *, is_over: bool) -> None:
    assert is_used_up(POLICY.day, spent) is is_over
    assert not is_used_up(Budget(), spent)


def test_a_heartbeat_run_may_use_what_is_left_of_the_day() -> None:
    assert for_one(POLICY, None) == Budget(turns=10, tokens=200_000, usd=Decimal("0.50"))
    cheap = replace(DEAR, cost_usd=Decimal("0.8"))
    assert for_one(POLICY, cheap) == Budget(turns=10, tokens=None, usd=Decimal("0.2"))
    assert for_one(POLICY, replace(LONG, input_tokens=0)).tokens == 150_000
