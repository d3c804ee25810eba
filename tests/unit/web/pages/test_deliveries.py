"""Selected messages are retried or dropped together (SPEC OPS-3)."""

from __future__ import annotations

import pytest

from tests.unit.web.fakes import FakeControl
from tests.unit.web.pages.conftest import FORM, ORIGIN, Browser


@pytest.mark.parametrize(
    ("body", "calls", "notice"),
    [
        ("out=4&in=8&out=5&do=retry",
         [("retry_outbox", (4, 5)), ("retry_dead_letters", (8,))], "retried"),
        ("in=8&in=9&do=drop", [("dismiss_dead_letters", (8, 9))], "dropped"),
        ("in=777&do=drop", [("dismiss_dead_letters", (777,))], "nothing"),
        ("do=retry", [], "nothing"),
    ],
)  # fmt: skip
async def test_what_is_selected_is_retried_or_dropped(
    browser: Browser, control: FakeControl, body: str, calls: list[tuple[object, ...]], notice: str
) -> None:
    """What another person was faster with is left as it is."""
    answer = await browser.post("/deliveries/selected", content=body, headers={**FORM, **ORIGIN})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/deliveries?notice={notice}")
    assert control.calls == calls


@pytest.mark.parametrize("body", ["out=4", "out=x&do=retry", "in=-1&do=drop", "out=4&do=pay"])
async def test_a_selection_that_says_nothing_is_refused(
    browser: Browser, control: FakeControl, body: str
) -> None:
    answer = await browser.post("/deliveries/selected", content=body, headers={**FORM, **ORIGIN})
    assert (answer.status_code, control.calls) == (422, [])
