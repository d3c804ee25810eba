"""Progress of long work: for a person at a terminal, for nobody else (SPEC OPS-1)."""

from __future__ import annotations

import io

import pytest

from goclaw_py.cli import composition
from goclaw_py.cli.terminal import working
from goclaw_py.config import Settings
from tests.unit.cli.conftest import Shell
from tests.unit.web.fakes import FakeControl


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def migrates(monkeypatch: pytest.MonkeyPatch) -> None:
    async def migrate(_settings: Settings) -> list[str]:
        return ["0001_x.up.sql"]

    monkeypatch.setattr(composition, "migrate", migrate)


def test_in_a_pipe_nothing_is_shown_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    with working("counting"):
        pass
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_it_is_shown_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with working("counting [bold]sheep"):
        pass
    shown = screen.getvalue()
    assert "counting [bold]sheep" in shown
    assert shown.rstrip().endswith("\x1b[2K")


def test_how_much_is_done_is_shown_as_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with working("counting", bar=True) as tell:
        tell(0.25)
    assert " 25%" in screen.getvalue()


def test_work_that_breaks_leaves_the_terminal_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(ValueError, match="broken"), working("counting"):
        raise ValueError("broken")
    assert "\x1b[?25h" in screen.getvalue()  # the cursor is back


@pytest.mark.parametrize("command", [["migrate"], ["simulate", "--days", "1"]])
def test_long_commands_show_it_beside_what_they_print(
    goclaw: Shell,
    database: FakeControl,
    migrates: None,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
) -> None:
    plain = goclaw(*command)
    assert (plain.code, plain.err) == (0, "")
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    got = goclaw(*command)
    assert got.code == 0
    assert "\x1b" not in got.out
    assert "\x1b" in screen.getvalue()
