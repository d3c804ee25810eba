"""Codes with which somebody unknown asks to be let in."""

from __future__ import annotations

import random

import pytest

from goclaw_py.model.pairing_codes import ALPHABET, CODE_LENGTH, VALID_FOR, code_hash, make_code


def test_a_code_has_eight_characters_each_of_them_chosen() -> None:
    """SPEC CHAN-5."""
    choices = iter("ABCDEFGH")
    assert make_code(lambda characters: next(choices)) == "ABCDEFGH"
    assert CODE_LENGTH == 8


def test_codes_have_no_characters_that_people_take_for_each_other() -> None:
    """SPEC CHAN-5."""
    chance = random.Random(1)
    codes = {make_code(chance.choice) for _ in range(500)}
    assert len(codes) == 500
    assert set("".join(codes)) == set(ALPHABET)
    assert not set(ALPHABET) & set("IO01")


@pytest.mark.parametrize("typed", ["abcd2345", " ABCD 2345\n", "aBcD\t2345"])
def test_a_code_is_known_in_whatever_case_and_spacing_it_is_typed(typed: str) -> None:
    """SPEC CHAN-5."""
    assert code_hash(typed) == code_hash("ABCD2345")


def test_another_code_has_another_hash_which_does_not_show_it() -> None:
    """SPEC CHAN-5."""
    assert code_hash("ABCD2345") != code_hash("ABCD2346")
    assert "ABCD" not in code_hash("ABCD2345").upper()


def test_a_code_is_valid_for_an_hour() -> None:
    """SPEC CHAN-5."""
    assert VALID_FOR.total_seconds() == 3600
