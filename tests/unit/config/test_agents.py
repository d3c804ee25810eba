"""``[agents.NAME]``: models, those that stand in for them, and servers of tools.

SPEC AGENT-6, SEC-2.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from goclaw_py.config import Settings, load
from goclaw_py.config.agents import Agent
from goclaw_py.model.errors import SettingError


def settings(folder: Path, text: str, **env: str) -> Settings:
    (folder / "goclaw.toml").write_text(text, "utf-8")
    return load(env={"GOCLAW_HOME": str(folder), **env})


def refused(folder: Path, text: str, **env: str) -> str:
    with pytest.raises(SettingError) as caught:
        settings(folder, text, **env)
    return str(caught.value)


def test_what_is_not_set_is_left_to_the_provider(tmp_path: Path) -> None:
    agent = settings(tmp_path, "").agents["main"]
    assert (agent.fallback, agent.temperature, agent.thinking) == ((), None, None)
    assert agent.mcp == {}


def test_a_model_with_all_its_settings_is_read(tmp_path: Path) -> None:
    """SPEC AGENT-2a."""
    text = """
[agents.main]
model = "google:gemini-3-pro"
fallback = ["anthropic:claude-x", "openrouter:openai/gpt"]
temperature = 1
thinking = "high"
"""
    agent = settings(tmp_path, text).agents["main"]
    assert agent.fallback == ("anthropic:claude-x", "openrouter:openai/gpt")
    assert agent.temperature == 1.0
    assert agent.thinking == "high"


def test_the_environment_can_say_all_of_it(tmp_path: Path) -> None:
    got = settings(
        tmp_path,
        "",
        GOCLAW_AGENTS__MAIN__FALLBACK="openai:a, openai:b",
        GOCLAW_AGENTS__MAIN__TEMPERATURE="0.25",
        GOCLAW_AGENTS__MAIN__THINKING="off",
    ).agents["main"]
    assert (got.fallback, got.temperature, got.thinking) == (("openai:a", "openai:b"), 0.25, "off")


@pytest.mark.parametrize(("line", "expected"), [
    ("temperature = 2.1", "agents.main.temperature = 2.1: must be a number from 0 to 2"),
    ("temperature = -0.1", "must be a number from 0 to 2"),
    ("temperature = nan", "must be a number from 0 to 2"),
    ("temperature = inf", "must be a number from 0 to 2"),
    ("temperature = true", "must be a number from 0 to 2"),
    ("temperature = '1'", "must be a number from 0 to 2"),
    ("thinking = 'much'", "must be 'off', 'low', 'medium' or 'high'"),
    ("thinking = true", "must be 'off', 'low', 'medium' or 'high'"),
    ("fallback = 'openai:a'", "must be a list of texts"),
    ("fallback = ['']", "must be a list of texts"),
    ("fallback = [3]", "must be a list of texts"),
    ("headers = { 'X Team' = 'a' }", "must be the name of an HTTP header"),
    ('headers = { X-Team = "a\\nb" }', "must be ASCII text without line breaks"),
    ("headers = { X-Team = 'größe' }", "must be ASCII text without line breaks"),
    ("headers = { X-Team = 3 }", "must be ASCII text without line breaks"),
])  # fmt: skip
def test_a_wrong_value_is_an_error_that_says_what_is_allowed(
    tmp_path: Path, line: str, expected: str
) -> None:
    assert expected in refused(tmp_path, f"[agents.main]\n{line}\n")


@pytest.mark.parametrize("text", ["1e400", "0x1", "1,5", "", "nan", "1_0"])
def test_a_wrong_number_in_the_environment_is_an_error(tmp_path: Path, text: str) -> None:
    error = refused(tmp_path, "", GOCLAW_AGENTS__MAIN__TEMPERATURE=text)
    assert "must be a number from 0 to 2" in error


@given(st.floats(0, 2))
def test_every_temperature_in_range_is_kept(value: float) -> None:
    assert Agent(temperature=value).temperature == value


@given(st.floats().filter(lambda value: not 0 <= value <= 2))
def test_no_temperature_out_of_range_is_kept(value: float) -> None:
    with pytest.raises(ValidationError):
        Agent(temperature=value)


# ---------------------------------------------------------------------------- servers of tools

SERVERS = """
[agents.main.mcp.files]
command = ["files", "--stdio"]
env = { FILES_KEY = "hunter2" }
tools = ["search"]
[agents.main.mcp.tickets]
url = "https://tickets.example.com/mcp"
headers = { Authorization = "Bearer hunter2" }
"""


def test_a_server_of_tools_is_a_program_or_an_address(tmp_path: Path) -> None:
    servers = settings(tmp_path, SERVERS).agents["main"].mcp
    files, tickets = servers["files"], servers["tickets"]
    assert files.command == ("files", "--stdio")
    assert files.env["FILES_KEY"].get_secret_value() == "hunter2"
    assert (files.tools, tickets.tools) == (("search",), ())
    assert tickets.url == "https://tickets.example.com/mcp"
    assert tickets.headers["Authorization"].get_secret_value() == "Bearer hunter2"


def test_printed_servers_hold_no_secret(tmp_path: Path) -> None:
    assert "hunter2" not in repr(settings(tmp_path, SERVERS))


@pytest.mark.parametrize(("text", "expected"), [
    ("", "agents.main.mcp.x = (a table): must have either a command or a url, not both"),
    ("command = []", "must have either a command or a url, not both"),
    ("command = ['']", "must have either a command or a url, not both"),
    ("command = ['a']\nurl = 'http://b'", "must have either a command or a url, not both"),
    ("command = 'a'", "must be a list of texts"),
    ("url = 'ftp://b'", "must be an address that starts with http"),
    ("url = 'http://b'\nenv = { A = 'b' }", "env is only for a command, headers only for a url"),
    ("command = ['a']\nheaders = { A = 'b' }", "env is only for a command, headers only for a url"),
    ("command = ['a']\nenv = { 'A=B' = 'c' }", "must be the name of an environment variable"),
    ('command = ["a"]\nenv = { A = "b\\u0000" }', "must be text without NUL"),
    ("command = ['a']\ntools = 'b'", "must be a list of texts"),
    ("command = ['a']\ntool = ['b']", "did you mean tools?"),
])  # fmt: skip
def test_a_wrong_server_is_an_error_that_says_what_is_allowed(
    tmp_path: Path, text: str, expected: str
) -> None:
    assert expected in refused(tmp_path, f"[agents.main.mcp.x]\n{text}\n")


@pytest.mark.parametrize("text", [
    "command = ['a']\nenv = { A = ['hunter2'] }", 'command = ["a"]\nenv = { A = "hunter2\\u0000" }',
    "url = 'http://b'\nheaders = { A = ['hunter2'] }",
    'url = "http://b"\nheaders = { A = "hunter2\\n" }', "url = 'ftp://me:hunter2@b'",
    "env = 'hunter2'", "env = { A = 'hunter2' }", "evn = { A = 'hunter2' }", "evn = 'hunter2'",
])  # fmt: skip
def test_a_secret_of_a_server_is_never_shown(tmp_path: Path, text: str) -> None:
    assert "hunter2" not in refused(tmp_path, f"[agents.main.mcp.x]\n{text}\n")
