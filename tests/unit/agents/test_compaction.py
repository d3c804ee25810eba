"""How much of a conversation is sent, and what of it has to go (SPEC AGENT-4)."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from goclaw_py.agents.models.compaction import (
    CHARS_PER_TOKEN,
    FULL,
    PICTURE_TOKENS,
    Context,
    Unit,
    chars,
    chunks,
    compact,
    estimate,
    relieve,
    units,
)
from goclaw_py.agents.models.history import to_entries
from goclaw_py.core.errors import AgentError, BudgetReached
from goclaw_py.core.messages import HistoryEntry, Role
from goclaw_py.core.run_events import Compacted
from tests.unit.agents.builders import Events

WINDOW = 1_000


def asks(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text)])


def answers(text: str, tokens: int = 0) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)], usage=RequestUsage(input_tokens=tokens))


def unit(size: int, tokens: int = 0) -> Unit:
    return Unit(2, (asks("a" * (size // 2)), answers("b" * (size - size // 2), tokens)))


def context(*each: Unit, window: int = WINDOW, **more: int) -> Context:
    return Context(window=window, summary="", units=list(each), **more)


def user(text: str) -> HistoryEntry:
    return HistoryEntry(Role.USER, text)


def assistant(text: str) -> HistoryEntry:
    return HistoryEntry(Role.ASSISTANT, text)


def test_a_unit_is_what_people_said_with_all_that_was_answered() -> None:
    said = {"a": assistant("a"), "u": user("u")}
    history = [said[who] for who in "auaauua"]
    assert [each.entries for each in units(history)] == [1, 3, 3]
    assert units([]) == []


@given(st.lists(st.sampled_from([user("u"), assistant("a")]), max_size=12))
def test_units_hold_every_entry_once_and_in_order(history: list[HistoryEntry]) -> None:
    found = units(history)
    assert sum(each.entries for each in found) == len(history)
    sent = [message for each in found for message in each.messages]
    assert [message.kind for message in sent] == [
        "request" if entry.role is Role.USER else "response" for entry in history
    ]


def test_what_the_server_counted_last_tells_what_all_before_takes() -> None:
    messages: list[ModelMessage] = [asks("x" * 9_000), answers("y", 50), asks("z" * 30)]
    assert estimate(messages, mark="", before=600, after=60) == 50 + (30 + 60) // CHARS_PER_TOKEN


def test_where_nothing_was_counted_all_characters_are() -> None:
    messages: list[ModelMessage] = [asks("x" * 300), answers("y" * 30)]
    assert estimate(messages, mark="", before=600, after=60) == 990 // CHARS_PER_TOKEN


def test_what_was_counted_under_another_summary_tells_nothing() -> None:
    messages: list[ModelMessage] = [asks("x" * 300), answers("y" * 30, 5_000)]
    assert estimate(messages, mark="new", before=0, after=0) == 110
    [entry, reply] = to_entries("x", "y", messages, mark="new")
    marked = [message for each in units([entry, reply]) for message in each.messages]
    assert estimate(marked, mark="new", before=0, after=0) == 5_000


def test_every_part_that_a_model_reads_counts() -> None:
    messages: list[ModelMessage] = [
        ModelRequest(
            parts=[UserPromptPart(["12345", BinaryContent(b"1", media_type="image/png")])]
        ),
        ModelResponse(parts=[TextPart("123"), ToolCallPart("go", '{"a":1}', "1")]),
        ModelRequest(parts=[ToolReturnPart("go", {"b": 22}, "1")]),
    ]
    assert chars(messages) == 5 + PICTURE_TOKENS * CHARS_PER_TOKEN + 3 + 9 + 8


def test_a_conversation_is_full_from_three_quarters_of_the_window_on() -> None:
    assert not context(unit(100, tokens=750)).is_full
    assert context(unit(100, tokens=751)).is_full
    assert not context(asked=9_000_000).is_full


def test_the_oldest_go_until_the_rest_has_room() -> None:
    crowd = context(*[unit(300) for _ in range(8)], unit(300, tokens=900))
    assert crowd.older(400) == 5
    assert crowd.older(10_000) == 2
    assert crowd.older(0) == 9


sizes = st.lists(st.integers(0, 4_000), min_size=1, max_size=12)


@given(sizes, st.integers(0, 3_000), st.integers(0, 3_000), st.integers(0, 1_500))
def test_what_is_kept_takes_no_more_than_its_room_and_fits(
    sizes: list[int], around: int, asked: int, room: int
) -> None:
    crowd = context(*map(unit, sizes), around=around, asked=asked)
    count = crowd.older(room)
    assert 1 <= count <= len(sizes)
    kept = sum(sizes[count:]) / CHARS_PER_TOKEN
    fixed = (around + asked) / CHARS_PER_TOKEN
    slack = 1 + len(sizes)
    assert kept <= room + slack
    assert count == len(sizes) or kept + fixed <= FULL * WINDOW + slack


class Summer:
    """Sums up; fails where it is told to."""

    def __init__(self, error: AgentError | None = None) -> None:
        self.asked: list[str] = []
        self.error = error

    async def __call__(self, question: str) -> str:
        self.asked.append(question)
        if self.error is not None:
            raise self.error
        return f" summary {len(self.asked)} "


async def test_a_summary_stands_for_what_went_and_for_the_one_before_it() -> None:
    crowd = context(*[unit(3_000) for _ in range(9)], window=10 * WINDOW)
    crowd.summary = "what was"
    summer, events = Summer(), Events()
    await compact(crowd, 4_000, summer, events)
    assert events == [Compacted(10, "summary 2")]
    assert "what was" in summer.asked[0]
    assert "summary 1" in summer.asked[1]
    assert len(crowd.units) == 4
    head = crowd.messages[0].parts[0]
    assert isinstance(head, UserPromptPart)
    assert "summary 2" in head.content


async def test_a_failure_leaves_out_and_is_not_a_summary(caplog: pytest.LogCaptureFixture) -> None:
    crowd = context(*[unit(300) for _ in range(9)])
    events = Events()
    with caplog.at_level(logging.WARNING):
        await compact(crowd, 400, Summer(AgentError("Sorry.", "overloaded")), events)
    assert events == []
    assert len(crowd.units) == 4
    assert crowd.left_out == 10
    assert "10 earlier messages left out" in str(crowd.messages[0])
    assert [vars(record)["error"] for record in caplog.records] == ["overloaded"]
    again = Summer()
    await compact(crowd, 100, again, events)
    assert (again.asked, crowd.left_out, events) == ([], 16, [])


async def test_a_budget_that_is_used_up_is_no_such_failure() -> None:
    crowd = context(*[unit(300) for _ in range(9)])
    with pytest.raises(BudgetReached):
        await compact(crowd, 400, Summer(BudgetReached("Enough.", "turns")), Events())
    assert crowd.left_out == 0


def test_what_is_sent_under_another_summary_has_another_mark() -> None:
    plain = context(unit(10))
    assert plain.mark == ""
    assert plain.messages == list(plain.units[0].messages)
    summed, left = context(unit(10)), context(unit(10))
    summed.sum_up(1, "it was nice")
    left.leave_out(1)
    assert len({plain.mark, summed.mark, left.mark}) == 3


@given(st.lists(st.text("ab", max_size=30), max_size=10), st.integers(5, 40))
def test_chunks_hold_everything_in_order_and_none_is_too_long(texts: list[str], most: int) -> None:
    found = list(chunks(texts, most))
    assert all(len(chunk) <= most for chunk in found)
    if all(len(text) <= most for text in texts):
        assert "".join(found).replace("\n", "") == "".join(texts)


def turn(number: int, size: int, tokens: int) -> list[ModelMessage]:
    call = ToolCallPart("go", "{}", str(number))
    usage = RequestUsage(input_tokens=tokens)
    return [
        ModelResponse(parts=[call], usage=usage),
        ModelRequest(parts=[ToolReturnPart("go", str(number) * size, str(number))]),
    ]


def results(messages: Sequence[ModelMessage]) -> list[str]:
    parts = [part for message in messages for part in message.parts]
    return [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]


def run_of(*turns: list[ModelMessage]) -> tuple[list[ModelMessage], ModelRequest]:
    """The messages so far, and the request that is about to be made."""
    messages = [asks("go"), *(message for each in turns for message in each)]
    last = messages.pop()
    assert isinstance(last, ModelRequest)
    return messages, last


def test_nothing_is_left_out_while_it_fits() -> None:
    messages, last = run_of(turn(1, 300, 100), turn(2, 300, 700))
    relieve(messages, last, WINDOW)
    assert results([*messages, last]) == ["1" * 300, "2" * 300]


def test_the_oldest_results_go_first_and_only_as_many_as_need_be() -> None:
    turns = [turn(number, 300, 100 * number) for number in range(1, 9)]
    messages, last = run_of(*turns)
    before = messages[2].parts[0]
    relieve(messages, last, WINDOW)
    found = results([*messages, last])
    note = "[result of 300 characters left out]"
    gone = found.count(note)
    assert found == [note] * gone + [str(number) * 300 for number in range(gone + 1, 9)]
    assert gone == 3
    # The library forbids to change what it holds.
    assert results([ModelRequest(parts=[before])]) == ["1" * 300]  # type: ignore[list-item]


def test_a_new_result_is_cut_only_if_nothing_else_helps() -> None:
    messages, last = run_of(turn(1, 300, 100), turn(2, 90_000, 200))
    relieve(messages, last, WINDOW)
    old, new = results([*messages, last])
    assert old == "[result of 300 characters left out]"
    assert new.startswith("2" * 1_000)
    assert new.endswith(" more characters left out]")
    assert len(new) < 1_200


def test_pairs_stay_pairs_when_results_are_left_out() -> None:
    turns = [turn(number, 300, 120 * number) for number in range(1, 9)]
    messages, last = run_of(*turns)
    ids = [p.tool_call_id for m in messages for p in m.parts if isinstance(p, ToolCallPart)]
    relieve(messages, last, WINDOW)
    after = [
        p.tool_call_id for m in [*messages, last] for p in m.parts if isinstance(p, ToolReturnPart)
    ]
    assert after == ids
