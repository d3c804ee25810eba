"""A gateway ends in order while a tool of an MCP server is at work (SPEC QUEUE-11, AGENT-6)."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.botapi.control import Control
from tests.e2e.loopback_model import Model, use
from tests.e2e.test_agents import tool, use_mcp_server
from tests.support.process import Home, wait_for

ANN = 1001


@pytest.mark.parametrize("name", ["wait", "cling"])
def test_a_signal_ends_it_while_a_server_is_at_work(
    bot: Home, api: Control, model: Model, name: str
) -> None:
    """Also while the server ignores the end of its stdin and SIGTERM."""
    use(bot, model)
    use_mcp_server(bot)
    bot.env["GOCLAW_SHUTDOWN__WAIT"] = "1s"
    gateway = bot.start()
    called = bot.folder / "called"
    api.say(ANN, tool(f"calc_{name}", path=str(called)))
    wait_for(called.is_file, "the call")
    gateway.send(signal.SIGTERM)
    assert gateway.wait() == 0
    assert '"outcome":"interrupted"' in gateway.output
    assert "Traceback" not in gateway.output
    if name == "cling":
        assert not Path("/proc", called.read_text()).exists()
