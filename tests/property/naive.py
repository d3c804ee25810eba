"""What the naive scheduler can be told: the inputs of ``scheduler.scheduler.Scheduler``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.views import RunState
from tests.property.naive_records import (
    ABANDONED,
    ACTIVE,
    COLLECTING,
    FINISHING,
    QUEUED,
    READY,
    RUNNING,
    STOPPING,
    WAITING,
    Pool,
    Record,
    Told,
    Wish,
    Wrong,
)
from tests.property.naive_world import World

TIMER_STATES: dict[str, tuple[RunState, ...]] = {
    "deadline": (*WAITING, RUNNING),
    "run_timeout": (RUNNING,),
    "grace": (STOPPING,),
}
"""The states in which a timer means something."""


@dataclass(frozen=True, slots=True)
class Halt:
    """What a stop did."""

    told: list[Told] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    already_stopping: bool = False
    spared: list[str] = field(default_factory=list)


class Naive(World):
    """The naive scheduler. Methods have the names and the meaning of the real ones."""

    def done(self) -> list[Told]:
        self.nobody_is_stuck()
        told, self.told = self.told, []
        return told

    # ------------------------------------------------------------------ requests

    def submit(self, wish: Wish, now: float) -> list[Told]:
        self.now = now
        if any(wish.id == r.id or wish.id in r.joined for r in self.live):
            raise Wrong("DuplicateRequest")
        for limit_s in (wish.deadline_s, wish.run_timeout_s):
            if limit_s is not None and not 0 <= limit_s < float("inf"):
                raise Wrong("ValueError")
        lane = wish.lane if wish.lane in self.pools else "main"
        if self.draining and wish.parent is None:
            self.reject(wish.id, Reason.DRAINING)
        elif self.pools[lane].closed:
            self.reject(wish.id, Reason.LANE_CLOSED)
        elif wish.parent is not None:
            self.child(wish, lane)
        elif wish.mode == "interrupt":
            self.interrupt(wish, lane, follows=self.overflow(wish))
        elif wish.sender:
            self.message(wish, lane)
        else:
            self.enqueue(self.enter(wish, lane))
        return self.done()

    def reject(self, run_id: str, reason: Reason) -> None:
        self.told.append(("ended", run_id, Outcome.REJECTED, reason))

    def enter(self, wish: Wish, lane: str) -> Record:
        record = Record(wish, self.next(), lane, self.now, self.now, wish.cut)
        self.live.append(record)
        self.senders[record.number] = {wish.sender}
        if wish.deadline_s is not None:
            self.set_timer(self.now + wish.deadline_s, "deadline", record)
        return record

    def overflow(self, wish: Wish) -> bool:
        """Close a burst that has no room for this; whether that one was to run alone."""
        burst = self.burst_of(wish)
        if burst is None or self.fits(wish.chars, 0, burst):
            return False
        burst.speculative = False
        self.enqueue(burst)
        return burst.alone

    def message(self, wish: Wish, lane: str) -> None:
        too_much = self.burst_of(wish) is not None
        follows_alone = self.overflow(wish)
        burst = self.burst_of(wish)
        if burst is not None:
            was_cut = burst.cut
            self.join(wish, burst)
            if was_cut and not wish.cut and (burst.speculative or not wish.debounce_s):
                self.enqueue(burst)
            else:
                self.wait_for_more(burst)
            return
        into = self.joinable(wish, lane)
        if into is not None and self.fits(wish.chars, 0, into):
            self.join(wish, into)
            return
        run = None if into is not None else self.speculative_run(wish, lane)
        if run is not None and self.fits(wish.chars, 0, run):
            self.restart(wish, lane, run)
            return
        if run is not None:
            run.speculative = False
        too_much = too_much or into is not None or run is not None
        whose = (wish.session, wish.sender)
        speculative = wish.debounce == "speculative" and wish.debounce_s > 0
        at_once = (
            speculative and self.turns_to_recover(*whose) <= (self.restarts - 1) * self.recovery
        )
        busy = bool(self.of(wish.session, QUEUED, *ACTIVE))
        waits = too_much or (not at_once and (self.types_on(wish) or not busy))
        record = self.enter(wish, lane)
        record.alone = follows_alone
        record.speculative = at_once
        if speculative:
            self.counted.append((*whose, "turn"))
        if wish.cut or (wish.debounce_s and waits):
            self.begin_burst(record)
        else:
            self.enqueue(record)

    def interrupt(self, wish: Wish, lane: str, *, follows: bool) -> None:
        burst = self.burst_of(wish)
        if not follows and (burst is None or not burst.alone):
            waiting = [*self.session_line(wish.session), *self.active(wish.session)]
            waiting = [r for r in waiting if r.state in WAITING]
            active = self.active(wish.session)
            self.cut(waiting, Outcome.DROPPED, Reason.NEWER_MESSAGE)
            self.cut(active, Outcome.CANCELLED, Reason.NEWER_MESSAGE)
        more_comes = wish.cut and bool(wish.sender)
        if burst is not None:
            record = burst
            self.join(wish, burst)
        else:
            record = self.enter(wish, lane)
        record.alone, record.speculative = True, False
        if not more_comes:
            self.enqueue(record)
        elif burst is None:
            self.begin_burst(record)
        else:
            self.wait_for_more(burst)

    def burst_of(self, wish: Wish) -> Record | None:
        if not wish.sender:
            return None
        bursts = self.of(wish.session, COLLECTING)
        return next((r for r in bursts if r.wish.sender == wish.sender), None)

    def joinable(self, wish: Wish, lane: str) -> Record | None:
        """The sender's last message that waits, if this one belongs to it."""
        ready = [r for r in self.active(wish.session) if r.state is READY]
        in_order = [*ready, *self.session_line(wish.session)]
        mine = [r for r in in_order if r.wish.sender == wish.sender and not r.ancestors]
        if not mine or mine[-1].lane != lane:
            return None
        in_time = wish.debounce_s and self.now - mine[-1].last_at <= wish.debounce_s
        return mine[-1] if mine[-1].cut or in_time else None

    def types_on(self, wish: Wish) -> bool:
        """Whether the sender's last message that is active came within the window."""
        mine = [r for r in self.active(wish.session) if r.wish.sender == wish.sender]
        return any(self.now - r.last_at <= wish.debounce_s for r in mine if not r.ancestors)

    def speculative_run(self, wish: Wish, lane: str) -> Record | None:
        """The sender's newest run, if this message cancels it to begin again with both."""
        running = [r for r in self.of(wish.session, RUNNING) if r.wish.sender == wish.sender]
        run = max(running, key=lambda r: r.ready, default=None)
        if run is None or not run.speculative or run.lane != lane or run.was_parent:
            return None
        in_time = wish.debounce_s and self.now - run.last_at <= wish.debounce_s
        return run if in_time else None

    def turns_to_recover(self, session: str, sender: str) -> int:
        """How many turns of the sender it takes until no restart counts."""
        left = 0
        for whose_session, whose_sender, what in self.counted:
            if (whose_session, whose_sender) == (session, sender):
                left = left + self.recovery if what == "restart" else max(left - 1, 0)
        return left

    def restart(self, wish: Wish, lane: str, run: Record) -> None:
        self.counted.append((wish.session, wish.sender, "restart"))
        record = self.enter(wish, lane)
        record.joined, run.joined = (run.id, *run.joined), ()
        record.chars += run.chars
        self.senders[record.number] |= self.senders[run.number]
        self.told.append(("restart", run.id, record.id))
        self.cancel(run, Outcome.INTERRUPTED, Reason.MERGED)
        self.begin_burst(record)
        record.latest_at = run.began_at + 4 * record.window_s

    def had_effect(self, run_id: str) -> None:
        run = self.find(run_id)
        if run is not None:
            run.speculative = False

    def join(self, wish: Wish, into: Record) -> None:
        into.joined = (*into.joined, wish.id)
        self.senders[into.number].add(wish.sender)
        into.last_at = self.now
        into.cut = wish.cut
        into.chars += wish.chars
        self.told.append(("join", wish.id, into.id))

    def begin_burst(self, record: Record) -> None:
        window_s = record.wish.debounce_s
        record.window_s = max(window_s, 1.0) if record.cut else window_s
        record.latest_at = self.now + 4 * record.window_s
        record.ends_at = self.now + record.window_s

    def wait_for_more(self, burst: Record) -> None:
        if burst.cut:
            burst.ends_at = self.now + max(burst.window_s, 1.0)
        else:
            burst.ends_at = min(self.now + burst.window_s, burst.latest_at)

    def child(self, wish: Wish, lane: str) -> None:
        parent = self.find(wish.parent or "")
        if parent is None or parent.state is not RUNNING:
            self.reject(wish.id, Reason.PARENT_ENDED)
        elif len(parent.ancestors) >= 3:
            self.reject(wish.id, Reason.TOO_DEEP)
        elif len(self.children(parent)) >= 8:
            self.reject(wish.id, Reason.TOO_MANY_CHILDREN)
        else:
            record = self.enter(wish, lane)
            parent.was_parent = True
            record.ancestors = (parent.number, *parent.ancestors)
            record.ancestors_sessions = (parent.session, *parent.ancestors_sessions)
            if wish.awaited and not self.finds_a_slot(record):
                self.cut([record], Outcome.REJECTED, Reason.WAITS_FOR_ITSELF)
            else:
                self.enqueue(record)

    def finds_a_slot(self, record: Record) -> bool:
        patient = self.patient(record)
        record.needs_agent = all(ancestor.agent != record.agent for ancestor in patient)
        in_lane = [ancestor for ancestor in patient if ancestor.lane == record.lane]
        record.host = in_lane[0].number if in_lane else None
        # As if it stood at the end of its session's line, and the session had its concurrency.
        concurrency = self.concurrency.get(record.session)
        self.concurrency[record.session] = record.wish.concurrency
        record.state, record.place = QUEUED, self.next()
        where = self.where_it_gets_stuck(record)
        record.state = COLLECTING
        if concurrency is not None:
            self.concurrency[record.session] = concurrency
        if where is READY:
            record.host = record.ancestors[0]
        return where is not QUEUED

    def steer_in(self, request_id: str, run_id: str, now: float) -> list[Told]:
        self.now = now
        record, run = self.find(request_id), self.find(run_id)
        if record is None or run is None or record.session != run.session:
            return []
        room = self.fits(record.chars, len(record.joined), run)
        if record.state is QUEUED and run.state is RUNNING and room:
            self.absorb(record, run)
            self.settle([run.session])
        return self.done()

    def finish(self, run_id: str, outcome: Outcome, now: float) -> list[Told]:
        self.now = now
        record = self.find(run_id)
        if record is None:
            return []
        if record.state is ABANDONED:
            self.forget(record)
        elif record.state in (RUNNING, STOPPING):
            self.task_ends(record, outcome)
        else:
            raise Wrong("IllegalTransition")
        return self.done()

    def release(self, run_id: str, now: float) -> list[Told]:
        self.now = now
        record = self.find(run_id)
        if record is None:
            return []
        if record.state is not FINISHING:
            raise Wrong("IllegalTransition")
        self.put_away(record)
        return self.done()

    def finished(self, run_id: str, outcome: Outcome, now: float) -> list[Told]:
        told = self.finish(run_id, outcome, now)
        return [*told, *self.release(run_id, now)]

    # ------------------------------------------------------------------ stopping

    def stop_oldest(self, session: str, now: float, sender: str | None = None) -> Halt:
        self.now = now
        target = self.oldest(session, sender)
        if target is not None:
            return self.stop_with_all_below(target)
        if self.is_stopping(session, sender):
            return Halt(already_stopping=True)
        anybodys = self.oldest(session, None)
        return Halt(spared=[anybodys.id] if anybodys is not None else [])

    def oldest(self, session: str, sender: str | None) -> Record | None:
        mine = [r for r in self.live if r.session == session and self.is_of(r, sender)]
        running = sorted([r for r in mine if r.is_stoppable], key=lambda r: r.started)
        ready = [r for r in self.active(session) if r.state is READY and r in mine]
        line = [r for r in self.session_line(session) if r in mine]
        waiting = [r for r in mine if r.state is COLLECTING] + line[:1]
        if not self.is_stopping(session, sender):
            ready += sorted(waiting, key=lambda r: r.number)
        return next(iter(running + ready), None)

    def is_of(self, record: Record, sender: str | None) -> bool:
        family = (record.number, *record.ancestors)
        return sender is None or any(sender in self.senders[number] for number in family)

    def stop_one(self, run_id: str, now: float, sender: str | None = None) -> Halt:
        self.now = now
        found = [r for r in self.live if run_id in r.joined]
        found += [r for r in self.live if run_id == r.id]
        if not found:
            return Halt()
        if not self.is_of(found[0], sender):
            return Halt(spared=[found[0].id])
        if found[0].state in (STOPPING, ABANDONED) and not found[0].is_stoppable:
            return Halt(already_stopping=True)
        return self.stop_with_all_below(found[0])

    def stop_with_all_below(self, target: Record) -> Halt:
        below = [r for r in self.live if target.number in r.ancestors]
        stopped, dropped = self.cut([target, *below], Outcome.CANCELLED, Reason.STOPPED)
        return Halt(self.done(), stopped, dropped)

    def stop_all(self, session: str, now: float, sender: str | None = None) -> Halt:
        self.now = now
        already = self.is_stopping(session, sender)
        records = [r for r in self.live if session in (r.session, *r.ancestors_sessions)]
        mine = [r for r in records if self.is_of(r, sender)]
        stopped, dropped = self.cut(mine, Outcome.CANCELLED, Reason.STOPPED_ALL)
        told = self.done()
        left = [r for r in records if (r.state in WAITING or r.is_stoppable) and r not in mine]
        return Halt(told, stopped, dropped, already and not stopped, [r.id for r in left])

    def is_stopping(self, session: str, sender: str | None) -> bool:
        active = self.of(session, *ACTIVE)
        stopped = [r for r in active if r.stop is not None and r.stop[0] is not Outcome.INTERRUPTED]
        return any(self.is_of(r, sender) for r in stopped)

    # ------------------------------------------------------------------ time

    def next_timer(self) -> float | None:
        bursts = [r.ends_at for r in self.live if r.state is COLLECTING]
        # A look that comes before the first in line has waited for long is of no use.
        timers = [
            max(at, self.slow_at(whose)) if isinstance(whose, str) else at
            for at, _, _, whose in self.live_timers()
        ]
        return min(bursts + timers, default=None)

    def slow_at(self, lane: str) -> float:
        return max(self.lane_line(lane)[0].since + 2, self.pools[lane].quiet_until)

    def live_timers(self) -> list[tuple[float, int, str, Record | str]]:
        def is_live(timer: tuple[float, int, str, Record | str]) -> bool:
            _, order, what, whose = timer
            if isinstance(whose, str):
                return self.pools[whose].watch == order
            return whose.state in TIMER_STATES[what]

        self.timers = sorted(filter(is_live, self.timers), key=lambda timer: timer[:2])
        return self.timers

    def tick(self, now: float) -> list[Told]:
        self.now = now
        while True:
            timers = self.live_timers()
            bursts = [r for r in self.live if r.state is COLLECTING and r.ends_at <= now]
            if timers and timers[0][0] <= now:
                self.ring(*self.timers.pop(0)[2:])
            elif bursts:
                first = min(bursts, key=lambda r: r.ends_at)
                first.speculative = False
                self.enqueue(first)
            else:
                return self.done()

    def ring(self, what: str, whose: Record | str) -> None:
        if isinstance(whose, str):
            self.look(whose)
        elif what == "grace":
            self.abandon(whose)
        else:
            self.cut([whose], Outcome.TIMED_OUT, Reason(what))

    def look(self, lane: str) -> None:
        pool = self.pools[lane]
        first = self.lane_line(lane)[0]
        slow_at = self.slow_at(lane)
        if self.now < slow_at:
            pool.watch = self.set_timer(slow_at, "look", lane)
            return
        pool.watch = self.set_timer(self.now + 10, "look", lane)
        if pool.told != first.number:
            pool.told = first.number
            pool.quiet_until = self.now + 10
            inside = tuple(r.id for r in self.inside(lane))
            self.told.append(("slow", first.id, lane, self.now - first.since, inside))

    # ------------------------------------------------------------------ shutdown

    def drain(self) -> None:
        self.draining = True

    def release_waiting(self, among: frozenset[str] | None, now: float) -> list[Told]:
        self.now = now
        waiting = [r for r in self.live if r.state in WAITING and (among is None or r.id in among)]
        self.cut(waiting, Outcome.INTERRUPTED, Reason.SHUTDOWN)
        return self.done()

    def interrupt_all(self, now: float) -> list[Told]:
        self.now = now
        self.cut(list(self.live), Outcome.INTERRUPTED, Reason.SHUTDOWN)
        return self.done()

    def close_lane(self, name: str, now: float) -> list[Told]:
        self.now = now
        self.known_lane(name).closed = True
        waiting = [r for r in self.live if r.state in WAITING and r.lane == name]
        self.cut(waiting, Outcome.REJECTED, Reason.LANE_CLOSED)
        return self.done()

    # ------------------------------------------------------------------ sizes

    def get_or_create(self, name: str, concurrency: int) -> None:
        if name not in self.pools:
            self.pools[name] = Pool(concurrency)

    def resize(self, name: str, concurrency: int, now: float) -> list[Told]:
        self.now = now
        self.known_lane(name).size = concurrency
        self.settle()
        return self.done()

    def limit_agent(self, name: str, limit: int | None, now: float) -> list[Told]:
        self.now = now
        self.limits[name] = limit
        freed = self.turns[name] if limit is None else []
        self.settle(freed, [name])
        return self.done()

    def set_concurrency(self, session: str, concurrency: int, now: float) -> list[Told]:
        self.now = now
        for record in self.of(session, COLLECTING):
            record.wish = replace(record.wish, concurrency=concurrency)
        if self.of(session, QUEUED, *ACTIVE):
            self.concurrency[session] = concurrency
            self.settle([session])
        return self.done()

    def known_lane(self, name: str) -> Pool:
        if name not in self.pools:
            raise Wrong("UnknownLane")
        return self.pools[name]
