"""The pages of runs (SPEC OPS-3)."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from urllib.parse import urlencode

import pytest

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.ids import SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import RunFilter, RunQuery
from tests.support.run_filters import EVERY_FILTER, values
from tests.unit.web import fakes
from tests.unit.web.fakes import FakeControl
from tests.unit.web.pages.conftest import Browser

DAY = fakes.NOW.replace(microsecond=0) - timedelta(days=1)
HOUR = DAY + timedelta(hours=23)
ONE_PAGE = RunQuery(limit=51)
FIELDS = {one.name for one in fields(RunFilter)}
NOT_ON_THE_TIMELINE = {"sender"}
BY_TAB = {"show" if one == "outcome" else one: text for one, text in values(EVERY_FILTER).items()}


def picked(only: RunFilter) -> set[str]:
    """The fields by which a filter selects."""
    return {name for name in FIELDS if getattr(only, name) is not None}


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("", replace(ONE_PAGE, since=DAY)),
        ("show=failed&range=all", replace(ONE_PAGE, only=RunFilter(outcome=Outcome.FAILED))),
        ("show=running&range=all", replace(ONE_PAGE, active=True)),
        (urlencode(BY_TAB | {"range": "1h"}), replace(ONE_PAGE, only=EVERY_FILTER, since=HOUR)),
        ("session=agent:main:x&range=all", replace(ONE_PAGE, session=SessionKey("agent:main:x"))),
        ("show=<b>&trigger=x&range=9y&other=1", replace(ONE_PAGE, since=DAY)),
    ],
)  # fmt: skip
async def test_the_address_selects_runs(
    browser: Browser, control: FakeControl, query: str, wanted: RunQuery
) -> None:
    assert (await browser.get(f"/runs?{query}")).status_code == 200
    asked = {call[0]: call[1] for call in control.calls if call[0] in ("runs", "run_counts")}
    assert asked == {"runs": wanted, "run_counts": wanted}


async def test_the_address_selects_runs_of_the_timeline(
    browser: Browser, control: FakeControl
) -> None:
    query = urlencode(values(EVERY_FILTER))
    assert (await browser.get(f"/timeline?{query}")).status_code == 200
    (*_, only) = next(call for call in control.calls if call[0] == "runs_between")
    assert only == replace(EVERY_FILTER, sender=None)
    assert picked(only) == FIELDS - NOT_ON_THE_TIMELINE


async def test_the_page_has_counts_names_and_filters_that_stay(
    browser: Browser, control: FakeControl
) -> None:
    control.named = KnownNames({Target("telegram", "default", "7"): "Ann <i>"})
    text = (await browser.get("/runs?range=7d&sender=telegram/default/7&show=failed")).text
    assert "all <small>43</small>" in text
    assert "failed <small>2</small>" in text
    assert "Ann &lt;i&gt;" in text
    assert "show=completed" in text
    assert "range=7d&amp;sender=telegram%2Fdefault%2F7&amp;show=completed" in text
