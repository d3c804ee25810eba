"""What follows from the settings (SPEC CMD-2, QUEUE-1, QUEUE-3, QUEUE-4, QUEUE-5, QUEUE-6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.config import (
    Settings,
    accounts,
    api_key,
    knows_stop_words,
    option_error,
    queue_policy,
    source_token,
)
from goclaw_py.config.lanes import Queue
from goclaw_py.config.types import parse_duration
from goclaw_py.core.errors import SettingError
from goclaw_py.core.ids import CRON_LANE, MAIN_LANE, AgentName, LaneName
from goclaw_py.core.messages import PeerKind
from goclaw_py.scheduler.models import Debounce, Drop, Mode, QueuePolicy
from tests.unit.config.loading import refused, settings

MAIN = AgentName("main")


def test_a_direct_chat_works_one_run_at_a_time_and_a_group_three(tmp_path: Path) -> None:
    direct = queue_policy(Settings(), MAIN, "telegram", "default", PeerKind.DIRECT)
    group = queue_policy(Settings(), MAIN, "telegram", "default", PeerKind.GROUP)
    assert direct == QueuePolicy(Mode.QUEUE, 10, Drop.OLD, 0.8, 1)
    assert group == QueuePolicy(Mode.QUEUE, 10, Drop.OLD, 0.8, 3)
    # A session that is no chat has neither debounce nor parallel runs.
    got = settings(tmp_path, "[queue]\nmax_concurrent = 5\ndebounce_ms = 900\ncapacity = 3\n")
    assert queue_policy(got, MAIN) == QueuePolicy(Mode.QUEUE, 3, Drop.OLD, 0.0, 1)


@pytest.mark.parametrize("mode", Mode)
def test_every_mode_can_be_set_and_the_setting_explains_it(tmp_path: Path, mode: Mode) -> None:
    got = settings(tmp_path, f'[queue]\nmode = "{mode.value}"\n')
    assert queue_policy(got, MAIN).mode is mode
    assert f"{mode.value}" in str(Queue.model_fields["mode"].description)


@pytest.mark.parametrize(("text", "knows"), [
    ("", True),
    ("[queue]\nstop_words = false\n", False),
    ("[queue]\nstop_words = false\n[channels.telegram.queue]\nstop_words = true\n", True),
])  # fmt: skip
def test_stop_words_are_on_unless_a_level_says_no(tmp_path: Path, text: str, knows: bool) -> None:
    assert knows_stop_words(settings(tmp_path, text), MAIN, "telegram", "default") is knows


@pytest.mark.parametrize(("text", "expected"), [
    ("", Debounce.FIXED),
    ('[agents.main]\nmodel = "openai:gpt-4o"\n', Debounce.SPECULATIVE),
    ('[agents.main]\nmodel = "python:module:run"\n', Debounce.FIXED),
    ('[agents.main]\nmodel = "openai:gpt-4o"\n[queue]\ndebounce = "fixed"\n', Debounce.FIXED),
    ('[agents.main.queue]\ndebounce = "speculative"\n', Debounce.SPECULATIVE),
])  # fmt: skip
def test_only_language_models_start_at_once_by_default(
    tmp_path: Path, text: str, expected: Debounce
) -> None:
    got = queue_policy(settings(tmp_path, text), MAIN, "telegram", "default", PeerKind.DIRECT)
    assert got.debounce is expected


LEVELS = """
[queue]
capacity = 1
mode = "followup"
drop = "new"
max_concurrent = 9
debounce_ms = 100
[agents.main.queue]
capacity = 2
mode = "interrupt"
max_concurrent = 8
[channels.telegram.queue]
capacity = 3
max_concurrent = 7
[channels.telegram.accounts.work.queue]
capacity = 4
debounce_ms = 0
"""


@pytest.mark.parametrize(("agent", "channel", "account", "expected"), [
    ("other", None, "default", (1, Mode.FOLLOWUP, 9, 0.1)),
    ("main", None, "default", (2, Mode.INTERRUPT, 8, 0.1)),
    ("main", "console", "default", (2, Mode.INTERRUPT, 8, 0.1)),
    ("main", "telegram", "default", (3, Mode.INTERRUPT, 7, 0.1)),
    ("main", "telegram", "work", (4, Mode.INTERRUPT, 7, 0.0)),
    ("main", "telegram", "gone", (3, Mode.INTERRUPT, 7, 0.1)),
])  # fmt: skip
def test_the_more_special_level_wins_key_by_key(
    tmp_path: Path, agent: str, channel: str | None, account: str, expected: object
) -> None:
    """SPEC section 2: global < agent < channel."""
    of_all = settings(tmp_path, LEVELS)
    got = queue_policy(of_all, AgentName(agent), channel, account, PeerKind.DIRECT)
    assert (got.capacity, got.mode, got.concurrency, got.debounce_s) == expected
    assert got.drop is Drop.NEW


def test_each_account_is_listed_with_its_own_settings(tmp_path: Path) -> None:
    text = """
[agents.helper]
[channels.telegram]
token = "1:a"
reactions = false
allow = [7]
[channels.telegram.accounts.work]
token = "2:b"
agent = "helper"
direct = "open"
[channels.telegram.accounts.off]
token = "3:c"
enabled = false
[channels.other.accounts.only]
x = 1
[channels.bare]
"""
    got = {(one.channel, one.name): one for one in accounts(settings(tmp_path, text))}
    places = [("telegram", "default"), ("telegram", "work"), ("other", "only"), ("bare", "default")]
    assert list(got) == places
    default = got["telegram", "default"]
    assert default.options == {"token": "1:a", "reactions": False}
    assert default.settings.allow == ("7",)
    work = got["telegram", "work"]
    assert (work.settings.agent, work.settings.direct) == ("helper", "open")
    assert work.options == {"token": "2:b"}
    assert "1:a" not in repr(default)


def test_options_from_the_environment_have_the_type_as_in_the_file(tmp_path: Path) -> None:
    given = {"REACTIONS": "False", "TIMEOUT_S": "30", "LIBRARY": "aiogram"}
    env = {f"GOCLAW_CHANNELS__TELEGRAM__{key}": value for key, value in given.items()}
    (account,) = accounts(settings(tmp_path, "", GOCLAW_TELEGRAM_TOKEN="123", **env))
    options = {"token": "123", "reactions": False, "timeout_s": 30, "library": "aiogram"}
    assert account.options == options
    assert {type(value) for value in account.options.values()} == {str, bool, int}


def test_the_error_of_a_channel_gets_its_whole_path_and_origin(tmp_path: Path) -> None:
    text = "[channels.telegram.accounts.work]\nlibary = 'x'\n"
    got = settings(tmp_path, text, GOCLAW_TELEGRAM_TOKEN="hunter2")
    default, work = accounts(got)
    error = option_error(got, work, SettingError("libary", "x", "unknown key"))
    assert str(error) == (
        f"{tmp_path / 'goclaw.toml'}:2: channels.telegram.accounts.work.libary = 'x': unknown key"
    )
    mistyped = option_error(got, work, SettingError("tokn", "1:hunter2" + "x" * 30, "unknown key"))
    assert "hunter2" not in str(mistyped)
    secret = option_error(got, default, SettingError("token", "hunter2", "is no token"))
    assert str(secret) == (
        "environment variable GOCLAW_TELEGRAM_TOKEN: "
        "channels.telegram.token = [hidden]: is no token"
    )


def test_the_key_of_an_agent_comes_from_where_the_settings_say(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(" from-file\n")
    text = """
[agents.main]
[agents.direct]
api_key = "given"
[agents.file]
api_key_file = "key"
[agents.env]
api_key_env = "MY_KEY"
"""
    got = settings(tmp_path, text)
    keys = {name: api_key(got, AgentName(name), {"MY_KEY": "from-env"}) for name in got.agents}
    shown = {name: key and key.get_secret_value() for name, key in keys.items()}
    assert shown == {"main": None, "direct": "given", "file": "from-file", "env": "from-env"}


@pytest.mark.parametrize(("line", "expected"), [
    ("api_key_env = 'NOT_SET'", "agents.main.api_key_env = 'NOT_SET': this variable is not"),
    ("api_key_file = 'none'", "cannot be read: No such file"),
    ("api_key_file = 'empty'", "the file is empty"),
    ("api_key_file = 'binary'", "cannot be read: not UTF-8 text"),
])  # fmt: skip
def test_a_key_that_is_missing_is_a_setting_error(tmp_path: Path, line: str, expected: str) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff")
    got = settings(tmp_path, f"[agents.main]\n{line}\n")
    with pytest.raises(SettingError, match=expected):
        api_key(got, MAIN, {})


@pytest.mark.parametrize(("key", "value", "is_shown"), [
    ("api_key_file", "/run/secrets/of/our/company/openai.key", True),
    ("api_key_file", "/run/secrets/openai_key_of_our_company", True),
    ("api_key_file", "/srv/ann/sk-proj-hunter2-0123456789abcdef", False),
    ("api_key_env", "KEY_OF_OUR_COMPANY_FOR_OPENAI_2", True),
    ("api_key_env", "sk-proj-hunter2-0123456789abcdef", False),
])  # fmt: skip
def test_an_error_shows_where_a_secret_is_but_not_a_secret_that_is_written_there(
    tmp_path: Path, key: str, value: str, *, is_shown: bool
) -> None:
    """SPEC SEC-2: people write the secret itself where its place belongs."""
    got = settings(tmp_path, "")
    error = got.error(("agents", "main", key), value, "cannot be read")
    assert (value in str(error), "[hidden]" in str(error)) == (is_shown, not is_shown)
    option = got.error(("channels", "telegram", "token_file"), "/run/secrets/of/us/all/bot", "x")
    assert "/run/secrets/of/us/all/bot" in str(option)


@pytest.mark.parametrize("secret", [
    "sk-hunter2\nab", "sk-hunter2\rab", "“sk-hunter2”", "sk-hunter2\u200b", "sk-ключ-hunter2",
    "sk\x7fhunter2", "sk\thunter2",
])  # fmt: skip
@pytest.mark.parametrize("way", ["", "_file", "_env"])
def test_a_secret_that_no_header_can_contain_is_refused(
    tmp_path: Path, way: str, secret: str
) -> None:
    (tmp_path / "secret").write_bytes(secret.encode())
    value = {"": json.dumps(secret), "_file": '"secret"', "_env": '"MY_SECRET"'}[way]
    env = {"MY_SECRET": secret}
    got = settings(tmp_path, f"[agents.main]\napi_key{way} = {value}\n")
    with pytest.raises(SettingError, match="the key must be printable ASCII") as caught:
        api_key(got, MAIN, env)
    assert f"agents.main.api_key{way} = " in str(caught.value)
    assert "hunter2" not in str(caught.value)
    if way:
        text = f"[sources.hub]\nkind = 'github'\nrepo = 'a/b'\ntoken{way} = {value}\n"
        with pytest.raises(SettingError, match="the token must be up to 512 printable") as caught:
            source_token(settings(tmp_path, text), "hub", env)
        assert "hunter2" not in str(caught.value)


@given(st.integers(0, 10**9 - 1), st.sampled_from("smhd"))
def test_a_duration_is_its_number_times_its_unit(count: int, unit: str) -> None:
    """SPEC CRON-1: strictly ``<integer><s|m|h|d>``."""
    size = {"s": 1, "m": 60, "h": 3600, "d": 86400}[unit]
    assert parse_duration(f"{count}{unit}") == count * size


def test_anything_else_is_no_duration() -> None:
    for text in ("", "5", "m", "1.5h", "-5m", "5M", "5 m", "1h30m", "5ms", "\u0665m"):
        assert parse_duration(text) is None


def test_jobs_count_on_all_nodes_together_and_everything_else_on_each(tmp_path: Path) -> None:
    assert settings(tmp_path, "").shared_lanes == Settings().shared_lanes == {CRON_LANE}


def test_a_number_and_a_table_say_the_same(tmp_path: Path) -> None:
    number = settings(tmp_path, "[lanes]\nmain = 3\ncron = 2\n")
    table = settings(tmp_path, "[lanes.main]\nsize = 3\n[lanes]\ncron = { size = 2 }\n")
    assert number.lanes == table.lanes
    assert (table.lane_sizes[MAIN_LANE], table.lane_sizes[CRON_LANE]) == (3, 2)


def test_each_lane_can_have_its_scope(tmp_path: Path) -> None:
    text = '[lanes]\nmain = { scope = "cluster" }\ncron = { scope = "node" }\n[lanes.fast]\n'
    got = settings(tmp_path, text + 'size = 7\nscope = "cluster"\n')
    assert got.shared_lanes == {MAIN_LANE, LaneName("fast")}
    # What is not said stays as it is.
    assert (got.lane_sizes[MAIN_LANE], got.lane_sizes[CRON_LANE]) == (2, 1)


@pytest.mark.parametrize("variable", ["GOCLAW_LANE_MAIN", "GOCLAW_LANES__MAIN"])
def test_a_variable_changes_the_size_and_leaves_the_scope(tmp_path: Path, variable: str) -> None:
    got = settings(tmp_path, '[lanes.main]\nsize = 3\nscope = "cluster"\n', **{variable: "9"})
    assert got.lane_sizes[MAIN_LANE] == 9
    assert MAIN_LANE in got.shared_lanes


def test_a_variable_can_set_the_scope(tmp_path: Path) -> None:
    got = settings(tmp_path, "[lanes]\ncron = 4\n", GOCLAW_LANES__CRON__SCOPE="node")
    assert (got.shared_lanes, got.lane_sizes[CRON_LANE]) == (frozenset(), 4)


@pytest.mark.parametrize("lane", ["subagent", "delegate"])
def test_lanes_of_children_are_never_shared(tmp_path: Path, lane: str) -> None:
    """Their parents hold places while they wait for them."""
    line = refused(tmp_path, f'[lanes.{lane}]\nscope = "cluster"\n')
    assert f"lanes.{lane}.scope" in line
    assert "must be node" in line


@pytest.mark.parametrize(("text", "expected"), [
    ('[lanes.main]\nscope = "world"\n', "lanes.main.scope"),
    ("[lanes.main]\nsise = 3\n", "did you mean size?"),
    ('[lanes.fast]\nscope = "node"\n',
     "lanes.fast.size = (missing): is required: the maximum number of concurrent runs"),
    ("[lanes.fast]\nsise = 3\n", "did you mean size?"),
    ("[lanes]\nmain = [1]\n", "lanes.main.size"),
    ("[lanes.main]\nsize = 0\n", "lanes.main.size = 0: must be a whole number, at least 1"),
    ("lanes = 3\n", "must be a table"),
])  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refused(tmp_path, text)
