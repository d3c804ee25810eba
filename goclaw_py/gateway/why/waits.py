"""What a request waits for that has not started, and who holds it."""

from __future__ import annotations

from goclaw_py.core.display_names import short_id
from goclaw_py.core.text import count
from goclaw_py.core.time.texts import duration
from goclaw_py.gateway.why.sources import Sources, Verdict, conclude, limit_of
from goclaw_py.operations.explanation import (
    Cure,
    Explanation,
    ExplanationStep,
    Subject,
    SubjectKind,
)
from goclaw_py.scheduler import texts
from goclaw_py.scheduler.models import HOLDING
from goclaw_py.scheduler.operator_warnings import shell_command
from goclaw_py.scheduler.views import RunView, WaitsFor

_NAMED = 3


async def explain(src: Sources, view: RunView, about: Subject | None = None) -> Explanation:
    """Explain a request that has not started."""
    about = about or Subject(SubjectKind.RUN, view.id, f"run {short_id(view.id)}")
    verdict = await judge(src, view)
    step = ExplanationStep(None, verdict.code, texts.waits_for(view))
    return verdict.explanation(about, src.now(), (step,))


async def judge(src: Sources, view: RunView) -> Verdict:
    """What it waits for, and what to do about it."""
    assert view.waits_for is not None
    others = [] if src.container is None else src.container.dispatcher.runs()
    holders = [one for one in others if one.id != view.id and _holds(one, view)]
    waited = f"It has waited {duration(view.for_s)} for {texts.waits_for(view)}"
    answer = f"{waited}{await _names(src, holders)}."
    code = f"waits.{view.waits_for.value}"
    return conclude(code, answer, *_cures(src, view, view.waits_for))


def _holds(one: RunView, view: RunView) -> bool:
    """Whether a run has a slot of what another one waits for."""
    if one.state not in HOLDING:
        return False
    match view.waits_for:
        case WaitsFor.SESSION:
            return one.session == view.session
        case WaitsFor.LANE:
            return one.lane == view.lane
        case WaitsFor.AGENT:
            return one.agent == view.agent
        case _:
            return False


async def _names(src: Sources, holders: list[RunView]) -> str:
    if not holders:
        return ""
    shown = [
        f"{await src.run_name(one.id, one.session)}, {duration(one.for_s)}"
        for one in holders[:_NAMED]
    ]
    rest = len(holders) - _NAMED
    more = f" and {count(rest, 'more', 'more')}" if rest > 0 else ""
    return f"; in progress: {'; '.join(shown)}{more}"


def _cures(src: Sources, view: RunView, waits_for: WaitsFor) -> tuple[Cure, ...]:
    queue = Cure("All running and waiting runs there", shell_command("queue", view.session))
    match waits_for:
        case WaitsFor.SESSION:
            return (
                queue,
                Cure(
                    "Add such messages to the run in progress next time: write /queue steer "
                    "in the chat"
                ),
                Cure("Stop the run before it", shell_command("stop", view.session)),
            )
        case WaitsFor.LANE:
            return src.wider(view.lane)
        case WaitsFor.AGENT:
            return (queue, limit_of(view.agent))
        case WaitsFor.SENDER | WaitsFor.PARENT:
            return (queue,)
