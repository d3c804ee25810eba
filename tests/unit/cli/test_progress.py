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


def test_in_a_pipe_nothing_is_shown_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    with working("counting"):
        pass
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_it_is_shown_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", screen := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with working("counting [bold]sheep"):
        pass
    shown = screen.getvalue()
    assert "counting [bold]sheep" in shown
    assert shown.rstrip().endswith("\x1b[2K")
    with working("counting", bar=True) as tell:
        tell(0.25)
    assert " 25%" in screen.getvalue()
    screen.truncate(0)
    with pytest.raises(ValueError, match="broken"), working("counting"):
        raise ValueError("broken")
    assert "\x1b[?25h" in screen.getvalue()  # the cursor is back


def test_long_commands_show_it_beside_what_they_print(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def migrate(_settings: Settings) -> list[str]:
        return ["0001_x.up.sql"]

    monkeypatch.setattr(composition, "migrate", migrate)
    monkeypatch.setenv("TERM", "xterm")
    for command in (["migrate"], ["simulate", "--days", "1"]):
        plain = goclaw(*command)
        assert (plain.code, plain.err) == (0, "")
        with monkeypatch.context() as patched:
            patched.setattr("sys.stderr", screen := Terminal())
            got = goclaw(*command)
        assert got.code == 0
        assert "\x1b" not in got.out
        assert "\x1b" in screen.getvalue()
