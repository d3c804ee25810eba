"""Messages come in through Telegram: both libraries, long polling and webhook.

Everything here runs against a strict Bot API emulator.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from goclaw_py.model.chat_commands import JobAction, JobButton, command_of, job_buttons
from goclaw_py.model.ids import OccurrenceId, RunId
from goclaw_py.model.messages import (
    Button,
    OutboundMessage,
)
from goclaw_py.model.outcomes import Outcome
from goclaw_py.model.run_events import RunEnded, RunStarted
from tests.botapi import Fault, FaultKind
from tests.support.telegram import (
    ANN,
    CHAT,
    Line,
    eventually,
)

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]


# ---------------------------------------------------------------------------- commit, then confirm


async def test_messages_come_in_and_are_confirmed(line: Line) -> None:
    """SPEC IO-1."""
    api, inbox = line.api, line.inbox
    api.say(ANN, "before the start")
    async with line.receiving():
        await inbox.until_accepted("before the start")
        await line.ready()
        api.skip(5)
        api.say(ANN, "/stop@goclawtestbot now", username="ann")
        await inbox.until_accepted("/stop@goclawtestbot now")
        await api.wait_confirmed()
    assert [m.redelivered for m in inbox.messages] == [True, False]
    assert [m.external_id for m in inbox.messages] == ["7:1", "7:2"]
    assert line.channel.handle == "GoclawTestBot"
    assert line.channel.health.detail == ""
    await eventually(lambda: api.world.commands)
    assert {str(c["command"]) for c in api.world.commands} >= {"stop", "stopall", "status"}


async def test_a_chat_keeps_its_order(line: Line) -> None:
    """SPEC IO-2, IO-4: also with deliveries that fail, come late or come twice."""
    for kind in (FaultKind.RESET_AFTER, FaultKind.RESET, FaultKind.DELAY):
        for method in ("getUpdates", "webhook"):
            line.api.fault(Fault(method, kind, seconds=0.1))
    line.api.double(3)
    line.api.shuffle(20)
    async with line.receiving():
        for number in range(60):
            line.api.say(ANN + number % 3, f"{number:02}")
        await line.inbox.until(lambda: len(set(line.inbox.texts)) == 60)
        await line.api.wait_confirmed()
    for chat in range(ANN, ANN + 3):
        mine = [m.text for m in line.inbox.messages if m.target.chat == str(chat)]
        assert list(dict.fromkeys(mine)) == sorted(set(mine))
    ids = {(m.external_id, m.text) for m in line.inbox.messages}
    assert len(ids) == 60, "a message that comes again has the same id"


# ---------------------------------------------------------------------------- presses


async def buttoned(line: Line) -> int:
    """A message with a button, in ann's chat."""
    line.api.say(ANN, "hello")
    await line.inbox.until_accepted("hello")
    message = OutboundMessage(CHAT, "x", buttons=((Button("Go", "g"),),))
    return int(await line.channel.send(message))


async def answered_after(line: Line) -> float:
    """How long the first press waited."""
    await eventually(lambda: line.api.presses()[0].waited_s is not None)
    return line.api.presses()[0].waited_s or 0.0


async def test_a_press_comes_in_and_is_answered_within_two_seconds(line: Line) -> None:
    """SPEC CHAN-6, IO-1."""
    async with line.receiving():
        number = await buttoned(line)
        line.api.fault(Fault("answerCallbackQuery", FaultKind.RESET))
        press = line.api.press(ANN, number, "g")
        await line.inbox.until_accepted("Go")
        assert await answered_after(line) < 2
    (pressed,) = [m for m in line.inbox.messages if m.press is not None]
    assert (pressed.press, pressed.external_id) == ("g", f"press:{press}")
    assert pressed.reply_to == str(number)


async def test_the_buttons_of_a_reminder_are_shown_and_each_brings_its_command(
    polling: Line,
) -> None:
    """SPEC CRON-13."""
    occurrence = OccurrenceId("019b7ca9-8c88-71d9-baa8-d70b2c79b8e7")
    buttons = job_buttons(occurrence)
    async with polling.receiving():
        polling.api.say(ANN, "hello")
        await polling.inbox.until_accepted("hello")
        (text,) = polling.channel.parts("⏰ Drink *tea*")
        message = OutboundMessage(CHAT, text, rich=True, buttons=buttons)
        number = int(await polling.channel.send(message))
        (seen,) = [one for one in polling.api.view(ANN) if one.mine]
        assert seen.text == "⏰ Drink tea"
        assert [[b.text for b in row] for row in seen.buttons] == [
            ["✅ Done", "🔁 Again"],
            ["💤 10 min", "💤 1 hour", "💤 Tomorrow"],
        ]
        for row in seen.buttons:
            for button in row:
                polling.api.press(ANN, number, button.data)
                await polling.inbox.until_accepted(button.text)
    commands = [command_of(message, None) for message in polling.inbox.messages]
    assert {command.action for command in commands if isinstance(command, JobButton)} == set(
        JobAction
    )


async def test_a_press_is_answered_within_two_seconds_while_everything_else_hangs(
    line: Line,
) -> None:
    """SPEC CHAN-6, IO-4."""
    for method in ("sendChatAction", "setMessageReaction", "sendMessage", "getFile"):
        line.api.fault(Fault(method, FaultKind.HANG, count=100))
    async with line.receiving():
        line.api.say(ANN, "hello")
        await line.inbox.until_accepted("hello")
        for chat in range(ANN, ANN + 20):
            target = replace(CHAT, chat=str(chat))
            line.channel.signal(RunStarted(RunId(str(chat)), target))
            line.channel.signal(RunEnded(RunId("x"), target, Outcome.FAILED, ("1",)))
        await line.api.wait_calls("sendChatAction", 4)
        await line.api.wait_calls("setMessageReaction", 2)
        line.api.press(ANN, 1, "g")
        assert await answered_after(line) < 2


async def test_a_press_is_answered_after_a_restart_too(line: Line) -> None:
    """SPEC IO-2: the process died after the commit, before the answer."""
    async with line.receiving():
        number = await buttoned(line)
        await line.api.wait_confirmed()
        line.api.fault(Fault("answerCallbackQuery", FaultKind.HANG, count=9))
        line.inbox.takes_s = 0.2
        line.api.press(ANN, number, "g")
        await line.inbox.until_offered("Go")
    assert line.api.presses()[0].waited_s is None
    line.api.clear_faults()
    line.api.repeat()
    async with line.receiving():
        await answered_after(line)
    assert {m.external_id for m in line.inbox.messages if m.press} == {
        f"press:{line.api.presses()[0].id}"
    }
