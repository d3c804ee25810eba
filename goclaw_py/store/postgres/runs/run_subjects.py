"""What runs have worked for, and how that ends with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Self

from goclaw_py.model.errors import StoreError
from goclaw_py.model.ids import NodeId
from goclaw_py.ports.store import RunEnd
from goclaw_py.store.postgres.heartbeat.run_endings import LockedHeartbeatRuns
from goclaw_py.store.postgres.pool import Connection
from goclaw_py.store.postgres.runs.endings import LockedOccurrences
from goclaw_py.store.text import storable


class RunSubjects:
    """Occurrences of jobs and beats that end with runs, locked until the transaction does."""

    def __init__(
        self, ends: Sequence[RunEnd], of_jobs: LockedOccurrences, of_beats: LockedHeartbeatRuns
    ) -> None:
        self._runs = {storable(end.id) for end in ends}
        self._of_jobs = of_jobs
        self._of_beats = of_beats

    @classmethod
    async def of(cls, connection: Connection, ends: Sequence[RunEnd]) -> Self:
        """Lock what ends with runs that have not ended before."""
        return cls(
            ends,
            await LockedOccurrences.of(
                connection, [end.occurrence for end in ends if end.occurrence]
            ),
            await LockedHeartbeatRuns.of(connection, [end.beat for end in ends if end.beat]),
        )

    def refusal(self, end: RunEnd, node: NodeId) -> StoreError | None:
        """Why a node cannot end what its run worked for; None if it can, or if it has ended."""
        if storable(end.id) not in self._runs:
            return None
        return self._of_jobs.refusal(end.occurrence, node) or self._of_beats.refusal(end.beat, node)

    def silenced(self, ends: Iterable[RunEnd]) -> list[RunEnd]:
        """The ends without what is said of what ends otherwise, or has ended before."""
        silenced: list[RunEnd] = []
        seen: set[str] = set()
        for end in ends:
            over = set[str]()
            ending = set[str]()
            if storable(end.id) in self._runs and (job := end.occurrence):
                (ending if self._of_jobs.is_open(job) else over).add(storable(job.id))
            if storable(end.id) in self._runs and (beat := end.beat):
                (ending if self._of_beats.is_open(beat) else over).add(storable(beat.id))
            silenced.append(replace(end, say=()) if over or ending & seen else end)
            seen |= ending
        return silenced

    async def end(self, connection: Connection, ends: Iterable[RunEnd]) -> None:
        """End it. After the runs, since their usage counts."""
        mine = [end for end in ends if storable(end.id) in self._runs]
        await self._of_jobs.end(connection, [end.occurrence for end in mine if end.occurrence])
        await self._of_beats.end(connection, [end.beat for end in mine if end.beat])
