"""Filters of lists, from an address to a record (SPEC OPS-3)."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from decimal import Decimal
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from starlette.exceptions import HTTPException

from goclaw_py.core.outcomes import Outcome
from goclaw_py.web.pages.filters import selected
from tests.unit.web.pages.conftest import Browser


@dataclass(frozen=True)
class Wanted:
    outcome: Outcome | None = None
    least: int | None = None
    price: Decimal | None = None


def test_the_values_of_an_address_have_the_types_of_the_fields() -> None:
    values = {"outcome": "failed", "least": "7", "price": "", "search": "x"}
    assert selected(Wanted, values) == Wanted(Outcome.FAILED, 7)


@pytest.mark.parametrize("name", ["outcome", "least", "price"])
def test_a_text_that_a_field_does_not_accept_is_refused(name: str) -> None:
    with pytest.raises(
        HTTPException, match=f"{name.capitalize()}: “many” is not a value of this filter"
    ) as caught:
        selected(Wanted, {name: "many"})
    assert caught.value.status_code == 422


@pytest.mark.parametrize(
    ("path", "wrong", "kept"),
    [
        ("/runs", {"show": "bogus"}, {"agent": "main"}),
        ("/runs", {"range": "99", "show": "x", "before": "y"}, {"agent": "main"}),
        ("/timeline", {"span": "x"}, {"agent": "main"}),
        ("/sessions", {"agent": "no body"}, {"search": "x"}),
        ("/logs", {"level": "x"}, {"search": "y"}),
        ("/audit", {"range": "bogus"}, {"action": "job"}),
        ("/audit", {"before": "bogus"}, {"action": "job"}),
        ("/deliveries", {"show": "x", "in": "y"}, {"search": "x"}),
        ("/jobs", {"agent": "no body"}, {"name": "y"}),
        ("/heartbeats", {"show": "x"}, {"agent": "main"}),
        ("/people", {"chats": "x"}, {"search": "y"}),
        ("/", {"agent": "no body"}, {"search": "y"}),
    ],
)
async def test_a_wrong_value_leaves_the_list_and_its_other_filters(
    browser: Browser, path: str, wrong: dict[str, str], kept: dict[str, str]
) -> None:
    """Found by use: a link of another release ended at "Not possible", without its filters."""
    text = await browser.says(f"{path}?{urlencode(wrong | kept)}", 'role="alert"', status=422)
    assert 'class="filters"' in text
    (live,) = re.findall(r'(?:data-live|data-log)="([^"]*)"', text)
    assert dict(parse_qsl(urlsplit(html.unescape(live)).query)) == kept
