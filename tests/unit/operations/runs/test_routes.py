"""``/api/runs``: everything that selects runs, and everything that is known of one (SPEC OPS-2)."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta

import pytest

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.core.errors import NotFound
from goclaw_py.core.ids import AgentName
from goclaw_py.operations.runs.operations import RunRecord
from goclaw_py.records import ALL_RUNS, NEWEST_RUNS, RunOrder, RunQuery
from goclaw_py.runs.step_views import step_view
from tests.support.run_filters import EVERY_FILTER
from tests.unit.web import fakes
from tests.unit.web.harness import Gateway

pytestmark = pytest.mark.real_time

FEW = replace(EVERY_FILTER, agent=AgentName("a b&c"))
EVERYTHING = RunQuery(
    only=FEW,
    session=fakes.SESSION,
    since=fakes.NOW,
    active=True,
    search="order é",
    limit=3,
    before=fakes.ENDED.cursor,
    order=RunOrder.COST,
)
SINCE, UNTIL = fakes.NOW, fakes.NOW + timedelta(hours=1)


def one_more(query: RunQuery) -> RunQuery:
    """One row more tells whether there is another page."""
    values = {one.name: getattr(query, one.name) for one in fields(RunQuery)}
    return RunQuery(**values | {"limit": query.limit + 1})


@pytest.mark.parametrize(("given", "none"), [(FEW, ALL_RUNS), (EVERYTHING, NEWEST_RUNS)])
def test_every_field_is_tried(given: object, none: object) -> None:
    """A new field of ``RunFilter`` needs a value in ``EVERY_FILTER``."""
    for one in fields(type(none)):  # type: ignore[arg-type]
        assert getattr(given, one.name) != getattr(none, one.name), one.name


async def test_everything_that_selects_runs_arrives_as_it_was(
    made: Gateway, remote: RemoteControl
) -> None:
    asked = fakes.HISTORY[0].entry.text
    assert await remote.runs.list() == [fakes.ACTIVE, replace(fakes.ENDED, prompt=asked)]
    await remote.runs.list(EVERYTHING)
    await remote.runs.counts(EVERYTHING)
    await remote.runs.between(SINCE, UNTIL, only=FEW)
    await remote.runs.density(SINCE, UNTIL, parts=7, only=FEW)
    assert [call for call in made.control.calls if call != ("active",)] == [
        ("runs", one_more(NEWEST_RUNS)),
        ("runs", one_more(EVERYTHING)),
        ("run_counts", RunQuery(only=FEW, session=EVERYTHING.session, since=EVERYTHING.since)),
        ("runs_between", SINCE, UNTIL, 2001, FEW),
        ("run_density", SINCE, UNTIL, 7, FEW),
    ]


async def test_everything_comes_back_as_it_was(remote: RemoteControl) -> None:
    assert await remote.runs.active() == fakes.ACTIVE_RUNS
    assert await remote.runs.counts() == {"running": 1, "completed": 40, "failed": 2}
    assert await remote.runs.between(SINCE, UNTIL) == [fakes.SPAN, fakes.ACTIVE_SPAN]
    assert sum(one.runs for one in await remote.runs.density(SINCE, UNTIL)) == 1301
    assert await remote.runs.get("0190-a") == fakes.ENDED
    steps = tuple(step_view(one.number, one.step) for one in fakes.STEPS)
    whole = RunRecord(fakes.ENDED, tuple(fakes.HISTORY), (fakes.DEAD,), steps, (2,))
    assert await remote.runs.record("0190-a") == whole
    with pytest.raises(NotFound, match="run '0190' is not unique: 0190-bbbb, 0190-aaaa"):
        await remote.runs.get("0190")
