"""Limits how many jobs of one agent run at once (SPEC CRON-10, CRON-17)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from goclaw_py.jobs.execution import JobExecution
from goclaw_py.model.ids import OccurrenceId


class ConcurrencyLimiter:
    """Queues occurrences whose agent has no free slot.

    Args:
        held: What this process has in hand, as it is now.
    """

    def __init__(self, held: Mapping[OccurrenceId, JobExecution]) -> None:
        self._held = held
        self._waiting: dict[OccurrenceId, JobExecution] = {}

    def has(self, held: JobExecution) -> bool:
        """Whether fewer of its agent are at work than may be at once.

        One that waits for its next attempt keeps its place.
        """
        agent, most = held.claimed.job.spec.agent, held.policy.max_per_agent
        others = (
            other
            for other in self._held.values()
            if other is not held and other.claimed.job.spec.agent == agent
        )
        return most is None or sum(_has_begun(other) for other in others) < most

    def enqueue_run(self, held: JobExecution) -> None:
        """Let one wait until there is room."""
        held.waits = True
        self._waiting[held.id] = held

    def admit(self) -> Iterator[JobExecution]:
        """Those for which there is room now, the first one first; begin each before the next."""
        for held in tuple(self._waiting.values()):
            if self.has(held):
                del self._waiting[held.id]
                yield held

    def forget(self, held: JobExecution) -> None:
        """One is over, whether it waited or not."""
        self._waiting.pop(held.id, None)

    def clear(self) -> None:
        """Nobody waits any more."""
        self._waiting.clear()


def _has_begun(held: JobExecution) -> bool:
    return held.attempt > held.claimed.attempts
