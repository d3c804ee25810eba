"""Finds the facts that decide whether an agent is asked (SPEC HB-1)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from goclaw_py.core.ids import AgentName
from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.zones import utc_day
from goclaw_py.records import HeartbeatStore
from goclaw_py.schedule.heartbeat.checklist_files import ChecklistFiles, ChecklistProblem
from goclaw_py.schedule.heartbeat.decisions import (
    HeartbeatFacts,
    HeartbeatPolicy,
    Need,
    Verdict,
    decide,
)
from goclaw_py.schedule.heartbeat.models import Heartbeat, PreconditionQuery

_UNASKED = PreconditionQuery()

_LOOKS: Final = 4
"""The number of concurrent queries: chats need database connections too."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A decision, with its facts.

    Args:
        detail: The problem of the checklist, if that is the reason.
        looks: The facts from the database, if it was queried.
    """

    verdict: Verdict
    at: datetime
    detail: str = ""
    looks: PreconditionQuery = _UNASKED


class Checks:
    """Finds the facts that ``schedule.heartbeat.decisions.decide`` asks for."""

    def __init__(
        self,
        store: HeartbeatStore,
        clock: Clock,
        policies: Mapping[AgentName, HeartbeatPolicy],
        checklists: ChecklistFiles,
    ) -> None:
        self._store = store
        self._clock = clock
        self.policies = policies
        self.checklists = checklists
        self._looking = asyncio.Semaphore(_LOOKS)

    async def check(
        self, kind: HeartbeatRunKind, heartbeat: Heartbeat, next_at: datetime | None
    ) -> Checked:
        """Decide about a heartbeat run. Raises ``StoreUnavailable``."""
        agent, now = heartbeat.agent, self._clock.now()
        policy = self.policies[agent]
        facts = HeartbeatFacts(
            kind=kind,
            now=now,
            policy=policy,
            is_on=heartbeat.is_on and policy.interval is not None,
            muted_until=heartbeat.muted_until,
            next_at=next_at,
        )
        detail, looks = "", PreconditionQuery()
        while isinstance(decided := decide(facts), Need):
            if decided is Need.CHECKLIST:
                found = await self.checklists.read(agent)
                if isinstance(found, ChecklistProblem):
                    detail = found.detail
                    facts = replace(facts, checklist=found.skip)
                else:
                    facts = replace(facts, checklist=found)
            else:
                async with self._looking:
                    looks = await self._store.run_facts(agent, spent_since=utc_day(now))
                facts = replace(facts, looks=looks)
        return Checked(decided, now, detail, looks)
