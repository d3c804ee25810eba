"""``[agents.NAME]``: models, those that stand in for them, and servers of tools.

SPEC AGENT-6, SEC-2.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from goclaw_py.config.agents import Agent
from tests.unit.config.loading import refused, settings


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
    given = {"FALLBACK": "openai:a, openai:b", "TEMPERATURE": "0.25", "THINKING": "off"}
    env = {f"GOCLAW_AGENTS__MAIN__{key}": value for key, value in given.items()}
    got = settings(tmp_path, "", **env).agents["main"]
    assert (got.fallback, got.temperature, got.thinking) == (("openai:a", "openai:b"), 0.25, "off")


TEMPERATURE = "must be a number from 0 to 2"
ASCII = "must be ASCII text without line breaks"


@pytest.mark.parametrize(("expected", "lines"), [
    (f"agents.main.temperature = 2.1: {TEMPERATURE}", ["temperature = 2.1"]),
    (TEMPERATURE, [f"temperature = {value}" for value in ("-0.1", "nan", "inf", "true", "'1'")]),
    ("must be 'off', 'low', 'medium' or 'high'", ["thinking = 'much'", "thinking = true"]),
    ("must be a list of texts", ["fallback = 'openai:a'", "fallback = ['']", "fallback = [3]"]),
    ("must be the name of an HTTP header", ["headers = { 'X Team' = 'a' }"]),
    (ASCII, ['headers = { X-Team = "a\\nb" }', "headers = { X-Team = 'größe' }"]),
    (ASCII, ["headers = { X-Team = 3 }"]),
])  # fmt: skip
def test_a_wrong_value_is_an_error_that_says_what_is_allowed(
    tmp_path: Path, expected: str, lines: list[str]
) -> None:
    for line in lines:
        assert expected in refused(tmp_path, f"[agents.main]\n{line}\n"), line


def test_a_wrong_number_in_the_environment_is_an_error(tmp_path: Path) -> None:
    for text in ("1e400", "0x1", "1,5", "", "nan", "1_0"):
        assert TEMPERATURE in refused(tmp_path, "", GOCLAW_AGENTS__MAIN__TEMPERATURE=text)


@given(st.floats(0, 2) | st.floats())
def test_every_temperature_in_range_is_kept_and_no_other(value: float) -> None:
    with nullcontext() if 0 <= value <= 2 else pytest.raises(ValidationError):
        assert Agent(temperature=value).temperature == value


SERVERS = """
[agents.main.mcp.files]
command = ["files", "--stdio"]
env = { FILES_KEY = "hunter2" }
tools = ["search"]
call_timeout = "90s"
trusted = true
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
    assert (files.call_timeout_s, tickets.call_timeout_s) == (90.0, 300.0)
    assert (files.trusted, tickets.trusted) == (True, False)
    assert tickets.url == "https://tickets.example.com/mcp"
    assert tickets.headers["Authorization"].get_secret_value() == "Bearer hunter2"
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
def test_a_wrong_server_says_what_is_allowed(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refused(tmp_path, f"[agents.main.mcp.x]\n{text}\n")


LONG = "n" * 20


@pytest.mark.parametrize(("one", "other", "is_refused"), [
    ("a", "a_b", True), ("a-b", "a-b_c", True), (f"{LONG}a", f"{LONG}b", True),
    (f"{LONG}a", f"{LONG}a_b", True), ("a", "ab", False), ("a", "a-b", False),
    ("a_b", "a_c", False), (f"a{LONG}", f"b{LONG}", False),
])  # fmt: skip
def test_tools_of_two_servers_never_have_the_same_name(
    tmp_path: Path, one: str, other: str, *, is_refused: bool
) -> None:
    """Else an approval for a tool of the one would count for the other while the one is down."""
    text = "\n".join(f"[agents.main.mcp.{name}]\ncommand = ['x']" for name in (other, one))
    if is_refused:
        assert "could have the same name: rename a server" in refused(tmp_path, text)
    else:
        assert len(settings(tmp_path, text).agents["main"].mcp) == 2


@pytest.mark.parametrize("text", [
    "command = ['a']\nenv = { A = ['hunter2'] }", 'command = ["a"]\nenv = { A = "hunter2\\u0000" }',
    "url = 'http://b'\nheaders = { A = ['hunter2'] }",
    'url = "http://b"\nheaders = { A = "hunter2\\n" }', "url = 'ftp://me:hunter2@b'",
    "env = 'hunter2'", "env = { A = 'hunter2' }", "evn = { A = 'hunter2' }", "evn = 'hunter2'",
])  # fmt: skip
def test_a_secret_of_a_server_is_never_shown(tmp_path: Path, text: str) -> None:
    assert "hunter2" not in refused(tmp_path, f"[agents.main.mcp.x]\n{text}\n")
