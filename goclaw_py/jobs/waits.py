"""What an occurrence waits for before its run starts (SPEC OPS-4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from goclaw_py.jobs.execution_models import LoggedOccurrence
from goclaw_py.jobs.job_json import job_of
from goclaw_py.jobs.models import FixedMessage, session_for
from goclaw_py.jobs.policy import JobPolicy
from goclaw_py.model.errors import BadJob, BadSchedule
from goclaw_py.model.ids import SessionKey
from goclaw_py.ports.store import RunStore, StoredRun

_MOST_RUNS = 1000
"""Of so many runs that work now, the newest, the sessions are known."""


async def with_waits(
    store: RunStore, base: JobPolicy, rows: Sequence[LoggedOccurrence]
) -> list[LoggedOccurrence]:
    """The rows, with the session that each waits for and the run that works there.

    ``base`` is the policy of the settings.
    """
    sessions = {row.id: key for row in rows if (key := _session(row, base)) is not None}
    if not sessions:
        return list(rows)
    working: dict[SessionKey, StoredRun] = {}
    for run in await store.runs(limit=_MOST_RUNS, active=True):
        working[run.session] = run  # in the end the oldest
    return [_with_wait(row, sessions.get(row.id), working) for row in rows]


def _session(row: LoggedOccurrence, base: JobPolicy) -> SessionKey | None:
    """The session of one that has not begun; None if it needs none that others work in."""
    if row.waits_for is not None or row.started_at is not None or row.finished_at is not None:
        return row.waits_for
    try:
        job = job_of(row.definition)
        policy = job.policy(base)
    except (BadJob, BadSchedule):
        return None  # another release has written it
    return None if isinstance(job.spec.payload, FixedMessage) else session_for(job, policy, None)


def _with_wait(
    row: LoggedOccurrence, session: SessionKey | None, working: dict[SessionKey, StoredRun]
) -> LoggedOccurrence:
    run = None if session is None else working.get(session)
    if run is None or run.occurrence == row.id:
        return row
    return replace(row, waits_for=session, blocking_run=run.id, blocking_node=run.node)
