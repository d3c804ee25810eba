"""Display names that this process has stored or read, for log lines (SPEC OPS-9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from goclaw_py.core.containers import LruCache
from goclaw_py.core.display_names import KnownNames, display_name, needed_names
from goclaw_py.core.ids import JobId
from goclaw_py.core.messages import Target

_REMEMBERED: Final = 10_000


class NameCache:
    """Names of chats, people, topics and jobs, as they were seen last in this process.

    Args:
        find_job: Names a job of which this process has the record.
    """

    def __init__(self, find_job: Callable[[JobId], str | None] = lambda _: None) -> None:
        self._find_job = find_job
        self._targets: LruCache[Target, str] = LruCache(_REMEMBERED)
        self._jobs: LruCache[JobId, str] = LruCache(_REMEMBERED)
        self._chats: LruCache[str, str | None] = LruCache(_REMEMBERED)
        """The answers about sessions of chats; jobs may be renamed while they run."""

    def add(self, known: KnownNames) -> None:
        """Remember names; an empty one is removed."""
        self._chats.clear()
        for target, name in known.targets.items():
            if name:
                self._targets[target] = name
            else:
                self._targets.pop(target, None)
        for job, name in known.jobs.items():
            self._jobs[job] = name

    def clear(self) -> None:
        """Forget all names: some were deleted."""
        for names in (self._targets, self._jobs, self._chats):
            names.clear()

    def of(self, session: str) -> str | None:
        """Return the display name of a session, None if nothing of it is known here.

        Never queries the database.
        """
        if session in self._chats:
            return self._chats[session]
        targets, jobs = needed_names([session])
        for job in jobs:
            if (name := self._find_job(job)) is not None:
                self._jobs[job] = name
        is_known = any(one in self._targets for one in targets) or any(
            job in self._jobs for job in jobs
        )
        found = display_name(session, KnownNames(self._targets, self._jobs)) if is_known else None
        if not jobs:
            self._chats[session] = found
        return found
