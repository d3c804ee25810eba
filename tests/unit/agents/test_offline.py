from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from goclaw_py.agents.offline import MAX_COUNT, PHRASES, OfflineAgent
from goclaw_py.core.errors import AgentError
from goclaw_py.core.messages import FileKind, HistoryEntry, Role
from goclaw_py.runs.agent_loop import FilePart, TextPart
from goclaw_py.runs.toolbox import ToolSpec
from tests.unit.agents.builders import Coming, Events, request


async def reply_to(text: str, *history: HistoryEntry) -> str:
    events = Events()
    result = await OfflineAgent().run(request(text, history=history), events)
    assert events.text == result.text, "what is streamed must be the reply"
    return result.text


class Offered:
    """A toolbox that only says which tools it has."""

    guidance = ()

    def __init__(self, *names: str) -> None:
        self.specs = tuple(ToolSpec(name, "", {}) for name in names)

    async def call(self, name: str, arguments: Mapping[str, object], key: str = "") -> str:
        raise AssertionError(name)


async def test_help_lists_every_phrase_whose_tool_is_offered() -> None:
    known = {phrase.tool for phrase in PHRASES}
    for tools in (frozenset(), frozenset({"send_message", "pin_fact"}), known - {""}):
        asked = replace(request("help"), tools=Offered(*tools))
        reply = (await OfflineAgent().run(asked, Events())).text
        for phrase in PHRASES:
            line = f"- `{phrase.usage}`: {phrase.does}"
            assert (line in reply.splitlines()) == (phrase.tool in {"", *tools})


async def test_echo_says_the_text_as_it_was_written() -> None:
    assert await reply_to("echo  Hello,\n World ") == "Hello,\n World"


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ("  HELP \n", ["I understand:"]),
        ("Help", ["I understand:"]),
        ("?", ["I understand:"]),
        ("please help", ["I am the offline agent"]),
        ("echoes", ["no AI model is set up"]),
        ("", ["offline agent"]),
        ("x" * 5000, ["x" * 119 + "…”"]),
        (
            "What is the weather?",
            ["offline agent", "What is the weather?", "operator", "`openai:gpt-4o`"],
        ),
    ],
)
async def test_anything_but_a_phrase_gets_a_line_that_says_what_it_is(
    said: str, parts: list[str]
) -> None:
    """SPEC AGENT-2d: and how to set a model. A phrase stands alone, in any case."""
    reply = await reply_to(said)
    assert all(part in reply for part in parts)
    assert len(reply) < 500 or "understand" in reply


async def test_counting_streams_one_number_per_tick_of_the_loops_clock() -> None:
    loop = asyncio.get_running_loop()
    times: list[float] = []
    result = await OfflineAgent().run(request("count to 4"), lambda _: times.append(loop.time()))
    assert result.text == "1 2 3 4"
    assert times == [0, 1, 2, 3]


async def test_the_pace_can_be_set() -> None:
    loop = asyncio.get_running_loop()
    await OfflineAgent(tick_s=0.25).run(request("Count  to 5"), Events())
    assert loop.time() == 1.0


async def test_counting_can_be_cancelled_and_says_nothing_afterwards() -> None:
    """SPEC CMD-4."""
    events = Events()
    task = asyncio.create_task(OfflineAgent().run(request("count to 100"), events))
    await asyncio.sleep(2.5)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    await asyncio.sleep(10)
    assert events.text == "1 2 3"


async def test_counting_takes_a_message_in_between_two_numbers() -> None:
    """SPEC QUEUE-4: steer."""
    events = Events()
    asked = request("count to 4", take=Coming("faster,\n please"))
    result = await OfflineAgent().run(asked, events)
    assert result.text == events.text == "1 (you said: faster, please) 2 3 4"


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("count to 3", "1 (you said: count to 3) 2 3"),
        ("no, Count to 1 please", "1 (you said: no, Count to 1 please)"),
        ("count to 99999", "1 (you said: count to 99999) 2 3 4 5"),
        ("recount to 3", "1 (you said: recount to 3) 2 3 4 5"),
    ],
)
async def test_a_message_can_change_how_far_it_counts(said: str, reply: str) -> None:
    """SPEC QUEUE-4: steer."""
    asked = request("count to 5", take=Coming(said))
    assert (await OfflineAgent().run(asked, Events())).text == reply


@pytest.mark.parametrize("number", ["0", f"{MAX_COUNT + 1}", "9" * 5000])
async def test_counting_has_bounds_and_says_them(number: str) -> None:
    assert str(MAX_COUNT) in await reply_to(f"count to {number}")
    assert asyncio.get_running_loop().time() == 0


@pytest.mark.parametrize(
    ("said", "seconds"), [("slow", 30), ("slow 3", 3), ("slow 99999", 3600), ("slow 9000", 3600)]
)
async def test_slow_is_silent_for_its_time_and_never_over_an_hour(said: str, seconds: int) -> None:
    assert await reply_to(said) == f"That took {seconds} ticks of 1 s."
    assert asyncio.get_running_loop().time() == seconds


@pytest.mark.parametrize("said", ["error", "FAIL", "fail because I say so"])
async def test_told_to_fail_it_fails_with_a_friendly_sentence(said: str) -> None:
    with pytest.raises(AgentError) as caught:
        await OfflineAgent().run(request(said), Events())
    assert caught.value.friendly == "You asked me to fail, so I did."
    assert not caught.value.retryable


async def test_it_counts_the_persons_messages_of_the_history_only() -> None:
    history = (
        HistoryEntry(Role.USER, "one"),
        HistoryEntry(Role.ASSISTANT, "answer"),
        HistoryEntry(Role.USER, "two"),
    )
    assert (await reply_to("How many messages?", *history)).endswith("before this one: 2.")


async def test_warming_up_and_closing_take_no_time() -> None:
    agent = OfflineAgent()
    await agent.warm_up()
    await agent.close()
    assert asyncio.get_running_loop().time() == 0


async def test_it_tells_what_it_got_and_that_it_cannot_look_into_it(tmp_path: Path) -> None:
    path = tmp_path / "1-1-photo.jpg"
    path.write_bytes(b"x" * 12345)
    parts = (TextPart("help"), FilePart(FileKind.PHOTO, path, "photo.jpg"))
    events = Events()
    result = await OfflineAgent().run(replace(request("help"), parts=parts), events)
    assert "photo “photo.jpg”, 12,345 bytes" in result.text
    assert events.text == result.text
