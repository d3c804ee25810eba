"""The result of a run as an attempt of its job."""

from __future__ import annotations

from goclaw_py.delivery import texts
from goclaw_py.jobs.decisions import why_of
from goclaw_py.jobs.execution_ends import AttemptOutput
from goclaw_py.jobs.execution_models import Attempt
from goclaw_py.model.errors import AgentError, StoreUnavailable
from goclaw_py.model.outcomes import Ending, Outcome, Reason
from goclaw_py.runs.run_recorder import RunRecorder


def attempt_of(ended: Ending, error: BaseException | None, progress: RunRecorder) -> Attempt:
    """How an attempt ended, from the end of its run."""
    outcome = ended.outcome
    if ended.reason in (Reason.DRAINING, Reason.SHUTDOWN):
        outcome = Outcome.INTERRUPTED
    elif outcome is Outcome.ABANDONED and ended.reason in (Reason.STOPPED, Reason.STOPPED_ALL):
        outcome = Outcome.CANCELLED
    told = progress.told(error) or ""
    if isinstance(error, AgentError):
        friendly = error.friendly
    elif outcome in (Outcome.TIMED_OUT, Outcome.ABANDONED):
        friendly = texts.timed_out(ended.reason)
    else:
        friendly = texts.FAILED
    return Attempt(
        outcome=outcome,
        why=why_of(ended.reason),
        error=told,
        friendly=friendly,
        retryable=_may_pass(error),
        side_effects=progress.has_side_effects,
    )


def said_of(progress: RunRecorder) -> AttemptOutput:
    """What a run has said, used and wants to be sent."""
    result = progress.result
    if result is None:
        return AttemptOutput(progress.text, progress.usage)
    return AttemptOutput(result.text, progress.usage, result.files)


def _may_pass(error: BaseException | None) -> bool:
    """Whether the cause of a failure may be gone in a moment."""
    return isinstance(error, StoreUnavailable) or (
        isinstance(error, AgentError) and error.retryable
    )
