"""The newest log lines in memory: which are kept, and which are found (SPEC OPS-5)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from goclaw_py.app.log_ring import LogRing
from goclaw_py.app.logs import configure
from goclaw_py.config import Settings
from goclaw_py.config.models import Log, LogFormat
from goclaw_py.core.redaction import HIDDEN
from goclaw_py.observability.log_lines import LogFilter, LogTail

ALL = LogFilter()
ANN = "agent:main:telegram:direct:42"
GROUP = "agent:other:telegram.second:group:-7:thread:3"

LINES: list[dict[str, Any]] = [
    {"event": "gateway_ready", "level": "info", "node": "n-1"},
    {"event": "run_started", "level": "info", "run_id": "01-a", "session": ANN, "agent": "main",
     "sender": "telegram/default/42"},
    {"event": "run_started", "level": "info", "run_id": "01-b", "session": GROUP, "agent": "other",
     "sender": "telegram/second/42"},
    {"event": "model_request_retry", "level": "warning", "run_id": "01-b", "session": GROUP,
     "error": "Zeitüberschreitung (.*)", "retry_in_s": 2.5},
    {"event": "free text of a library", "level": "critical", "session": 7, "run_id": None},
    {"event": "x", "level": "own", "nested": {"text": "deep <b>"}},
]  # fmt: skip


def filled(**limits: int) -> LogRing:
    ring = LogRing(**limits)
    for line in LINES:
        ring.add(line, 100)
    return ring


def numbers(tail: LogTail) -> list[int]:
    return [LINES.index(line) for line in tail.lines]


@pytest.mark.parametrize(("only", "found"), [
    (LogFilter(), [0, 1, 2, 3, 4, 5]),
    (LogFilter(level="warning"), [3, 4]),
    (LogFilter(level="critical"), [4]),
    (LogFilter(level="debug"), [0, 1, 2, 3, 4, 5]),
    (LogFilter(agent="main"), [1]),
    (LogFilter(agent="other"), [2, 3]),
    (LogFilter(agent="othe"), []),
    (LogFilter(run="01-b"), [2, 3]),
    (LogFilter(run="01"), [1, 2, 3]),
    (LogFilter(session=ANN), [1]),
    (LogFilter(session="agent:main"), []),
    (LogFilter(person="telegram/default/42"), [1]),
    # What a group's run does is found by the sender of its first line.
    (LogFilter(person="telegram/second/42"), [2, 3]),
    (LogFilter(person="telegram/default/-7"), []),
    (LogFilter(search="RUN_STARTED"), [1, 2]),
    (LogFilter(search="zeitÜBER"), [3]),
    (LogFilter(search="(.*)"), [3]),
    (LogFilter(search="["), []),
    (LogFilter(search="retry_in_s=2.5"), [3]),
    (LogFilter(search="deep <b>"), [5]),
    (LogFilter(level="info", search="run", agent="other", run="01-b", session=GROUP), [2, 3]),
])  # fmt: skip
def test_lines_are_selected(only: LogFilter, found: list[int]) -> None:
    assert numbers(filled().tail(only, limit=100)) == found


def test_the_oldest_lines_are_dropped_at_either_limit() -> None:
    assert numbers(filled(lines=2).tail(ALL, limit=100)) == [4, 5]
    assert numbers(filled(chars=350).tail(ALL, limit=100)) == [3, 4, 5]
    # One line that is longer than all is kept: it is the newest.
    assert numbers(filled(chars=1).tail(ALL, limit=100)) == [5]


def test_only_new_lines_follow_a_place() -> None:
    ring = filled()
    first = ring.tail(ALL, limit=2)
    assert (numbers(first), first.left_out) == ([4, 5], 4)
    assert ring.tail(ALL, limit=2, after=first.place) == LogTail(first.place)
    ring.add(LINES[0], 100)
    ring.add(LINES[3], 100)
    # A place moves on behind lines that are not selected.
    second = ring.tail(LogFilter(level="warning"), limit=2, after=first.place)
    assert numbers(second) == [3]
    assert ring.tail(ALL, limit=9, after=second.place).lines == ()


@pytest.mark.parametrize("strange", ["", "x", "-", "other-3", "{}-", "{}-x", "{}--1", "{}-²"])
def test_a_place_that_is_not_of_this_process_is_the_beginning(strange: str) -> None:
    ring = filled()
    process = ring.tail(ALL, limit=1).place.partition("-")[0]
    assert len(ring.tail(ALL, limit=9, after=strange.format(process)).lines) == len(LINES)
    beyond = ring.tail(ALL, limit=9, after=f"{process}-{'9' * 5000}")
    assert beyond.lines == ()


@pytest.mark.usefixtures("log_as_before")
@pytest.mark.parametrize("form", [LogFormat.CONSOLE, LogFormat.JSON])
def test_the_ring_has_what_the_log_has(tmp_path: Path, form: LogFormat) -> None:
    """SEC-2: without secrets, and not what the level excludes."""
    ring = LogRing()
    secret = "sk-" + "0123456789abcdef" * 2
    configure(Settings(log=Log(format=form)), file=tmp_path / "log", secrets=[secret], ring=ring)
    log = logging.getLogger("goclaw_py.test")
    log.debug("too_quiet")
    log.warning(
        "key %s", secret, extra={"run_id": "01", "url": f"x?{secret}", "long": "y" * 99_999}
    )
    try:
        raise ValueError(secret)
    except ValueError:
        log.exception("it_failed")
    written = (tmp_path / "log").read_text()
    first, second = ring.tail(ALL, limit=9).lines
    assert first["event"] == f"key {HIDDEN}"
    assert (first["url"], first["run_id"], first["level"]) == (f"x?{HIDDEN}", "01", "warning")
    assert len(first["long"]) < 33_000
    assert f"ValueError: {HIDDEN}" in second["exception"]
    assert secret not in written + repr((first, second))
    assert "it_failed" in written
