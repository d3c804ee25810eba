"""Entries of runs that were cut anywhere: valid for any model, and nothing said is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from goclaw_py.agents.models.history import (
    closed,
    interrupted_entries,
    mark_of,
    mend,
    to_entries,
    to_messages,
)
from goclaw_py.core.messages import Role

NOTE = "[stopped]"
PROMPT = "the prompt"

ids = st.sampled_from(["1", "2", "3"])
words = st.text("abc ", max_size=4)
calls: st.SearchStrategy[ToolCallPart] = st.builds(
    ToolCallPart, st.just("look_up"), st.sampled_from(["{}", '{"a": "b', "[]", ""]), ids
)
results: st.SearchStrategy[ToolReturnPart] = st.builds(
    ToolReturnPart, st.just("look_up"), words, ids
)
said = st.builds(UserPromptPart, words)
responses = st.builds(
    ModelResponse,
    st.lists(st.one_of(st.builds(TextPart, words), st.builds(ThinkingPart, words), calls)),
    state=st.sampled_from(["complete", "complete", "incomplete", "interrupted"]),
)
requests = st.builds(
    ModelRequest,
    st.lists(st.one_of(results, results, said)),
    state=st.sampled_from(["complete", "interrupted"]),
)
cut_runs = st.lists(st.one_of(responses, requests), max_size=8).map(
    lambda messages: [ModelRequest(parts=[UserPromptPart(PROMPT)]), *messages]
)


def assert_valid(messages: Sequence[ModelMessage]) -> None:
    """Each call has its one result in the message after it, and no result stands alone."""
    for place, message in enumerate(messages):
        assert message.parts
        following = messages[place + 1] if place + 1 < len(messages) else None
        if isinstance(message, ModelResponse):
            assert message.state == "complete"
            wanted = sorted(part.tool_call_id for part in message.tool_calls)
            assert wanted == (sorted(results_of(following)) if wanted else [])
        elif place and isinstance(messages[place - 1], ModelRequest):
            assert results_of(message) == []


def results_of(message: ModelMessage | None) -> list[str]:
    if not isinstance(message, ModelRequest):
        return []
    return [part.tool_call_id for part in message.parts if isinstance(part, ToolReturnPart)]


def texts(messages: Sequence[ModelMessage]) -> list[str]:
    parts = [part for message in messages for part in message.parts]
    return [str(p.content) for p in parts if isinstance(p, TextPart | UserPromptPart)]


@given(cut_runs)
def test_a_run_that_was_interrupted_anywhere_leaves_messages_that_any_model_accepts(
    messages: list[ModelMessage],
) -> None:
    read = to_messages(interrupted_entries(PROMPT, messages, NOTE))
    assert_valid(read)
    assert isinstance(read[-1], ModelResponse)
    last = read[-1].parts[-1]
    assert isinstance(last, TextPart)
    assert last.content == NOTE
    assert read[0].parts[0] == messages[0].parts[0]


@given(cut_runs)
def test_nothing_that_was_said_is_lost_when_a_run_is_interrupted(
    messages: list[ModelMessage],
) -> None:
    read = to_messages(interrupted_entries(PROMPT, messages, NOTE))
    before = [text for text in texts(messages) if text.strip()]
    assert [text for text in texts(read) if text.strip()] == [*before, NOTE]


@given(cut_runs)
def test_entries_begin_with_the_prompt_and_end_with_the_note(messages: list[ModelMessage]) -> None:
    entries = interrupted_entries(PROMPT, messages, NOTE)
    assert (entries[0].role, entries[0].text) == (Role.USER, PROMPT)
    assert entries[-1].role is Role.ASSISTANT
    assert entries[-1].text.endswith(NOTE)
    assert all(entry.native is not None for entry in entries)


@given(cut_runs)
def test_what_is_valid_is_not_changed(messages: list[ModelMessage]) -> None:
    once = closed(messages)
    assert_valid(once)
    assert closed(once) == once


def test_a_run_that_never_asked_leaves_its_prompt_and_the_note() -> None:
    entries = interrupted_entries(PROMPT, [], NOTE)
    assert [(entry.role, entry.text) for entry in entries] == [
        (Role.USER, PROMPT),
        (Role.ASSISTANT, NOTE),
    ]


def test_of_an_answer_that_was_cut_only_the_text_is_kept() -> None:
    messages: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(PROMPT)]),
        ModelResponse(
            parts=[ThinkingPart("hm"), TextPart("I wi"), ToolCallPart("look_up", '{"wor', "1")],
            state="interrupted",
        ),
    ]
    read = to_messages(interrupted_entries(PROMPT, messages, NOTE))
    assert texts(read) == [PROMPT, "I wi", NOTE]
    assert len(read) == 2
    assert len(read[1].parts) == 2


def test_a_call_that_never_came_back_gets_a_result_that_says_so() -> None:
    messages: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(PROMPT)]),
        ModelResponse(parts=[ToolCallPart("look_up", "{}", "1"), ToolCallPart("go", "{}", "2")]),
        ModelRequest(parts=[ToolReturnPart("go", "went", "2")], state="interrupted"),
    ]
    read = to_messages(interrupted_entries(PROMPT, messages, NOTE))
    by_call = {p.tool_call_id: p for p in read[2].parts if isinstance(p, ToolReturnPart)}
    assert (by_call["2"].content, by_call["2"].outcome) == ("went", "success")
    assert by_call["1"].outcome == "interrupted"
    assert "interrupted" in str(by_call["1"].content)


def test_pictures_and_instructions_are_not_stored() -> None:
    picture = BinaryContent(b"\x89PNG" * 100, media_type="image/png")
    messages: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(["look: [photo]", picture])], instructions="Be terse."),
        ModelResponse(parts=[TextPart("a cat")]),
    ]
    [asked, _] = to_entries("look: [photo]", "a cat", messages)
    [read] = to_messages([asked])
    assert read.parts[0].content == "look: [photo]"  # type: ignore[union-attr]
    assert b"iVBO" not in (asked.native or b"")
    assert b"terse" not in (asked.native or b"")
    # What the library holds is not touched.
    assert isinstance(messages[0], ModelRequest)
    assert messages[0].instructions == "Be terse."


def test_the_mark_of_a_summary_is_kept_with_each_request() -> None:
    messages: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(PROMPT)], metadata={"other": 1}),
        ModelResponse(parts=[TextPart("done")]),
    ]
    marked = to_messages(to_entries(PROMPT, "done", messages, mark="abc"))
    assert isinstance(marked[0], ModelRequest)
    assert mark_of(marked[0]) == "abc"
    assert marked[0].metadata == {"other": 1, "goclaw_summary": "abc"}
    assert mark_of(replace(marked[0], metadata={"goclaw_summary": 3})) == ""
    plain = to_entries(PROMPT, "done", messages)
    dumped = ModelMessagesTypeAdapter.dump_json(to_messages(plain))
    assert dumped == ModelMessagesTypeAdapter.dump_json(messages)


def test_a_response_can_be_stored_whatever_texts_its_server_put_into_it() -> None:
    """SPEC AGENT-1: not only the parts; ids and names of a server are texts of it, too."""
    odd = "\ud83d\0"
    texts = {
        field.name: odd
        for field in fields(ModelResponse)
        if field.type == "str | None" and field.name != "kind"
    }
    assert "provider_name" in texts
    response = ModelResponse(
        parts=[TextPart(odd, id=odd), ToolCallPart(odd, "{}", odd)],
        provider_response_id=odd,
        provider_details={odd: [odd]},
        **texts,  # type: ignore[arg-type]
    )
    mend(response)
    stored = ModelMessagesTypeAdapter.dump_json([response])
    assert b"\\u0000" not in stored
    assert ModelMessagesTypeAdapter.validate_json(stored) == [response]
