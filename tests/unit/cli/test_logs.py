"""``goclaw logs``: the log file of the gateway (SPEC OPS-5)."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from goclaw_py.cli.output import clock
from goclaw_py.cli.system import logs
from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.cli.processes import piped

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def line(event: str, level: str = "info", **facts: object) -> str:
    return json.dumps({**facts, "event": event, "level": level, "timestamp": AT.isoformat()}) + "\n"


STARTED = line("run_started", run_id="0190-aaaa")
FAILED = line("run_failed", "warning", run_id="0190-bbbb", error="a\nb \x1b[2J\u202e")
BUG = line("inbox_message_failed", "error", inbox=7)
LINES = [STARTED, "no JSON \x1b[2J\n", FAILED, BUG]


@pytest.fixture
def file(home: Path) -> Path:
    made = home / "state" / "goclaw.log"
    made.parent.mkdir(exist_ok=True)
    made.write_text("".join(LINES) + '{"event": "half')
    return made


@pytest.mark.parametrize(("options", "events"), [
    ("", ["run_started", "no JSON", "run_failed", "inbox_message_failed"]),
    ("-n 2", ["run_failed", "inbox_message_failed"]),
    ("-n 0", []),
    ("--run 0190-a", ["run_started"]),
    ("--run 0190 -n 1", ["run_failed"]),
    ("--level warning", ["run_failed", "inbox_message_failed"]),
    ("--level error", ["inbox_message_failed"]),
    ("--since 10m", []),
    ("--since 3650d", ["run_started", "run_failed", "inbox_message_failed"]),
])  # fmt: skip
def test_lines_are_selected(goclaw: Shell, file: Path, options: str, events: list[str]) -> None:
    got = goclaw("logs", *options.split())
    assert got.code == 0
    for event, text in zip(events, got.out.splitlines(), strict=True):
        assert event in text


def test_a_line_is_shown_in_words_and_for_programs_as_it_is(goclaw: Shell, file: Path) -> None:
    assert goclaw("logs", "-n", "2").out.splitlines() == [
        rf'{clock(AT)}  warning  run_failed  run_id=0190-bbbb  error="a\nb \u001b[2J"',
        f"{clock(AT)}  error    inbox_message_failed  inbox=7",
    ]
    assert goclaw("logs", "--json").out == STARTED + FAILED + BUG


def test_the_settings_say_which_file(goclaw: Shell, home: Path, file: Path) -> None:
    other = home / "other.log"
    (home / "goclaw.toml").write_text(f'[log]\nfile = "{other}"\n')
    got = goclaw("logs")
    assert got.code == 1
    assert f"there is no log file {other}" in got.err
    other.write_text(BUG)
    assert goclaw("logs").out.count("\n") == 1


@pytest.mark.slow
@pytest.mark.real_time
def test_new_lines_are_followed_also_after_a_rotation(gateway: ThreadGateway, file: Path) -> None:
    with piped("logs", "-f", "--json", "-n", "1") as (process, out):
        assert out.readline() == BUG
        with file.open("a") as log:
            log.write('"}\n' + STARTED)
        assert out.readline() == '{"event": "half"}\n'
        assert out.readline() == STARTED
        file.rename(file.with_suffix(".1"))
        file.write_text(FAILED)
        assert out.readline() == FAILED
        file.write_text(BUG)
        assert out.readline() == BUG
        process.send_signal(2)


@pytest.mark.parametrize(("options", "none"), [
    ("--run nobody", "there are no log lines about run nobody"),
    ("--run 0190-a --level error", "about run 0190-a of level error or higher"),
    ("--search nowhere", "there are no log lines with 'nowhere'"),
])  # fmt: skip
def test_no_lines_are_said(goclaw: Shell, file: Path, options: str, none: str) -> None:
    got = goclaw("logs", *options.split())
    assert (got.code, got.out) == (0, "")
    assert got.err.endswith(f"{none}\n")


def test_lines_are_searched_for_a_text(goclaw: Shell, file: Path) -> None:
    assert goclaw("logs", "--search", "RUN_FAILED", "--json").out == FAILED


@pytest.mark.parametrize("wide", [False, True])
def test_a_terminal_shows_what_says_something(wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "shows_whole", lambda: wide)
    facts = {"event": "x", "level": "info", "logger": "a.b", "reason": None, "cost_usd": 4e-05}
    more = ["logger=a.b", "reason=null"] if wide else []
    assert logs.log_line(facts).split() == ["info", "x", *more, "cost_usd=0.00004"]


def test_without_a_gateway_the_age_of_the_file_is_said(goclaw: Shell, file: Path) -> None:
    long_ago = file.stat().st_mtime - 3 * 3600
    os.utime(file, (long_ago, long_ago))
    got = goclaw("logs", "-n", "1")
    assert got.err == f"goclaw: no gateway is running here; {file} was last written 3 h ago\n"


@pytest.mark.real_time
@pytest.mark.parametrize(("written_s", "shown"), [(-3600, BUG), (3600, STARTED)])
def test_only_the_file_of_the_running_gateway_is_shown(
    goclaw: Shell, gateway: ThreadGateway, home: Path, written_s: int, shown: str
) -> None:
    gateway.logs.add(json.loads(BUG), 100)
    file = home / "state" / "goclaw.log"
    file.write_text(STARTED)
    at = file.stat().st_mtime + written_s
    os.utime(file, (at, at))
    got = goclaw("logs", "--json")
    assert (got.out, got.err) == (shown, "")


@pytest.mark.real_time
def test_without_a_file_the_gateway_is_asked(goclaw: Shell, gateway: ThreadGateway) -> None:
    for text in (STARTED, FAILED, BUG):
        gateway.logs.add(json.loads(text), 100)
    got = goclaw("logs", "-n", "2")
    assert (got.code, got.err) == (0, "")
    failed, bug = got.out.splitlines()
    assert ("run_failed" in failed, "inbox_message_failed" in bug) == (True, True)
    assert "\x1b" not in got.out
    assert goclaw("logs", "--run", "0190-a", "--json").out == STARTED
    assert goclaw("logs", "--level", "error", "--json").out == BUG
    assert "no log lines about run nobody" in goclaw("logs", "--run", "nobody").err


@pytest.mark.slow
@pytest.mark.real_time
def test_the_lines_of_a_gateway_are_followed(gateway: ThreadGateway) -> None:
    gateway.logs.add(json.loads(STARTED), 100)
    with piped("logs", "-f", "--json") as (process, out):
        assert out.readline() == STARTED
        gateway.logs.add(json.loads(BUG), 100)
        assert out.readline() == BUG
        process.send_signal(2)


def test_without_a_file_and_a_gateway_it_is_said(goclaw: Shell) -> None:
    got = goclaw("logs")
    assert got.code == 1
    assert "no gateway is running here" in got.err
