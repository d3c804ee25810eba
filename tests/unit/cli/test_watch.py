"""``--watch``: the same again and again, on terminals, in pipes and for programs (SPEC OPS-1)."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pytest
from rich.cells import cell_len

from goclaw_py.cli import watch as watching
from goclaw_py.cli.entry import run
from goclaw_py.cli.messages import display
from goclaw_py.cli.output import clock
from goclaw_py.cli.watch import Display, JsonDocuments, Paper
from goclaw_py.core.errors import NoGateway, NotFound
from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.cli.processes import piped
from tests.unit.web import fakes
from tests.unit.web.fakes import FakeControl

WATCHED = (
    ["status"],
    ["lanes"],
    ["queue", "console"],
    ["runs", "list"],
    ["inbox", "list"],
    ["outbox", "list"],
    ["cron", "list"],
    ["heartbeat", "status"],
)
LIVE = (["status"], ["lanes"])


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(display, "now", lambda: fakes.NOW)
    return clock(fakes.NOW)


def test_a_display_shows_what_fits_and_counts_the_rest(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setenv("COLUMNS", "12")
    display = Display()
    text = "\n".join(f"line {number}" for number in range(100))
    display.show(text)
    first = capsys.readouterr().out
    assert first.startswith("\x1b[H\x1b[2J")
    assert first.count("\n") == 9
    assert "line 5" in first
    assert "… and 94 mor" in first
    assert "Ctrl-C" not in first  # the terminal is too narrow for it
    display.show(text)
    assert "\x1b[2J" not in capsys.readouterr().out


@pytest.mark.parametrize("line", ["x" * 200, "日本" * 60, "é" * 200])
def test_a_line_never_takes_two_lines_of_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setenv("COLUMNS", "41")
    Display().show(line)
    shown = capsys.readouterr().out.splitlines()[2].removesuffix("\x1b[K")
    assert 40 <= cell_len(shown) <= 41


def test_a_lost_gateway_leaves_nothing_old(capsys: pytest.CaptureFixture[str], at: str) -> None:
    display = Display()
    display.show("all is well")
    capsys.readouterr()
    display.gone("no gateway answers\nwaiting for a gateway")
    out = capsys.readouterr().out
    assert "no gateway answers" in out
    assert "waiting for a gateway" in out
    assert "all is well" not in out
    assert f"last answer at {at}" in out
    assert out.endswith("\x1b[J")  # what stood below is wiped


def test_on_paper_the_same_is_told_once(capsys: pytest.CaptureFixture[str], at: str) -> None:
    paper = Paper()
    paper.gone("gone\nwaiting")
    paper.gone("gone\nwaiting")
    paper.show("here")
    paper.gone("gone\nwaiting")
    out, err = capsys.readouterr()
    assert err == "goclaw: gone; waiting\n" * 2
    assert out == f"{at}\nhere\n\n"
    for remark in ("beware", "beware", "", "beware"):
        paper.show("x", remark)
    assert capsys.readouterr().err == "beware\nbeware\n"


def test_for_programs_each_look_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = JsonDocuments()
    lines.show('{\n "a": "b\\nc"\n}')
    lines.show("[]")
    assert capsys.readouterr().out == '{"a":"b\\nc"}\n[]\n'


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What happens after each look; Ctrl-C when there is nothing left to happen."""
    steps: list[Callable[[], None]] = [lambda: None]

    def pause(_self: object, _seconds: float) -> None:
        if not steps:
            raise KeyboardInterrupt
        steps.pop(0)()

    monkeypatch.setattr(watching.Watching, "pause", pause)
    return steps


@pytest.mark.parametrize("command", WATCHED, ids=" ".join)
def test_a_pipe_gets_a_block_for_each_look_and_ctrl_c_is_no_failure(
    goclaw: Shell,
    gateway: ThreadGateway,
    looks: list[Callable[[], None]],
    at: str,
    command: list[str],
) -> None:
    once = goclaw(*command).out
    got = goclaw(*command, "--watch")
    assert got.code == 0
    assert got.err.count("\n") <= 1  # what is said beside it, once
    assert got.out.count(f"{at}\n") == 2
    assert "\x1b" not in got.out
    assert got.out.startswith(f"{at}\n{once.splitlines()[0]}\n")
    # Programs get a document a line.
    document = goclaw.data(*command)
    looks[:] = [lambda: None]
    got = goclaw(*command, "--watch=0.5", "--json")
    assert got.code == 0
    first, second = map(json.loads, got.out.splitlines())
    assert type(first) is type(second) is type(document)


@pytest.mark.parametrize("command", [one for one in WATCHED if one not in LIVE], ids=" ".join)
def test_without_a_gateway_the_database_is_watched(
    goclaw: Shell, database: FakeControl, looks: object, at: str, command: list[str]
) -> None:
    got = goclaw(*command, "--watch")
    assert got.code == 0
    assert got.out.count(f"{at}\n") == 2
    assert got.err.count("\n") <= 1  # what is said beside it, once


@pytest.mark.parametrize("command", LIVE, ids=" ".join)
def test_what_only_a_gateway_knows_waits_for_one(
    goclaw: Shell, database: FakeControl, looks: object, command: list[str]
) -> None:
    got = goclaw(*command, "--watch")
    assert (got.code, got.out, database.calls) == (0, "", [])
    assert got.err.count("waiting for a gateway") == 1


def test_a_gateway_that_comes_is_asked_from_then_on(
    goclaw: Shell, database: FakeControl, looks: list[Callable[[], None]]
) -> None:
    made = ThreadGateway(goclaw.home)
    running = made.running()
    looks[:] = [running.__enter__, lambda: None]
    try:
        assert goclaw("runs", "list", "--watch").code == 0
    finally:
        running.__exit__(None, None, None)
    asked = [call[0] for call in database.calls].count("runs")
    there = [call[0] for call in made.control.calls].count("runs")
    assert (asked, there) == (1, 2)


def test_a_database_that_is_away_is_waited_for(
    goclaw: Shell, database: FakeControl, looks: list[Callable[[], None]]
) -> None:
    database.failure = fakes.unavailable()
    looks[:] = [lambda: None, lambda: setattr(database, "failure", None)]
    got = goclaw("runs", "list", "--watch", "--json")
    assert got.code == 0
    assert got.err == "goclaw: the database does not answer; waiting for the database\n"
    assert len(json.loads(got.out)) == 2


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "x", "", "86401"])
def test_a_wrong_interval(goclaw: Shell, gateway: ThreadGateway, seconds: str) -> None:
    got = goclaw("status", f"--watch={seconds}")
    assert (got.code, got.out) == (2, "")


def test_the_word_behind_watch(goclaw: Shell, gateway: ThreadGateway, looks: object) -> None:
    assert goclaw("queue", "--watch", "console").code == 0
    assert goclaw("event", "--", "--watch", "out").code == 0  # a text may say so
    assert "--watch out" in repr(gateway.control.hearts.calls)
    # A mistake ends it as it would without.
    got = goclaw("queue", "nobody", "--watch")
    assert (got.code, got.out) == (1, "")
    assert got.err.startswith("goclaw: no session")


@pytest.mark.slow
def test_whoever_stops_reading_ends_it_quietly(gateway: ThreadGateway) -> None:
    with piped("status", "--watch=0.1") as (_, out):
        out.readline()
        out.close()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("command", WATCHED, ids=" ".join)
def test_a_terminal_is_filled_in_place(
    gateway: ThreadGateway, looks: object, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "40")
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    assert run([*command, "--watch"]) == 0
    shown = terminal.getvalue()
    assert shown.count("\x1b[2J") == 1
    assert shown.count("\x1b[J") == 2
    assert shown.endswith("\n")
    for screen in shown.split("\x1b[J")[:2]:
        assert screen.count("\n") <= 40


def test_no_gateway_is_passing_and_a_wrong_name_is_not() -> None:
    assert watching.is_passing(NoGateway("away"))
    assert watching.is_passing(fakes.unavailable())
    assert not watching.is_passing(NotFound("x"))
