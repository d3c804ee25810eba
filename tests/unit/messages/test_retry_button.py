"""The button below a failure lets its messages run again (SPEC CMD-5)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from goclaw_py.delivery import texts
from goclaw_py.model.chat_commands import retry_buttons
from goclaw_py.model.ids import RunId
from goclaw_py.model.messages import InboundMessage
from goclaw_py.model.run_events import ButtonsUsed
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Fail, Say, ScriptedAgent
from tests.support.harness import GatewayProcess, Ways, a_process, message, until

AT_ONCE = Ways(direct=QueuePolicy())


async def failed(gateway: GatewayProcess) -> str:
    """Ask what fails; the data of the button below the answer."""
    assert await gateway.ask("hello") == texts.FAILED
    (run,) = await gateway.store.runs()
    ((button,),) = gateway.channel.sent[-1].buttons
    assert button.text == f"🔁 Try again ({run.id[:13]})"
    return button.data


def press(data: str, chat: str = "ann") -> InboundMessage:
    return replace(message("Try again", chat=chat), press=data, reply_to="5")


async def test_the_button_below_a_failure_tries_again_once() -> None:
    agent = ScriptedAgent(Fail(ValueError("a bug")), Say("hi"))
    async with a_process(agent, AT_ONCE) as gateway:
        data = await failed(gateway)
        await gateway.gateway.accept([press(data)])
        await until(lambda: gateway.channel.texts()[-1] == "hi")
        assert agent.prompts == ["hello", "hello"]
        assert any(isinstance(one, ButtonsUsed) for one in gateway.channel.signals)
        await gateway.gateway.accept([press(data)])
        await until(lambda: gateway.channel.texts()[-1] == texts.NOT_RETRIED)
        assert agent.prompts == ["hello", "hello"]


async def test_a_press_that_names_messages_of_another_chat_tries_nothing() -> None:
    """SPEC SEC-3: what a press brings can be made up."""
    agent = ScriptedAgent(Fail(ValueError("a bug")))
    async with a_process(agent, AT_ONCE) as gateway:
        data = await failed(gateway)
        await gateway.gateway.accept([press(data, chat="bob")])
        await asyncio.sleep(30)
        assert gateway.channel.texts("bob") == [texts.NOT_RETRIED]
        assert agent.prompts == ["hello"]


def test_the_data_of_the_button_fits_or_there_is_none() -> None:
    run = RunId("019b7ca9-8c88-71d9-baa8-d70b2c79b8e7")
    assert retry_buttons(run, range(10**6, 10**6 + 20)) == ()
    ((button,),) = retry_buttons(run, [10**17])
    assert len(button.data) <= 64
