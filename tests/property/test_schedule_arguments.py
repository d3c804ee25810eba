"""Whatever a model gives to the schedule tools: a result, or words about what is wrong.

Never another exception, and nothing is stored or changed by a call that fails (SPEC CRON-2).
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.errors import ToolFailed
from goclaw_py.records import JobQuery
from goclaw_py.testing.loop import VirtualLoop
from tests.support.schedules import OPERATORS, Schedules

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
NUMBER = st.integers(-1, 70).map(str) | st.integers().map(str)
FIELD = st.sampled_from(["*", "*/2", "0", "61", "1-5", "MON", "L", "5-1", "?", "", "@daily", "1,2"])
MOMENT = st.builds(
    "{}-{:02}-{:02}T{:02}:{:02}{}".format,
    st.integers(0, 10_000).map("{:04}".format) | st.just("2026"),
    st.integers(0, 13),
    st.integers(0, 32),
    st.integers(0, 24),
    st.integers(0, 60),
    st.sampled_from(["Z", "", "+05:30", "-14:00", "+99:00", "[UTC]", ":00.123456789Z"]),
)
VALUE = NUMBER | MOMENT | st.lists(FIELD, max_size=7).map(" ".join) | ANYTHING
ZONE = st.sampled_from(["UTC", "Asia/Kolkata", "America", "EST", "+01:00", "../UTC", ""]) | ANYTHING
KIND = st.sampled_from(["cron", "once", "interval"]) | ANYTHING
NOTIFICATION = st.sampled_from(["always", "conditional", "never"]) | ANYTHING
STATUS = st.sampled_from(["active", "paused", "completed", "disabled"]) | ANYTHING
COUNT = st.integers() | st.integers(-2, 60) | ANYTHING
TEXT = st.text(max_size=300) | ANYTHING

ARGUMENTS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(["goal", "name"], TEXT),
    **dict.fromkeys(["max_turns", "limit", "offset"], COUNT),
    "cadence_type": KIND,
    "cadence_value": VALUE,
    "timezone": ZONE,
    "notification": NOTIFICATION,
    "status": STATUS,
}
OPTIONAL = {
    "create": "goal cadence_type cadence_value name timezone notification max_turns",
    "search": "name status cadence_type notification limit offset",
    "edit": "name goal cadence_type cadence_value timezone notification status",
    "delete": "",
}
SOUND = st.fixed_dictionaries(
    {"goal": st.just("x"), "cadence_type": st.sampled_from(["cron", "once", "interval"])},
    optional={"timezone": ZONE, "notification": NOTIFICATION},
).flatmap(lambda rest: VALUE.map(lambda value: rest | {"cadence_value": value}))
"""Sound but for the cadence, so that many reach the job service."""


def calls(there: str) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    """A tool with arguments; ``there`` is the id of a schedule that exists."""
    asked = {"schedule_id": st.just(there) | st.just(there[:6]) | TEXT}
    kinds = [st.tuples(st.just("create"), SOUND)]
    for tool, names in OPTIONAL.items():
        optional = {name: ARGUMENTS[name] for name in names.split()}
        needed = asked if tool in ("edit", "delete") else {}
        anything = st.fixed_dictionaries({}, optional=needed | optional)
        complete = st.fixed_dictionaries(needed, optional=optional)
        kinds.append(st.tuples(st.just(tool), anything | complete))
    return st.one_of(kinds)


@given(data=st.data())
def test_any_arguments_give_a_result_or_words_and_a_failure_changes_nothing(
    data: st.DataObject,
) -> None:
    async def scene() -> None:
        world = Schedules(Path("/nowhere"))
        there = (await world.create(name="there"))["schedule_id"]
        for tool, arguments in data.draw(st.lists(calls(there), min_size=1, max_size=4)):
            before = await world.service.search(JobQuery(), OPERATORS)
            said = await call(world, tool, arguments)
            if isinstance(said, ToolFailed):
                assert 0 < len(str(said)) < 3_000
                assert await world.service.search(JobQuery(), OPERATORS) == before
            # Whatever was let in can be shown.
            await world.call("search")

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(scene())


async def call(
    world: Schedules, tool: str, arguments: dict[str, Any]
) -> dict[str, Any] | ToolFailed:
    """What a call gives; any other exception is not caught."""
    try:
        said = await world.tools().call(f"schedule_{tool}", arguments)
    except ToolFailed as error:
        return error
    said.encode()
    result: dict[str, Any] = json.loads(said)
    return result
