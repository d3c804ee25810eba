"""Warnings are sentences for people, and their commands can be copied (SPEC OPS-4)."""

from __future__ import annotations

import shlex

import pytest

from goclaw_py.scheduler.operator_warnings import (
    OperatorWarning,
    names_text,
    refusals_text,
    shell_command,
    undelivered_text,
)

HOSTILE = ("a b", "it's", '"; rm -rf ~ #', "\u05e9\u05dc\u202e", "$(id)", "`id`", "-x", "a\nb", "")


def test_a_warning_is_one_sentence() -> None:
    warning = OperatorWarning("gateway.lane_full", "Lane main", "is full (1 of 1)")
    assert str(warning) == "Lane main is full (1 of 1)"


@pytest.mark.parametrize("word", HOSTILE)
def test_a_shell_reads_a_command_as_it_was_meant(word: str) -> None:
    assert shlex.split(shell_command("queue", word)) == ["goclaw", "queue", word]


@pytest.mark.parametrize(("names", "words"), [
    (["Ann"], "Ann"),
    (["Ann", "Bob"], "Ann and Bob"),
    (["Ann", "Bob", "Eve"], "Ann, Bob and Eve"),
    (["Ann", "Bob", "Eve", "Al"], "Ann, Bob, Eve and 1 other"),
    (["Ann", "Bob", "Eve", "Al", "Jo"], "Ann, Bob, Eve and 2 others"),
])  # fmt: skip
def test_many_people_are_counted(names: list[str], words: str) -> None:
    assert names_text(names) == words


def test_the_same_refusal_is_said_once_for_all() -> None:
    blocked = "Forbidden: bot was blocked by the user"
    pairs = [("Ann", blocked), ("Bob", blocked), ("Ann", blocked), ("Eve", "odd {0} {has}")]
    assert refusals_text(pairs) == "Ann and Bob had blocked the bot; Eve: odd {0} {has}"


def test_a_result_without_a_chat_has_only_its_reason() -> None:
    assert refusals_text([("", "nobody has spoken"), ("", "nobody has spoken")]) == (
        "nobody has spoken"
    )


@pytest.mark.parametrize(("place", "error", "words"), [
    ("Bob", "Forbidden: bot was blocked by the user",
     "could not be delivered: Bob had blocked the bot"),
    ("Crew", "Forbidden: bot was kicked from the group",
     "could not be delivered: Crew had removed the bot"),
    ("Bob", "odd", "could not be delivered to Bob (odd)"),
    ("", "bot was blocked by the user", "could not be delivered (bot was blocked by the user)"),
])  # fmt: skip
def test_why_a_message_was_not_delivered_is_said_in_words(
    place: str, error: str, words: str
) -> None:
    assert undelivered_text(place, error) == words
    assert "{" not in refusals_text([(place, error)])


def test_a_name_with_braces_is_text() -> None:
    assert refusals_text([("{has}", "user is deactivated")]) == "{has} had deleted the account"
