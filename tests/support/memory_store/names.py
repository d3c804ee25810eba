"""Names of chats, topics, people and jobs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from goclaw_py.core.display_names import KnownNames, shown_name
from goclaw_py.core.ids import JobId
from goclaw_py.core.messages import Target
from goclaw_py.records import NameKind, Notice, SeenName
from goclaw_py.store.text import storable
from tests.support.memory_store.tables import MemoryDatabase, MemoryPart


class MemoryNames(MemoryPart):
    """Implements ``NameStore``."""

    async def note_names(self, seen: Sequence[SeenName], *, now: datetime) -> None:
        for one in map(storable, seen):
            if one.kind is NameKind.GUESSED and one.target in self._db.names:
                continue
            self._db.names[one.target] = one, now

    async def names(self, targets: Collection[Target], jobs: Collection[JobId] = ()) -> KnownNames:
        named = {target: _name_of(self._db, storable(target)) for target in targets}
        titles = {job: name for job in jobs if (name := self._title_of(job))}
        return KnownNames({target: name for target, name in named.items() if name}, titles)

    def _title_of(self, job: JobId) -> str:
        """Return the name of a job, of a deleted one as it was last called."""
        if job in self._db.cron.jobs:
            return self._db.cron.jobs[job].spec.title
        return max(
            ((row.scheduled_at, row.id, row.slug) for row in self._db.cron.log(job)),
            default=("",),
        )[-1]

    async def forget_name(self, target: Target) -> None:
        if self._db.names.pop(target.whole_chat, None) is not None:
            self._db.notify(Notice.PEOPLE)


def _name_of(database: MemoryDatabase, target: Target) -> str:
    if target.thread is not None:
        topic = database.topics.get(target)
        return "" if topic is None else topic.name
    if target not in database.names:
        return ""
    seen, _ = database.names[target]
    return shown_name(seen.name, seen.username)
