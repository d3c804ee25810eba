"""Codes with which somebody unknown asks to be let in (SPEC CHAN-5)."""

from __future__ import annotations

import random

from goclaw_py.records.people import ALPHABET, CODE_LENGTH, VALID_FOR, code_hash, make_code


def test_a_code_has_eight_characters_each_of_them_chosen_and_is_valid_for_an_hour() -> None:
    choices = iter("ABCDEFGH")
    assert make_code(lambda characters: next(choices)) == "ABCDEFGH"
    assert CODE_LENGTH == 8
    assert VALID_FOR.total_seconds() == 3600


def test_codes_have_no_characters_that_people_take_for_each_other() -> None:
    chance = random.Random(1)
    codes = {make_code(chance.choice) for _ in range(500)}
    assert len(codes) == 500
    assert set("".join(codes)) == set(ALPHABET)
    assert not set(ALPHABET) & set("IO01")


def test_a_code_is_known_in_whatever_case_and_spacing_by_a_hash_that_does_not_show_it() -> None:
    for typed in ("abcd2345", " ABCD 2345\n", "aBcD\t2345"):
        assert code_hash(typed) == code_hash("ABCD2345")
    assert code_hash("ABCD2345") != code_hash("ABCD2346")
    assert "ABCD" not in code_hash("ABCD2345").upper()
