"""Texts of the heartbeat pages: runs, their states, and dry runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from goclaw_py.chat.outbound.ok_token import without_token
from goclaw_py.core.text import cost, sentence
from goclaw_py.core.time.durations import in_words
from goclaw_py.core.time.texts import at
from goclaw_py.schedule.heartbeat.models import HeartbeatRun, HeartbeatRunStatus, Skip
from goclaw_py.schedule.heartbeat.status_texts import (
    advice,
    dry_run_lines,
    is_undelivered,
    next_run,
    outcome_words,
    route_words,
    spent_words,
    state_words,
    why,
)
from goclaw_py.schedule.heartbeat.views import OPERATOR, DryRunReport, HeartbeatView

OUTCOMES: Final = (
    *(each.value for each in HeartbeatRunStatus if each is not HeartbeatRunStatus.SKIPPED),
    *(f"{HeartbeatRunStatus.SKIPPED}:{skip}" for skip in Skip),
)
"""The outcomes that a list can select; see ``HeartbeatRun.outcome``."""


def _status(heartbeat_run: HeartbeatRun) -> HeartbeatRunStatus:
    return (
        HeartbeatRunStatus.DELIVERY_FAILED
        if is_undelivered(heartbeat_run)
        else heartbeat_run.status
    )


def _summary(heartbeat_run: HeartbeatRun) -> str:
    return without_token(heartbeat_run.reply).strip()


def _state(view: HeartbeatView) -> str:
    # A badge says before it whether it is on.
    return state_words(view).removeprefix("on, ")


_READER: Final = replace(
    OPERATOR,
    turn_on="It can be turned on here.",
    add_item="Items can be added below.",
    unmute="It can be unmuted here.",
)
"""Who reads the pages, and has their buttons."""

WORDS: Final[Mapping[str, object]] = {
    "at": at,
    "in_words": in_words,
    "status_of": _status,
    "outcome": lambda heartbeat_run: sentence(outcome_words(heartbeat_run)),
    "advice": partial(advice, reader=_READER),
    "cost": cost,
    "said": _summary,
    "state": _state,
    "route_words": route_words,
    "spent_words": spent_words,
    "why": partial(why, reader=_READER),
    "next_run": next_run,
}
"""Functions for templates about heartbeats."""


# ---------------------------------------------------------------------------- dry run


@dataclass(frozen=True, slots=True)
class CheckLine:
    """A check: its question, its result, its colour, and a remark."""

    asks: str
    went: str
    meaning: str
    detail: str = ""


_NOT_REACHED: Final = ("not reached", "idle")
_CHECKS: Final = (
    ("Is it on?", frozenset({Skip.DISABLED})),
    (
        "Is there something to check: a due item of HEARTBEAT.md, or an event?",
        frozenset({Skip.NO_FILE, Skip.UNREADABLE, Skip.EMPTY, Skip.NOTHING_DUE}),
    ),
    ("Is nobody talking to the agent?", None),
    ("Is some of its daily budget left?", frozenset({Skip.BUDGET})),
)
"""The checks in order, with the results that end them; None: the one that defers a run."""


def steps_of(report: DryRunReport, view: HeartbeatView) -> tuple[CheckLine, ...]:
    """Return what a manual run would do now, check by check (SPEC HB-1)."""
    verdict = dry_run_lines(report, view.heartbeat)[0]
    is_deferred = report.status is HeartbeatRunStatus.DEFERRED
    steps: list[CheckLine] = []
    is_over = False
    for asks, skips in _CHECKS:
        if is_over:
            steps.append(CheckLine(asks, *_NOT_REACHED))
        elif is_deferred if skips is None else report.skip in skips:
            is_over = True
            how = ("waits here", "busy") if skips is None else ("skipped here", "bad")
            steps.append(CheckLine(asks, *how, verdict))
        else:
            steps.append(CheckLine(asks, "passed", "good"))
    steps[1:1] = _unheeded(view)
    asked = _NOT_REACHED if is_over else ("yes", "good", report.detail)
    return (*steps, CheckLine("Would it ask the agent?", *asked), _route_step(report, view))


def _unheeded(view: HeartbeatView) -> list[CheckLine]:
    """Return the checks that skip only scheduled runs."""
    muted, hours = view.heartbeat.muted_until, view.policy.hours
    is_muted = muted is not None and muted > view.now
    is_out = hours is not None and not hours.holds(view.now)
    regular = "a scheduled run would be skipped now"
    return [
        CheckLine(
            "Is it not muted?", "ignored for manual runs", "idle", regular if is_muted else ""
        ),
        CheckLine(
            "Is it within its active hours?",
            "ignored for manual runs",
            "idle",
            f"{regular}: they are {hours}" if is_out else "",
        ),
    ]


def _route_step(report: DryRunReport, view: HeartbeatView) -> CheckLine:
    route = report.route
    is_reached = route.target is not None and not route.problem
    went, meaning = ("found", "good") if is_reached else ("nowhere", "idle")
    if route.problem:
        went, meaning = "cannot be delivered", "bad"
    detail = f"An alert goes {route_words(route, view.policy)}."
    return CheckLine("Where would an alert go?", went, meaning, detail)
