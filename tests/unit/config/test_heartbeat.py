"""``[heartbeat]`` and ``[agents.NAME.heartbeat]`` (SPEC HB-1, HB-2, HB-8, HB-12, HB-6)."""

from __future__ import annotations

import re
from dataclasses import fields
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from goclaw_py.common.jitter import heartbeat_offset
from goclaw_py.config import Settings, heartbeat_policy, load, plans, switched_off
from goclaw_py.config.heartbeat import HeartbeatSettings
from goclaw_py.delivery.ok_token import AckPosition
from goclaw_py.heartbeat.active_hours import ActiveHours
from goclaw_py.heartbeat.decisions import (
    HeartbeatPolicy,
    HeartbeatTarget,
    LastChat,
    LastScope,
    NoTarget,
)
from goclaw_py.heartbeat.models import HeartbeatConfig
from goclaw_py.heartbeat.target import heartbeat_target_text, parse_heartbeat_target
from goclaw_py.model.budget import Budget
from goclaw_py.model.errors import SettingError
from goclaw_py.model.ids import MAIN_AGENT, AgentName, LaneName
from goclaw_py.model.messages import Target

TELEGRAM = """
[channels.telegram]
token = "t"
[channels.telegram.accounts.work]
token = "u"
"""


def settings(folder: Path, text: str = "", **env: str) -> Settings:
    (folder / "goclaw.toml").write_text(text, "utf-8")
    return load(env={"GOCLAW_HOME": str(folder), **env})


def policy(folder: Path, text: str = "", agent: str = MAIN_AGENT, **env: str) -> HeartbeatPolicy:
    return heartbeat_policy(settings(folder, text, **env), AgentName(agent), {})


def refused(folder: Path, text: str, **env: str) -> str:
    with pytest.raises(SettingError) as caught:
        settings(folder, text, **env)
    return str(caught.value)


# ---------------------------------------------------------------------------- what is read
def test_without_anything_a_heartbeat_is_as_by_default(tmp_path: Path) -> None:
    got = policy(tmp_path)
    assert got == HeartbeatPolicy() == heartbeat_policy(Settings(), MAIN_AGENT, {})
    assert (got.interval, got.hours, got.target) == (timedelta(minutes=30), None, LastChat())
    assert got.day == Budget(tokens=200_000, usd=Decimal(1))
    assert got.run == Budget(turns=10, usd=Decimal("0.50"))


EVERY_KEY = """
interval = "90s"
active_hours = { start = "22:00", end = "06:30", timezone = "Asia/Kolkata" }
target = "telegram.work:-100123:7"
last_scope = "direct"
ack_max_chars = 0
ack_position = "edges"
lane = "main"
model = "openai:gpt-4o-mini"
[HERE.budget]
turns = 3
tokens = 5000
usd = 0.05
day = { usd = 2.5, tokens = 300000 }
"""
EXPECTED = HeartbeatPolicy(
    interval=timedelta(seconds=90),
    hours=ActiveHours(1320, 390, "Asia/Kolkata"),
    zone="Asia/Kolkata",
    target=Target("telegram", "work", "-100123", "7"),
    last_scope=LastScope.DIRECT,
    ack_max_chars=0,
    ack_position=AckPosition.EDGES,
    lane=LaneName("main"),
    day=Budget(tokens=300_000, usd=Decimal("2.5")),
    run=Budget(turns=3, tokens=5000, usd=Decimal("0.05")),
    model="openai:gpt-4o-mini",
)


def section(name: str) -> str:
    return f"{TELEGRAM}\n[{name}]{EVERY_KEY.replace('HERE', name)}"


@pytest.mark.parametrize("name", ["heartbeat", "agents.main.heartbeat"])
def test_every_key_is_taken_over_from_both_places(tmp_path: Path, name: str) -> None:
    """All of them differ from the defaults, so that none can be missing."""
    default = HeartbeatPolicy()
    assert all(getattr(EXPECTED, f.name) != getattr(default, f.name) for f in fields(default))
    assert policy(tmp_path, section(name)) == EXPECTED


def test_what_is_set_for_an_agent_does_not_hold_for_others(tmp_path: Path) -> None:
    text = section("agents.main.heartbeat") + "[agents.other]\n"
    assert policy(tmp_path, text, "other") == HeartbeatPolicy()


@pytest.mark.parametrize("prefix", ["GOCLAW_HEARTBEAT", "GOCLAW_AGENTS__MAIN__HEARTBEAT"])
def test_every_key_can_come_from_the_environment(tmp_path: Path, prefix: str) -> None:
    values = {
        "INTERVAL": "90s",
        "ACTIVE_HOURS__START": "22:00",
        "ACTIVE_HOURS__END": "06:30",
        "ACTIVE_HOURS__TIMEZONE": "Asia/Kolkata",
        "TARGET": "telegram.work:-100123:7",
        "LAST_SCOPE": "direct",
        "ACK_MAX_CHARS": "0",
        "ACK_POSITION": "edges",
        "LANE": "main",
        "MODEL": "openai:gpt-4o-mini",
        "BUDGET__TURNS": "3",
        "BUDGET__TOKENS": "5000",
        "BUDGET__USD": "0.05",
        "BUDGET__DAY__USD": "2.5",
        "BUDGET__DAY__TOKENS": "300000",
    }
    env = {f"{prefix}__{key}": value for key, value in values.items()}
    assert policy(tmp_path, TELEGRAM, **env) == EXPECTED
    off = policy(tmp_path, section("heartbeat"), **{f"{prefix}__ENABLED": "no"})
    assert off.interval is None


def test_each_key_of_an_agent_wins_by_itself(tmp_path: Path) -> None:
    text = f"""{section("heartbeat")}
[agents.main.heartbeat]
interval = "2h"
target = "last"
active_hours.start = "23:00"
budget.day.usd = 9
"""
    got = policy(tmp_path, text)
    assert (got.interval, got.target) == (timedelta(hours=2), LastChat())
    assert got.hours == ActiveHours(1380, 390, "Asia/Kolkata")
    assert got.day == Budget(tokens=300_000, usd=Decimal(9))
    assert (got.run, got.lane, got.model) == (EXPECTED.run, EXPECTED.lane, EXPECTED.model)


def test_an_agent_can_take_back_what_holds_for_all(tmp_path: Path) -> None:
    text = """
[heartbeat]
enabled = false
interval = "0"
active_hours = { start = "08:00", end = "22:00" }
target = "none"
[agents.main.heartbeat]
enabled = true
interval = "30m"
active_hours = { start = "00:00", end = "24:00" }
target = "last"
"""
    got = policy(tmp_path, text)
    assert got.interval == timedelta(minutes=30)
    assert got.hours == ActiveHours(0, 1440, "UTC")
    assert got.target == LastChat()


@pytest.mark.parametrize("line", [
    "enabled = false", "enabled = false\ninterval = '1h'", "interval = '0'", "interval = 0",
    "interval = '0s'", "interval = '0m'", "enabled = true\ninterval = '0h'",
])  # fmt: skip
def test_a_heartbeat_is_switched_off_in_either_way(tmp_path: Path, line: str) -> None:
    assert policy(tmp_path, f"[heartbeat]\n{line}\n").interval is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1s", 1), ("90m", 5400), ("366d", 366 * 86_400), ("001h", 3600)],
)
def test_an_interval_is_at_least_a_second(tmp_path: Path, text: str, expected: int) -> None:
    got = policy(tmp_path, f"[heartbeat]\ninterval = '{text}'\n")
    assert got.interval == timedelta(seconds=expected)


@pytest.mark.parametrize("level", ["heartbeat", "agents.main.heartbeat"])
def test_nought_is_no_limit_of_a_budget(tmp_path: Path, level: str) -> None:
    text = f"[{level}.budget]\nturns = 0\nusd = 0\ntokens = 0\nday = {{ usd = 0, tokens = 0 }}\n"
    got = policy(tmp_path, text)
    assert (got.day, got.run) == (Budget(), Budget())


# ---------------------------------------------------------------------------- zones
def test_hours_without_a_zone_are_in_that_of_jobs(tmp_path: Path) -> None:
    hours = "[heartbeat]\nactive_hours = { start = '08:00', end = '22:00' }\n"
    assert policy(tmp_path, hours).hours == ActiveHours(480, 1320, "UTC")
    got = policy(tmp_path, f"{hours}[scheduler]\ntimezone = 'Asia/Tokyo'\n")
    assert (got.zone, got.hours) == ("Asia/Tokyo", ActiveHours(480, 1320, "Asia/Tokyo"))
    assert policy(tmp_path, "[scheduler]\ntimezone = 'Asia/Tokyo'\n").zone == "Asia/Tokyo"


def test_the_zone_of_the_machine_is_taken_where_the_profile_says_so(tmp_path: Path) -> None:
    got = settings(tmp_path, "[scheduler]\nprofile = 'halo'\n")
    assert heartbeat_policy(got, MAIN_AGENT, {"TZ": "Asia/Tokyo"}).zone == "Asia/Tokyo"


# ---------------------------------------------------------------------------- targets
@pytest.mark.parametrize(("text", "expected"), [
    ("last", LastChat()),
    ("none", NoTarget.NONE),
    ("telegram", LastChat("telegram")),
    ("telegram.work", LastChat("telegram", "work")),
    ("telegram.default", LastChat("telegram", "default")),
    ("console", LastChat("console")),
    ("telegram:12345", Target("telegram", "default", "12345")),
    ("telegram:-100123:7", Target("telegram", "default", "-100123", "7")),
    ("telegram.work:12345", Target("telegram", "work", "12345")),
    ("console:here", Target("console", "default", "here")),
])  # fmt: skip
def test_a_target_is_read(tmp_path: Path, text: str, expected: HeartbeatTarget) -> None:
    assert policy(tmp_path, f"{TELEGRAM}[heartbeat]\ntarget = '{text}'\n").target == expected
    assert parse_heartbeat_target(heartbeat_target_text(expected)) == expected


def test_a_channel_whose_token_is_in_the_environment_is_set_up(tmp_path: Path) -> None:
    got = policy(tmp_path, "[heartbeat]\ntarget = 'telegram'\n", GOCLAW_TELEGRAM_TOKEN="t")
    assert got.target == LastChat("telegram")


@pytest.mark.parametrize(("channels", "target", "key"), [
    ("", "last", ""),
    ("", "none", ""),
    ("", "telegram", ""),
    ("", "telegram.work:12345", ""),
    ("enabled = false\n", "telegram", ""),
    ("enabled = false\n", "telegram:12345", "channels.telegram.enabled"),
    ("enabled = false\n", "telegram.default", "channels.telegram.enabled"),
    ("enabled = false\n", "telegram.work", ""),
    ("accounts.work.enabled = false\n", "telegram", ""),
    ("accounts.work.enabled = false\n", "telegram.work", "channels.telegram.accounts.work.enabled"),
    ("enabled = false\naccounts.work.enabled = false\n", "telegram", "channels.telegram.enabled"),
    ("", "console:here", ""),
])  # fmt: skip
def test_a_target_is_set_up_though_it_is_switched_off(
    tmp_path: Path, channels: str, target: str, key: str
) -> None:
    """``switched_off`` says it, so that the doctor can."""
    text = f"""
[heartbeat]
target = "{target}"
[channels.telegram]
token = "t"
accounts.work.token = "u"
{channels}"""
    got = settings(tmp_path, text)
    assert switched_off(got, heartbeat_policy(got, MAIN_AGENT, {}).target) == key


# ---------------------------------------------------------------------------- plans
def test_every_agent_has_a_plan(tmp_path: Path) -> None:
    text = """
[heartbeat]
interval = "1h"
[agents.quick.heartbeat]
interval = "2s"
[agents.still.heartbeat]
enabled = false
"""
    got = {plan.agent: plan for plan in plans(settings(tmp_path, text))}
    hour, two = timedelta(hours=1), timedelta(seconds=2)
    main, quick, still = MAIN_AGENT, AgentName("quick"), AgentName("still")
    assert got == {
        main: HeartbeatConfig(main, hour, heartbeat_offset(main, hour)),
        quick: HeartbeatConfig(quick, two, heartbeat_offset(quick, two)),
        still: HeartbeatConfig(still, None, timedelta()),
    }
    assert got[quick].offset < two


# ---------------------------------------------------------------------------- what is wrong

WAYS = (
    'must be <integer><s|m|h|d> such as "90s" or "30m", at least 1s, at most 366d, or "0" for off'
)
START = "must be a time from 00:00 to 23:59 with two digits each, such as 08:00, in quotation marks"
END = "must be a time from 00:00 to 24:00 with two digits each, such as 22:00, in quotation marks"
ZONE = "must be an IANA time zone such as Europe/Berlin"
TARGETS = "must be last, none, a channel such as telegram or telegram.work, or a chat such as"
NO_CHANNEL = (
    "this channel is not configured; use one of last, none, console, telegram, telegram.work, "
    "or a chat such as telegram:12345"
)
COUNT = "must be a whole number, at least 0"
AMOUNT = "must be a number from 0 to 100000"

WRONG = [
    ("enabled = 'no'", "enabled = 'no': must be true or false"),
    ("enabled = 0", "enabled = 0: must be true or false"),
    ("interval = '500ms'", f"interval = '500ms': {WAYS}"),
    ("interval = '0.5s'", f"interval = '0.5s': {WAYS}"),
    ("interval = '-1s'", f"interval = '-1s': {WAYS}"),
    ("interval = '30'", f"interval = '30': {WAYS}"),
    ("interval = 30", f"interval = 30: {WAYS}"),
    ("interval = 0.0", f"interval = 0.0: {WAYS}"),
    ("interval = false", f"interval = False: {WAYS}"),
    ("interval = ''", f"interval = '': {WAYS}"),
    ("interval = '1h30m'", f"interval = '1h30m': {WAYS}"),
    ("interval = '367d'", f"interval = '367d': {WAYS}"),
    ("interval = 'off'", f"interval = 'off': {WAYS}"),
    ("interval_s = 30", "interval_s = 30: unknown key; known here: "),
    ("active_hours = '08:00-22:00'", "active_hours = '08:00-22:00': must be a table"),
    ("active_hours = ['08:00', '22:00']", "must be a table"),
    (
        "active_hours = { start = '8:00', end = '22:00' }",
        f"active_hours.start = '8:00': {START}",
    ),
    (
        "active_hours = { start = '24:00', end = '22:00' }",
        f"active_hours.start = '24:00': {START}",
    ),
    ("active_hours = { start = 8, end = '22:00' }", f"active_hours.start = 8: {START}"),
    (
        "active_hours = { start = 08:00:00, end = '22:00' }",
        f"active_hours.start = datetime.time(8, 0): {START}",
    ),
    ("active_hours = { start = '', end = '22:00' }", f"active_hours.start = '': {START}"),
    ("active_hours = { start = '08:00', end = '24:01' }", f"active_hours.end = '24:01': {END}"),
    ("active_hours = { start = '08:00', end = '22:00 ' }", f"active_hours.end = '22:00 ': {END}"),
    ("active_hours = { start = '08:00', end = '10pm' }", f"active_hours.end = '10pm': {END}"),
    (
        "active_hours = { start = '08:00', end = '08:00' }",
        "active_hours.end = '08:00': must differ from the start; 00:00 to 24:00 is always",
    ),
    (
        "active_hours = { start = '08:00' }",
        'active_hours = (a table): must have start and end, such as { start = "08:00", end = ',
    ),
    ("active_hours = { end = '08:00' }", "active_hours = (a table): must have start and end"),
    ("active_hours = { timezone = 'UTC' }", "active_hours = (a table): must have start and end"),
    (
        "active_hours = { start = '08:00', end = '09:00', timezone = 'CET' }",
        f"active_hours.timezone = 'CET': {ZONE}: unknown time zone 'CET' (abbreviations have",
    ),
    (
        "active_hours = { start = '08:00', end = '09:00', timezone = '+02:00' }",
        f"active_hours.timezone = '+02:00': {ZONE}",
    ),
    (
        "active_hours = { start = '08:00', end = '09:00', timezone = 1 }",
        "active_hours.timezone = 1: must be text",
    ),
    (
        "active_hours = { from = 1 }",
        "active_hours.from = 1: unknown key; known here: end, start, timezone",
    ),
    ("target = ''", f"target = '': {TARGETS}"),
    ("target = 'Last'", f"target = 'Last': {TARGETS}"),
    ("target = 'telegram:'", f"target = 'telegram:': {TARGETS}"),
    ("target = ':12345'", f"target = ':12345': {TARGETS}"),
    ("target = 'telegram:1:2:3'", f"target = 'telegram:1:2:3': {TARGETS}"),
    ("target = 'telegram 12345'", f"target = 'telegram 12345': {TARGETS}"),
    ("target = 'telegram.work.x'", f"target = 'telegram.work.x': {TARGETS}"),
    ("target = 12345", f"target = 12345: {TARGETS}"),
    ("target = false", f"target = False: {TARGETS}"),
    ("target = 'slack'", f"target = 'slack': {NO_CHANNEL}"),
    ("target = '12345'", f"target = '12345': {NO_CHANNEL}"),
    ("target = 'lasst'", f"target = 'lasst': {NO_CHANNEL}"),
    ("target = 'slack:12345'", f"target = 'slack:12345': {NO_CHANNEL}"),
    ("target = 'telegram.play'", f"target = 'telegram.play': {NO_CHANNEL}"),
    ("target = 'telegram.play:12345'", f"target = 'telegram.play:12345': {NO_CHANNEL}"),
    ("target = 'console.work'", f"target = 'console.work': {NO_CHANNEL}"),
    ("last_scope = 'all'", "last_scope = 'all': must be 'any' or 'direct'"),
    ("ack_max_chars = -1", "ack_max_chars = -1: must be a whole number, at least 0 and at most"),
    ("ack_max_chars = 10001", "ack_max_chars = 10001: must be a whole number, at least 0 and at"),
    ("ack_max_chars = '300'", "ack_max_chars = '300': must be a whole number"),
    ("ack_position = 'start'", "ack_position = 'start': must be 'anywhere' or 'edges'"),
    ("lane = ''", "lane = '': must be the name of a lane, such as cron"),
    (
        "lane = 'crno'",
        "lane = 'crno': there is no such lane; use one of main, subagent, delegate, cron",
    ),
    ("lane = 1", "lane = 1: must be the name of a lane, such as cron"),
    ("model = ''", "model = '': must be a model such as openai:gpt-4o-mini"),
    ("model = 'gpt 4'", "model = 'gpt 4': must be a model such as openai:gpt-4o-mini"),
    ("budget = 1", "budget = 1: must be a table"),
    ("budget.turns = -1", f"budget.turns = -1: {COUNT}"),
    ("budget.turns = 1.5", f"budget.turns = 1.5: {COUNT}"),
    ("budget.tokens = -1", f"budget.tokens = -1: {COUNT}"),
    ("budget.usd = -0.01", f"budget.usd = -0.01: {AMOUNT}"),
    ("budget.usd = '1'", f"budget.usd = '1': {AMOUNT}"),
    ("budget.usd = nan", f"budget.usd = nan: {AMOUNT}"),
    ("budget.usd = inf", f"budget.usd = inf: {AMOUNT}"),
    ("budget.usd = true", f"budget.usd = True: {AMOUNT}"),
    ("budget.day = 1", "budget.day = 1: must be a table"),
    ("budget.day.usd = -1", f"budget.day.usd = -1: {AMOUNT}"),
    ("budget.day.tokens = -1", f"budget.day.tokens = -1: {COUNT}"),
    ("budget.day.tokens = 'many'", f"budget.day.tokens = 'many': {COUNT}"),
    ("budget.day.turns = 3", "budget.day.turns = 3: unknown key; known here: tokens, usd"),
    ("budget.dayly = 1", "budget.dayly = 1: unknown key; known here: day, tokens, turns, usd; did"),
    ("intervall = 1", "did you mean interval?"),
]


@pytest.mark.parametrize("place", ["heartbeat", "agents.main.heartbeat"])
@pytest.mark.parametrize(("line", "expected"), WRONG, ids=[line for line, _ in WRONG])
def test_a_wrong_value_is_told_with_its_key_and_an_example(
    tmp_path: Path, place: str, line: str, expected: str
) -> None:
    """SPEC HB-2, and the bad input that users of comparable systems find out by silence."""
    said = refused(tmp_path, f"{TELEGRAM}[{place}]\n{line}\n")
    key = expected.partition(" = ")[0] if " = " in expected else line.partition(" = ")[0]
    assert re.match(rf".*goclaw\.toml(:\d+)?: {re.escape(f'{place}.{key}')} = ", said)
    assert expected in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(("key", "value", "expected"), [
    ("INTERVAL", "soon", f"heartbeat.interval = 'soon': {WAYS}"),
    ("ACTIVE_HOURS__START", "8:00", f"heartbeat.active_hours.start = '8:00': {START}"),
    ("ACTIVE_HOURS__START", "08:00", "heartbeat.active_hours = (a table): must have start and"),
    ("TARGET", "slack:1", "heartbeat.target = 'slack:1': this channel is not configured"),
    ("ENABLED", "maybe", "heartbeat.enabled = 'maybe': must be true or false"),
    ("BUDGET__DAY__TOKENS", "x", f"heartbeat.budget.day.tokens = 'x': {COUNT}"),
])  # fmt: skip
def test_a_wrong_variable_is_named(tmp_path: Path, key: str, value: str, expected: str) -> None:
    variable = f"GOCLAW_HEARTBEAT__{key}"
    said = refused(tmp_path, "", **{variable: value})
    assert expected in said
    if "(a table)" not in expected:
        assert said.startswith(f"environment variable {variable}: ")


def test_hours_that_only_together_are_wrong_are_told_where_the_agent_changes_them(
    tmp_path: Path,
) -> None:
    text = """
[heartbeat]
active_hours = { start = "08:00", end = "22:00" }
[agents.main.heartbeat]
active_hours = { end = "08:00" }
[agents.fine]
"""
    said = refused(tmp_path, text)
    assert said.endswith(
        "agents.main.heartbeat.active_hours.end = '08:00': must differ from the start; "
        "00:00 to 24:00 is always"
    )


def test_a_mistake_for_all_agents_is_told_once(tmp_path: Path) -> None:
    text = "[heartbeat]\nactive_hours = { start = '08:00' }\n[agents.a]\n[agents.b]\n"
    assert len(refused(tmp_path, text).splitlines()) == 1


def test_mistakes_are_told_although_the_heartbeat_is_off(tmp_path: Path) -> None:
    text = "[heartbeat]\nenabled = false\ntarget = 'slack'\nlane = 'nowhere'\n"
    assert len(refused(tmp_path, text).splitlines()) == 2


def test_a_target_of_an_account_that_only_others_have_is_refused(tmp_path: Path) -> None:
    """Without a key beside ``accounts`` there is no account ``default``."""
    text = """
[channels.telegram.accounts.work]
token = "u"
[heartbeat]
target = "telegram:12345"
"""
    said = refused(tmp_path, text)
    assert "use one of last, none, console, telegram.work, or a chat such as" in said
    assert policy(tmp_path, text.replace("telegram:12345", "telegram")).target == LastChat(
        "telegram"
    )


def test_settings_made_in_code_have_the_same_names() -> None:
    own = HeartbeatSettings.model_validate({"interval": "5m", "ack_position": "edges"})
    got = heartbeat_policy(Settings(heartbeat=own), MAIN_AGENT, {})
    assert (got.interval, got.ack_position) == (timedelta(minutes=5), AckPosition.EDGES)
