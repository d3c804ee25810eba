"""What the settings let agents call (SPEC AGENT-6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from goclaw_py.agents.tools import SAFE
from goclaw_py.app.parts import build_tools
from goclaw_py.config import load
from goclaw_py.core.errors import SettingError
from goclaw_py.core.ids import AgentName
from goclaw_py.runs.toolbox import Toolbox
from tests.support.tools import SERVICE_TOOLS, ToolHost

USUAL = SAFE - SERVICE_TOOLS
"""What an agent may call without jobs and heartbeats."""

OTHERS = """
[agents.helper]
[agents.researcher]
[channels.telegram]
[channels.telegram.accounts.work]
enabled = false
"""


def tools_of(folder: Path, text: str, agent: str = "main", **env: str) -> Toolbox:
    """What an agent may call by a settings file."""
    (folder / "goclaw.toml").write_text(OTHERS + text, "utf-8")
    tool_factory = build_tools(load(env={"GOCLAW_HOME": str(folder), **env}))
    return tool_factory.toolbox(ToolHost(folder).here(AgentName(agent)))


def names(tools: Toolbox) -> set[str]:
    return {spec.name for spec in tools.specs}


def enum(tools: Toolbox, tool: str, argument: str) -> list[str]:
    (spec,) = [spec for spec in tools.specs if spec.name == tool]
    schema = json.loads(json.dumps(spec.parameters))
    found: list[str] = schema["properties"][argument]["enum"]
    return found


def test_tools_can_be_allowed_and_denied_for_each_agent(tmp_path: Path) -> None:
    text = '[agents.main.tools]\nallow = ["read_file", "list_files"]\ndeny = ["list_files"]\n'
    assert names(tools_of(tmp_path, text)) == {"read_file"}
    assert names(tools_of(tmp_path, text, "helper")) == USUAL
    assert names(tools_of(tmp_path, "[agents.main.tools]\nallow = []\n")) == set()
    # Without settings every agent has the safe ones; the environment has lists with commas.
    assert names(tools_of(tmp_path, "")) == names(tools_of(tmp_path, "", "helper")) == USUAL
    env = {"GOCLAW_AGENTS__MAIN__TOOLS__ALLOW": "read_file, write_file"}
    assert names(tools_of(tmp_path, "", **env)) == {"read_file", "write_file"}


def test_delegates_and_targets_bring_their_tools(tmp_path: Path) -> None:
    targets = ["telegram:12345", "telegram.work:-100:7", "console:me"]
    text = f'[agents.main.tools]\ndelegates = ["researcher"]\nsend_to = {targets}\n'
    tools = tools_of(tmp_path, text)
    assert names(tools) == USUAL | {"delegate", "send_message"}
    assert enum(tools, "delegate", "agent") == ["researcher"]
    assert enum(tools, "send_message", "to") == targets


def test_a_star_is_all_other_agents_unless_there_is_none(tmp_path: Path) -> None:
    for given in ('["*"]', '["helper", "*"]'):
        text = f"[agents.main.tools]\ndelegates = {given}\n"
        assert enum(tools_of(tmp_path, text), "delegate", "agent") == ["helper", "researcher"]
    (tmp_path / "goclaw.toml").write_text('[agents.main.tools]\ndelegates = ["*"]\n')
    tool_factory = build_tools(load(env={"GOCLAW_HOME": str(tmp_path)}))
    assert names(tool_factory.toolbox(ToolHost(tmp_path).here())) == USUAL


@pytest.mark.parametrize(("line", "key", "allowed"), [
    ('allow = ["reed_file"]', "allow", "there is no such tool; use one of read_file, write_file, "),
    ('deny = ["Bash"]', "deny", "there is no such tool; use one of read_file"),
    ('allow = ["delegate"]', "allow", "this tool is enabled by setting delegates"),
    ('allow = ["send_message"]', "allow", "this tool is enabled by setting send_to"),
    ('delegates = ["writer"]', "delegates",
     'there is no such agent; use one of helper, researcher, "*" for all others'),
    ('delegates = ["main"]', "delegates", "an agent cannot delegate to itself; use one of "),
    ('send_to = ["12345"]', "send_to", "must have the form channel[.account]:chat[:thread]"),
    ('send_to = ["telegram"]', "send_to", "must have the form"),
    ('send_to = ["matrix:1"]', "send_to",
     "there is no such channel or account; use one of console, web, telegram, telegram.work"),
    ('send_to = ["telegram.home:1"]', "send_to", "no such channel or account"),
    ("allow = 5", "allow", "must be a list of texts"),
    ("send_to = [5]", "send_to", "must be a list of texts"),
    ('delegates = [""]', "delegates", "must be a list of texts"),
])  # fmt: skip
def test_a_mistake_stops_the_start_and_says_where_it_is_and_what_is_allowed(
    tmp_path: Path, line: str, key: str, allowed: str
) -> None:
    with pytest.raises(SettingError) as caught:
        tools_of(tmp_path, f"[agents.main.tools]\n{line}\n")
    assert caught.value.key == f"agents.main.tools.{key}"
    assert allowed in str(caught.value)
    assert "goclaw.toml" in str(caught.value)


def test_an_unknown_key_is_answered_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="known here: allow, delegates, deny, send_to"):
        tools_of(tmp_path, '[agents.main.tools]\ndelegate = ["helper"]\n')


@pytest.mark.parametrize(("value", "allowed"), [
    ('"AGENTS.md"', "must be a list of texts"),
    ('["../AGENTS.md"]', "a path must not have .. in it"),
    ('["/etc/passwd"]', "this one is absolute"),
    ('["notes/"]', "must name a file"),
])  # fmt: skip
def test_instructions_are_files_of_the_workspace(tmp_path: Path, value: str, allowed: str) -> None:
    with pytest.raises(SettingError) as caught:
        tools_of(tmp_path, f"[agents.main]\ninstructions = {value}\n")
    assert caught.value.key == "agents.main.instructions"
    assert allowed in str(caught.value)


def test_instructions_may_be_several_files(tmp_path: Path) -> None:
    (tmp_path / "goclaw.toml").write_text(
        '[agents.main]\ninstructions = ["AGENTS.md", "about/SOUL.md"]\n[agents.b]\n'
    )
    settings = load(env={"GOCLAW_HOME": str(tmp_path)})
    assert settings.agents["main"].instructions == ("AGENTS.md", "about/SOUL.md")
    assert settings.agents["b"].instructions is None


@pytest.mark.parametrize(
    "server",
    sorted({name.partition("_")[0] for name in SAFE if "_" in name}),
)
def test_no_tool_of_a_server_has_the_name_of_a_built_in_one(tmp_path: Path, server: str) -> None:
    """It would be called where that one is denied, and with its approvals."""
    text = f'[agents.main.mcp.{server}]\ncommand = ["uvx", "server"]\n'
    with pytest.raises(SettingError, match="which is built in: rename the server"):
        tools_of(tmp_path, text)
    # With anything else in the name it cannot.
    assert names(tools_of(tmp_path, text.replace(server, f"my-{server}"))) == USUAL
