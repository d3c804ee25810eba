"""Why a heartbeat did or did not send an alert."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from goclaw_py.core.display_names import short_id
from goclaw_py.core.ids import AgentName
from goclaw_py.gateway.why.sources import Sources
from goclaw_py.operations.explanation import (
    Cure,
    Explanation,
    ExplanationStep,
    Subject,
    SubjectKind,
    setting_cure,
)
from goclaw_py.schedule.heartbeat import status_texts as wording
from goclaw_py.schedule.heartbeat.models import HeartbeatRun, HeartbeatRunStatus, Skip
from goclaw_py.schedule.heartbeat.views import OPERATOR, HeartbeatView

_SHOWN: Final = 5


def subject(agent: AgentName) -> Subject:
    """Return the heartbeat of an agent as a subject."""
    return Subject(SubjectKind.HEARTBEAT, agent, f"the heartbeat of agent {agent}")


async def explain(src: Sources, agent: AgentName) -> Explanation:
    """Explain the last heartbeat run of an agent, or why there is none."""
    service = src.control.heartbeats
    view = await service.view(agent)
    last, coming = wording.why(view, replace(OPERATOR, zone=src.zone))
    # What holds now goes before the past: a heartbeat that is off has no better answer.
    stands = _state(view)
    answer = coming if stands or view.last is None else last
    heartbeat_runs = await service.log(agent, limit=_SHOWN)
    steps = [*map(_step, reversed(heartbeat_runs)), ExplanationStep(None, "next", coming)]
    code = f"heartbeat.{stands or _result(view)}"
    return Explanation(
        subject(agent),
        src.now(),
        code,
        answer,
        tuple(steps),
        tuple(_cures(view, stands, heartbeat_runs)),
    )


def _state(view: HeartbeatView) -> str:
    """Return what keeps it from running now, "" if nothing does."""
    heart = view.heartbeat
    if heart.interval is None:
        return "off_by_settings"
    if heart.switched is False:
        return "off"
    if heart.muted_until is not None and heart.muted_until > view.now:
        return "muted"
    if view.current is not None and view.current.status is HeartbeatRunStatus.DEFERRED:
        return "busy"
    return "running" if view.current is not None else ""


def _result(view: HeartbeatView) -> str:
    """Return the result of the last run."""
    if view.last is None:
        return "none_yet"
    if wording.is_undelivered(view.last):
        return "undelivered"
    return (view.last.skip or view.last.status).value


def _step(heartbeat_run: HeartbeatRun) -> ExplanationStep:
    run = f" (run {short_id(heartbeat_run.runs[-1])})" if heartbeat_run.runs else ""
    return ExplanationStep(
        heartbeat_run.claimed_at,
        heartbeat_run.outcome.replace(":", "_"),
        wording.outcome_words(heartbeat_run) + run,
    )


def _cures(view: HeartbeatView, stands: str, heartbeat_runs: list[HeartbeatRun]) -> list[Cure]:
    agent, last = view.heartbeat.agent, view.last
    if stands:
        return [_of_agent(agent, *_BY_STATE[stands])]
    found: list[Cure] = []
    if last is not None and last.skip in _BY_SKIP:
        found.append(_of_agent(agent, *_BY_SKIP[last.skip]))
    elif last is not None and (advice := wording.advice(last, view.heartbeat)):
        found.append(Cure(advice))
        if wording.is_undelivered(last):
            found.append(Cure("The message, and why", "goclaw deliveries list --state failed"))
    if heartbeat_runs and heartbeat_runs[0].runs:
        found.append(Cure("The last run", f"goclaw why run:{heartbeat_runs[0].runs[-1]}"))
    found.append(Cure("What a run would do now", f"goclaw heartbeat run {agent} --dry-run"))
    return found


def _of_agent(agent: AgentName, words: str, command: str, setting: str = "") -> Cure:
    if setting:
        return setting_cure(words, setting)
    return Cure(words, command.format(agent=agent))


_BUSY: Final = ("What the agent does now", "goclaw runs --active")
_ADD: Final = (
    "Add an item to the checklist, for example",
    "goclaw heartbeat add --agent {agent} 'every 2h: is the build green?'",
)
_BY_STATE: Final[Mapping[str, tuple[str, ...]]] = {
    "off_by_settings": (
        "Set enabled and interval under [heartbeat] in goclaw.toml",
        "",
        "heartbeat.interval",
    ),
    "off": ("Turn it on", "goclaw heartbeat on {agent}"),
    "muted": ("Unmute it", "goclaw heartbeat mute off {agent}"),
    "busy": _BUSY,
    "running": _BUSY,
}
_BY_SKIP: Final[Mapping[Skip | None, tuple[str, ...]]] = {
    Skip.NO_FILE: _ADD,
    Skip.EMPTY: _ADD,
    Skip.QUIET_HOURS: (
        "Change the hours: active_hours under [heartbeat] in goclaw.toml",
        "",
        "heartbeat.active_hours",
    ),
    Skip.BUDGET: (
        "Raise the budget: day under [heartbeat.budget] in goclaw.toml",
        "",
        "heartbeat.budget.day",
    ),
}
