"""What a person sees of a long operation, and a program does not (SPEC OPS-1)."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from goclaw_py.app.progress import ProgressStep
from goclaw_py.cli import composition
from goclaw_py.cli import progress as shown
from goclaw_py.cli.progress import amount, progress, report, say
from goclaw_py.config import Settings
from tests.unit.cli.conftest import Shell
from tests.unit.web.fakes import FakeControl

pytestmark = pytest.mark.real_time

PATIENCE_S = 10.0


class Screen(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        return True

    def sees(self, *texts: str) -> None:
        """Wait until all these texts were written."""
        end = time.monotonic() + PATIENCE_S
        while missing := [text for text in texts if text not in self.getvalue()]:
            assert time.monotonic() < end, f"{missing} not in {self.getvalue()!r}"
            time.sleep(0.01)


SitDown = Callable[[], Screen]


@pytest.fixture
def sit_down(monkeypatch: pytest.MonkeyPatch) -> SitDown:
    """Return a terminal on which everything is shown at once.

    The test calls it, because pytest replaces standard error after the fixtures.
    """

    def sit() -> Screen:
        monkeypatch.setattr("sys.stderr", made := Screen())
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("GOCLAW_PROGRESS", raising=False)
        monkeypatch.setattr(shown, "BAR_AT_ONCE_S", 0.0)
        return made

    return sit


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (ProgressStep("x"), ""),
        (ProgressStep("x", 3, unit="jobs"), "3 jobs"),
        (ProgressStep("x", 0, 4000, "jobs"), "0 of 4,000 jobs"),
        (ProgressStep("x", 1200, 4000), "1,200 of 4,000"),
        (ProgressStep("x", 2_000_000, unit="bytes"), "2.0 MB"),
        (ProgressStep("x", 2_000_000, 4_040_000, "bytes"), "2.0 of 4.0 MB"),
    ],
)
def test_an_amount_has_its_unit(step: ProgressStep, expected: str) -> None:
    assert amount(step) == expected


def test_what_ends_at_once_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", made := Screen())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("GOCLAW_PROGRESS", raising=False)
    with progress("counting"):
        report(ProgressStep("counting", 1, 2))
    assert made.getvalue() == ""


def test_a_terminal_gets_a_bar_that_is_removed(sit_down: SitDown) -> None:
    screen = sit_down()
    with progress("counting [bold]sheep\x1b[5m"):
        screen.sees("counting [bold]sheep[5m")
        report(ProgressStep("counting goats", 1, 4, "goats"))
        screen.sees("counting goats", " 25%", "1 of 4 goats")
    assert screen.getvalue().endswith("\x1b[2K")
    assert "\x1b[?25h" in screen.getvalue()  # the cursor is back


def test_an_error_removes_the_bar(sit_down: SitDown) -> None:
    screen = sit_down()

    def count() -> None:
        with progress("counting"):
            screen.sees("counting")
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        count()
    assert screen.getvalue().endswith("\x1b[2K")
    with progress("again"):
        screen.sees("again")


def test_an_inner_operation_uses_the_display_of_the_outer_one(sit_down: SitDown) -> None:
    screen = sit_down()
    with progress("outer"):
        screen.sees("outer")
        with progress("inner"):
            screen.sees("inner")
        report(ProgressStep("still outer"))
        screen.sees("still outer")
        assert [one.name for one in threading.enumerate()].count("progress") == 1


def test_it_can_be_turned_off(sit_down: SitDown, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = sit_down()
    monkeypatch.setenv("GOCLAW_PROGRESS", "off")
    monkeypatch.setattr(shown, "LINE_EVERY_S", 0.0)
    for lines in (False, True):
        with progress("counting", lines=lines):
            time.sleep(0.05)
    assert screen.getvalue() == ""


def test_a_line_stays_above_the_bar(sit_down: SitDown) -> None:
    screen = sit_down()
    with progress("counting"):
        screen.sees("counting")
        say("one line [red]")
        screen.sees("one line [red]\n")
    say("after it")
    assert screen.getvalue().endswith("after it\n")


@pytest.mark.parametrize(("term", "is_tty"), [("xterm", False), ("dumb", True), ("", True)])
def test_without_a_movable_cursor_there_are_lines(
    term: str, is_tty: bool, sit_down: SitDown, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = sit_down()
    monkeypatch.setattr(screen, "isatty", lambda: is_tty)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(shown, "LINE_EVERY_S", 0.01)
    with progress("saving"):
        screen.sees("goclaw: saving (0 s)\n")
        report(ProgressStep("saving", 1_000_000, unit="bytes"))
        screen.sees("goclaw: saving: 1.0 MB (0 s)\n")
    assert "\x1b" not in screen.getvalue()


SHOWING = """
import time
from goclaw_py.app.progress import ProgressStep
from goclaw_py.cli.progress import progress
with progress("saving") as tell:
    tell(ProgressStep("saving inbox", 2_000_000, 4_000_000, "bytes"))
    print("done", flush=True)
    time.sleep(1.5)
"""


def test_standard_output_has_only_the_result() -> None:
    ours, theirs = pty.openpty()
    env = os.environ | {"TERM": "xterm", "COLUMNS": "120", "NO_COLOR": "1", "GOCLAW_PROGRESS": ""}
    code = [sys.executable, "-c", SHOWING]
    out = subprocess.run(code, stdout=subprocess.PIPE, stderr=theirs, env=env, check=True).stdout
    os.close(theirs)
    seen = os.read(ours, 65536).decode()
    os.close(ours)
    assert "saving inbox" in seen
    assert "2.0 of 4.0 MB" in seen
    assert "\x1b[3" not in seen  # no colour
    assert out == b"done\n"
    piped = subprocess.run(code, capture_output=True, env=env, check=True)
    assert (piped.stdout, piped.stderr) == (b"done\n", b"")


def test_every_question_to_gateway_or_database_has_a_display(
    goclaw: Shell, database: FakeControl, sit_down: SitDown, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = sit_down()

    async def migrate(_settings: Settings) -> list[str]:
        screen.sees("applying migrations")
        return ["0001_x.up.sql"]

    monkeypatch.setattr(composition, "migrate", migrate)
    got = goclaw("migrate")
    assert (got.code, got.out) == (0, "applied 0001_x.up.sql\n")
    got = goclaw("jobs", "list", "--json")
    assert (got.code, "\x1b" in got.out) == (0, False)
