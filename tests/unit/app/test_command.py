"""From ``[agents.NAME.command]`` to a program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from goclaw_py.agents import CommandSpec, OutputKind, UsagePaths
from goclaw_py.agents.command import CommandAgent
from goclaw_py.app.parts import build_agents
from goclaw_py.config import load
from goclaw_py.model.errors import SettingError
from goclaw_py.model.ids import AgentName

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


def test_all_settings_of_the_guide_are_accepted(tmp_path: Path) -> None:
    texts = re.findall(r"```toml\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    assert len(texts) == 4
    for text in texts:
        whole = text if "[agents.main]" in text else f'[agents.main]\nmodel = "command"\n{text}'
        (tmp_path / "goclaw.toml").write_text(whole)
        agent = build_agents(load(env={"GOCLAW_HOME": str(tmp_path)}))[MAIN]
        assert isinstance(agent, CommandAgent)
