"""What models read of MCP servers (SPEC AGENT-6)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.agents.models.mcp_texts import MOST_FAILURE, failure_of, name_of, text_of

SECRET = "mcp-secret-ABCDEFGHIJ"


@given(st.lists(st.tuples(st.text(max_size=100), st.text(max_size=100)), max_size=20))
def test_every_name_is_one_that_providers_take_and_not_taken(tools: list[tuple[str, str]]) -> None:
    taken: set[str] = set()
    for server, tool in [*tools, *tools]:
        name = name_of(server, tool, taken)
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)
        assert name not in taken
        taken.add(name)


def test_a_long_name_of_a_server_leaves_the_name_of_the_tool_whole() -> None:
    assert name_of("s" * 64, "find_customer", ()) == f"{'s' * 50}_find_customer"
    assert name_of("s" * 64, "t" * 64, ()) == f"{'s' * 20}_{'t' * 43}"


def test_a_name_with_a_large_number_is_not_too_long() -> None:
    taken: set[str] = set()
    for _ in range(1_001):
        taken.add(name_of("s", "t" * 100, taken))
    assert len(taken) == 1_001
    assert max(map(len, taken)) == 64


@given(st.integers(0, MOST_FAILURE + 100))
def test_no_part_of_a_secret_is_told_wherever_the_cut_is(before: int) -> None:
    told = failure_of(f"{' ' * before}{SECRET} is wrong", [SECRET])
    assert SECRET[:3] not in told
    assert len(told) <= MOST_FAILURE


@pytest.mark.parametrize(("result", "text"), [
    ({"wei": 2**70}, '{"wei":1180591620717411303424}'),
    ([1, -(2**80)], "[1,-1208925819614629174706176]"),
    (2**64, "18446744073709551616"),
    ({"a": "é \ud83d"}, '{"a":"é \ufffd"}'),
    ([2**70, "\0"], '[1180591620717411303424,"\\u0000"]'),
])  # fmt: skip
def test_a_result_of_any_numbers_and_characters_is_text(result: object, text: str) -> None:
    assert text_of(result) == text
