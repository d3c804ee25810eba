"""The scheduler as a library: what comes out of a run, and who gets it; lanes and sessions.

SPEC AGENT-3, LANE-2, LANE-6, LANE-7, LANE-9, QUEUE-5, QUEUE-6.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import pickle

import pytest

from goclaw_py import (
    Drop,
    Lane,
    NotCompleted,
    Outcome,
    QueueDropped,
    QueueFull,
    QueuePolicy,
    Reason,
    Run,
    RunState,
    Scheduler,
    UnknownLane,
)
from goclaw_py.testing.loop import VirtualLoop
from tests.unit.scheduler.library_parts import (
    Calls,
    Gate,
    Text,
    forever,
    nothing,
    outcome_of,
    states,
    steps,
)


class Odd(BaseException):
    """Neither an ``Exception`` nor known to asyncio."""


async def fail(_run: Text) -> None:
    raise LookupError("no such thing")


async def test_awaiting_a_run_gives_what_the_work_returned() -> None:
    async def length(run: Run[str, int]) -> int:
        await asyncio.sleep(1)
        return len(run.message)

    async with Scheduler(length) as scheduler:
        run = scheduler.submit("ann", "four")
        assert str(run.outcome) == "None"
        assert await run == 4
        assert await run == 4, "also after the end"
    assert (run.outcome, run.error, run.reason) == (Outcome.COMPLETED, None, None)


async def test_a_failure_gets_no_longer_with_everyone_who_awaits_it() -> None:
    def length(error: BaseException) -> int:
        count, traceback = 0, error.__traceback__
        while traceback is not None:
            count, traceback = count + 1, traceback.tb_next
        return count

    async with Scheduler(fail) as scheduler:
        run = scheduler.submit("ann", "a")
        lengths = []
        for _ in range(3):
            with pytest.raises(LookupError) as caught:
                await run
            lengths.append(length(caught.value))
    assert len(set(lengths)) == 1


@pytest.mark.parametrize("late", [False, True])
async def test_any_other_base_exception_is_a_failure_like_others(late: bool) -> None:
    async def work(_run: Text) -> None:
        await asyncio.sleep(late)
        raise Odd

    async with Scheduler(work) as scheduler:
        run = scheduler.submit("ann", "a")
        with pytest.raises(Odd):
            await run
        assert run.outcome is Outcome.FAILED


@pytest.mark.parametrize("late", [False, True])
async def test_a_run_that_raises_generator_exit_frees_its_slot(late: bool) -> None:
    async def work(run: Text) -> None:
        if run.message == "odd":
            if late:
                await asyncio.sleep(1)
            raise GeneratorExit

    async with Scheduler(work, [Lane("main", 1)]) as scheduler:
        odd, after = scheduler.submit("ann", "odd"), scheduler.submit("ann", "after")
        with pytest.raises(RuntimeError, match="raised GeneratorExit"):
            await odd
        await after


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_exit_ends_the_loop_after_its_slot_is_free(
    kind: type[BaseException], late: bool
) -> None:
    done = []

    async def work(run: Text) -> None:
        if late:
            await asyncio.sleep(1)
        if run.message == "exit":
            raise kind
        done.append(run.message)

    async def main() -> None:
        schedulers.append(Scheduler(work, [Lane("main", 1)]))
        runs.extend(schedulers[0].submit(m, m) for m in ("before", "exit", "after"))
        await idle()

    async def idle() -> None:
        await asyncio.sleep(10)

    schedulers: list[Scheduler[str, None]] = []
    runs: list[Text] = []
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        with pytest.raises(kind):
            runner.run(main())
        assert runs[1].outcome is Outcome.FAILED
        assert isinstance(runs[1].error, kind)
        runner.run(idle())
        assert done == ["before", "after"]
        runner.run(schedulers[0].drain(0))
    gc.collect()  # the log about the task that ended the loop comes here, as always in asyncio


def test_an_exit_in_a_run_lets_the_block_be_left_at_once() -> None:
    cleaned = []

    async def work(run: Text) -> None:
        try:
            await asyncio.sleep(run.message)
            raise KeyboardInterrupt
        finally:
            cleaned.append(run.message)

    async def main() -> float:
        async with Scheduler(work, [Lane("main", 3)]) as scheduler:
            for n in range(1, 9):
                scheduler.submit(f"s{n}", n)
        return 0

    loop = VirtualLoop()
    with pytest.raises(KeyboardInterrupt), asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(main())
    assert sorted(cleaned) == [1, 2, 3], "those that worked were cancelled, the others never began"
    assert loop.virtual_now < 2
    gc.collect()


async def test_work_that_raises_cancelled_error_by_itself_ends_cancelled() -> None:
    async def work(_run: Text) -> None:
        raise asyncio.CancelledError

    async with Scheduler(work) as scheduler:
        run = scheduler.submit("ann", "a")
        with pytest.raises(NotCompleted) as caught:
            await run
        assert (caught.value.outcome, caught.value.reason) == (Outcome.CANCELLED, None)


@pytest.mark.parametrize("waits", [False, True])
async def test_work_that_cancels_its_own_task_ends_cancelled_and_harms_no_other(
    waits: bool,
) -> None:
    async def work(run: Text) -> str:
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        if run.message == "cancel":
            task.cancel()
            if waits:
                await asyncio.sleep(1)
        else:
            await asyncio.sleep(0)
        return "done"

    async with Scheduler(work) as scheduler:
        run, *others = [scheduler.submit("ann", m) for m in ("cancel", "a", "b")]
        assert await asyncio.gather(*others) == ["done", "done"]
    # What it returns before the cancellation reaches it counts.
    assert run.outcome is (Outcome.CANCELLED if waits else Outcome.COMPLETED)


async def test_a_result_reaches_everyone_who_awaits() -> None:
    async with Scheduler(nothing) as scheduler:
        run = scheduler.submit("ann", "a")

        async def wait() -> str:
            result: str = await run
            return result

        assert [*await asyncio.gather(wait(), wait(), run)] == ["a", "a", "a"]


async def test_cancelling_who_awaits_does_not_stop_the_run() -> None:
    gate = Gate()
    async with Scheduler(gate) as scheduler:
        run = scheduler.submit("ann", "a")
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(run, 1)
        assert run.state is RunState.RUNNING
        assert not run.waiters, "nothing is kept of those who gave up"
        gate.open(run)
        assert await run == ["a"]


async def test_a_message_that_joined_another_has_the_result_of_that_one() -> None:
    policy = QueuePolicy(debounce_s=0.8)
    gate = Gate()
    async with Scheduler(gate, policy=policy) as scheduler:
        first = scheduler.submit("ann", "one", sender="ann")
        second = scheduler.submit("ann", "two", sender="ann")
        assert repr(second) == f"<Run 2 of 'ann': joined {first.id}>"
        assert (second.into, second.state) == (first, RunState.DONE)
        await asyncio.sleep(1)
        gate.open(first)
        assert await second == ["one", "two"]
        assert await first == ["one", "two"]
    assert second.outcome is Outcome.COMPLETED
    assert second.error is None


async def test_who_awaits_a_message_that_joins_another_later_goes_on_waiting_for_that_one() -> None:
    policy = QueuePolicy(mode="collect")  # type: ignore[arg-type]  # names become members
    gate = Gate()
    async with Scheduler(gate, policy=policy) as scheduler:
        first, *rest = [scheduler.submit("ann", n) for n in range(4)]
        awaited = asyncio.create_task(outcome_of(rest[2]))
        await steps()
        gate.open(first)
        await steps()
        assert rest[2].into is rest[0]
        assert not awaited.done()
        gate.open(rest[0])
        assert await awaited is Outcome.COMPLETED
        assert await rest[2] == [1, 2, 3]


async def test_a_dropped_and_a_refused_message_say_so() -> None:
    gate = Gate()
    small = QueuePolicy(capacity=1)
    async with Scheduler(gate, policy=small) as scheduler:
        running, old, new = [scheduler.submit("ann", m) for m in "abc"]
        with pytest.raises(QueueDropped) as dropped:
            await old
        full = scheduler.submit("ann", "d", policy=QueuePolicy(capacity=1, drop=Drop.NEW))
        with pytest.raises(QueueFull, match="capacity is used up; submit it later") as refused:
            await full
        assert (dropped.value.run_id, dropped.value.outcome) == (old.id, Outcome.DROPPED)
        assert (refused.value.reason, full.state) == (Reason.QUEUE_FULL, RunState.DONE)
        await steps()
        gate.open(running)
        await steps()
        gate.open(new)


async def test_the_error_of_a_run_that_did_not_complete_survives_pickling() -> None:
    error = QueueFull("7", Outcome.REJECTED, Reason.QUEUE_FULL)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.reason) == (QueueFull, str(error), Reason.QUEUE_FULL)


async def test_the_repr_of_a_run_tells_where_it_is() -> None:
    gate = Gate()
    async with Scheduler(gate) as scheduler:
        run, waiting = scheduler.submit("ann", "a" * 10_000), scheduler.submit("ann", "b")
        assert repr(run) == "<Run 1 of 'ann': running>"
        assert repr(waiting) == "<Run 2 of 'ann': queued>"
        scheduler.stop_all("ann")
        assert repr(waiting) == "<Run 2 of 'ann': cancelled>"


async def test_a_run_cannot_be_awaited_in_another_loop() -> None:
    async with Scheduler(forever) as scheduler:
        run = scheduler.submit("ann", "a")

        def elsewhere() -> None:
            async def wait() -> None:
                await run

            with pytest.raises(RuntimeError, match="only in the loop of its scheduler"):
                asyncio.run(wait())

        await asyncio.to_thread(elsewhere)
        scheduler.stop_all("ann")


# ---------------------------------------------------------------------- lanes


async def gated(gate: Gate, *runs: Text) -> None:
    """Let runs end, one after the other."""
    for run in runs:
        await steps()
        gate.open(run)
    await steps()


async def test_lanes_can_be_added_resized_and_closed() -> None:
    gate = Gate()
    async with Scheduler(gate, [Lane("main", 1)]) as scheduler:
        assert scheduler.add_lane(Lane("new", 1)).concurrency == 1
        assert scheduler.add_lane(Lane("new", 5)).concurrency == 1
        runs = [scheduler.submit(f"s{n}", n, "new") for n in range(4)]
        scheduler.resize_lane("new", 3)
        await steps()
        assert gate.entered == [0, 1, 2]
        scheduler.close_lane("new")
        late = scheduler.submit("late", "late", "new")
        assert (runs[3].outcome, runs[3].reason) == (Outcome.REJECTED, Reason.LANE_CLOSED)
        assert (late.outcome, late.state) == (Outcome.REJECTED, RunState.DONE)
        await gated(gate, *runs[:3])
    assert runs[0].outcome is Outcome.COMPLETED


async def test_what_names_a_lane_that_does_not_exist_says_which_there_are() -> None:
    async with Scheduler(nothing) as scheduler:
        says = "there is no lane 'no'; there are: main"
        with pytest.raises(UnknownLane, match=says):
            scheduler.resize_lane("no", 1)
        with pytest.raises(UnknownLane, match=says):
            scheduler.close_lane("no")


async def test_a_session_can_be_given_more_room() -> None:
    gate = Gate()
    async with Scheduler(gate, [Lane("main", 9)]) as scheduler:
        runs = [scheduler.submit("ann", n) for n in range(4)]
        scheduler.set_concurrency("ann", 3)
        await steps()
        assert gate.entered == [0, 1, 2]
        scheduler.set_concurrency("nobody", 3)
        await gated(gate, *runs)


async def test_an_agent_has_its_limit_over_all_sessions() -> None:
    gate = Gate()
    async with Scheduler(gate, [Lane("main", 9)], agents={"writer": 2}) as scheduler:
        runs = [scheduler.submit(f"s{n}", n, agent="writer") for n in range(3)]
        other = scheduler.submit("other", "other", agent="reader")
        await steps()
        assert gate.entered == [0, 1, "other"]
        await gated(gate, *runs, other)


async def test_a_slow_wait_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def work(_run: Text) -> None:
        await asyncio.sleep(3)

    caplog.set_level(logging.WARNING)
    async with Scheduler(work, [Lane("main", 1)]) as scheduler:
        for n in range(2):
            scheduler.submit(f"s{n}", n)
    assert [r.getMessage() for r in caplog.records] == ["lane_wait_slow"]


async def test_messages_of_ten_thousand_in_one_burst_join_in_good_time() -> None:
    policy = QueuePolicy(debounce_s=1, turn_messages=10_000)

    async def count(run: Text) -> int:
        return len(run.messages)

    async with Scheduler(count, policy=policy) as scheduler:
        runs = [scheduler.submit("ann", n, sender="ann") for n in range(10_000)]
        assert await runs[-1] == 10_000


async def test_schedulers_do_not_know_of_each_other() -> None:
    gates = [Gate(), Gate()]
    async with Scheduler(gates[0]) as one, Scheduler(gates[1]) as two:
        schedulers: list[Calls] = [one, two]
        runs = [scheduler.submit("ann", "a") for scheduler in schedulers]
        await steps()
        assert [list(states(scheduler)) for scheduler in schedulers] == [["1"], ["1"]]
        for gate, run in zip(gates, runs, strict=True):
            gate.open(run)
