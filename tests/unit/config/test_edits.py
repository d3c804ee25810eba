"""Which settings can be edited at run time, and how their values are written (SPEC OPS-11)."""

from __future__ import annotations

from pathlib import Path

import pytest

from goclaw_py.config import as_in_gateway, shown, with_values
from goclaw_py.config.edits import choices, is_editable, normal_path, parse_path, value_text
from goclaw_py.operations.settings.models import OriginKind
from tests.unit.config.loading import settings

FULL = """
[lanes]
main = 3
[queue]
mode = "steer"
stop_words = false
[heartbeat]
interval = "90m"
active_hours = { start = "08:00", end = "22:30", timezone = "Europe/Berlin" }
budget = { turns = 5, tokens = 1000, usd = 0.25, day = { usd = 0 } }
[agents.main]
model = "openai:gpt-4o"
fallback = ["openai:gpt-4o-mini", "anthropic:claude"]
temperature = 0.00001
thinking = "low"
max_concurrent = 2
budget = { usd = 0.0000001, time = "2h", session_day = { turns = 7 } }
[channels.telegram]
token = "1:a"
groups = "open"
mention = false
[channels.telegram.chats."-100.5"]
agent = "main"
context_messages = 0
[channels.telegram.chats."-100.5".threads."7"]
queue = { capacity = 3, debounce = "fixed" }
"""


@pytest.mark.parametrize(("text", "path"), [
    ("lanes.main.size", ("lanes", "main", "size")),
    ('channels.x.chats."-1.\\"0".agent', ("channels", "x", "chats", '-1."0', "agent")),
    *((wrong, None) for wrong in (
        "", ".", "a.", ".a", "a..b", "a b", "a=b", "a\n", '"a', 'a"b"', '"".a', '"\\x".a',
        '"\\n".a', '"\\ud800".a', "ä", "a" * 301,
    )),
])  # fmt: skip
def test_a_path_is_written_as_in_the_file(text: str, path: tuple[str, ...] | None) -> None:
    assert parse_path(text) == path
    if path is not None:
        assert normal_path(path) == text


@pytest.mark.parametrize(("path", "words"), [
    ("queue.mode", ("queue", "followup", "interrupt", "collect", "steer")),
    ("queue.stop_words", ("true", "false")),
    ("heartbeat.enabled", ("true", "false")),
    ("agents.main.thinking", ("off", "low", "medium", "high")),
    ("channels.telegram.groups", ("allowlist", "open", "disabled")),
    ("channels.telegram.chats.1.mention", ("true", "false")),
    ("lanes.main.size", ()),
    ("agents.main.fallback", ()),
    ("no.such.setting", ()),
])  # fmt: skip
def test_the_words_that_a_setting_allows_are_known(path: str, words: tuple[str, ...]) -> None:
    keys = parse_path(path)
    assert keys is not None
    assert choices(keys) == words


def test_every_value_can_be_written_and_read_again(tmp_path: Path) -> None:
    """A form that is sent as it was shown means what was shown."""
    base = settings(tmp_path, FULL)
    values = {one.path: one for one in shown(base)}
    edits = [
        (one.path, value_text(one.value), "a test")
        for one in values.values()
        if one.value is not None and is_editable(parse_path(one.path) or ())
    ]
    assert len(edits) > 25
    again = {one.path: one for one in shown(with_values(base, edits))}
    assert {path: one.value for path, one in again.items()} == {
        path: one.value for path, one in values.items()
    }
    edited = [path for path, one in again.items() if one.kind is OriginKind.EDIT]
    assert sorted(edited) == sorted(path for path, _, _ in edits)


def test_the_environment_overrides_an_edit(tmp_path: Path) -> None:
    base = settings(tmp_path, FULL, GOCLAW_LANE_MAIN="9")
    assert with_values(base, [("lanes.main.size", "4", "")]).lanes["main"].size == 9


def test_a_shell_learns_the_settings_of_the_gateway(tmp_path: Path) -> None:
    """Those of its variables and edits, whatever the shell has; not its secrets."""
    env = {"GOCLAW_WEB__PORT": "8555", "GOCLAW_LANE_MAIN": "9", "GOCLAW_LOG__LEVEL": "debug"}
    gateway = settings(tmp_path, FULL, **env, GOCLAW_WEB__TOKEN="0123456789abcdef")
    gateway = with_values(gateway, [("lanes.cron.size", "7", "dashboard")])
    shell = settings(tmp_path, FULL, GOCLAW_LANE_MAIN="3")
    learned = as_in_gateway(shell, shown(gateway))
    assert learned.web.token is None
    assert {one for one in shown(learned) if not one.secret} == {
        one for one in shown(gateway) if not one.secret
    }


@pytest.mark.parametrize("path", [
    "agents.main.api_key", "agents.main.base_url", "agents.main.headers.x", "agents.main.workspace",
    "agents.main.system_prompt", "agents.main.command.run", "agents.main.tools.allow",
    "agents.main.approval.ask", "agents.main.mcp.x.url", "channels.telegram.token",
    "channels.telegram.enabled", "channels.telegram.direct", "channels.telegram.allow",
    "database.url", "web.token", "web.host", "log.level", "scheduler.max_jobs", "state.folder",
    "lanes.main.scope", "home", "file", "sources.x.token",
])  # fmt: skip
def test_what_is_not_safe_cannot_be_edited(path: str) -> None:
    assert not is_editable(parse_path(path) or ())
