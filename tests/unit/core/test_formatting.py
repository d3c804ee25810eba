"""Amounts as people read them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from goclaw_py.core.text import usd


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        ("0", "$0.00"),
        ("0.00002", "< $0.0001"),
        ("0.0001", "$0.0001"),
        ("0.0605", "$0.0605"),
        ("12.5", "$12.50"),
    ],
)
def test_an_amount_is_never_shown_as_nothing_unless_it_is(amount: str, words: str) -> None:
    assert usd(Decimal(amount)) == words


@pytest.mark.parametrize(("amount", "words"), [
    ("0", "$0.00"), ("0.004", "< $0.01"), ("0.6", "$0.60"), ("3.614", "$3.61"),
])  # fmt: skip
def test_money_has_the_given_digits(amount: str, words: str) -> None:
    assert usd(Decimal(amount), 2) == words
