"""From ``[agents.NAME]`` to loops (SPEC AGENT-3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from goclaw_py.agents import McpServer, Thinking
from goclaw_py.agents.models import ModelAgent
from goclaw_py.app.parts import build_agents
from goclaw_py.config import load
from goclaw_py.model.errors import SettingError
from goclaw_py.model.ids import AgentName

TEXT = """
[agents.main]
model = "openrouter:openai/gpt"
fallback = ["anthropic:claude-x"]
temperature = 0.5
thinking = "low"
context_window = 9000
headers = { X-Team = "blue" }
[agents.main.mcp.files]
command = ["files"]
env = { KEY = "hunter2" }
tools = ["search"]
[agents.main.mcp.tickets]
url = "https://tickets.example.com/mcp"
headers = { Authorization = "hunter2" }
"""


def test_what_is_set_reaches_the_loop(tmp_path: Path) -> None:
    (tmp_path / "goclaw.toml").write_text(TEXT)
    agents = build_agents(load(env={"GOCLAW_HOME": str(tmp_path)}))
    agent = agents[AgentName("main")]
    assert isinstance(agent, ModelAgent)
    spec = agent._spec
    assert spec.fallback == ("anthropic:claude-x",)
    assert (spec.temperature, spec.thinking) == (0.5, Thinking.LOW)
    assert spec.context_window == 9000
    assert spec.headers == {"X-Team": "blue"}
    assert spec.mcp == {
        "files": McpServer(command=("files",), env={"KEY": "hunter2"}, tools=("search",)),
        "tickets": McpServer(
            url="https://tickets.example.com/mcp", headers={"Authorization": "hunter2"}
        ),
    }
    assert "hunter2" not in repr(spec)


@pytest.mark.parametrize(("text", "key"), [
    ("model = 'nobody:x'", "agents.main.model"),
    ("model = 'openai:x'\nfallback = ['nobody:x']", "agents.main.fallback"),
    ("fallback = ['openai:x']", "agents.main.fallback"),
    ("model = 'xai:grok'\nbase_url = 'http://x'", "agents.main.base_url"),
    ("model = 'cohere:c'\nheaders = { A = 'hunter2' }", "agents.main.headers"),
])  # fmt: skip
def test_what_no_loop_can_do_stops_the_start(tmp_path: Path, text: str, key: str) -> None:
    (tmp_path / "goclaw.toml").write_text(f"[agents.main]\n{text}\n")
    settings = load(env={"GOCLAW_HOME": str(tmp_path)})
    with pytest.raises(SettingError) as caught:
        build_agents(settings)
    assert caught.value.key == key
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(("settings", "key"), [
    ('[heartbeat]\nmodel = "openai:gpt-4o-mini"\n', "heartbeat.model"),
    ('[agents.main]\nmodel = "openai:gpt-4o"\n[agents.ann.heartbeat]\nmodel = "openai:x"\n',
     "agents.ann.heartbeat.model"),
    ('[agents.main]\nmodel = "openai:gpt-4o"\n[heartbeat]\nmodel = "nobody:x"\n',
     "heartbeat.model"),
])  # fmt: skip
def test_a_model_for_heartbeat_runs_that_nobody_could_ask_is_refused(
    tmp_path: Path, settings: str, key: str
) -> None:
    (tmp_path / "goclaw.toml").write_text(settings)
    with pytest.raises(SettingError) as refused:
        build_agents(load(env={"GOCLAW_HOME": str(tmp_path)}))
    assert refused.value.key == key
    assert "openai:gpt-4o" in refused.value.allowed


def test_a_model_for_all_heartbeat_runs_leaves_programs_alone(tmp_path: Path) -> None:
    text = '[agents.main]\nmodel = "openai:a"\n[agents.ann]\n[heartbeat]\nmodel = "b"\n'
    (tmp_path / "goclaw.toml").write_text(text)
    assert len(build_agents(load(env={"GOCLAW_HOME": str(tmp_path)}))) == 2
