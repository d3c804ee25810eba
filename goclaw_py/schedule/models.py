"""Claimed work: an execution in this process, and the results of its attempts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from goclaw_py.core.errors import AgentError, StoreUnavailable, WorkSourceError
from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import OutFile
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import Usage
from goclaw_py.core.text import error_text
from goclaw_py.core.time.clock import Clock


def ran_s(started_at: datetime | None, finished_at: datetime | None) -> float | None:
    """Return how long something ran, in seconds; None if it did not start or still runs.

    It is never negative, whichever clocks gave the two times.
    """
    if started_at is None or finished_at is None:
        return None
    return max(0.0, (finished_at - started_at).total_seconds())


class Superseded(Exception):
    """The job or heartbeat was paused, deleted or changed before the attempt started."""


class Next(StrEnum):
    """What follows an attempt that does not end its execution."""

    RETRY = "retry"
    RELEASE = "release"
    """Interrupted by a shutdown: the next free node claims it again."""
    PARK = "park"
    """It has asked a person: no node has it until the answer, then one claims it again."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of an attempt.

    Args:
        error: The cause, for the log.
        friendly: The cause for people, in one sentence.
        retryable: Whether the cause may be temporary.
        side_effects: Whether a tool with side effects was called, which a retry would repeat.
        text: The reply.
        files: Files to send with the reply.
        is_cut: Whether the reply is incomplete.
    """

    outcome: Outcome
    reason: Reason | None = None
    error: str = ""
    friendly: str = ""
    retryable: bool = False
    side_effects: bool = False
    text: str = ""
    usage: Usage | None = None
    files: tuple[OutFile, ...] = ()
    is_cut: bool = False


NOTHING = Attempt(Outcome.REJECTED)
"""The result of an attempt that did not start."""


def failed_by(error: BaseException) -> Attempt:
    """Return the result of an attempt that failed before it started."""
    return Attempt(Outcome.FAILED, error=error_text(error))


@dataclass(slots=True, eq=False, kw_only=True)
class Execution:
    """Work that this process has claimed and not ended.

    Args:
        node: The node id that has claimed it, even if this process has another one now.
        attempt: The number of the present attempt, from 1.
        run: The run of the attempt.
        session: The session of the run.
        looked_at: When it was last known to be wanted.
        waits: It waits for its next attempt, or for its turn; nothing of it is running.
        stopped: It starts no more attempts.
        is_over: Its end was decided and is being stored.
    """

    node: NodeId
    attempt: int = 0
    run: RunId | None = None
    session: SessionKey | None = None
    started_at: datetime | None = None
    looked_at: datetime | None = None
    waits: bool = False
    stopped: bool = False
    is_over: bool = False

    @property
    def id(self) -> str:
        """The id of the occurrence or of the heartbeat run."""
        raise NotImplementedError

    @property
    def context(self) -> dict[str, object]:
        """Return the fields of all log lines during its execution."""
        raise NotImplementedError

    @property
    def facts(self) -> dict[str, object]:
        """Return the fields of log lines about it."""
        of_run = {"attempt": self.attempt, "run_id": self.run, "session": self.session}
        return self.context | of_run

    async def until_due(self, clock: Clock) -> None:
        """Wait until it is due, if it was claimed earlier. Raises ``Superseded``."""


def is_transient(error: BaseException | None) -> bool:
    """Return whether what failed with this error, also in the library, is tried again (CRON-7)."""
    if isinstance(error, AgentError):
        return error.retryable and not error.is_retried
    return isinstance(error, ConnectionError | TimeoutError | StoreUnavailable | WorkSourceError)
