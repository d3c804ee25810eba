"""The rules of the scheduler once more, as simply as they can be written down.

One list of records. Whoever is in a line has a place, a number that grows; a line is made anew from
the list each time somebody asks for it. After every input the whole list is searched, again and
again, for somebody who may go on. Where SPEC leaves an order open, these rules close it:

- Who goes on first: guests of a waiting parent, then those who stand in the line of a lane, then
  those who wait for their session or agent; so nobody who moves up now overtakes who waits for the
  lane already.
- Among the last, sessions and agents are looked at in the order in which the input touched them,
  sessions first; and where somebody has moved up is looked at before anything else.
- The sessions that wait for an agent take turns. A session has its place from the moment since
  which its first message could go, were it not for the agent; it loses it when that is no more so,
  be it only between two of its messages that leave.
- What ends together ends in order of submission, a run's awaited children right behind it; those
  who wait first.
- In one tick timers ring first, the earliest first, equal ones in the order in which they were set,
  because what has expired does not start; then bursts end, the earliest first.
- After every input each waiting child that its parent waits for is looked at again, in order of
  submission: could it still start?
"""

from __future__ import annotations

from collections.abc import Iterable

from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.views import RunState, WaitsFor
from tests.property.naive_records import (
    ABANDONED,
    ACTIVE,
    COLLECTING,
    DONE,
    FINISHING,
    QUEUED,
    READY,
    RUNNING,
    STOPPING,
    WAITING,
    Record,
    Register,
)


class World(Register):
    """How the records go on. The inputs are in ``naive``."""

    # ------------------------------------------------------------------ room

    def session_has_room(self, record: Record) -> bool:
        active = len(self.active(record.session))
        return active == 0 if record.alone else active < self.concurrency[record.session]

    def is_limited(self, record: Record) -> bool:
        return record.needs_agent and self.limits.get(record.agent) is not None

    def agent_has_room(self, agent: str) -> bool:
        using = [r for r in self.live if r.agent == agent and r.needs_agent and r.state in ACTIVE]
        limit = self.limits[agent]
        return limit is None or len(using) < limit

    # ------------------------------------------------------------------ going on

    def settle(self, sessions: Iterable[str] = (), agents: Iterable[str] = ()) -> None:
        """Let everybody go on who may, looking at these first."""
        self.attention = [*(("session", s) for s in sessions), *(("agent", a) for a in agents)]
        while self.somebody_starts() or self.somebody_moves_up():
            pass

    def somebody_starts(self) -> bool:
        for record in sorted(self.live, key=lambda r: r.place):
            if record.state is READY and record.host and not self.guests(record.host):
                self.start(record)
                return True
        for lane, pool in self.pools.items():
            line = self.lane_line(lane)
            if line and self.slots_used(lane) < pool.size:
                self.start(line[0])
                return True
        return False

    def somebody_moves_up(self) -> bool:
        self.who_lost_its_turn()
        everywhere = [("session", record.session) for record in self.live]
        for kind, name in [*self.attention, *everywhere]:
            record = self.next_of_session(name) if kind == "session" else self.next_of_agent(name)
            if record is not None:
                self.make_ready(record)
                return True
        return False

    def who_lost_its_turn(self) -> None:
        for agent, sessions in self.turns.items():
            self.turns[agent] = [s for s in sessions if self.waits_for_agent(s, agent)]

    def waits_for_agent(self, session: str, agent: str) -> bool:
        line = self.session_line(session)
        if not line or line[0].agent != agent or not self.is_limited(line[0]):
            return False
        return self.session_has_room(line[0])

    def next_of_session(self, session: str) -> Record | None:
        line = self.session_line(session)
        if not line or not self.session_has_room(line[0]):
            return None
        if not self.is_limited(line[0]):
            return line[0]
        turns = self.turns[line[0].agent]
        if session not in turns:
            turns.append(session)
        return self.next_of_agent(line[0].agent)

    def next_of_agent(self, agent: str) -> Record | None:
        turns = self.turns.get(agent)
        if not turns or not self.agent_has_room(agent):
            return None
        return self.session_line(turns[0])[0]

    def make_ready(self, record: Record) -> None:
        if self.is_limited(record):
            self.turns[record.agent].remove(record.session)
            self.attention.insert(0, ("agent", record.agent))
        self.attention.insert(0, ("session", record.session))
        record.state = READY
        record.since = self.now
        record.ready = self.next()
        self.enqueue_run(record)

    def enqueue_run(self, record: Record) -> None:
        record.place = self.next()
        pool = self.pools[record.lane]
        if record.host is None and pool.watch is None:
            pool.watch = self.set_timer(max(self.now + 2, pool.quiet_until), "look", record.lane)

    def start(self, record: Record) -> None:
        lane = record.lane
        host = self.numbered(record.host)
        if host is not None:
            record.lane = host.lane
        pool = self.pools[record.lane]
        pool.started += 1
        pool.waits.append(self.now - record.since)
        record.state = RUNNING
        record.since = self.now
        record.started = self.next()
        record.began_at = self.now
        self.nobody_may_wait_any_more(lane)
        if record.wish.run_timeout_s is not None:
            self.set_timer(self.now + record.wish.run_timeout_s, "run_timeout", record)
        if record.wish.mode == "collect":
            for other in self.following(record, "collect"):
                if not self.fits(other.chars, len(other.joined), record):
                    break
                self.absorb(other, record)
        self.told.append(("start", record.id))
        for other in self.following(record, "steer"):
            self.told.append(("offer", other.id, record.id))

    def following(self, record: Record, mode: str) -> list[Record]:
        """The first ones of its kind in the line of its session that may become a part of it."""
        found: list[Record] = []
        for other in self.session_line(record.session):
            if not self.same_work(other, record):
                continue
            if other.wish.mode != mode:
                break
            found.append(other)
        return found

    def same_work(self, record: Record, other: Record) -> bool:
        nobodys_child = not record.ancestors and not other.ancestors
        return nobodys_child and record.lane == other.lane and record.agent == other.agent

    def fits(self, chars: int, joined: int, into: Record) -> bool:
        messages = 1 + len(into.joined) + 1 + joined
        wish = into.wish
        return messages <= wish.turn_messages and into.chars + chars <= wish.turn_chars

    def absorb(self, record: Record, into: Record) -> None:
        self.forget(record)
        self.attention.insert(0, ("session", record.session))
        self.told.append(("join", record.id, into.id))
        into.joined = (*into.joined, record.id, *record.joined)
        self.senders[into.number] |= self.senders[record.number]
        into.chars += record.chars

    def nobody_may_wait_any_more(self, lane: str) -> None:
        if not self.lane_line(lane):
            self.pools[lane].watch = None

    def set_timer(self, at: float, what: str, whose: Record | str) -> int:
        order = self.next()
        self.timers.append((at, order, what, whose))
        return order

    # ------------------------------------------------------------------ ending

    def forget(self, record: Record) -> None:
        self.live.remove(record)
        was, record.state = record.state, DONE
        if was is READY:
            self.nobody_may_wait_any_more(record.lane)
        if was is QUEUED:
            self.who_lost_its_turn()

    def task_ends(self, record: Record, outcome: Outcome) -> None:
        reason = None
        if record.stop is not None:
            outcome, reason = record.stop
        self.count_end(record, outcome)
        record.state = FINISHING
        record.since = self.now
        self.told.append(("ended", record.id, outcome, reason))

    def count_end(self, record: Record, outcome: Outcome) -> None:
        pool = self.pools[record.lane]
        pool.runs.append(self.now - record.began_at)
        pool.outcomes.append(outcome)

    def free(self, record: Record) -> None:
        """It has no slots any more; those who use its lane slot use what it has used itself."""
        for other in sorted(self.live, key=lambda r: r.place):
            if other.host == record.number:
                other.host = record.host
                if other.state is READY:
                    self.enqueue_run(other)
        self.settle([record.session], [record.agent])

    def put_away(self, record: Record) -> None:
        self.forget(record)
        self.free(record)

    def abandon(self, record: Record) -> None:
        assert record.stop is not None
        self.count_end(record, Outcome.ABANDONED)
        self.told.append(("ended", record.id, Outcome.ABANDONED, record.stop[1]))
        record.state = ABANDONED
        record.since = self.now
        self.free(record)

    def cut(
        self, records: Iterable[Record], outcome: Outcome, reason: Reason
    ) -> tuple[list[str], list[str]]:
        """End who waits, cancel who runs. Gives the ids of both."""
        listed: list[Record] = []
        for record in records:
            listed += [r for r in self.with_awaited(record) if r not in listed]
        dropped = [r for r in listed if r.state in WAITING]
        for record in dropped:
            self.forget(record)
            self.told.append(("ended", record.id, outcome, reason))
        is_stop = outcome is Outcome.CANCELLED
        stopped = [r for r in listed if r.state is RUNNING or (is_stop and r.is_stoppable)]
        for record in stopped:
            if record.state is RUNNING:
                self.cancel(record, outcome, reason)
            else:
                record.stop = (outcome, reason)
        self.settle([r.session for r in listed], [r.agent for r in listed])
        return [r.id for r in stopped], [r.id for r in dropped]

    def cancel(self, record: Record, outcome: Outcome, reason: Reason) -> None:
        record.state = STOPPING
        record.since = self.now
        record.stop = (outcome, reason)
        self.set_timer(self.now + self.grace_s, "grace", record)
        self.told.append(("cancel", record.id, reason))

    # ------------------------------------------------------------------ coming in

    def enqueue(self, record: Record) -> None:
        session, wish = record.session, record.wish
        self.concurrency[session] = wish.concurrency
        self.settle([session])
        line = self.session_line(session)
        agent_has_room = not self.is_limited(record) or self.agent_has_room(record.agent)
        goes_at_once = not line and self.session_has_room(record) and agent_has_room
        full = len(line) >= wish.capacity and not goes_at_once
        if full and wish.drop == "new":
            self.cut([record], Outcome.REJECTED, Reason.QUEUE_FULL)
            return
        record.state = QUEUED
        record.since = self.now
        record.place = self.next()
        if full:
            self.cut(line[:1], Outcome.DROPPED, Reason.QUEUE_DROPPED)
        self.settle([session])
        if wish.mode == "steer" and record.state is QUEUED:
            runs = [r for r in self.of(session, RUNNING) if self.same_work(record, r)]
            run = max(runs, key=lambda r: r.started, default=None)
            if run is not None and record in self.following(run, "steer"):
                self.told.append(("offer", record.id, run.id))

    # ------------------------------------------------------------------ no deadlock

    def where_it_gets_stuck(self, record: Record, ends: Iterable[int] = ()) -> RunState | None:
        """Where a child stays for ever, or None if it starts; ``ends`` are sure to end."""
        goes_up, starts = self.future(ends)
        if record.number in starts:
            return None
        return READY if record.number in goes_up else QUEUED

    def future(self, ends: Iterable[int] = ()) -> tuple[set[int], set[int]]:
        """Who gets ready and who starts some day, if nobody comes any more and all end who can."""
        goes_up = {r.number for r in self.live if r.state is not QUEUED}
        starts = {r.number for r in self.live if r.state not in WAITING}
        ended = set(ends)
        before = -1
        while before < len(goes_up) + len(starts) + len(ended):
            before = len(goes_up) + len(starts) + len(ended)
            for record in self.live:
                number = record.number
                if number not in goes_up and self.can_go_up(record, goes_up, ended):
                    goes_up.add(number)
                if number in goes_up and number not in starts and self.can_start(record, ended):
                    starts.add(number)
                if number in starts and all(c.number in ended for c in self.awaited(record)):
                    ended.add(number)
        return goes_up, starts

    def can_go_up(self, record: Record, goes_up: set[int], ended: set[int]) -> bool:
        """All before it go up, and enough of them end for session and agent to have room."""
        line = self.session_line(record.session)
        ahead = line[: line.index(record)]
        if any(r.number not in goes_up for r in ahead):
            return False
        stay = [r for r in [*self.active(record.session), *ahead] if r.number not in ended]
        if len(stay) >= (1 if record.alone else self.concurrency[record.session]):
            return False
        if not self.is_limited(record):
            return True
        using = [r for r in self.live if r.agent == record.agent and r.needs_agent]
        stay = [r for r in using if r.state in ACTIVE and r.number not in ended]
        limit = self.limits[record.agent]
        return limit is None or len(stay) < limit

    def can_start(self, record: Record, ended: set[int]) -> bool:
        """Enough of those who have what it needs end."""
        if record.host is not None:
            line = [r for r in self.live if r.state is READY and r.host == record.host]
            ahead = [r for r in line if r.place < record.place or record.state is QUEUED]
            return all(r.number in ended for r in [*self.guests(record.host), *ahead])
        inside = [r for r in self.inside(record.lane) if r.host is None]
        stay = [r for r in inside if r.number not in ended]
        return len(stay) < self.pools[record.lane].size

    def nobody_is_stuck(self) -> None:
        while True:
            awaited = [r for r in self.live if r.state in WAITING and self.patient(r)]
            _, starts = self.future() if awaited else (set(), set())
            stuck = [r for r in awaited if r.number not in starts]
            # First one that would start if its family ended: perhaps the others wait for that one.
            stuck.sort(key=self.is_stuck_without_its_family)
            if not any(self.gets_unstuck(record) for record in stuck):
                return

    def is_stuck_without_its_family(self, record: Record) -> bool:
        family = [ancestor.number for ancestor in self.patient(record)]
        return self.where_it_gets_stuck(record, family) is not None

    def gets_unstuck(self, record: Record) -> bool:
        where = self.where_it_gets_stuck(record)
        if where is QUEUED:
            self.cut([record], Outcome.REJECTED, Reason.WAITS_FOR_ITSELF)
        elif where is READY and record.host != record.ancestors[0]:
            record.host = record.ancestors[0]
            if record.state is READY:
                self.nobody_may_wait_any_more(record.lane)
                self.enqueue_run(record)
            self.settle()
        else:
            return False
        return True

    # ------------------------------------------------------------------ looking

    def waits_for(self, record: Record) -> WaitsFor | None:
        if record.state is COLLECTING:
            return WaitsFor.SENDER
        if record.state is READY:
            return WaitsFor.LANE if record.host is None else WaitsFor.PARENT
        if record.state is not QUEUED:
            return None
        first = self.session_line(record.session)[0] is record
        return WaitsFor.AGENT if first and self.session_has_room(record) else WaitsFor.SESSION
