"""From ``[agents.NAME]`` to loops, and from ``[agents.NAME.command]`` to a program (AGENT-3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from goclaw_py.agents import CommandSpec, McpServer, OutputKind, Thinking, UsagePaths
from goclaw_py.agents.command import CommandAgent
from goclaw_py.agents.models import ModelAgent
from goclaw_py.app.parts import build_agents
from goclaw_py.config import load
from goclaw_py.core.approvals import ApprovalPolicy, OnUncertain
from goclaw_py.core.errors import SettingError
from goclaw_py.core.ids import AgentName
from goclaw_py.runs.agent_loop import AgentLoop


def agents_of(folder: Path, text: str) -> Mapping[AgentName, AgentLoop]:
    (folder / "goclaw.toml").write_text(text)
    return build_agents(load(env={"GOCLAW_HOME": str(folder)}))


TEXT = """
[agents.main]
model = "openrouter:openai/gpt"
fallback = ["anthropic:claude-x"]
temperature = 0.5
thinking = "low"
context_window = 9000
headers = { X-Team = "blue" }
on_uncertain = "ask_user"
approval = { ask = ["pay"], deny = ["rm"], allow = ["look"], timeout = "1h", approvers = "members" }
[agents.main.mcp.files]
command = ["files"]
env = { KEY = "hunter2" }
tools = ["search"]
trusted = true
[agents.main.mcp.tickets]
url = "https://tickets.example.com/mcp"
headers = { Authorization = "hunter2" }
"""


def test_what_is_set_reaches_the_loop(tmp_path: Path) -> None:
    agent = agents_of(tmp_path, TEXT)[AgentName("main")]
    assert isinstance(agent, ModelAgent)
    spec = agent._spec
    assert spec.fallback == ("anthropic:claude-x",)
    assert (spec.temperature, spec.thinking) == (0.5, Thinking.LOW)
    assert spec.context_window == 9000
    assert spec.headers == {"X-Team": "blue"}
    asked = ApprovalPolicy(("pay",), ("rm",), ("look",), timeout_s=3600, members=True)
    assert spec.approval == replace(asked, on_uncertain=OnUncertain.ASK_USER)
    headers = {"Authorization": "hunter2"}
    assert spec.mcp == {
        "files": McpServer(("files",), env={"KEY": "hunter2"}, tools=("search",), trusted=True),
        "tickets": McpServer(url="https://tickets.example.com/mcp", headers=headers),
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
    with pytest.raises(SettingError) as caught:
        agents_of(tmp_path, f"[agents.main]\n{text}\n")
    assert caught.value.key == key
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(("settings", "key"), [
    ('[heartbeat]\nmodel = "openai:gpt-4o-mini"\n', "heartbeat.model"),
    ('[agents.main]\nmodel = "openai:gpt-4o"\n[agents.ann.heartbeat]\nmodel = "openai:x"\n',
     "agents.ann.heartbeat.model"),
    ('[agents.main]\nmodel = "openai:gpt-4o"\n[heartbeat]\nmodel = "nobody:x"\n',
     "heartbeat.model"),
    ('[agents.main]\nmodel = "openai:gpt-4o"\n[agents.main.heartbeat]\nmodel = "foo"\n',
     "agents.main.heartbeat.model"),
])  # fmt: skip
def test_a_model_for_heartbeat_runs_that_nobody_could_ask_is_refused(
    tmp_path: Path, settings: str, key: str
) -> None:
    with pytest.raises(SettingError) as refused:
        agents_of(tmp_path, settings)
    assert refused.value.key == key
    assert "openai:" in refused.value.allowed


def test_a_model_for_all_heartbeat_runs_leaves_programs_alone(tmp_path: Path) -> None:
    text = '[agents.main]\nmodel = "openai:a"\n[agents.ann]\n[heartbeat]\nmodel = "gpt-4o-mini"\n'
    assert len(agents_of(tmp_path, text)) == 2


MAIN = AgentName("main")
GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "agents.md"


def built(folder: Path, text: str, **env: str) -> CommandSpec:
    """The program of the main agent."""
    (folder / "goclaw.toml").write_text(f'[agents.main]\nmodel = "command"\n{text}')
    agent = build_agents(load(env={"GOCLAW_HOME": str(folder), **env}))[MAIN]
    assert isinstance(agent, CommandAgent)
    return agent._spec


def refused(folder: Path, text: str, **env: str) -> str:
    with pytest.raises(SettingError) as caught:
        built(folder, text, **env)
    return str(caught.value)


def test_all_that_is_set_reaches_the_program(tmp_path: Path) -> None:
    """SPEC AGENT-2b."""
    text = """
[agents.main.command]
run = ["agent", "--system", "{system}"]
first = ["--new"]
later = ["--resume", "{session}"]
resume_args = ["--go-on", "{session}"]
on_interrupted = "end"
output = "jsonl"
text = ["type=assistant text"]
join = "\\n"
result = "result"
session = "id"
env = ["AGENT_KEY"]
timeout = "2m"

[agents.main.command.usage]
input = ["usage.in", "usage.cached"]
output = "usage.out"
cost = "usd"
turns = "turns"
"""
    assert built(tmp_path, text) == CommandSpec(
        run=("agent", "--system", "{system}"),
        first=("--new",),
        later=("--resume", "{session}"),
        resume=("--go-on", "{session}"),
        ends_interrupted=True,
        output=OutputKind.JSONL,
        text=("type=assistant text",),
        join="\n",
        result="result",
        session="id",
        usage=UsagePaths(("usage.in", "usage.cached"), ("usage.out",), ("usd",), ("turns",)),
        env=("AGENT_KEY",),
        timeout_s=120.0,
    )


def test_a_path_of_the_usage_may_come_from_the_environment(tmp_path: Path) -> None:
    text = 'command = { run = ["agent"], output = "jsonl", result = "r" }'
    name = "GOCLAW_AGENTS__MAIN__COMMAND__USAGE__COST"
    assert built(tmp_path, text, **{name: "usd"}).usage == UsagePaths(cost=("usd",))


@pytest.mark.parametrize(("usage", "allowed"), [
    ("{ input = 7 }", "must be a list of texts"),
    ('{ cost = ["a", 1] }', "must be a list of texts"),
    ('{ tokens = "a" }', "unknown key; known here: cost, input, output, turns"),
    ('"usage.in"', "must be a table"),
])  # fmt: skip
def test_a_usage_that_cannot_be_read_is_refused(tmp_path: Path, usage: str, allowed: str) -> None:
    text = f'command = {{ run = ["agent"], output = "jsonl", result = "r", usage = {usage} }}'
    error = refused(tmp_path, text)
    assert "agents.main.command.usage" in error
    assert allowed in error


def test_usage_in_plain_text_would_never_be_found(tmp_path: Path) -> None:
    error = refused(tmp_path, 'command = { run = ["agent"], usage = { cost = "usd" } }')
    assert 'text, result, session and usage need "jsonl"' in error


@pytest.mark.parametrize(("settings", "allowed"), [
    ('resume_args = ["--resume"]', "needs {session}"),
    ('resume_args = ["{session}"]', "needs session, or {session} in run or first"),
    ('on_interrupted = "resume"', "retry"),
])  # fmt: skip
def test_a_program_can_be_resumed_only_if_its_conversation_is_known(
    tmp_path: Path, settings: str, allowed: str
) -> None:
    error = refused(tmp_path, f'command = {{ run = ["agent"], {settings} }}')
    assert "agents.main.command." in error
    assert allowed in error


def test_all_settings_of_the_guide_are_accepted(tmp_path: Path) -> None:
    texts = re.findall(r"```toml\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    assert len(texts) == 4
    for text in texts:
        whole = text if "[agents.main]" in text else f'[agents.main]\nmodel = "command"\n{text}'
        (tmp_path / "goclaw.toml").write_text(whole)
        agent = build_agents(load(env={"GOCLAW_HOME": str(tmp_path)}))[MAIN]
        assert isinstance(agent, CommandAgent)
