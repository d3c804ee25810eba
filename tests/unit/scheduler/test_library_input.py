"""The scheduler as a library: what makes no sense is refused with words, and does no harm."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import pytest

import goclaw_py
from goclaw_py import Lane, QueuePolicy, Scheduler
from tests.unit.scheduler.library_parts import nothing

EAGER = QueuePolicy(debounce="speculative")  # type: ignore[arg-type]  # names are welcome too


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Lane("slow", 0), "lane slow: concurrency is a whole number, at least 1: 0"),
        (lambda: Lane("slow", 1.5), "lane slow: concurrency is a whole"),  # type: ignore[arg-type]
        (lambda: Scheduler(nothing, [Lane("a", 1), Lane("a", 2)]), "two lanes have the name 'a'"),
    ],
)
async def test_a_wrong_setting_is_refused_when_it_is_made(
    make: Callable[[], object], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"deadline_s": -1}, ValueError, "deadline_s is a number of seconds, at least 0: -1"),
        ({"policy": EAGER}, ValueError, 'debounce "speculative" is for chats of the gateway'),
        ({"policy": "collect"}, TypeError, "policy must be of type QueuePolicy, not str"),
        ({"prioriy": 3}, TypeError, "no such option: prioriy; there are agent, awaited, context"),
        ({"awaited": True}, ValueError, "awaited says that a parent waits: name it, parent=run"),
        ({"parent": "7"}, TypeError, r"parent must be of type .*Run"),
    ],
)
async def test_a_submission_that_makes_no_sense_is_refused_and_leaves_nothing(
    options: Any, kind: type[Exception], says: str
) -> None:
    async with Scheduler(nothing) as scheduler:
        with pytest.raises(kind, match=says):
            scheduler.submit("ann", "a", **options)
        assert scheduler.runs() == ()
        assert await scheduler.submit("ann", "a") == "a"


WRONG: Any = ["ann"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda _: Lane(WRONG, 1), "the name of a lane must be of type str, not list"),
        (lambda _: Scheduler(WRONG), "work must be of type Callable, not list"),
        (lambda _: Scheduler(nothing, Lane("a", 1)), "lanes must be of type Iterable, not Lane"),  # type: ignore[arg-type]
        (lambda _: Scheduler(nothing, WRONG), "each of lanes must be of type Lane, not str: 'ann'"),
        (lambda _: Scheduler(nothing, policy=WRONG), "policy must be of type QueuePolicy"),
        (lambda _: Scheduler(nothing, agents=WRONG), "agents must be of type .*Mapping"),
        (
            lambda _: Scheduler(nothing, nesting=WRONG),
            "nesting must be of type NestingLimits, not list",
        ),
        (lambda _: Scheduler(nothing, cancel_grace_s=WRONG), "cancel_grace_s must be of type"),
        (lambda _: QueuePolicy(debounce_s=WRONG), "debounce_s must be of type int | float"),
        (lambda made: made.submit(7, "a"), "session must be of type str, not int: 7"),
        (lambda made: made.submit("ann", "a", 7), "lane must be of type str, not int: 7"),
        (lambda made: made.submit("ann", "a", deadline_s="5"), "deadline_s must be of type float"),
        (lambda made: made.stop(7), "session must be of type str, not int: 7"),
        (lambda made: made.stop_all(7), "session must be of type str, not int: 7"),
        (lambda made: made.add_lane("a"), "lane must be of type Lane, not str: 'a'"),
    ],
)
async def test_a_wrong_type_is_refused_with_the_expected_one(
    call: Callable[[Any], object], says: str
) -> None:
    async with Scheduler(nothing) as scheduler:
        with pytest.raises(TypeError, match=says):
            call(scheduler)
        assert scheduler.runs() == ()


def test_the_scheduler_imports_nothing_else() -> None:
    code = "import sys; from goclaw_py import Lane, Scheduler; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = {name for name in ran.stdout.split() if name.startswith("goclaw_py.")}
    assert {name.split(".")[1] for name in ours} == {"core", "scheduler"}
    assert (
        not {
            "goclaw_py.schedule.cron.expression",
            "goclaw_py.schedule.jobs.models",
            "goclaw_py.core.time.zones",
        }
        & ours
    )
    assert not {"croniter", "asyncpg", "pydantic", "orjson"} & set(ran.stdout.split())


async def test_huge_numbers_are_welcome() -> None:
    huge = 10**30
    policy = QueuePolicy(capacity=huge, concurrency=huge)
    async with Scheduler(
        nothing, [Lane("main", huge)], policy=policy, agents={"a": huge}, cancel_grace_s=1e300
    ) as scheduler:
        assert await scheduler.submit("ann", "a", agent="a") == "a"


async def test_the_same_submission_twice_makes_two_runs() -> None:
    async with Scheduler(nothing) as scheduler:
        one, two = (scheduler.submit("ann", "a") for _ in range(2))
        assert one.id != two.id
        assert [*await asyncio.gather(one, two)] == ["a", "a"]
    assert scheduler.lanes()[0].finished == 2


async def test_work_that_is_no_coroutine_function_fails_with_a_hint() -> None:
    def forgot_async(_run: object) -> int:
        return 7

    def broken(_run: object) -> int:
        raise AttributeError("of its own")

    wrong: Any = forgot_async
    async with Scheduler(wrong) as scheduler:
        with pytest.raises(TypeError, match="work returned 7 and no coroutine; write it with"):
            await scheduler.submit("ann", "a")
    wrong = broken
    async with Scheduler(wrong) as scheduler:
        with pytest.raises(AttributeError, match="of its own"):
            await scheduler.submit("ann", "a")


def test_a_scheduler_needs_a_loop_and_says_so() -> None:
    with pytest.raises(RuntimeError, match="make a Scheduler in a coroutine"):
        Scheduler(nothing)


async def test_a_context_that_is_in_use_is_no_trouble() -> None:
    async with Scheduler(nothing) as scheduler:
        context = copy_context()

        def submit() -> Any:
            return scheduler.submit("ann", "a", context=context)

        assert await context.run(submit) == "a"


def test_the_package_offers_what_it_names_and_nothing_else() -> None:
    assert [name for name in goclaw_py.__all__ if not hasattr(goclaw_py, name)] == []
    assert set(goclaw_py.__all__) <= set(dir(goclaw_py))
    assert not hasattr(goclaw_py, "Schedular")
