"""``goclaw top``: a live view of the gateway (SPEC OPS-1)."""

from __future__ import annotations

import os
import re
import signal
import termios
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from goclaw_py.cli.names import DisplayNames
from goclaw_py.cli.output import clock
from goclaw_py.cli.top.details import brief_log, details
from goclaw_py.cli.top.keys import TopState, TopTab
from goclaw_py.cli.top.screen import TopView, screen
from goclaw_py.core.ids import LaneName, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome
from goclaw_py.operations.runs.operations import RunRecord
from goclaw_py.runs.step_views import step_view
from goclaw_py.scheduler.operator_warnings import OperatorWarning
from goclaw_py.scheduler.views import Backlog, GatewayStatus, LaneView, RunProgress, RunState
from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.cli.processes import PATIENCE_S, Viewer, viewer_at
from tests.unit.web import fakes

DOING = RunProgress("count the \x1b[2J[red]sheep", ("read_file",), "claude-large", 12_345)
RUNNING = replace(fakes.RUNNING, id=RunId("0190-aaaa-bbbb-ccc-dddd"), activity=DOING)
BUSY = replace(fakes.STATUS, runs=(RUNNING, fakes.WAITING))
NAMES: dict[str, str] = {fakes.SESSION: "Ann"}
FIRST = TopState()
TOTALS = "4.2 messages/min  0.0 runs/min  $0.1800 today"
FAILED = replace(
    fakes.ENDED, id=RunId("0190-ffff"), outcome=Outcome.FAILED, reason=None, prompt="sing",
    error="401: wrong key",
)  # fmt: skip


def lines_of(
    view: TopView, columns: int = 80, rows: int = 24, state: TopState = FIRST
) -> list[str]:
    return [line.plain.rstrip() for line in screen(view, state, columns, rows)[0]]


def shown(status: GatewayStatus, columns: int = 80, rows: int = 24) -> list[str]:
    view = TopView(status, NAMES, totals=TOTALS)
    return [" ".join(line.split()) for line in lines_of(view, columns, rows)]


def test_it_shows_what_runs_and_waits_and_what_is_wrong() -> None:
    lines = shown(BUSY, columns=120)
    assert lines[0].startswith("goclaw 0.1.0 running up 2 h ")
    assert lines[0].endswith(" database embedded")
    assert lines[1:-1] == [
        "4.2 messages/min 0.0 runs/min $0.1800 today",
        "messages 1 unfinished, 0 failed deliveries 2 waiting, 3 failed 0 approvals",
        "! The disk is nearly full",
        "[1 Runs] 2 Ended 3 Failed 4 Log",
        "",
        "LANE ACTIVE WAITING FINISHED CANCELLED FAILED",
        "main 1/2 0 3 1 0",
        "",
        "RUNNING FOR SESSION PROMPT TOOL TOKENS MODEL",
        "> 0190-aaaa-bbbb-ccc 1.5 s Ann count the [2J[red]sheep read_file 12,345 claude-large",
        "",
        "WAITING FOR SESSION WAITS FOR",
        "0190-cccc 3.2 s agent:main:api:a/b c%2F?# lane main: no slot is free",
        *[""] * 9,
    ]
    assert lines[-1].startswith("? keys q quit ")


@pytest.mark.parametrize(("change", "line"), [
    (replace(BUSY, runs=()), "nothing is running"),
    (replace(BUSY, runs=()), "no run is queued"),
    (replace(BUSY, lanes=()), "no lanes"),
    (replace(BUSY, backlog=None), "backlog unknown"),
    (replace(BUSY, backlog=Backlog(0, 0, 0, approvals=1)),
     "messages 0 unfinished, 0 failed deliveries 0 waiting, 0 failed 1 approval"),
    (replace(BUSY, runs=(replace(RUNNING, state=RunState.STOPPING),)), "stopping"),
    (replace(BUSY, runs=(replace(RUNNING, activity=None),)), "> 0190-aaaa-bbbb-ccc 1.5 s Ann"),
    (replace(BUSY, draining=True), "draining"),
])  # fmt: skip
def test_it_says_what_is_missing_or_ends(change: GatewayStatus, line: str) -> None:
    assert any(line in each for each in shown(change))


MANY = replace(
    BUSY,
    lanes=tuple(LaneView(LaneName(f"lane-{n}"), 2, 1, 0, 0, 0, 0, 0) for n in range(30)),
    runs=tuple(
        replace(one, id=RunId(f"{n:04}"))
        for n, one in enumerate([RUNNING] * 40 + [fakes.WAITING] * 50)
    ),
    warnings=tuple(OperatorWarning("x", f"warning {n}", "x" * 200) for n in range(10)),
)


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (80, 12), (200, 60), (40, 24), (20, 6)])
def test_it_fits_and_cuts_by_priority(columns: int, rows: int) -> None:
    lines = shown(MANY, columns, rows)
    assert len(lines) == max(rows, 9)
    assert lines[3].startswith("! warning 0")
    more = lines.index("! … and 8 more")
    assert lines[more - 1].startswith("! warning 1")
    assert lines[more + 1].startswith("[1 Runs]")


def test_the_first_problem_is_whole_on_a_usual_terminal() -> None:
    """Cut, it would end before its cause."""
    text = "messages wait for telegram/default, which no live node has, since two days or longer"
    warnings = tuple(OperatorWarning("x", f"{n} and more", text) for n in range(2))
    lines = shown(replace(BUSY, warnings=warnings), 80, 24)
    first, rest, second = lines[3:6]
    assert f"{first} {rest}" == f"! 0 and more {text}"
    assert (second[:12], second[-1]) == ("! 1 and more", "…")
    assert shown(replace(BUSY, warnings=warnings), 80, 12)[3].endswith("…")


def test_the_rest_of_the_screen_is_shared() -> None:
    lines = shown(replace(MANY, lanes=BUSY.lanes, warnings=()))
    assert [line for line in lines if line.startswith("…")] == ["… and 33 more", "… and 47 more"]
    # Without waiting ones there is room for more running ones.
    lines = shown(replace(MANY, lanes=BUSY.lanes, warnings=(), runs=MANY.runs[:40]))
    assert [line for line in lines if line.startswith("…")] == ["… and 30 more"]


@pytest.mark.parametrize("number", [0, 1, 20, 39, 40, 60, 89])
def test_the_selected_run_is_visible(number: int) -> None:
    state = TopState(selected=MANY.runs[number].id)
    marked = [line for line in lines_of(TopView(MANY), state=state) if line.startswith("> ")]
    assert [line.split()[1] for line in marked] == [f"{number:04}"]


HOSTILE = {
    "markup": "<script>[bold]x[/]" + "n" * 60,
    "rtl": "\u202eevil\u202c " + "שלום עולם " * 20,
    "emoji": "👩‍👩‍👧 🇩🇪 é " * 30,
    "cjk": "日本語" * 1366,
    "long": "n" * 4096,
    "controls": "two\nlines\r\nthree\u2028four\x1b[2J\x1b]0;owned\x07\t.\ud800",
}


@pytest.mark.parametrize("columns", [40, 80, 120, 200])
@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_no_name_breaks_a_line(name: str, columns: int) -> None:
    """SEC-1."""
    run = replace(RUNNING, session=SessionKey("k"), activity=replace(DOING, prompt=name))
    status = replace(BUSY, runs=(run, replace(fakes.WAITING, session=SessionKey("k"))))
    failed = replace(FAILED, session=SessionKey("k"), error=name, prompt=name)
    record = RunRecord(
        failed, tuple(replace(e, entry=replace(e.entry, text=name)) for e in fakes.HISTORY), ()
    )
    names = {"k": name}
    view = TopView(
        status,
        names,
        name,
        name,
        [failed],
        details(record, run, fakes.WHY, DisplayNames(names)),
        [name],
    )
    states = [
        TopState(),
        *(TopState(tab=tab) for tab in TopTab if tab is not TopTab.RUNS),
        TopState(opened=run.id),
    ]
    for state in [*states, TopState(stopping=run.id), TopState(notice=name)]:
        lines = [line.plain for line in screen(view, state, columns, 24)[0]]
        assert len(lines) == 24
        assert max(map(cell_len, lines)) <= columns
        assert not any(char in "\n\r\x1b\x07\u202e\u2028\ud800" for line in lines for char in line)


@pytest.mark.parametrize(("tab", "head", "row", "none"), [
    (TopTab.ENDED, "ENDED STARTED SESSION OUTCOME PROMPT", "> 0190-ffff now Ann failed sing",
     "no run has ended yet"),
    (TopTab.FAILED, "FAILED STARTED SESSION OUTCOME ERROR PROMPT",
     "> 0190-ffff now Ann failed 401: wrong key sing", "no run has failed"),
])  # fmt: skip
def test_what_ended_and_failed_are_lists(tab: TopTab, head: str, row: str, none: str) -> None:
    lines = lines_of(TopView(BUSY, NAMES, ended=[FAILED]), 120, state=TopState(tab=tab))
    assert [" ".join(line.split()) for line in lines[6:8]] == [head, row]
    assert none in lines_of(TopView(BUSY), state=TopState(tab=tab))[7]


@pytest.mark.parametrize(("ended", "rest"), [(99, ""), (100, " of the newest 100")])
def test_more_than_the_newest_runs_may_have_ended(ended: int, rest: str) -> None:
    view = TopView(BUSY, NAMES, ended=[FAILED] * ended)
    lines = lines_of(view, 120, state=TopState(tab=TopTab.ENDED))
    (more,) = [line.strip() for line in lines if "… and" in line]
    assert re.fullmatch(rf"… and \d+ more{rest}", more), more


def test_a_line_of_the_log_is_whole() -> None:
    view = TopView(BUSY, log=["first", "03:04:05 " + "x" * 150 + " end"])
    lines = lines_of(view, 80, state=TopState(tab=TopTab.LOG))
    assert "".join(lines[5:-1]).count("x") == 150
    assert any(line.endswith("end") for line in lines)


def test_a_run_is_shown_with_its_reason_steps_and_messages() -> None:
    steps = tuple(step_view(one.number, one.step) for one in fakes.STEPS)
    record = RunRecord(FAILED, tuple(fakes.HISTORY), (), steps)
    text = details(record, None, fakes.WHY, DisplayNames(NAMES))
    assert text[0] == "Run 0190-aaaa failed: no such model."
    assert f"session     Ann ({fakes.SESSION})" in text
    assert text[text.index("Prompt") + 1] == "Grüße [2J"
    assert text[text.index("Steps") + 2] == '  2  call      pay  {"to": "ann"}'
    assert text[text.index("Answer") + 1] == "yes"


def test_a_log_line_shows_the_result_in_80_columns() -> None:
    ended = {
        "run_id": "01a1fc4d-9ec0-7d8e-a014-a6e8cdea6fb9",
        "session": "agent:main:telegram:direct:5",
        "agent": "main",
        "outcome": "failed",
        "duration_s": 4.207,
        "event": "run_ended",
        "level": "info",
        "logger": "goclaw_py.runs.run_log",
        "timestamp": BUSY.now.isoformat(),
    }
    (line,) = brief_log([ended], clock(BUSY.now))
    assert line.startswith("03:04:05  info     run_ended  outcome=failed  agent=main  duration_s=")
    assert "agent=main  duration_s=4.207  run_id=01a1fc4d-9ec0-7d8e " in line
    view = TopView(BUSY)
    state = TopState(tab=TopTab.LOG, log_of=RUNNING.id)
    assert "no line names this run yet; one comes when it ends" in lines_of(view, state=state)


def test_the_question_whether_to_stop_a_run_is_whole_in_80_columns() -> None:
    twin = replace(RUNNING, id=RunId("0190-aaaa-bbbb-cccc-dddd"))
    view = TopView(replace(BUSY, runs=(RUNNING, twin)), {RUNNING.session: "A long name " * 9})
    foot = lines_of(view, state=TopState(stopping=RUNNING.id))[-1]
    assert foot.startswith("Stop run 0190-aaaa")
    assert foot.endswith("…? y: stop, any other key: no")


def test_a_run_that_waits_says_for_what() -> None:
    text = details(None, fakes.WAITING, None, DisplayNames())
    assert "waiting     for 3.2 s: lane main: no slot is free" in text
    assert details(None, None, None, DisplayNames()) == []


def test_a_gateway_that_is_gone_is_waited_for() -> None:
    view = TopView(BUSY, NAMES, problem="no gateway is running here")
    lines = lines_of(view)
    assert lines[3] == "! no gateway is running here; waiting for it"
    assert any("read_file" in line for line in lines)


# ---------------------------------------------------------------------------- a real terminal


@pytest.fixture
def viewer(gateway: ThreadGateway) -> Iterator[Viewer]:
    gateway.control.snapshot = BUSY
    with viewer_at("top") as made:
        made.waits_until(lambda: any("count the" in line for line in made.lines))
        yield made


def sees(viewer: Viewer, *words: str) -> None:
    viewer.waits_until(lambda: all(word in "\n".join(viewer.lines) for word in words))


@pytest.mark.real_time
def test_a_person_opens_and_stops_a_run_and_ends_with_q(
    viewer: Viewer, gateway: ThreadGateway
) -> None:
    assert any("read_file" in line for line in viewer.lines)
    viewer.types("\x1b[B")
    sees(viewer, "> 0190-cccc")
    viewer.types("k\r")
    sees(viewer, "no such model", "Esc back")
    viewer.types("\x1b")
    sees(viewer, "> 0190-aaaa", "q quit")
    viewer.types("s")
    sees(viewer, "Stop what runs for")
    viewer.types("y")
    sees(viewer, "It is stopping already.")
    assert ("stop", fakes.SESSION, False, RUNNING.id) in gateway.control.calls
    viewer.types("\t")
    sees(viewer, "[2 Ended]", "0190-aaaa")
    viewer.types("4")
    sees(viewer, "no log lines")
    viewer.types("?")
    sees(viewer, "Any key closes this list.")
    viewer.types(" 1")
    # It is asked again.
    gateway.control.snapshot = replace(BUSY, runs=())
    sees(viewer, "nothing is running")
    viewer.types("xq")
    assert viewer.process.wait(PATIENCE_S) == 0


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.parametrize(("ending", "code"), [("ctrl-c", 0), ("signal", 143), ("q", 0)])
def test_it_ends_and_restores_the_terminal(viewer: Viewer, ending: str, code: int) -> None:
    assert not termios.tcgetattr(viewer.keys)[3] & termios.ICANON
    match ending:
        case "ctrl-c":
            viewer.presses(signal.SIGINT)
        case "signal":
            viewer.presses(signal.SIGTERM)
        case _:
            viewer.types("q")
    assert viewer.process.wait(PATIENCE_S) == code
    modes = termios.tcgetattr(viewer.keys)[3]
    assert modes & termios.ICANON
    assert modes & termios.ECHO


@pytest.mark.slow
@pytest.mark.real_time
def test_after_a_suspension_keys_work_again(viewer: Viewer) -> None:
    viewer.presses(signal.SIGTSTP)
    _, status = os.waitpid(viewer.process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    assert termios.tcgetattr(viewer.keys)[3] & termios.ICANON
    viewer.presses(signal.SIGCONT)
    viewer.waits_until(lambda: not termios.tcgetattr(viewer.keys)[3] & termios.ICANON)
    viewer.types("?")
    sees(viewer, "Any key closes this list.")
    viewer.types(" q")
    assert viewer.process.wait(PATIENCE_S) == 0


@pytest.mark.slow
@pytest.mark.real_time
def test_it_waits_for_a_gateway_that_comes_back(
    viewer: Viewer, gateway: ThreadGateway, home: Path
) -> None:
    gateway.stop()
    sees(viewer, "waiting for it", "read_file")
    again = ThreadGateway(home)
    again.control.snapshot = replace(BUSY, release="9.9.9")
    with again.running():
        sees(viewer, "goclaw 9.9.9")
        viewer.waits_until(lambda: "waiting for it" not in "\n".join(viewer.lines))
        viewer.types("q")
        assert viewer.process.wait(PATIENCE_S) == 0


@pytest.mark.slow
@pytest.mark.real_time
def test_it_follows_the_size_of_the_terminal_and_needs_no_colour(
    gateway: ThreadGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    gateway.control.snapshot = BUSY
    with viewer_at("top", rows=30, columns=120) as viewer:
        sees(viewer, "claude-large", "> 0190-aaaa")
        viewer.resizes(rows=20, columns=60)
        viewer.waits_until(lambda: "q quit" in viewer.lines[-1] and len(viewer.lines) == 20)
        sees(viewer, "> 0190-aaaa")
        viewer.types("q")
        assert viewer.process.wait(PATIENCE_S) == 0


@pytest.mark.slow
@pytest.mark.real_time
def test_without_a_gateway_or_a_terminal_it_says_so(goclaw: Shell) -> None:
    got = goclaw("top")
    assert (got.code, got.out) == (2, "")
    assert "needs a terminal" in got.err
    with viewer_at("top") as viewer:
        viewer.waits_until(lambda: "goclaw: no gateway" in "\n".join(viewer.lines))
        assert viewer.process.wait(PATIENCE_S) == 3
