"""Filters of lists, from an address to a record (SPEC OPS-3)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import pytest
from starlette.exceptions import HTTPException

from goclaw_py.core.outcomes import Outcome
from goclaw_py.web.pages.filters import selected


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
