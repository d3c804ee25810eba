"""What a model may call, and what is known of a run at any moment (SPEC AGENT-1, AGENT-6)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import orjson
import pytest
from aiohttp import web

from goclaw_py.agents import AgentSpec
from goclaw_py.agents.models import ModelAgent, Provider
from goclaw_py.core.errors import AgentError, ToolFailed
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import FileKind, HistoryEntry, Role
from goclaw_py.core.outcomes import Trigger
from goclaw_py.core.run_events import ToolEnded, ToolStarted, Usage
from goclaw_py.runs.agent_loop import FilePart, RunRequest
from tests.support.mcp_server import PIXEL
from tests.support.model_agents import ModelAgents, look_up
from tests.support.model_server import INPUT_TOKENS_PER_MESSAGE, ModelServer, Seen
from tests.support.model_server_orders import Answer, answer
from tests.support.toolbox import Functions
from tests.unit.agents.builders import Coming, Events, request

pytestmark = pytest.mark.real_time

WAIT_S = 20
"""How long a test waits for something that should be there in milliseconds."""


async def fail() -> str:
    """Fail."""
    raise ToolFailed("out of paper")


def tools(*calls: tuple[str, object]) -> str:
    """The order to call some tools at once."""
    return f"tools {orjson.dumps(calls).decode()}"


def started(events: Events) -> list[ToolStarted]:
    return [event for event in events if isinstance(event, ToolStarted)]


def ended(events: Events) -> list[ToolEnded]:
    return [event for event in events if isinstance(event, ToolEnded)]


# ---------------------------------------------------------------------------- calls


async def test_the_model_is_told_of_the_tools_of_this_run_only(
    server: ModelServer, agent: ModelAgent
) -> None:
    await agent.run(request("hi", tools=Functions(look_up)), Events())
    await agent.run(request("hi"), Events())
    function = server.seen[0].body["tools"][0]["function"]
    assert function["name"] == "look_up"
    assert function["description"] == "Look a word up."
    assert function["parameters"]["properties"] == {"word": {"type": "string"}}
    assert "tools" not in server.seen[1].body


async def test_whether_a_tool_has_side_effects_is_told_with_each_call(agent: ModelAgent) -> None:
    """SPEC CRON-7."""

    async def send(text: str) -> str:
        return f"sent {text}"

    events = Events()
    box = Functions(look_up, send, harmless=("look_up",))
    order = tools(("look_up", {"word": "owl"}), ("send", {"text": "hi"}), ("nothing", {}))
    await agent.run(request(order, tools=box), events)
    effects = {event.name: event.side_effects for event in started(events)}
    assert effects == {"look_up": False, "send": True, "nothing": True}
    (unknown,) = [event for event in ended(events) if event.name == "nothing"]
    assert not unknown.ok
    assert "Unknown tool" in unknown.result
    assert started(events)[0] == ToolStarted("call_2", "look_up", '{"word":"owl"}', False)


async def test_a_tool_that_fails_is_a_result_that_the_model_reads(
    server: ModelServer, agent: ModelAgent
) -> None:
    events = Events()
    result = await agent.run(request("tool fail {}", tools=Functions(fail)), events)
    assert ended(events) == [ToolEnded("call_2", "fail", ok=False, result="out of paper")]
    assert "out of paper" in server.seen[1].texts[-1]
    assert "out of paper" in result.text


MISTAKES = {
    "a tool that is not there": ("search_web", {"q": "owl"}, "called “search_web”, a tool that"),
    "a tool without a name": ("", {}, "called a tool without a name"),
    "blanks for a name": (" ", {}, "called a tool without a name"),
    "arguments that are missing": ("look_up", {}, "its call of look_up failed (missing a required"),
    "arguments that are no JSON": ("look_up", '{"word": ', "its call of look_up failed"),
    "a tool that fails": ("fail", {}, "its call of fail failed (out of paper)"),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=list(MISTAKES))
async def test_a_run_ends_at_the_third_equal_mistake(
    server: ModelServer, agents: ModelAgents, provider: Provider, mistake: tuple[str, object, str]
) -> None:
    if provider is Provider.ANTHROPIC and not mistake[0].strip():
        return  # its library gives no such call
    name, arguments, told = mistake
    order = f"again {orjson.dumps([[name, arguments]]).decode()}"
    events, box = Events(), Functions(look_up, fail)
    with pytest.raises(AgentError) as caught:
        await agents.make(provider).run(request(order, tools=box), events)
    assert told in caught.value.friendly
    assert not caught.value.retryable
    assert (len(server.seen), len(ended(events))) == (3, 3)
    # The next message is answered.
    make = events.steps[-1].entries
    assert make is not None
    history = make("[failed]")
    result = await agents.make(provider).run(request("say yes", history=history), Events())
    assert result.text == "yes"


async def test_mistakes_that_differ_or_are_corrected_do_not_end_a_run(
    server: ModelServer, agent: ModelAgent
) -> None:
    right, wrong = ["look_up", {"word": "owl"}], ["nothing", {}]

    def obey(order: str, results: Sequence[str], messages: int) -> Answer:
        turn = len(server.seen)
        calls = [wrong, right] if turn % 2 else [[f"nothing{turn}", {}]]
        if turn > 12:
            return answer("say done", results, messages)
        return answer(f"tools {orjson.dumps(calls).decode()}", (), messages)

    server.obey = obey
    assert (await agent.run(request("go", tools=Functions(look_up)), Events())).text.endswith(
        "done"
    )
    assert len(server.seen) == 13


@pytest.mark.slow
async def test_a_run_without_a_budget_ends_after_fifty_requests(
    server: ModelServer, agent: ModelAgent
) -> None:
    async def work() -> str:
        return "more to do"

    events = Events()
    with pytest.raises(AgentError) as caught:
        await agent.run(request("many work", tools=Functions(work)), events)
    assert "50 model requests" in caught.value.friendly
    assert len(ended(events)) == 49


async def test_calls_of_one_answer_run_at_the_same_time(
    server: ModelServer, agent: ModelAgent
) -> None:
    both = asyncio.Barrier(2)

    async def meet(name: str) -> str:
        await asyncio.wait_for(both.wait(), WAIT_S)
        return f"{name} met"

    order = tools(("meet", {"name": "a"}), ("meet", {"name": "b"}))
    result = await agent.run(request(order, tools=Functions(meet)), Events())
    assert result.text == "looking\n\ntool gave: a met b met"
    assert server.seen[1].roles[-2:] == ["tool", "tool"]


async def test_cancelling_a_run_reaches_all_tools_that_work(agent: ModelAgent) -> None:
    """SPEC CMD-4."""
    working, cleaned = asyncio.Semaphore(0), []

    async def work(name: str) -> str:
        working.release()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(name)
        return "never"

    order = tools(("work", {"name": "a"}), ("work", {"name": "b"}))
    task = asyncio.create_task(agent.run(request(order, tools=Functions(work)), Events()))
    for _ in range(2):
        await asyncio.wait_for(working.acquire(), WAIT_S)
    task.cancel()
    await asyncio.wait([task], timeout=WAIT_S)
    assert task.cancelled()
    assert sorted(cleaned) == ["a", "b"]


async def test_the_model_and_the_events_have_all_of_a_result(
    server: ModelServer, agent: ModelAgent
) -> None:
    async def say_much() -> str:
        return "word " * 1_000

    events = Events()
    await agent.run(request("tool say_much {}", tools=Functions(say_much)), events)
    assert server.seen[1].texts[-1] == "word " * 1_000
    assert ended(events)[0].result == "word " * 1_000


async def test_tools_are_called_over_anthropics_protocol_too(
    server: ModelServer, agents: ModelAgents
) -> None:
    agent = agents.make(Provider.ANTHROPIC, "claude-x")
    events, box = Events(), Functions(look_up, fail)
    order = tools(("look_up", {"word": "owl"}), ("fail", {}), ("look_up", '{"word": '))
    result = await agent.run(request(order, tools=box), events)
    make = events.steps[1].entries
    assert make is not None
    await agent.run(request("say bye", history=make("[stopped]"), tools=box), Events())
    assert {event.name: event.ok for event in ended(events)} == {"look_up": False, "fail": False}
    assert box.calls == [("look_up", {"word": "owl"}), ("fail", {})]
    assert "meaning of owl" in result.text
    given = server.seen[1].body["messages"][-1]["content"]
    assert [part.get("is_error", False) for part in given] == [False, True, True]
    assert server.seen[2].roles == ["user", "assistant", "user", "assistant", "user"]


# ---------------------------------------------------------------------------- steps


async def cut(agent: ModelAgent, asked: RunRequest, *, after: asyncio.Event) -> Events:
    """Cancel a run once something has happened."""
    events = Events()
    task = asyncio.create_task(agent.run(asked, events))
    waiting = asyncio.create_task(after.wait())
    await asyncio.wait({task, waiting}, timeout=WAIT_S, return_when=asyncio.FIRST_COMPLETED)
    assert waiting.done()
    task.cancel()
    await asyncio.wait([task], timeout=WAIT_S)
    assert task.cancelled()
    return events


def told(entries: tuple[HistoryEntry, ...]) -> list[tuple[Role, str]]:
    return [(entry.role, entry.text) for entry in entries]


async def entries_of(events: Events, note: str = "[stopped]") -> tuple[HistoryEntry, ...]:
    make = events.steps[-1].entries
    assert make is not None
    return make(note)


async def test_each_answer_of_the_model_is_a_step_with_all_that_was_used_so_far(
    agent: ModelAgent,
) -> None:
    events = Events()
    order = 'tool look_up {"word":"owl"}'
    result = await agent.run(request(order, tools=Functions(look_up)), events)
    begin, first, last = events.steps
    assert (begin.usage, begin.model, begin.done) == (Usage(), "", False)
    assert (first.usage.requests, first.model, first.done) == (1, "gpt-4o", False)
    assert first.usage.input_tokens == 2 * INPUT_TOKENS_PER_MESSAGE
    assert last.done
    assert last.usage == result.usage
    assert result.usage.requests == 2
    assert result.model == last.model == "gpt-4o"


async def test_what_was_said_before_a_stop_stands_before_the_note(
    server: ModelServer, agent: ModelAgent
) -> None:
    said = asyncio.Event()

    class Listening(Events):
        def append(self, event: object) -> None:
            super().append(event)  # type: ignore[arg-type]
            if len(self) == 3:
                said.set()

    events = Listening()
    task = asyncio.create_task(agent.run(request("slow 1000 0.01"), events))
    await asyncio.wait_for(said.wait(), WAIT_S)
    while_it_runs = await entries_of(events)
    task.cancel()
    await asyncio.wait([task], timeout=WAIT_S)
    for entries in (while_it_runs, await entries_of(events)):
        assert told(entries)[0] == (Role.USER, "slow 1000 0.01")
        assert told(entries)[1][1].startswith("w1 w2 w3")
        assert told(entries)[1][1].endswith("\n\n[stopped]")
    result = await agent.run(request("say bye", history=entries), Events())
    assert result.text == "bye"
    assert server.seen[-1].roles == ["system", "user", "assistant", "user"]


async def test_results_that_were_not_sent_yet_are_kept_when_the_run_fails(
    server: ModelServer, agent: ModelAgent
) -> None:
    """Between two requests the library holds them back."""

    class Broken(Coming):
        def __call__(self) -> tuple[()]:
            raise RuntimeError("a bug")

    events = Events()
    order = 'tool look_up {"word":"owl"}'
    asked = request(order, tools=Functions(look_up), take=Broken())
    with pytest.raises(RuntimeError, match="a bug"):
        await agent.run(asked, events)
    await agent.run(request("say bye", history=await entries_of(events)), Events())
    assert server.seen[-1].texts[3] == "meaning of owl"


async def test_a_message_that_joined_is_in_the_entries_of_an_interrupted_run(
    server: ModelServer, agent: ModelAgent
) -> None:
    """SPEC QUEUE-4: it belongs to this run from then on."""
    second = asyncio.Event()

    async def watch() -> None:
        while len(server.seen) < 2:
            await asyncio.sleep(0.005)
        second.set()

    watching = asyncio.create_task(watch())
    order = 'tool look_up {"word":"owl"}'
    asked = request(order, tools=Functions(look_up), take=Coming("hang"))
    events = await cut(agent, asked, after=second)
    await watching
    assert told(await entries_of(events)) == [
        (Role.USER, order),
        (Role.ASSISTANT, "looking"),
        (Role.USER, "hang"),
        (Role.ASSISTANT, "[stopped]"),
    ]


@pytest.mark.parametrize("order", ["cut 3", "half 3", "fault 3"])
async def test_what_was_said_before_a_failure_is_kept(agent: ModelAgent, order: str) -> None:
    events = Events()
    with pytest.raises(AgentError):
        await agent.run(request(order), events)
    assert told(await entries_of(events, "[failed]")) == [
        (Role.USER, order),
        (Role.ASSISTANT, "w1 w2 w3\n\n[failed]"),
    ]


# ---------------------------------------------------------------------------- pictures


@dataclass(slots=True)
class BlindServer(ModelServer):
    """Refuses pictures."""

    async def _act(self, request: web.Request, seen: Seen) -> web.StreamResponse:
        if b"image_url" in orjson.dumps(seen.body):
            return web.json_response({"error": {"message": "no images please"}}, status=400)
        # Without arguments it would not be found: the class was made anew for its slots.
        return await super(BlindServer, self)._act(request, seen)


def with_files(text: str, *files: FilePart) -> RunRequest:
    asked = request(text)
    return replace(asked, parts=(*asked.parts, *files))


@pytest.fixture
def cat(tmp_path: Path) -> FilePart:
    file = tmp_path / "cat.png"
    file.write_bytes(PIXEL)
    return FilePart(FileKind.PHOTO, file, "cat.png")


async def test_a_photo_goes_to_the_model_as_a_picture_and_is_stored_as_words(
    server: ModelServer, agent: ModelAgent, cat: FilePart
) -> None:
    result = await agent.run(with_files("what is it?", cat), Events())
    words, picture = server.seen[0].texts[-1]
    assert words["text"] == f"what is it?\n[photo “cat.png”, saved as {cat.path}]"
    assert picture["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
    assert result.entries[0].text == "what is it?\n[photo “cat.png”]", "people need no path"
    stored = b"".join(entry.native or b"" for entry in result.entries)
    assert b"iVBOR" not in stored
    await agent.run(request("say bye", history=result.entries), Events())
    assert server.seen[1].texts[1] == words["text"]


@pytest.mark.parametrize("case", ["document", "huge", "gone", "no picture"])
async def test_what_is_no_photo_that_a_model_can_see_is_only_told_of(
    server: ModelServer, agent: ModelAgent, cat: FilePart, case: str
) -> None:
    match case:
        case "document":
            cat = replace(cat, kind=FileKind.DOCUMENT)
        case "huge":
            cat.path.write_bytes(b"x" * 5_000_001)
        case "gone":
            cat.path.unlink()
        case _:
            cat = replace(cat, mime="image/heic")
    await agent.run(with_files("what is it?", cat), Events())
    assert server.seen[0].texts[-1] == f"what is it?\n{cat.text}"


async def test_a_model_that_takes_no_pictures_is_asked_without_them(cat: FilePart) -> None:
    async with BlindServer() as server:
        spec = AgentSpec(AgentName("main"), base_url=server.base_url)
        agent = ModelAgent(spec, Provider.OPENAI, "gpt-4o", environ={})
        result = await agent.run(with_files("say a cat?", cat), Events())
        await agent.close()
    assert result.text.startswith("a cat?")
    assert len(server.seen) == 2


async def test_a_model_that_has_done_what_it_was_asked_to_need_not_say_so(
    agent: ModelAgent, server: ModelServer
) -> None:
    asked = request('mute look_up {"word": "owl"}', tools=Functions(look_up))
    result = await agent.run(asked, Events())
    assert result.text == "looking"
    assert len(server.seen) == 2


@pytest.mark.parametrize("text", ["", "\u2800", "\u3164\u2800\u200b"])
async def test_a_model_that_neither_says_nor_does_anything_has_failed(
    agent: ModelAgent, text: str
) -> None:
    """Signs that nobody can see are nothing."""
    with pytest.raises(AgentError) as failure:
        await agent.run(request(f"say {text}"), Events())
    assert failure.value.friendly == "The model gave an empty answer. Please try again."


async def test_a_model_that_says_nothing_to_a_heartbeat_has_answered(agent: ModelAgent) -> None:
    """HB-6: an empty reply is OK."""
    result = await agent.run(replace(request("say"), trigger=Trigger.HEARTBEAT), Events())
    assert result.text == ""
