"""Heartbeats, and the beats that are due."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from goclaw_py.heartbeat.models import (
    Heartbeat,
    HeartbeatClaim,
    HeartbeatConfig,
    HeartbeatRun,
    HeartbeatRunEnd,
    HeartbeatRunStatus,
)
from goclaw_py.model.errors import Fenced
from goclaw_py.model.ids import AgentName, HeartbeatRunId, NodeId
from goclaw_py.model.messages import OutboundMessage
from goclaw_py.model.outcomes import HeartbeatRunKind
from goclaw_py.ports.store import Notice
from goclaw_py.store import heartbeat_rules, rules
from goclaw_py.store.memory.heartbeat import runs
from goclaw_py.store.memory.heartbeat.tables import by_hand
from goclaw_py.store.memory.tables import MemoryPart
from goclaw_py.store.text import storable


class MemoryHeartbeats(MemoryPart):
    """Implements what people and the clock do, of ``HeartbeatStore``."""

    async def plan_heartbeats(self, plans: Sequence[HeartbeatConfig], *, now: datetime) -> None:
        """Of several plans for an agent the last one holds."""
        plans = storable(tuple(plans))
        for plan in plans:
            self._put_heartbeat(heartbeat_rules.planned(self._heartbeat(plan.agent), plan, now))

    async def heartbeats(self, agents: Collection[AgentName] | None = None) -> list[Heartbeat]:
        """An agent that is not planned has none."""
        known = self._db.beats.heartbeats
        wanted = known if agents is None else set(storable(tuple(agents))) & known.keys()
        return [known[agent] for agent in sorted(wanted)]

    async def switch_heartbeat(self, agent: AgentName, *, on: bool | None, now: datetime) -> bool:
        """Sends a notice only if that moves its next beat."""
        agent = storable(agent)
        if agent not in self._db.beats.heartbeats:
            return False
        self._put_heartbeat(heartbeat_rules.switched(self._heartbeat(agent), on=on, now=now))
        return True

    async def mute_heartbeat(self, agent: AgentName, until: datetime | None) -> bool:
        """It goes on to beat."""
        agent = storable(agent)
        if agent not in self._db.beats.heartbeats:
            return False
        self._put_heartbeat(replace(self._heartbeat(agent), muted_until=until))
        return True

    async def wake_heartbeat(
        self, agent: AgentName, kind: HeartbeatRunKind, *, now: datetime
    ) -> bool:
        """Also one that is off: the beat then says so."""
        agent = storable(agent)
        if agent not in self._db.beats.heartbeats:
            return False
        runs.wake_up(self._db, agent, kind, now)
        return True

    def _heartbeat(self, agent: AgentName) -> Heartbeat:
        return self._db.beats.heartbeats.get(agent) or Heartbeat(agent, None)

    def _put_heartbeat(self, heartbeat: Heartbeat) -> None:
        """Store one, and tell everybody if its next beat has moved."""
        before = self._heartbeat(heartbeat.agent)
        self._db.beats.heartbeats[heartbeat.agent] = heartbeat
        if heartbeat_rules.is_moved(before, heartbeat):
            self._db.notify(Notice.CRON)

    # ------------------------------------------------------------------ when they are due

    async def next_heartbeat_due(
        self, agents: Collection[AgentName], *, wakes: bool = True
    ) -> datetime | None:
        """Looks at all of them."""
        times = (heartbeat_rules.due_from(one, wakes=wakes) for one in self._of_agents(agents))
        return min((time for time in times if time is not None), default=None)

    async def claim_heartbeats(
        self,
        node: NodeId,
        agents: Collection[AgentName],
        *,
        now: datetime,
        ids: Sequence[HeartbeatRunId],
        wakes: int,
    ) -> list[HeartbeatClaim]:
        """Looks at all of them."""
        self._db.check_alive(node)
        free = [one for one in self._of_agents(agents) if one.node is None]
        left = [one for one in free if one.beat is not None]
        dues = [(one, heartbeat_rules.due(one, now)) for one in free if one.beat is None]
        whys = {one.agent: why for one, why in dues if why is not None}
        line = sorted(whys, key=lambda agent: (whys[agent].at, agent))
        woken = [agent for agent in line if whys[agent].is_wake]
        late = set(woken[wakes:])
        left.sort(key=lambda one: (one.began_at or now, one.agent))
        claimed = [self._db.beats.resume(one.agent, node, now) for one in left[: len(ids)]]
        fresh = iter(ids[len(claimed) :])
        chosen = [agent for agent in line if agent not in late][: len(ids) - len(claimed)]
        claimed += [
            self._db.beats.claim(agent, node, now, next(fresh), whys[agent]) for agent in chosen
        ]
        return claimed

    async def claim_heartbeat_now(
        self, node: NodeId, agent: AgentName, *, now: datetime, beat: HeartbeatRunId
    ) -> HeartbeatClaim | None:
        """The same beat again is told as it was claimed."""
        agent, beat = storable(agent), storable(beat)
        self._db.check_alive(node)
        heartbeat = self._db.beats.heartbeats.get(agent)
        if heartbeat is None:
            return None
        if heartbeat.beat is None:
            return self._db.beats.claim(agent, node, now, beat, by_hand(now))
        mine = (heartbeat.beat, heartbeat.node) == (beat, node)
        return self._db.beats.in_hand(agent) if mine else None

    async def defer_heartbeat(self, beat: HeartbeatRunId, *, node: NodeId, detail: str) -> None:
        """One that has ended is in nobody's hand, and refused too."""
        row = self._db.beats.rows.get(storable(beat))
        if row is None or row.node != node:
            raise Fenced(f"beat {beat} is not this node's any more")
        self._db.beats.rows[row.id] = replace(
            row, status=HeartbeatRunStatus.DEFERRED, detail=storable(detail)
        )

    async def end_heartbeat_run(
        self, end: HeartbeatRunEnd, say: Sequence[OutboundMessage] = (), *, node: NodeId
    ) -> None:
        """One that is not kept any more counts as ended. What is said names the beat."""
        end, say = storable((end, tuple(say)))
        runs.check(self._db, end.id, node)
        if runs.end(self._db, end):
            said = rules.marked(say, beat=end.id)
            self._db.enqueue(said, session=None, now=end.finished_at)

    async def release_heartbeats(self, ids: Collection[HeartbeatRunId], *, node: NodeId) -> None:
        """What is not this node's is left alone."""
        wanted = set(storable(tuple(ids)))
        runs.give_back(self._db, [row for row in self._beats_of(node) if row.id in wanted])

    async def release_unclaimed_heartbeats(
        self, known: Collection[HeartbeatRunId], *, node: NodeId
    ) -> None:
        """What somebody has asked for just now is left alone: that call can be repeated."""
        wanted = set(storable(tuple(known)))
        runs.give_back(
            self._db,
            [
                row
                for row in self._beats_of(node)
                if row.id not in wanted
                and (row.kind is not HeartbeatRunKind.MANUAL or row.due_at != row.claimed_at)
            ],
        )

    def _beats_of(self, node: NodeId) -> list[HeartbeatRun]:
        return self._db.beats.claimed_by([node])

    def _of_agents(self, agents: Collection[AgentName]) -> list[Heartbeat]:
        known = self._db.beats.heartbeats
        return [known[agent] for agent in set(storable(tuple(agents))) if agent in known]
