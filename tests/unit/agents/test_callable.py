from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from goclaw_py.agents.callable import CallableAgent
from goclaw_py.core.errors import AgentError, SettingError
from goclaw_py.core.run_events import TextDelta
from goclaw_py.core.run_steps import MOST_STORED, ValueStep
from goclaw_py.runs.agent_loop import Emit, RunRequest, TextPart
from tests.unit.agents import sample
from tests.unit.agents.builders import Coming, Events, request

MODULE = "tests.unit.agents.sample"
KEY = "agents.main.model"


def load(attribute: str, module: str = MODULE) -> CallableAgent:
    return CallableAgent.load(f"{module}:{attribute}", key=KEY)


@pytest.mark.parametrize(
    ("attribute", "reply"),
    [
        ("greet", "hello you"), ("decorated", "hello you"), ("delayed", "hello you"),
        ("whole", "whole"), ("plain", "abc"), ("Agent", "from an object"),
        ("instance", "from an object"), ("instance.run", "from an object"),
        ("caller", "from a call"),
    ],
)  # fmt: skip
async def test_every_kind_of_callable_answers(attribute: str, reply: str) -> None:
    """SPEC AGENT-2c."""
    events = Events()
    assert (await load(attribute).run(request("you"), events)).text == reply
    if attribute == "greet":
        assert events == [TextDelta("hello ")]


async def test_a_plain_function_runs_in_a_thread_and_streams_in_order() -> None:
    sample.thread_names.clear()
    events = Events()
    result = await load("plain").run(request("you"), events)
    assert sample.thread_names == ["agent"]
    assert result.text == "abc"
    assert events == [TextDelta("a"), TextDelta("b"), TextDelta("c")]


async def test_a_plain_function_may_raise_what_no_future_takes() -> None:
    def exhausted(_asked: RunRequest, _emit: Emit) -> str:
        return next(iter(()))

    with pytest.raises(RuntimeError, match="StopIteration"):
        await CallableAgent(exhausted).run(request("you"), Events())


@pytest.mark.parametrize("attribute", ["steerable", "steerable_plain"])
async def test_messages_that_came_meanwhile_can_be_taken(attribute: str) -> None:
    """SPEC QUEUE-4."""
    asked = request("you", take=Coming("no, me", "or her"))
    assert (await load(attribute).run(asked, Events())).text == "you, no, me, or her"


async def test_messages_are_taken_in_the_event_loops_thread_whoever_asks() -> None:
    """SPEC QUEUE-4: what gives them is no thread's friend."""
    threads: list[int] = []

    def take() -> tuple[TextPart, ...]:
        threads.append(threading.get_ident())
        return ()

    for attribute in ("steerable", "steerable_plain"):
        await load(attribute).run(request("you", take=take), Events())
    assert threads == [threading.get_ident()] * 4


async def test_a_stored_step_is_not_done_again() -> None:
    """SPEC AGENT-10."""
    done: list[str] = []

    async def work(request: RunRequest, emit: Emit) -> str:
        async def pay() -> dict[str, object]:
            done.append("pay")
            return {"receipt": (7, None)}

        first = await request.step("pay", pay)
        second = await request.step("pay", pay)
        return f"{first} {second}"

    agent, events = CallableAgent(work), Events()
    whole = await agent.run(request("you"), events)
    paid = ValueStep("pay", '{"receipt": [7, null]}')
    assert (events, len(done)) == ([paid, paid], 2)
    for stored in range(3):
        done.clear()
        asked = replace(request("you"), steps=(paid,) * stored)
        assert await agent.run(asked, Events()) == whole
        assert len(done) == 2 - stored


async def test_a_result_that_is_too_large_to_be_stored_is_not_asked_for_again() -> None:
    """The run goes on with it; a later one cannot."""
    made, emitted = list[str](), list[object]()

    async def load() -> str:
        made.append("load")
        return "x" * MOST_STORED

    async def answer(request: RunRequest, emit: Emit) -> str:
        return str(await request.step("load", load))

    agent, asked = CallableAgent(answer), request("you")
    assert len((await agent.run(asked, emitted.append)).text) == MOST_STORED
    assert emitted == [ValueStep("load", "")]
    with pytest.raises(AgentError, match="step load is done"):
        await agent.run(replace(asked, steps=(ValueStep("load", ""),)), emitted.append)
    assert made == ["load"]


async def test_the_result_of_a_step_must_be_json() -> None:
    async def work(request: RunRequest, emit: Emit) -> str:
        async def think() -> object:
            return object()

        return str(await request.step("think", think))

    events = Events()
    with pytest.raises(TypeError, match="not JSON serializable"):
        await CallableAgent(work).run(request("you"), events)
    assert events == []


async def test_an_error_while_taking_reaches_the_function() -> None:
    def take() -> tuple[TextPart, ...]:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await load("steerable_plain").run(request("you", take=take), Events())


async def test_context_variables_are_readable_in_the_thread() -> None:
    """SPEC CMD-4."""
    token = sample.TRACE.set("run-1")
    try:
        assert (await load("plain").run(request(""), Events())).text == "run-1"
    finally:
        sample.TRACE.reset(token)


async def test_an_error_in_the_thread_reaches_the_run() -> None:
    with pytest.raises(OSError, match="disk on fire"):
        await load("broken").run(request(""), Events())


def stuck() -> CallableAgent:
    """One that starts its thread at once: nothing is imported any more."""
    agent = load("stuck")
    agent._imports_beside = False
    return agent


@pytest.mark.parametrize("prompt", ["", "break"])
async def test_a_cancelled_run_lasts_until_its_thread_has_returned(prompt: str) -> None:
    """SPEC QUEUE-2: the next run of the session must not overlap it."""
    sample.gate.clear()
    task = asyncio.create_task(stuck().run(request(prompt), Events()))
    try:
        await asyncio.sleep(0)
        task.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not task.done()
    finally:
        sample.gate.set()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_a_second_cancellation_gives_the_thread_up() -> None:
    sample.gate.clear()
    task = asyncio.create_task(stuck().run(request("break"), Events()))
    try:
        for _ in range(2):
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
    finally:
        sample.gate.set()


def test_a_process_ends_though_a_stopped_function_never_returns() -> None:
    program = """
import asyncio, time
from goclaw_py.agents.callable import CallableAgent
from tests.unit.agents.builders import request

async def main():
    agent = CallableAgent(lambda request, emit: time.sleep(3600))
    task = asyncio.create_task(agent.run(request("x"), print))
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.sleep(0.05)
    print("stopping" if not task.done() else "done")

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout == "stopping\n"


async def test_an_answer_that_is_no_text_fails_with_a_cause_that_names_its_type() -> None:
    with pytest.raises(AgentError, match="returned int") as caught:
        await load("number").run(request(""), Events())
    assert caught.value.friendly


async def test_an_objects_own_warm_up_and_close_are_called() -> None:
    sample.instance.calls.clear()
    agent = load("instance")
    await agent.warm_up()
    await agent.close()
    assert sample.instance.calls == ["warm_up", "close"]


async def test_a_function_needs_no_warm_up_or_close() -> None:
    agent = load("greet")
    await agent.warm_up()
    await agent.close()


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        (
            "no_such_module_anywhere.loop:run",
            "; if no_such_module_anywhere is a file of yours, put its folder on PYTHONPATH$",
        ),
        (f"{MODULE}.more:run", "with a module that Python can import$"),
        (f"{MODULE}:nobody", f"{MODULE} has no nobody"),
        (f"{MODULE}:instance.nobody", f"{MODULE} has no instance.nobody"),
        (f"{MODULE}:not_callable", "not_callable .* is neither callable"),
        (MODULE, "must be python:module:callable"),
        (":run", "must be python:module:callable"),
        (f"{MODULE}:", "must be python:module:callable"),
        (".relative:run", ".relative is no module name"),
    ],
)
def test_a_wrong_path_is_a_setting_error_that_names_what_is_wrong(path: str, wrong: str) -> None:
    with pytest.raises(SettingError, match=wrong) as caught:
        CallableAgent.load(path, key=KEY)
    assert caught.value.key == KEY
    assert caught.value.value == f"python:{path}"
    assert "python:module:callable" in caught.value.allowed
