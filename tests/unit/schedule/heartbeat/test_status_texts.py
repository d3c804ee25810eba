"""Why a heartbeat was silent, and when it speaks next, as people read it.

SPEC HB-9, OPS-4, HB-4, HB-8, HB-11, HB-12.
"""

from __future__ import annotations

import re
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goclaw_py.core.budget import Budget
from goclaw_py.core.ids import AgentName, HeartbeatRunId
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import HeartbeatRunKind as K
from goclaw_py.core.run_events import Usage
from goclaw_py.core.targets import Route
from goclaw_py.core.time.texts import named
from goclaw_py.schedule.heartbeat.active_hours import ActiveHours
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy, NoTarget
from goclaw_py.schedule.heartbeat.models import Heartbeat, HeartbeatRun, Skip
from goclaw_py.schedule.heartbeat.models import HeartbeatRunStatus as S
from goclaw_py.schedule.heartbeat.status_texts import (
    SAME_WAITS,
    advice,
    dry_run_lines,
    next_run,
    outcome_words,
    spent_words,
    state_words,
    status_lines,
    why,
)
from goclaw_py.schedule.heartbeat.views import GUEST, OPERATOR, DryRunReport, HeartbeatView

BERLIN = "Europe/Berlin"
NINE = datetime(2026, 3, 3, 8, 0, tzinfo=UTC)
"""09:00 in Berlin, a Tuesday."""
HALF = timedelta(minutes=30)
MAIN = AgentName("main")
CHAT = Target("telegram", "default", "5")
DAY = ActiveHours(8 * 60, 22 * 60, BERLIN)
NIGHT = ActiveHours(22 * 60, 6 * 60, BERLIN)
ADD = "If it is still so, add an item with /heartbeat add TEXT (or goclaw heartbeat add TEXT)."
BLOCKED = {"target": CHAT, "delivery": "failed", "undelivered": "bot was blocked"}


def heartbeat_run(status: S = S.OK, skip: Skip | None = None, **facts: Any) -> HeartbeatRun:
    made = HeartbeatRun(
        HeartbeatRunId("b"), MAIN, K.INTERVAL, NINE - HALF, NINE - HALF, status, skip=skip
    )
    return replace(made, **facts)


def view(**facts: Any) -> HeartbeatView:
    """A heartbeat that is on; ``facts`` of the heartbeat, its policy or the view."""
    heartbeat = Heartbeat(MAIN, HALF, anchor=NINE - HALF, next_at=NINE + HALF)
    policy = HeartbeatPolicy(zone=BERLIN)
    for name in list(facts):
        if name in Heartbeat.__slots__:
            heartbeat = replace(heartbeat, **{name: facts.pop(name)})
        elif name in HeartbeatPolicy.__slots__:
            policy = replace(policy, **{name: facts.pop(name)})
    return replace(
        HeartbeatView(heartbeat, policy, Route(CHAT), NINE, last=heartbeat_run()), **facts
    )


def last(status: S, skip: Skip | None = None, **facts: Any) -> str:
    return why(view(last=heartbeat_run(status, skip, **facts)))[0]


@pytest.mark.parametrize(("status", "facts", "words"), [
    (S.OK, {}, "Nothing needed attention, so no message was sent."),
    (S.ALERTED,
     {"target": CHAT, "delivery": "sent", "detail": "the chat in which somebody last wrote"},
     "It sent an alert to telegram:5 (the chat in which somebody last wrote)."),
    (S.ALERTED, {"target": CHAT, "delivery": "waiting"},
     "It had an alert, which waits to be sent to telegram:5."),
    (S.LOGGED, {"detail": "its target is none"},
     "It had an alert, which was only written to the log: its target is none."),
    (S.ALERTED, BLOCKED,
     ("It had an alert, but the message could not be delivered to telegram:5: bot was blocked. "
      "Write to the agent in the chat that should get its alerts, or set heartbeat.target.")),
    (S.DELIVERY_FAILED, BLOCKED,
     ("It had an alert, but the message could not be delivered to telegram:5: bot was blocked. "
      "Write to the agent in the chat that should get its alerts, or set heartbeat.target.")),
    (S.DUPLICATE, {"target": CHAT, "detail": "it was told before"},
     "It repeated an alert of the last 24 hours, which was not sent again."),
    (S.DUPLICATE, {"target": CHAT, "detail": SAME_WAITS},
     "It repeated an alert that still waits to be sent, so nothing was sent."),
    (S.NO_ROUTE, {"detail": "nobody has spoken to this agent"},
     ("It had an alert, but there was no chat to send it to: nobody has spoken to this agent. "
      "Write to the agent in the chat that should get its alerts, or set heartbeat.target.")),
    (S.CANCELLED, {"detail": "/stop"}, "It was cancelled while it was running: /stop."),
    (S.FAILED, {"detail": "the model\n does not answer."},
     "It failed: the model does not answer. The next run tries again."),
    (S.FAILED, {}, "It failed. The next run tries again."),
    (S.LOST, {},
     ("Its gateway process ended during the run. What it had done by then is unknown; the next "
      "run comes as usual.")),
    (S.SKIPPED, {"skip": Skip.DISABLED}, "It was skipped: the heartbeat was off."),
    (S.SKIPPED, {"skip": Skip.MUTED}, "It was skipped: the heartbeat was muted."),
    (S.SKIPPED, {"skip": Skip.QUIET_HOURS},
     "It was skipped: the time was outside the active hours."),
    (S.SKIPPED, {"skip": Skip.NO_FILE}, f"It was skipped: there was no HEARTBEAT.md. {ADD}"),
    (S.SKIPPED, {"skip": Skip.UNREADABLE, "detail": "it is a folder"},
     ("It was skipped: HEARTBEAT.md could not be read: it is a folder. Fix the file; it is in the "
      "workspace of the agent.")),
    (S.SKIPPED, {"skip": Skip.EMPTY}, f"It was skipped: HEARTBEAT.md had nothing to check. {ADD}"),
    (S.SKIPPED, {"skip": Skip.NOTHING_DUE},
     ("It was skipped: no item of HEARTBEAT.md was due. Items with their own interval wait until "
      "it has passed.")),
    (S.SKIPPED, {"skip": Skip.BUDGET},
     ("It was skipped: the daily budget of the heartbeat was used up. It starts again at 00:00 "
      "UTC; raise the budget with heartbeat.budget.day.")),
])  # fmt: skip
def test_the_first_line_says_what_came_of_the_last_heartbeat_run_and_what_to_do(
    status: S, facts: dict[str, Any], words: str
) -> None:
    assert last(status, **facts) == f"Last heartbeat run, today 08:30 (Europe/Berlin): {words}"


@given(
    st.sampled_from(S),
    st.none() | st.sampled_from(Skip),
    st.text(),
    st.none() | st.just(CHAT),
    st.sampled_from(["", "waiting", "sent", "failed"]),
)
def test_there_are_words_for_whatever_a_row_holds(
    status: S, skip: Skip | None, detail: str, target: Target | None, delivery: str
) -> None:
    facts: dict[str, Any] = {"detail": detail, "target": target, "delivery": delivery}
    row = heartbeat_run(status, skip, undelivered=detail, **facts)
    words = outcome_words(row)
    assert words
    assert "\n" not in words
    assert len(words) < 1000
    assert advice(row) == "" or advice(row).endswith(".")
    assert all("\n" not in line for line in why(view(last=row, current=row)))


def test_the_first_line_says_who_asked_for_the_heartbeat_and_how_often_it_failed() -> None:
    assert why(view(last=None))[0] == "There has been no heartbeat run yet."
    assert ", by hand: " in last(S.OK, kind=K.MANUAL)
    assert ", for an event: " in last(S.OK, kind=K.EVENT)
    assert ", after a job: " in last(S.OK, kind=K.JOB)
    assert len(last(S.FAILED, detail="x" * 100_000)) < 500
    failed, skipped = heartbeat_run(S.FAILED), heartbeat_run(S.SKIPPED, Skip.EMPTY)
    assert why(view(last=failed, failures=3))[0].endswith(" It has failed 3 times in a row.")
    assert "in a row" not in why(view(last=failed, failures=1))[0]
    assert "in a row" not in why(view(last=skipped, failures=3))[0]


@pytest.mark.parametrize(("facts", "words"), [
    ({}, "The next run is due today 09:30 (Europe/Berlin), in 30 min."),
    ({"zone": "UTC"}, "The next run is due today 08:30 (UTC), in 30 min."),
    ({"next_at": NINE}, "The next run is due today 09:00 (Europe/Berlin), now."),
    ({"next_at": NINE - timedelta(hours=1)},
     ("The next run was due today 08:00 (Europe/Berlin), but no gateway has started it. Is a "
      "gateway running? To start one: goclaw run.")),
    ({"interval": None, "next_at": None},
     f"No run is planned. {OPERATOR.off_by_settings}"),
    ({"switched": False, "next_at": None},
     ("No run is planned: the heartbeat was turned off. Turn it on with /heartbeat on (or goclaw "
      "heartbeat on).")),
    ({"next_at": None},
     "No run is planned yet. A gateway plans the first one when it starts: goclaw run."),
    ({"muted_until": NINE + timedelta(hours=1, minutes=10)},
     ("The next run that will not be skipped is due today 10:30 (Europe/Berlin), in 90 min: it is "
      f"muted until today 10:10 (Europe/Berlin). {OPERATOR.unmute}")),
    ({"muted_until": NINE + timedelta(hours=1)},
     ("The next run that will not be skipped is due today 10:00 (Europe/Berlin), in 60 min: it is "
      f"muted until today 10:00 (Europe/Berlin). {OPERATOR.unmute}")),
    ({"muted_until": NINE + timedelta(minutes=29)},
     "The next run is due today 09:30 (Europe/Berlin), in 30 min."),
    ({"muted_until": NINE - timedelta(minutes=1)},
     "The next run is due today 09:30 (Europe/Berlin), in 30 min."),
    ({"hours": DAY}, "The next run is due today 09:30 (Europe/Berlin), in 30 min."),
    ({"hours": NIGHT},
     ("The next run that will not be skipped is due today 22:00 (Europe/Berlin), in 13 h: its "
      "active hours are 22:00\u201306:00 Europe/Berlin.")),
    ({"hours": DAY, "muted_until": NINE + timedelta(hours=14)},
     ("The next run that will not be skipped is due tomorrow 08:00 (Europe/Berlin), in 23 h: "
      "it is muted until today 23:00 (Europe/Berlin) and its active hours are 08:00\u201322:00 "
      f"Europe/Berlin. {OPERATOR.unmute}")),
    ({"hours": NIGHT, "interval": timedelta(days=1)},
     ("All coming runs will be skipped: its active hours are 22:00\u201306:00 Europe/Berlin, and "
      "no run falls within those hours.")),
])  # fmt: skip
def test_the_second_line_says_when_or_why_not(facts: dict[str, Any], words: str) -> None:
    assert why(view(**facts))[1] == words


@pytest.mark.parametrize(("facts", "expected"), [
    ({}, NINE + HALF),
    ({"next_at": NINE - timedelta(hours=1)}, NINE - timedelta(hours=1)),
    ({"muted_until": NINE + timedelta(minutes=70)}, NINE + 3 * HALF),
    ({"hours": NIGHT}, NINE + 26 * HALF),
    ({"hours": NIGHT, "interval": timedelta(days=1)}, None),
    ({"switched": False}, None),
    ({"interval": None, "next_at": None}, None),
])  # fmt: skip
def test_lists_show_the_run_that_the_explanation_names(
    facts: dict[str, Any], expected: datetime | None
) -> None:
    """A muted heartbeat has no next run before the mute ends, in a list either."""
    assert next_run(view(**facts)) == expected


@given(
    start=st.integers(0, 1439),
    length=st.integers(1, 1439),
    interval=st.integers(60, 172_800),
    muted=st.none() | st.integers(0, 400_000),
)
@settings(deadline=None)
def test_no_earlier_heartbeat_run_would_have_been_heard(
    start: int, length: int, interval: int, muted: int | None
) -> None:
    """The one that is named is on the grid, in the hours, after the silence, and the first."""
    hours = ActiveHours(start, (start + length) % 1440 or 1440, BERLIN)
    step, due = timedelta(seconds=interval), NINE + timedelta(seconds=interval)
    until = due if muted is None else max(due, NINE + timedelta(seconds=muted))
    heartbeat = {"interval": step, "next_at": due, "muted_until": until}
    line = why(view(hours=hours, zone="UTC", **heartbeat))[1]
    grid = (due + step * number for number in range(20_000))
    heard = (point for point in grid if point >= until and hours.holds(point))
    if line.startswith("All coming runs"):
        assert not any(hours.holds(due + step * number) for number in range(400))
    else:
        assert named(next(heard), "UTC", NINE) in line


@pytest.mark.parametrize(("facts", "words"), [
    ({"current": heartbeat_run(S.RUNNING, claimed_at=NINE - timedelta(minutes=1))},
     ("A heartbeat run has been in progress since today 08:59 (Europe/Berlin). The next run is "
      "due ")),
    ({"current": heartbeat_run(S.DEFERRED), "next_at": NINE + HALF},
     ("The run that was due today 08:30 (Europe/Berlin) is waiting: someone is talking to the "
      "agent. It starts when that is over, at the latest today 09:30 (Europe/Berlin).")),
    ({"current": heartbeat_run(S.DEFERRED, detail="the gateway was stopped"), "next_at": None},
     ("The run that was due today 08:30 (Europe/Berlin) is waiting: the gateway was stopped. It "
      "starts when that is over.")),
    # They came due meanwhile.
    ({"current": heartbeat_run(S.RUNNING, claimed_at=NINE - HALF), "next_at": NINE - HALF / 2},
     ("A heartbeat run has been in progress since today 08:30 (Europe/Berlin). The next run was "
      "due today 08:45 (Europe/Berlin); it starts after this one.")),
    ({"current": heartbeat_run(S.DEFERRED), "next_at": NINE - timedelta(seconds=1)},
     ("The run that was due today 08:30 (Europe/Berlin) has waited: someone is talking to the "
      "agent. It starts now.")),
    ({"current": None, "next_at": NINE - timedelta(seconds=1)},
     "The next run is due today 08:59 (Europe/Berlin), now."),
])  # fmt: skip
def test_a_heartbeat_run_at_work_or_waiting_is_told_of(facts: dict[str, Any], words: str) -> None:
    assert why(view(**facts))[1].startswith(words)


@given(
    late_s=st.integers(-4000, 4_000_000),
    current=st.sampled_from([None, S.RUNNING, S.DEFERRED]),
    muted_s=st.none() | st.integers(-4000, 0),
    hours=st.none() | st.just(DAY) | st.just(NIGHT),
)
def test_nothing_is_muted_that_nobody_has_muted(
    late_s: int, current: S | None, muted_s: int | None, hours: ActiveHours | None
) -> None:
    """Nor has no gateway started what waits for a run in progress."""
    line = why(
        view(
            next_at=NINE - timedelta(seconds=late_s),
            current=None if current is None else heartbeat_run(current),
            muted_until=None if muted_s is None else NINE + timedelta(seconds=muted_s),
            hours=hours,
        )
    )[1]
    assert "muted" not in line
    assert current is None or "Is a gateway running?" not in line


@pytest.mark.parametrize(("facts", "words"), [
    ({"wake_from": NINE - HALF, "wake_kind": K.EVENT}, "A run for an event starts soon."),
    ({"wake_from": NINE + timedelta(seconds=20), "wake_kind": K.JOB},
     "A run after a job starts today 09:00 (Europe/Berlin), in 20 s at the earliest."),
])  # fmt: skip
def test_a_wake_is_told_of_unless_it_will_be_skipped(facts: dict[str, Any], words: str) -> None:
    assert why(view(**facts))[1].endswith(words)
    for silent in ({"switched": False}, {"muted_until": NINE + HALF}, {"hours": NIGHT}):
        assert "for an event" not in why(view(wake_from=NINE, wake_kind=K.EVENT, **silent))[1]


def test_a_used_up_budget_and_a_chat_that_cannot_be_reached_are_told_of() -> None:
    spent = Usage(1, 10, 20, cost_usd=Decimal(1))
    found = why(view(today=spent, route=Route(CHAT, "", "bot was blocked")))[1]
    assert found.endswith(
        "The daily budget of the heartbeat is used up; runs are skipped until tomorrow "
        "01:00 (Europe/Berlin). "
        "Alerts to telegram:5 cannot be delivered: bot was blocked."
    )
    nowhere = why(view(route=Route(None, "x", "nobody has spoken to this agent")))[1]
    assert nowhere.endswith("Alerts cannot be sent: nobody has spoken to this agent.")
    wanted = why(view(route=Route(None, "only logged"), target=NoTarget.NONE))[1]
    assert "nowhere" not in wanted


@pytest.mark.parametrize(("facts", "words"), [
    ({}, "on, every 30 minutes"),
    ({"interval": timedelta(seconds=1)}, "on, every second"),
    ({"hours": DAY}, "on, every 30 minutes, 08:00\u201322:00 Europe/Berlin"),
    ({"muted_until": NINE + HALF}, "on, every 30 minutes, muted until today 09:30 (Europe/Berlin)"),
    ({"muted_until": NINE}, "on, every 30 minutes"),
    ({"switched": False}, "off (every 30 minutes when it is on)"),
    ({"interval": None, "switched": True}, "off in the settings"),
])  # fmt: skip
def test_a_state_is_said_in_words(facts: dict[str, Any], words: str) -> None:
    assert state_words(view(**facts)) == words


def usage(tokens: int, usd: str | None = None) -> Usage:
    return Usage(1, tokens, 0, cost_usd=None if usd is None else Decimal(usd))


@pytest.mark.parametrize(("facts", "words"), [
    ({}, "Used today (UTC): nothing, of at most $1.00 a day; this month: nothing."),
    ({"today": usage(1200, "0.0123"), "month": usage(3_000_000, "12.5")},
     ("Used today (UTC): $0.0123 (1,200 tokens), of at most $1.00 a day; this month: $12.50 "
      "(3,000,000 tokens).")),
    ({"today": usage(1200), "month": usage(1200)},
     "Used today (UTC): 1,200 tokens, of at most 200,000 tokens a day; this month: 1,200 tokens."),
    ({"today": usage(1200, "0"), "month": usage(1200, "0")},
     ("Used today (UTC): $0.00 (1,200 tokens), of at most $1.00 a day; this month: $0.00 (1,200 "
      "tokens).")),
    ({"day": Budget()}, "Used today (UTC): nothing; this month: nothing."),
    ({"day": Budget(tokens=5000), "today": usage(1, "0.5"), "month": usage(1, "0.5")},
     ("Used today (UTC): $0.5000 (1 token), of at most 5,000 tokens a day; this month: $0.5000 (1 "
      "token).")),
])  # fmt: skip
def test_what_was_used_is_said_beside_what_may_be(facts: dict[str, Any], words: str) -> None:
    assert spent_words(view(**facts)) == words


def test_the_status_holds_the_two_lines_where_alerts_go_and_what_waits() -> None:
    seen = view(route=Route(CHAT, "the chat in which somebody last wrote"), events=2)
    lines = status_lines(seen)
    assert lines[0] == "Heartbeat of main: on, every 30 minutes."
    assert tuple(lines[1:3]) == why(seen)
    assert lines[3:] == [
        "Alerts go to telegram:5 (the chat in which somebody last wrote).",
        "Used today (UTC): nothing, of at most $1.00 a day; this month: nothing.",
        "2 events wait for the next heartbeat run.",
    ]
    assert status_lines(replace(seen, events=1))[-1] == "1 event waits for the next heartbeat run."


def test_guests_read_nothing_that_only_operators_know() -> None:
    words = [str(getattr(GUEST, one.name)) for one in fields(GUEST)]
    found = re.compile(r"operator|settings|\blog\b|goclaw|gateway|page", re.IGNORECASE)
    assert [one for one in words if found.search(one)] == []


@pytest.mark.parametrize(("minutes", "state"), [
    (70, "muted"),
    (10, "muted until today 09:10 (Europe/Berlin)"),
])  # fmt: skip
def test_the_status_says_once_until_when_it_is_muted(minutes: int, state: str) -> None:
    lines = status_lines(view(muted_until=NINE + timedelta(minutes=minutes)))
    assert lines[0] == f"Heartbeat of main: on, every 30 minutes, {state}."
    assert "\n".join(lines).count("muted until") == 1


@pytest.mark.parametrize(("facts", "words"), [
    ({"route": Route(None, "x", "nobody spoke")},
     "Used today (UTC): nothing, of at most $1.00 a day; this month: nothing."),
    ({"route": Route(CHAT, "by the settings")}, "Alerts go to telegram:5 (by the settings)."),
    ({"route": Route(None, "only logged"), "target": NoTarget.NONE},
     "Alerts go only to the log (heartbeat.target is none)."),
])  # fmt: skip
def test_where_alerts_go_is_said_once(facts: dict[str, Any], words: str) -> None:
    """What hinders them is in the lines of ``why``."""
    assert status_lines(view(**facts))[3] == words


@pytest.mark.parametrize(("status", "skip", "detail", "words"), [
    (S.RUNNING, None, "", "It would ask its agent."),
    (S.DEFERRED, None, "", "It would wait: someone is talking to the agent."),
    (S.DEFERRED, None, "busy", "It would wait: busy."),
    (S.SKIPPED, Skip.MUTED, "",
     f"It would be skipped: the heartbeat is muted. {OPERATOR.unmute}"),
    (S.SKIPPED, Skip.DISABLED, "",
     ("It would be skipped: the heartbeat is off. Turn it on with /heartbeat on (or goclaw "
      "heartbeat on).")),
    (S.SKIPPED, Skip.UNREADABLE, "10 MB",
     ("It would be skipped: HEARTBEAT.md cannot be read: 10 MB. Fix the file; it is in the "
      "workspace of the agent.")),
    *((S.SKIPPED, skip, "", None) for skip in Skip),
])  # fmt: skip
def test_a_dry_run_says_what_happens(
    status: S, skip: Skip | None, detail: str, words: str | None
) -> None:
    lines = dry_run_lines(DryRunReport(status, skip, detail, "", Route(CHAT)))
    assert lines[0] == words or (words is None and lines[0].startswith("It would be skipped: "))
    assert lines[1:] == ["An alert would go to telegram:5."]


def test_only_the_settings_switch_on_what_they_switch_off() -> None:
    row = heartbeat_run(S.SKIPPED, Skip.DISABLED)
    report = DryRunReport(S.SKIPPED, Skip.DISABLED, "", "", Route(CHAT))
    by_settings = view(interval=None, next_at=None).heartbeat
    assert advice(row, by_settings) == OPERATOR.off_by_settings
    first = dry_run_lines(report, by_settings)[0]
    assert first == f"It would be skipped: the heartbeat is off. {OPERATOR.off_by_settings}"
    for heartbeat in (view(switched=False, next_at=None).heartbeat, None):
        assert "goclaw heartbeat on" in advice(row, heartbeat)
        assert "goclaw heartbeat on" in dry_run_lines(report, heartbeat)[0]


@pytest.mark.parametrize(("skip", "detail", "words"), [
    (Skip.NO_FILE, "there is no such file or folder", "there is no HEARTBEAT.md"),
    (Skip.UNREADABLE, "it is a folder", "HEARTBEAT.md cannot be read: it is a folder"),
])  # fmt: skip
def test_the_file_is_named_once(skip: Skip, detail: str, words: str) -> None:
    detail = f"HEARTBEAT.md: {detail}"
    said = outcome_words(heartbeat_run(S.SKIPPED, skip, detail=detail))
    then = words.replace("is no ", "was no ").replace("cannot", "could not")
    assert said == f"it was skipped: {then}"
    report = DryRunReport(S.SKIPPED, skip, detail, "", Route(CHAT))
    assert dry_run_lines(report)[0].startswith(f"It would be skipped: {words}. ")


def test_a_dry_run_shows_what_the_agent_would_read() -> None:
    report = DryRunReport(S.RUNNING, None, "", "- mail\n- backup", Route(None, "x"))
    assert dry_run_lines(report) == [
        "It would ask its agent.",
        "An alert would go nowhere: x.",
        *("The agent would read:", "- mail", "- backup"),
    ]
