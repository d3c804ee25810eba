"""``goclaw top``: a live view of the gateway (SPEC OPS-1)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest
from rich.console import Console

from goclaw_py.cli.top import screen
from goclaw_py.core.ids import LaneName, RunId
from goclaw_py.scheduler.operator_warnings import OperatorWarning
from goclaw_py.scheduler.views import Backlog, GatewayStatus, LaneView, RunProgress, RunState
from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.cli.processes import PATIENCE_S, Viewer, viewer_at
from tests.unit.web import fakes

DOING = RunProgress("count the \x1b[2J[red]sheep", ("read_file",), "claude-large", 12_345)
RUNNING = replace(fakes.RUNNING, id=RunId("0190-aaaa-bbbb-ccc-dddd"), activity=DOING)
BUSY = replace(fakes.STATUS, runs=(RUNNING, fakes.WAITING))


def shown(status: GatewayStatus, columns: int = 80, rows: int = 24) -> list[str]:
    console = Console(width=columns, height=rows, color_system=None)
    with console.capture() as capture:
        console.print(screen(status, {fakes.SESSION: "Ann"}, columns, rows))
    return [" ".join(line.split()) for line in capture.get().splitlines()]


def test_it_shows_what_runs_and_waits_and_what_is_wrong() -> None:
    lines = shown(BUSY, columns=120)
    assert lines[0].startswith("goclaw 0.1.0 running up 2 h ")
    assert lines[1:] == [
        "database embedded in 1 out 2 undeliverable 3 failed 0 0 approvals",
        "! The disk is nearly full",
        "",
        "LANE ACTIVE WAITING FINISHED CANCELLED FAILED",
        "main 1/2 0 3 1 0",
        "",
        "RUNNING FOR SESSION PROMPT TOOL TOKENS MODEL",
        "0190-aaaa-bbbb-ccc 1.5 s Ann count the [2J[red]sheep read_file 12,345 claude-large",
        "",
        "WAITING FOR SESSION WAITS FOR",
        "0190-cccc 3.2 s agent:main:api:a/b c%2F?# lane main: no slot is free",
    ]


@pytest.mark.parametrize(("change", "line"), [
    (replace(BUSY, runs=()), "nothing is running"),
    (replace(BUSY, runs=()), "nothing is waiting"),
    (replace(BUSY, lanes=()), "no lanes"),
    (replace(BUSY, backlog=None), "database embedded backlog unknown"),
    (replace(BUSY, backlog=Backlog(0, 0, 0, approvals=1)),
     "database embedded in 0 out 0 undeliverable 0 failed 0 1 approval"),
    (replace(BUSY, runs=(replace(RUNNING, state=RunState.STOPPING),)), "stopping"),
    (replace(BUSY, runs=(replace(RUNNING, activity=None),)), "0190-aaaa-bbbb-ccc 1.5 s Ann"),
    (replace(BUSY, draining=True), "draining"),
])  # fmt: skip
def test_it_says_what_is_missing_or_ends(change: GatewayStatus, line: str) -> None:
    assert any(line in each for each in shown(change))


MANY = replace(
    BUSY,
    lanes=tuple(LaneView(LaneName(f"lane-{n}"), 2, 1, 0, 0, 0, 0, 0) for n in range(30)),
    runs=(RUNNING,) * 40 + (fakes.WAITING,) * 50,
    warnings=tuple(OperatorWarning("x", f"warning {n}", "x" * 200) for n in range(10)),
)


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (80, 12), (200, 60), (40, 24)])
def test_it_fits_and_cuts_by_priority(columns: int, rows: int) -> None:
    lines = shown(MANY, columns, rows)
    assert len(lines) <= max(rows, 14)
    assert lines[2].startswith("! warning 0 ")
    assert lines[4] == "! … and 8 more"
    assert sum(line.startswith("… and ") for line in lines) == 3


def test_the_rest_of_the_screen_is_shared() -> None:
    lines = shown(replace(MANY, lanes=BUSY.lanes, warnings=()))
    assert "… and 31 more" in lines
    # Without waiting ones there is room for more running ones.
    lines = shown(replace(MANY, lanes=BUSY.lanes, warnings=(), runs=(RUNNING,) * 40))
    assert "… and 27 more" in lines


@pytest.fixture
def viewer(gateway: ThreadGateway) -> Iterator[Viewer]:
    gateway.control.snapshot = BUSY
    with viewer_at("top") as made:
        made.waits_until(lambda: any("count the" in line for line in made.lines))
        yield made


@pytest.mark.real_time
def test_a_person_sees_a_run_and_ends_with_q(viewer: Viewer, gateway: ThreadGateway) -> None:
    assert any("read_file" in line for line in viewer.lines)
    # It is asked again.
    gateway.control.snapshot = replace(BUSY, runs=())
    viewer.waits_until(lambda: "nothing is running" in "\n".join(viewer.lines))
    viewer.types("xq")
    assert viewer.process.wait(PATIENCE_S) == 0


@pytest.mark.real_time
@pytest.mark.parametrize(("ending", "code"), [("ctrl-c", 0), ("signal", 143), ("gateway", 3)])
def test_it_ends_with_its_reason(
    viewer: Viewer, gateway: ThreadGateway, ending: str, code: int
) -> None:
    match ending:
        case "ctrl-c":
            viewer.presses(signal.SIGINT)
        case "signal":
            viewer.presses(signal.SIGTERM)
        case _:
            gateway.stop()
            viewer.waits_until(lambda: "goclaw: " in "\n".join(viewer.lines))
    assert viewer.process.wait(PATIENCE_S) == code


@pytest.mark.real_time
def test_without_a_gateway_or_a_terminal_it_says_so(goclaw: Shell) -> None:
    got = goclaw("top")
    assert (got.code, got.out) == (2, "")
    assert "needs a terminal" in got.err
    with viewer_at("top") as viewer:
        viewer.waits_until(lambda: "goclaw: no gateway" in "\n".join(viewer.lines))
        assert viewer.process.wait(PATIENCE_S) == 3
