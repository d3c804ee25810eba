"""``[heartbeat]`` and ``[agents.NAME.heartbeat]`` (SPEC HB-1, HB-2, HB-8, HB-12, HB-6)."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from goclaw_py.chat.outbound.ok_token import AckPosition
from goclaw_py.config import Settings, heartbeat_policy, plans, switched_off
from goclaw_py.config.heartbeat import HeartbeatSettings
from goclaw_py.core.budget import Budget
from goclaw_py.core.ids import MAIN_AGENT, AgentName, LaneName
from goclaw_py.core.messages import Target
from goclaw_py.schedule.heartbeat.active_hours import ActiveHours
from goclaw_py.schedule.heartbeat.decisions import (
    HeartbeatPolicy,
    HeartbeatTarget,
    LastChat,
    LastScope,
    NoTarget,
)
from goclaw_py.schedule.heartbeat.models import HeartbeatConfig
from goclaw_py.schedule.heartbeat.target import heartbeat_target_text, parse_heartbeat_target
from goclaw_py.schedule.jitter import heartbeat_offset
from tests.unit.config.loading import refused, settings

TELEGRAM = """
[channels.telegram]
token = "t"
[channels.telegram.accounts.work]
token = "u"
"""


def policy(folder: Path, text: str = "", agent: str = MAIN_AGENT, **env: str) -> HeartbeatPolicy:
    return heartbeat_policy(settings(folder, text, **env), AgentName(agent), {})


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


def flat(table: dict[str, Any], path: str) -> dict[str, str]:
    """The variables that say the same as a table."""
    found: dict[str, str] = {}
    for key, value in table.items():
        name = f"{path}__{key.upper()}"
        found |= flat(value, name) if isinstance(value, dict) else {name: str(value)}
    return found


@pytest.mark.parametrize("prefix", ["GOCLAW_HEARTBEAT", "GOCLAW_AGENTS__MAIN__HEARTBEAT"])
def test_every_key_can_come_from_the_environment(tmp_path: Path, prefix: str) -> None:
    env = flat(tomllib.loads(section("heartbeat"))["heartbeat"], prefix)
    assert len(env) == 15
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
active_hours = { start = "08:00", end = "22:00" }
target = "none"
[agents.main.heartbeat]
enabled = true
active_hours = { start = "00:00", end = "24:00" }
target = "last"
"""
    got = policy(tmp_path, text)
    assert (got.interval, got.target) == (timedelta(minutes=30), LastChat())
    assert got.hours == ActiveHours(0, 1440, "UTC")
    never = '[heartbeat]\ninterval = "0"\n[agents.main.heartbeat]\ninterval = "30m"\n'
    assert policy(tmp_path, never).interval == timedelta(minutes=30)


@pytest.mark.parametrize(("lines", "interval_s"), [
    *((line, None) for line in (
        "enabled = false", "enabled = false\ninterval = '1h'", "interval = '0'", "interval = 0",
        "interval = '0s'", "interval = '0m'", "enabled = true\ninterval = '0h'",
    )),
    ("interval = '1s'", 1), ("interval = '90m'", 5400), ("interval = '366d'", 366 * 86_400),
    ("interval = '001h'", 3600),
])  # fmt: skip
def test_an_interval_is_a_second_or_off(
    tmp_path: Path, lines: str, interval_s: float | None
) -> None:
    expected = None if interval_s is None else timedelta(seconds=interval_s)
    assert policy(tmp_path, f"[heartbeat]\n{lines}\n").interval == expected


@pytest.mark.parametrize("level", ["heartbeat", "agents.main.heartbeat"])
def test_nought_is_no_limit_of_a_budget(tmp_path: Path, level: str) -> None:
    text = f"[{level}.budget]\nturns = 0\nusd = 0\ntokens = 0\nday = {{ usd = 0, tokens = 0 }}\n"
    got = policy(tmp_path, text)
    assert (got.day, got.run) == (Budget(), Budget())


def test_hours_without_a_zone_are_in_that_of_jobs_or_of_the_machine(tmp_path: Path) -> None:
    hours = "[heartbeat]\nactive_hours = { start = '08:00', end = '22:00' }\n"
    assert policy(tmp_path, hours).hours == ActiveHours(480, 1320, "UTC")
    got = policy(tmp_path, f"{hours}[scheduler]\ntimezone = 'Asia/Tokyo'\n")
    assert (got.zone, got.hours) == ("Asia/Tokyo", ActiveHours(480, 1320, "Asia/Tokyo"))
    halo = settings(tmp_path, "[scheduler]\nprofile = 'halo'\n")
    assert heartbeat_policy(halo, MAIN_AGENT, {"TZ": "Asia/Tokyo"}).zone == "Asia/Tokyo"


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


@pytest.mark.parametrize(("channels", "target", "key"), [
    ("", "last", ""), ("", "none", ""), ("", "telegram", ""), ("", "telegram.work:12345", ""),
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


WAYS = (
    'must be a whole number with s, m, h or d, such as "90s" or "30m", '
    'at least 1s, at most 366d, or "0" for off'
)
START = "must be a time from 00:00 to 23:59 with two digits each, such as 08:00, in quotation marks"
END = "must be a time from 00:00 to 24:00 with two digits each, such as 22:00, in quotation marks"
ZONE = "must be an IANA time zone such as Europe/Berlin"
TARGETS = "must be last, none, a channel such as telegram or telegram.work, or a chat such as"
NO_CHANNEL = (
    "this channel is not configured; use one of last, none, console, web, telegram, telegram.work, "
    "or a chat such as telegram:12345"
)
COUNT = "must be a whole number, at least 0"
AMOUNT = "must be a number from 0 to 100000"

LANES = "there is no such lane; use one of main, subagent, delegate, cron"
BOTH = 'must have start and end, such as { start = "08:00", end = '
SCOPE, POSITION = "must be 'any' or 'direct'", "must be 'anywhere' or 'edges'"


def hours(start: str = "'08:00'", end: str = "'22:00'", zone: str = "'UTC'") -> str:
    return f"active_hours = {{ start = {start}, end = {end}, timezone = {zone} }}"


SHOWN = {
    "must be true or false": ["enabled = 'no'", "enabled = 0"],
    WAYS: [
        "interval = '500ms'", "interval = '0.5s'", "interval = '-1s'", "interval = '30'",
        "interval = 30", "interval = 0.0", "interval = ''", "interval = '1h30m'",
        "interval = '367d'", "interval = 'off'",
    ],
    "unknown key (did you mean interval?); known here: ": ["interval_s = 30"],
    "must be a table": ["active_hours = '08:00-22:00'", "active_hours = ['08:00', '22:00']"],
    TARGETS: [
        "target = ''", "target = 'Last'", "target = 'telegram:'", "target = ':12345'",
        "target = 'telegram:1:2:3'", "target = 'telegram 12345'", "target = 'telegram.work.x'",
        "target = 12345",
    ],
    NO_CHANNEL: [
        "target = 'slack'", "target = '12345'", "target = 'lasst'", "target = 'slack:12345'",
        "target = 'telegram.play'", "target = 'telegram.play:12345'", "target = 'console.work'",
    ],
    SCOPE: ["last_scope = 'all'"],
    "must be a whole number, at least 0 and at most": [
        "ack_max_chars = -1", "ack_max_chars = 10001", "ack_max_chars = '300'",
    ],
    POSITION: ["ack_position = 'start'"],
    "must be the name of a lane, such as cron": ["lane = ''", "lane = 1"],
    LANES: ["lane = 'crno'"],
    "must be a model such as openai:gpt-4o-mini": ["model = ''", "model = 'gpt 4'"],
    "must be a table ": ["budget = 1", "budget.day = 1"],
    COUNT: [
        "budget.turns = -1", "budget.turns = 1.5", "budget.tokens = -1", "budget.day.tokens = -1",
        "budget.day.tokens = 'many'",
    ],
    AMOUNT: [
        "budget.usd = -0.01", "budget.usd = '1'", "budget.usd = nan", "budget.usd = inf",
        "budget.day.usd = -1",
    ],
    "unknown key; known here: tokens, usd": ["budget.day.turns = 3"],
    "unknown key (did you mean day?); known here: day, tokens, turns, usd": ["budget.dayly = 1"],
}  # fmt: skip
WRONG = [
    *((line, f"{line}: {said}".rstrip()) for said, lines in SHOWN.items() for line in lines),
    ("interval = false", f"interval = False: {WAYS}"),
    ("target = false", f"target = False: {TARGETS}"),
    ("budget.usd = true", f"budget.usd = True: {AMOUNT}"),
    ("intervall = 1", "did you mean interval?"),
    *((hours(start), f"active_hours.start = {start}: {START}") for start in ("'8:00'", "'24:00'")),
    *((hours(start), f"active_hours.start = {start}: {START}") for start in ("8", "''")),
    (hours("08:00:00"), f"active_hours.start = datetime.time(8, 0): {START}"),
    *((hours(end=end), f"active_hours.end = {end}: {END}")
      for end in ("'24:01'", "'22:00 '", "'10pm'")),
    (hours(end="'08:00'"),
     "active_hours.end = '08:00': must differ from the start; 00:00 to 24:00 is always"),
    *((f"active_hours = {{ {key} = '08:00' }}", f"active_hours = (a table): {BOTH}")
      for key in ("start", "end")),
    ("active_hours = { timezone = 'UTC' }", f"active_hours = (a table): {BOTH}"),
    (hours(zone="'CET'"),
     f"active_hours.timezone = 'CET': {ZONE}: unknown time zone 'CET' (abbreviations have"),
    (hours(zone="'+02:00'"), f"active_hours.timezone = '+02:00': {ZONE}"),
    (hours(zone="1"), "active_hours.timezone = 1: must be text"),
    ("active_hours = { from = 1 }",
     "active_hours.from = 1: unknown key; known here: end, start, timezone"),
]  # fmt: skip


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


def test_hours_that_only_together_are_wrong_are_told_for_the_agent(tmp_path: Path) -> None:
    text = """
[heartbeat]
active_hours = { start = "08:00", end = "22:00" }
[agents.main.heartbeat]
active_hours = { end = "08:00" }
[agents.fine]
"""
    told = "'08:00': must differ from the start; 00:00 to 24:00 is always"
    said = refused(tmp_path, text)
    assert said.endswith(f"agents.main.heartbeat.active_hours.end = {told}")


def test_a_mistake_for_all_agents_is_told_once_though_the_heartbeat_is_off(tmp_path: Path) -> None:
    text = "[heartbeat]\nactive_hours = { start = '08:00' }\n[agents.a]\n[agents.b]\n"
    assert len(refused(tmp_path, text).splitlines()) == 1
    text = "[heartbeat]\nenabled = false\ntarget = 'slack'\nlane = 'nowhere'\n"
    assert len(refused(tmp_path, text).splitlines()) == 2


def test_a_target_of_an_account_that_only_others_have_is_refused(tmp_path: Path) -> None:
    """Without a key beside ``accounts`` there is no account ``default``."""
    text = "[channels.telegram.accounts.work]\ntoken = 'u'\n[heartbeat]\ntarget = 'telegram{}'\n"
    said = refused(tmp_path, text.format(":12345"))
    assert "use one of last, none, console, web, telegram.work, or a chat such as" in said
    assert policy(tmp_path, text.format("")).target == LastChat("telegram")
    # A token in the environment makes one.
    text = "[heartbeat]\ntarget = 'telegram'\n"
    assert policy(tmp_path, text, GOCLAW_TELEGRAM_TOKEN="t").target == LastChat("telegram")


def test_settings_made_in_code_have_the_same_names() -> None:
    own = HeartbeatSettings.model_validate({"interval": "5m", "ack_position": "edges"})
    got = heartbeat_policy(Settings(heartbeat=own), MAIN_AGENT, {})
    assert (got.interval, got.ack_position) == (timedelta(minutes=5), AckPosition.EDGES)
