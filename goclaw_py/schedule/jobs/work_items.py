"""Work items for jobs, from their work sources (SPEC CRON-18)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol

from goclaw_py.core.errors import WorkSourceError
from goclaw_py.core.ids import JobId
from goclaw_py.core.text import truncate
from goclaw_py.schedule.jobs.decisions import Finish
from goclaw_py.schedule.jobs.execution import JobExecution
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus
from goclaw_py.schedule.jobs.models import WorkItem
from goclaw_py.schedule.models import Attempt


class WorkSource(Protocol):
    """A source of work items for jobs. Any method may raise ``WorkSourceError``."""

    async def claim(self, job: JobId) -> WorkItem | None:
        """Claim the next item exclusively for a run of a job; None: no work."""

    async def done(self, item: WorkItem, *, ok: bool, text: str) -> None:
        """Report the end of an item, with the result text."""

    async def give_back(self, item: WorkItem, reason: str) -> None:
        """Release an item that was neither done nor failed, so that it can be taken again."""


log = logging.getLogger(__name__)

_TELL_S = 60.0
_CAUSE_CHARS = 500


class NoWork(Exception):
    """The work source has no items."""


class WorkItems:
    """Takes items for occurrences, and reports their results to the source."""

    def __init__(self, sources: Mapping[str, WorkSource]) -> None:
        self._sources = sources

    async def claim(self, execution: JobExecution) -> None:
        """Claim an item for a job with a work source; a retry keeps its item.

        Raises ``NoWork`` and ``WorkSourceError``.
        """
        name = execution.claimed.job.spec.source
        if not name or execution.item is not None:
            return
        source = self._sources.get(name)
        if source is None:
            raise WorkSourceError(f"there is no work source {name!r} any more")
        execution.item = await source.claim(execution.claimed.job.id)
        if execution.item is None:
            raise NoWork

    async def finish(self, execution: JobExecution, end: Finish, attempt: Attempt) -> None:
        """Report the result of an item, or release it, within a time limit. Raises nothing."""
        item = execution.item
        if item is None:
            return
        source = self._sources[execution.claimed.job.spec.source]
        try:
            async with asyncio.timeout(_TELL_S):
                if end.status in (OccurrenceStatus.OK, OccurrenceStatus.FAILED):
                    ok = end.status is OccurrenceStatus.OK
                    text = attempt.text if ok else _cause(attempt)
                    await source.done(item, ok=ok, text=text)
                else:
                    await source.give_back(item, end.status.value)
        except (WorkSourceError, TimeoutError) as error:
            log.warning("work_result_not_reported", extra={"item": item.id, "error": repr(error)})
        except Exception:
            # A boundary: a source may be anybody's.
            log.exception("work_source_failed", extra={"item": item.id})


def _cause(attempt: Attempt) -> str:
    """Return why a run failed: the sentence for people, which often says little, and the error."""
    error = truncate(attempt.error, _CAUSE_CHARS)
    if error and error not in attempt.friendly:
        return f"{attempt.friendly}\n\n{error}".strip()
    return attempt.friendly
