"""The scheduler and the naive one, side by side through one history."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import ModuleType
from typing import Any

from goclaw_py.chat.stop.plan import Plan, Stop, plan, request_fact
from goclaw_py.core.containers import HistogramView
from goclaw_py.core.errors import GoclawError
from goclaw_py.core.ids import LaneName, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler import models as requests
from goclaw_py.scheduler import scheduler
from goclaw_py.scheduler.scheduler import RunScheduler
from goclaw_py.scheduler.views import LaneView
from tests.property.histories import Dice, Setting
from tests.property.naive import Halt, Naive
from tests.property.naive_records import HOLDING, RUNNING, STOPPING, Told, Wish, Wrong
from tests.unit.scheduler.shell import nothing_is_left

_NOT_CANCELLED = (Outcome.FAILED, Outcome.COMPLETED, Outcome.INTERRUPTED)
GRACE_S = 3.0
RESTARTS, TURNS = 2, 4
"""So few that short histories reach the limit of restarts, and recover from it."""

JITTER_S = 1 / 1024
"""Time goes on by so much with every step, so that two messages never come at the same instant.

All other times are multiples of a quarter second, and all sums are exact.
"""

POLICY = (
    *("mode", "capacity", "drop", "debounce_s", "debounce", "concurrency"),
    *("turn_messages", "turn_chars"),
)
"""What of a wish is its policy."""


@dataclass(frozen=True, slots=True)
class Core:
    """The scheduler that is checked: the real one, or one with a fault."""

    scheduler: ModuleType = scheduler
    requests: ModuleType = requests

    def begin(self, lanes: Mapping[str, int], agents: Mapping[str, int]) -> RunScheduler:
        made: RunScheduler = self.scheduler.RunScheduler(
            lanes,
            agents=agents,
            cancel_grace_s=GRACE_S,
            restarts=self.scheduler.RestartLimit(RESTARTS, TURNS),
        )
        return made

    def request(self, wish: Wish) -> Any:
        """The request in this core's own types: those of a planted one are not the real ones."""
        given = asdict(wish)
        policy = self.requests.QueuePolicy(**{name: given.pop(name) for name in POLICY})
        return self.requests.Request(policy=policy, **given)


REAL = Core()


class Pair:
    """The scheduler and the naive one, told the same; they must answer the same."""

    def __init__(self, setting: Setting, core: Core = REAL, sizes: bytes = b"") -> None:
        dice = Dice(sizes)
        lanes = {
            name: 1 + (size - 1 + dice.pick(range(3))) % 3 for name, size in setting.lanes.items()
        }
        agents = {
            name: 1 + (limit - 1 + dice.pick(range(3))) % 3
            for name, limit in setting.agents.items()
        }
        self.setting = setting
        self.core = core
        self.real = core.begin(lanes, agents)
        sizes_of_all = {str(lane.name): lane.concurrency for lane in self.real.lanes()}
        self.naive = Naive(sizes_of_all, agents, GRACE_S, RESTARTS, TURNS)
        self.now = 0.0
        self.submitted = 0
        self.taken_ids: list[str] = []
        self.offers: list[tuple[str, str]] = []
        self.stopped: set[str] = set()
        """Requests that a stop has ended, and all that came before a stop of everything."""
        self.last: dict[str, str] = {}
        """For each request that was let in whether it has started, joined another, or ended."""
        self.story: list[str] = []
        """Each input and its effects, for people."""

    # ------------------------------------------------------------------ steps

    def live_through(self, history: Sequence[bytes]) -> None:
        for step in history:
            dice = Dice(step)
            happening = dice.pick(["nothing", *self.setting.happenings])
            getattr(self, "happens_" + happening)(dice)
            self.now += JITTER_S
            self.compare()
        self.all_ends()

    def happens_nothing(self, dice: Dice) -> None:
        pass

    def happens_message(self, dice: Dice) -> None:
        self.submit(self.wish(dice))

    def happens_child(self, dice: Dice) -> None:
        parents = [r.id for r in self.naive.live if r.state is RUNNING]
        if parents or dice.chance(8):
            wish = self.wish(dice, parents=parents or ["nobody"], awaited=True)
            self.submit(wish)

    def happens_orphan(self, dice: Dice) -> None:
        """A child of anybody, working or not, and perhaps not waited for."""
        parents = [r.id for r in self.naive.live] or ["nobody"]
        self.submit(self.wish(dice, parents=parents, awaited=dice.chance(2)))

    def happens_duplicate(self, dice: Dice) -> None:
        if self.taken_ids:
            self.submit(self.wish(dice, run_id=dice.pick(self.taken_ids)))

    def happens_end(self, dice: Dice) -> None:
        if runs := self.runs_that_may_end():
            run_id = dice.pick(runs)
            outcome = dice.pick([Outcome.COMPLETED, Outcome.FAILED, Outcome.CANCELLED])
            self.tell("finish" if dice.chance(3) else "finished", run_id, outcome)

    def happens_store(self, dice: Dice) -> None:
        if runs := [r.id for r in self.naive.live if r.state in HOLDING and r.has_outcome]:
            self.tell("release", dice.pick(runs))

    def happens_mistake(self, dice: Dice) -> None:
        """The task of a request that does not run ends, or its outcome is stored too early."""
        if live := [r.id for r in self.naive.live if r.state is not RUNNING]:
            self.tell(dice.pick(["finish", "finished"]), dice.pick(live), Outcome.COMPLETED)
        if live := [r.id for r in self.naive.live if not r.has_outcome]:
            self.tell("release", dice.pick(live))

    def happens_effect(self, dice: Dice) -> None:
        """A run does something that cannot be undone, or does so once more."""
        if live := [r.id for r in self.naive.live]:
            run_id = dice.pick(live)
            self.story.append(f"had_effect {run_id}")
            self.real.had_effect(RunId(run_id))
            self.naive.had_effect(run_id)

    def happens_take_in(self, dice: Dice) -> None:
        if self.offers:
            self.tell("steer_in", *dice.pick(self.offers[::-1]))

    def happens_stop(self, dice: Dice) -> None:
        self.stop(dice, "stop_oldest", dice.pick(list(self.setting.sessions)))

    def happens_stop_one(self, dice: Dice) -> None:
        known = [run_id for r in self.naive.live for run_id in (r.id, *r.joined)]
        self.stop(dice, "stop_one", dice.pick([*known, "nobody"]))

    def happens_stop_all(self, dice: Dice) -> None:
        self.stop(dice, "stop_all", dice.pick(list(self.setting.sessions)))

    def stop(self, dice: Dice, what: str, whom: str) -> None:
        """Stop what anybody may stop, or only what is of one sender.

        After the answer to a stop nothing of what it has stopped starts or runs again, and after
        one of everything nothing that came before it.
        """
        sender = dice.pick([None, *self.setting.senders])
        before = {r.id for r in self.naive.live if r.session == whom}
        stop = self.stop_in_chat(what, whom, sender)
        planned = None if stop is None else self.plan_of(stop)
        if sender is None or stop is None or planned is None:
            halt = self.tell(what, whom)
        else:
            halt = self.both(
                f"{what} {whom} of {sender!r} {self.now}",
                lambda: self.carried_out(planned, stop),
                lambda: getattr(self.naive, what)(whom, self.now, sender),
            )
            self.note(halt.told if isinstance(halt, Halt) else [])
        assert isinstance(halt, Halt), self.told_so_far()
        self.stopped |= {*halt.stopped, *halt.dropped}
        if what == "stop_all" and sender is None:
            self.stopped |= before
        if planned is not None:
            live = {work.id for work in planned.cancel if work.is_live}
            assert live == {*halt.stopped, *halt.dropped}, self.told_so_far()
            is_stopping = planned.already_stopping and not halt.stopped
            assert is_stopping == halt.already_stopping, self.told_so_far()

    def stop_in_chat(self, what: str, whom: str, sender: str | None) -> Stop | None:
        """A stop as a chat makes it; None if it names what no chat can name."""
        if what != "stop_one":
            return Stop(SessionKey(whom), what == "stop_all", by=sender)
        views = [view for view in self.real.runs(self.now) if view.id == whom]
        if not views:
            return None
        return Stop(views[0].session, everything=False, run=RunId(whom), by=sender)

    def plan_of(self, stop: Stop) -> Plan:
        """What the plan of a stop in a chat would cancel: the same (SPEC CMD-1, CMD-2)."""
        assert stop.session is not None
        found = self.real.stop_candidates(stop.session, stop.by)
        return plan([request_fact(one, stop.session) for one in found], stop)

    def carried_out(self, planned: Plan, stop: Stop) -> Halt:
        """Stop as a chat does: only so what belongs to others is spared (SPEC CMD-6)."""
        wanted = [RunId(work.id) for work in planned.cancel]
        done = self.real.stop_these(wanted, stop.reason, self.now)
        done.already_stopping = planned.already_stopping and not done.stopped
        halt = answer_of(lambda: done)
        assert isinstance(halt, Halt)
        return replace(halt, spared=sorted(work.id for work in planned.spared))

    def happens_time(self, dice: Dice) -> None:
        self.time_passes(dice.pick(self.setting.delays_s))

    def happens_late(self, dice: Dice) -> None:
        """The shell hung and rings all timers at once."""
        self.now += dice.pick([0.5, 1.0, 5.0])
        self.tell("tick")

    def happens_resize(self, dice: Dice) -> None:
        name = "nowhere" if dice.chance(16) else dice.pick(list(self.naive.pools))
        self.tell("resize", name, dice.pick([1, 2, 3]))

    def happens_limit_agent(self, dice: Dice) -> None:
        self.tell("limit_agent", dice.pick(list(self.naive.limits)), dice.pick([1, 2, None]))

    def happens_set_concurrency(self, dice: Dice) -> None:
        self.tell("set_concurrency", dice.pick(list(self.setting.sessions)), dice.pick([1, 2, 3]))

    def happens_new_lane(self, dice: Dice) -> None:
        name, size = dice.pick(["extra", "unknown", "main"]), dice.pick([1, 2])
        self.story.append(f"get_or_create {name} {size}")
        self.naive.get_or_create(name, size)
        assert (
            self.real.get_or_create(LaneName(name), size).concurrency == self.naive.pools[name].size
        )

    def happens_close_lane(self, dice: Dice) -> None:
        self.tell("close_lane", dice.pick(list(self.setting.lanes)))

    def happens_drain(self, dice: Dice) -> None:
        self.story.append("drain")
        self.real.drain()
        self.naive.drain()

    def happens_release_waiting(self, dice: Dice) -> None:
        live = [r.id for r in self.naive.live]
        some = frozenset(dice.pick(live) for _ in range(dice.pick(range(3)))) if live else None
        self.tell("release_waiting", some or None)

    def happens_interrupt_all(self, dice: Dice) -> None:
        self.tell("interrupt_all")

    # ------------------------------------------------------------------ inputs

    def wish(
        self,
        dice: Dice,
        *,
        run_id: str | None = None,
        parents: Sequence[str] = (),
        awaited: bool = False,
    ) -> Wish:
        if run_id is None:
            self.submitted += 1
            run_id = f"r{self.submitted}"
        setting = self.setting
        session = dice.pick(list(setting.sessions))
        return Wish(
            id=run_id,
            session=session,
            parent=dice.pick(parents) if parents else None,
            awaited=awaited,
            concurrency=dice.pick(setting.sessions[session]),
            lane=dice.pick(setting.asks_lanes),
            agent=dice.pick(setting.asks_agents),
            sender=dice.pick(setting.senders),
            mode=dice.pick(setting.modes),
            capacity=dice.pick(setting.capacities),
            debounce_s=dice.pick(setting.windows_s),
            debounce=dice.pick(setting.debounces),
            drop=dice.pick(["old", "new"]),
            deadline_s=dice.pick(setting.time_limits_s),
            run_timeout_s=dice.pick(setting.time_limits_s),
            cut=len(setting.windows_s) > 1 and dice.chance(5),
            turn_messages=dice.pick(setting.turn_messages),
            turn_chars=dice.pick(setting.turn_chars),
            chars=dice.pick(range(3)),
        )

    def submit(self, wish: Wish) -> None:
        self.taken_ids.append(wish.id)
        now = self.now
        told = self.both(
            f"submit {wish}",
            lambda: self.real.submit(self.core.request(wish), now),
            lambda: self.naive.submit(wish, now),
        )
        if isinstance(told, list):
            self.last[wish.id] = ""
            self.stopped.discard(wish.id)
            self.note(told)

    def tell(self, what: str, *words: object, **more: object) -> object:
        """The effects are noted; this is the answer of the scheduler, if it is more."""
        arguments = (*words, self.now)
        answer = self.both(
            " ".join(map(str, (what, *arguments, *more.values()))),
            lambda: getattr(self.real, what)(*arguments, **more),
            lambda: getattr(self.naive, what)(*arguments, **more),
        )
        told = answer.told if isinstance(answer, Halt) else answer
        self.note(told if isinstance(told, list) else [])
        return answer

    def both(self, line: str, real: Callable[[], Any], naive: Callable[[], object]) -> object:
        """Their answer, which is the same."""
        self.story.append(line)
        expected, answer = answer_of(naive), answer_of(real)
        self.story.append(f"    {answer}")
        assert answer == expected, f"{self.told_so_far()}\nexpected {expected}"
        return answer

    def note(self, told: list[Told]) -> None:
        """Whatever the naive one says: nobody starts or ends twice, or after it has ended."""
        for kind, run_id, *more in told:
            runs_again = kind == "ended" and more[0] is Outcome.INTERRUPTED
            if kind == "start" or (runs_again and more[1] is not Reason.MERGED):
                assert run_id not in self.stopped, self.told_so_far()
            if kind == "offer":
                self.offers.append((str(run_id), str(more[0])))
            elif kind in ("start", "join", "ended"):
                before = self.last[str(run_id)]
                assert before in (("", "start") if kind == "ended" else ("",)), self.told_so_far()
                self.last[str(run_id)] = str(kind)

    def time_passes(self, seconds: float) -> None:
        """Ring each timer at the instant that the scheduler asked for."""
        until = self.now + seconds
        while (at := self.real.next_timer()) is not None and at <= until:
            self.now = max(self.now, at)
            self.tell("tick")
            self.compare()
            again = self.real.next_timer()
            assert again is None or again > self.now, "a shell that obeys would spin"
        self.now = until

    def runs_that_may_end(self) -> list[str]:
        runs = [r for r in self.naive.live if r.state in (RUNNING, STOPPING)]
        abandoned = [r.id for r in self.naive.live if r.has_outcome and r.state not in HOLDING]
        if self.setting.patient:
            runs = [r for r in runs if not self.naive.awaited(r)]
        return [r.id for r in runs] + abandoned

    def all_ends(self) -> None:
        """Let everything end that may, and look whether something is left.

        Time passes only when nothing can end without it: the end of a burst must be waited for,
        but no time limit and no grace period may be needed to get out of a deadlock.
        """
        while not self.real.idle:
            if runs := [r.id for r in self.naive.live if r.state in HOLDING and r.has_outcome]:
                self.tell("release", runs[0])
            elif runs := self.runs_that_may_end():
                self.tell("finished", runs[0], Outcome.COMPLETED)
            else:
                ends = [r.ends_at for r in self.naive.live if r.state.value == "collecting"]
                assert ends, "deadlock\n" + self.told_so_far()
                self.time_passes(max(0.0, min(ends) - self.now))
            self.compare()
        assert set(self.last.values()) <= {"join", "ended"}, self.told_so_far()
        nothing_is_left(self.real)

    # ------------------------------------------------------------------ comparing

    def compare(self) -> None:
        """Everything that can be seen is the same."""
        real, naive = self.real, self.naive
        seen = [
            (r.id, r.session, r.agent, r.lane, r.state, r.for_s, r.parent, r.waits_for, r.messages)
            for r in real.runs(self.now)
        ]
        expected = [
            (
                *(r.id, r.session, r.agent, r.lane, r.state, self.now - r.since, r.wish.parent),
                *(naive.waits_for(r), 1 + len(r.joined)),
            )
            for r in naive.live
        ]
        assert seen == expected, self.told_so_far()
        waiting = sum(naive.waits_for(r) is not None for r in naive.live)
        assert real.counts() == (len(naive.live) - waiting, waiting), self.told_so_far()
        lanes = {lane.name: numbers(lane) for lane in real.lanes()}
        assert lanes == {name: self.expected_numbers(name) for name in naive.pools}, (
            self.told_so_far()
        )
        at, expected_at = real.next_timer(), naive.next_timer()
        assert expected_at is None or (at is not None and at <= expected_at), self.told_so_far()
        assert real.idle == (not naive.live)
        for lane in real.lanes():
            assert lane.waiting == 0 or lane.active >= lane.concurrency, "it has room"
        for session in real._machine.sessions.values():
            assert session.active or session.waiting, "it should be forgotten"
            assert len(session.waiting) <= max(self.setting.capacities)

    def expected_numbers(self, name: str) -> tuple[object, ...]:
        pool = self.naive.pools[name]
        ends = pool.outcomes
        return (
            *(pool.size, self.naive.slots_used(name), len(self.naive.lane_line(name))),
            *(pool.started, len(ends), ends.count(Outcome.FAILED), pool.closed),
            len([one for one in ends if one not in _NOT_CANCELLED]),
            *(len(pool.waits), math.fsum(pool.waits), len(pool.runs), math.fsum(pool.runs)),
        )

    def told_so_far(self) -> str:
        return "\n".join(self.story)


def numbers(lane: LaneView) -> tuple[object, ...]:
    """What can be counted about a lane."""
    return (
        *(lane.concurrency, lane.active, lane.waiting),
        *(lane.started, lane.finished, lane.failed, lane.closed, lane.cancelled),
        *measured(lane.wait_times),
        *measured(lane.run_times),
    )


def measured(times: HistogramView) -> tuple[int, float]:
    return times.count, times.total_s


def answer_of(call: Callable[[], Any]) -> object:
    """What an input gave, in words that are the same for both; an exception is its name."""
    try:
        given = call()
    except Wrong as wrong:
        return str(wrong)
    except (ValueError, AssertionError, GoclawError) as error:
        return type(error).__name__
    if isinstance(given, Halt):
        return replace(given, spared=sorted(given.spared))
    if isinstance(given, list):
        return [effect if isinstance(effect, tuple) else in_words(effect) for effect in given]
    told = [in_words(effect) for effect in given.effects]
    return Halt(told, list(given.stopped), list(given.dropped), given.already_stopping)


def in_words(effect: Any) -> Told:
    """An effect of the scheduler as the naive one tells it; by name, for planted ones too."""
    run_id = effect.request.id
    match type(effect).__name__:
        case "Start":
            return ("start", run_id)
        case "Cancel":
            return ("cancel", run_id, effect.reason)
        case "MergeIntoRun":
            return ("join", run_id, effect.into.id)
        case "Restart":
            return ("restart", run_id, effect.into.id)
        case "OfferToRun":
            return ("offer", run_id, effect.run.id)
        case "LaneWaitExceeded":
            occupants = tuple(other.id for other in effect.occupants)
            return ("slow", run_id, effect.lane.name, effect.waited_s, occupants)
        case "Ended":
            return ("ended", run_id, effect.outcome, effect.reason)
        case other:
            raise TypeError(f"an unknown effect: {other}")
