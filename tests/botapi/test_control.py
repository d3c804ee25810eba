"""Driving the emulator from another thread or process."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys

import aiohttp
import pytest

from tests.botapi import Control, Fault, FaultKind, FileKind, in_thread
from tests.botapi.caller import ANN
from tests.botapi.views import Seen

pytestmark = pytest.mark.real_time


def drive(control: Control) -> None:
    """Use every control from outside."""
    control.say(ANN, "hello", name="Ann", username="ann")
    control.add_group(-5, "Team", topics=[55])
    control.say(ANN, "here", chat_id=-5, thread=55)
    control.push({"message": 5})
    assert control.pending() == 3
    control.fault(Fault("getMe", FaultKind.PAGE, status=503))
    asyncio.run(_call(control, "getMe"))
    asyncio.run(_call(control, "sendMessage?chat_id=7&text=hi"))
    assert [call.fault for call in control.transcript("getMe")] == [FaultKind.PAGE]
    assert control.transcript("getMe", ok=True) == []
    assert control.wait_calls("sendMessage", 1, ok=True)[0].parameters["text"] == "hi"
    assert control.wait_texts(ANN) == control.texts(ANN) == ["hi"]
    assert control.press(ANN, 2, "yes")
    control.fault(Fault("*", FaultKind.HANG, count=100))
    control.clear_faults()
    see(control)
    control.block(ANN)
    asyncio.run(_call(control, "getUpdates?offset=999999999"))
    control.wait_confirmed()
    control.set_webhook("https://x.example")
    control.revoke()
    with pytest.raises(AssertionError, match="TimeoutError"):
        control.wait_texts(ANN, 5, timeout_s=0.1)
    with pytest.raises(AssertionError, match="no control named"):
        control._call("nonsense")


def see(control: Control) -> None:
    """What is not text crosses the wire too."""
    control.send(ANN, FileKind.DOCUMENT, content=b"\x00\xff", caption="a \ud83d", username="ann")
    seen = control.view(ANN)[-1]
    assert isinstance(seen, Seen)
    assert seen.file is not None
    assert (control.file(seen.file.file_id), seen.text) == (b"\x00\xff", "a \ud83d")
    assert control.counts()["sendMessage"] == 1
    assert control.presses()[0].waited_s is None
    assert control.deliveries() == []
    control.wait_visible(ANN, "hi")
    assert control.sightings(ANN)[0].text == "hi"
    assert [call.method for call in control.calls] == ["getMe", "sendMessage"]
    control.go_away(0.3)
    control.say(ANN, "meanwhile")
    with pytest.raises(aiohttp.ClientConnectorError):
        asyncio.run(_call(control, "getMe"))
    with pytest.raises(AssertionError, match="TimeoutError"):
        control.wait_deliveries(timeout_s=0.5)
    asyncio.run(_call(control, "getMe"))


async def _call(control: Control, call: str) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{control.url}/bot{control.token}/{call}") as answer,
    ):
        await answer.read()


def test_an_emulator_in_a_thread_is_driven_over_http() -> None:
    with in_thread() as control:
        drive(control)


def test_an_emulator_in_a_process_is_driven_over_http() -> None:
    command = [sys.executable, "-m", "tests.botapi"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            place = json.loads(process.stdout.readline())
            drive(Control(place["url"], place["token"]))
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
