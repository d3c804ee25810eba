"""What ``goclaw top`` shows: lines that fit the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final

from goclaw_py.cli.names import DisplayNames
from goclaw_py.cli.output import Column, clock, flat, one_line, table_lines
from goclaw_py.cli.top.keys import TABS, Shown, TopState, TopTab, place_of
from goclaw_py.core.display_names import SHORT_ID
from goclaw_py.core.text import count
from goclaw_py.core.time.texts import age, duration
from goclaw_py.operations.runs.command import outcome
from goclaw_py.records import StoredRun
from goclaw_py.scheduler.texts import used_text, waits_for
from goclaw_py.scheduler.views import Backlog, GatewayStatus, LaneView, RunState, RunView

if TYPE_CHECKING:
    from rich.text import Text

_MAX_WARNINGS: Final = 3
_MAX_WRAPPED: Final = 3
"""The most lines of a problem or of the first warning: what runs must stay visible."""
_CELL: Final = 200
_SHORT_NAME: Final = 8
_FOR: Final = len("1 min 1 s")
"""The width of a duration, so that columns stay where they are while it grows."""

_LEAST_ROWS: Final = 20
"""With fewer there are no blank lines between tables."""

WAITING: Final = (RunState.COLLECTING, RunState.QUEUED, RunState.READY)
_LANES: Final = (
    "LANE",
    "ACTIVE",
    "WAITING",
    Column("FINISHED", drop=1),
    Column("CANCELLED", drop=2),
    "FAILED",
)
_RUNNING: Final = (
    "RUNNING",
    "FOR",
    Column("SESSION", least=12),
    Column("PROMPT", least=12),
    Column("TOOL", least=12),
    Column("TOKENS", drop=1),
    Column("MODEL", drop=2, least=8),
)
_QUEUED: Final = (
    "WAITING",
    "FOR",
    Column("SESSION", least=12),
    Column("WAITS FOR", least=16),
)
_ENDED: Final = (
    "ENDED",
    "STARTED",
    Column("SESSION", least=12),
    Column("OUTCOME", drop=1),
    Column("PROMPT", least=16),
)
_FAILED: Final = (
    "FAILED",
    "STARTED",
    Column("SESSION", least=12),
    Column("OUTCOME", drop=1),
    Column("ERROR", least=16),
    Column("PROMPT", least=12, drop=2),
)
_KEYS: Final = {
    TopTab.RUNS: "? keys  q quit  ↑↓ select  Enter open  s stop  l log  Tab next list",
    **dict.fromkeys(
        (TopTab.ENDED, TopTab.FAILED),
        "? keys  q quit  ↑↓ select  Enter open  l log  Tab next list",
    ),
    TopTab.LOG: "? keys  q quit  ↑↓ scroll  l all lines  Tab next list",
}
_KEYS_OF_RUN: Final = "? keys  Esc back  ↑↓ scroll  s stop  l log"
MOST_ENDED: Final = 100
"""The number of ended or failed runs that are read, the newest ones."""

HELP: Final = (
    "1 2 3 4     the lists: runs, ended and failed ones, log",
    "Tab ←→      the next list, the one before",
    "↑↓ k j      select a run, or scroll",
    "PgUp PgDn   a page up or down",
    "g G         the first, the last",
    "Enter       open the selected run: what it does, its steps, why",
    "s           stop it, after a question",
    "l           the log lines of the selected run; again: all lines",
    "Esc q       back; q in a list ends",
    "Ctrl-C      ends",
    "",
    "Any key closes this list.",
)


@dataclass(frozen=True, slots=True)
class TopView:
    """What is known of the gateway.

    Args:
        problem: Why the gateway does not answer now; then the rest is what it answered last.
        totals: Rates and cost, one line.
        ended: The newest ended or failed runs, in the lists of these.
        details: The lines about the opened run.
        log: The newest log lines.
    """

    status: GatewayStatus
    names: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    totals: str = ""
    ended: Sequence[StoredRun] = ()
    details: Sequence[str] = ()
    log: Sequence[str] = ()


def screen(view: TopView, state: TopState, columns: int, rows: int) -> tuple[list[Text], Shown]:
    """Return the lines of the screen, and what keys can reach."""
    from rich.text import Text  # noqa: PLC0415

    head = _head(view, columns, _MAX_WRAPPED if rows >= _LEAST_ROWS else 1)
    tabs = "  ".join(_title(number, tab, state) for number, tab in enumerate(TABS, 1))
    room = max(rows - len(head) - 2, 1)
    if state.has_help:
        body, shown = [_line(text, columns) for text in HELP], Shown()
    elif state.opened is not None or state.tab is TopTab.LOG:
        body, shown = _text(view, state, columns, room)
    elif state.tab in (TopTab.ENDED, TopTab.FAILED):
        body, shown = _ended(view, state, columns, room)
    else:
        body, shown = _runs(view, state, columns, room)
    body = body[:room]
    body += [Text()] * (room - len(body))
    style = "bold" if state.stopping or state.notice else "dim"
    foot = _line(_foot(view, state, columns), columns, style)
    return [*head, _line(tabs, columns, "bold"), *body, foot], shown


def _title(number: int, tab: TopTab, state: TopState) -> str:
    return f"[{number} {tab}]" if tab is state.tab else f" {number} {tab} "


def _line(text: str, columns: int, style: str = "") -> Text:
    from rich.text import Text  # noqa: PLC0415

    return Text(_fitting(flat(text), columns), style, no_wrap=True)


def _fitting(text: str, columns: int) -> str:
    """Return the beginning of a line that fits; blanks stay as they are."""
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415

    return text if cell_len(text) <= columns else set_cell_size(text, columns - 1) + "…"


def _head(view: TopView, columns: int, most_lines: int) -> list[Text]:
    status = view.status
    up = duration((status.now - status.started_at).total_seconds())
    state = "draining" if status.draining else "running"
    nodes = f"  {len(status.peers) + 1} nodes" if status.peers else ""
    first = f"goclaw {status.release}{nodes}  {state}  up {up}  {clock(status.now)}"
    lines = [
        _line(f"{first}  database {status.database}", columns),
        _line(view.totals, columns),
        _line(_backlog(status.backlog), columns),
    ]
    if view.problem:
        problem = f"! {one_line(view.problem, _CELL)}; waiting for it"
        return [*lines, *_wrapped(problem, columns, "bold red", most_lines)]
    # The first one is whole: it is the most important.
    first_one, *others = [f"! {flat(str(warning))}" for warning in status.warnings] or [""]
    if len(others) >= _MAX_WARNINGS:
        others[_MAX_WARNINGS - 2 :] = [f"! … and {len(others) - _MAX_WARNINGS + 2} more"]
    whole = _wrapped(first_one, columns, "yellow", most_lines) if first_one else []
    return [*lines, *whole, *(_line(text, columns, "yellow") for text in others)]


def _wrapped(text: str, columns: int, style: str, most: int) -> list[Text]:
    """Return a text in at most ``most`` lines, which end between words."""
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    parts = [part.plain.rstrip() for part in Text(text).wrap(Console(width=columns), columns)]
    parts[most - 1 :] = [" ".join(parts[most - 1 :])] if parts[most - 1 :] else []
    return [_line(part, columns, style) for part in parts]


def _backlog(backlog: Backlog | None) -> str:
    if backlog is None:
        return "backlog unknown"
    return (
        f"messages {backlog.inbox} unfinished, {backlog.unanswered} failed  "
        f"deliveries {backlog.outbox} waiting, {backlog.failed} failed  "
        f"{count(backlog.approvals, 'approval')}"
    )


def _foot(view: TopView, state: TopState, columns: int) -> str:
    if state.stopping is not None:
        run = next((one for one in view.status.runs if one.id == state.stopping), None)
        if run is None:
            return "This run has ended. Press any key."
        beside = any(one.session == run.session for one in view.status.runs if one.id != run.id)
        what = f"run {run.id[:SHORT_ID]} of" if beside else "what runs for"
        begin, end = f"Stop {what} ", "? y: stop, any other key: no"
        room = max(columns - len(begin) - len(end), _SHORT_NAME)
        return begin + one_line(DisplayNames(view.names).of(run.session), room) + end
    if state.notice:
        return state.notice
    if state.has_help:
        return "any key: back"
    if state.opened is None:
        return _KEYS[state.tab]
    is_active = any(run.id == state.opened for run in view.status.runs)
    return _KEYS_OF_RUN if is_active else _KEYS_OF_RUN.replace("  s stop", "")


# ---------------------------------------------------------------------------- lists


def _runs(view: TopView, state: TopState, columns: int, room: int) -> tuple[list[Text], Shown]:
    runs = view.status.runs
    running = [run for run in runs if run.state not in WAITING]
    waiting = [run for run in runs if run.state in WAITING]
    ids = [run.id for run in (*running, *waiting)]
    place = place_of(state, ids)
    names = DisplayNames(view.names)
    blank = [_line("", columns)] if room >= _LEAST_ROWS - 5 else []
    left = room - 3 - 3 * len(blank)
    lanes = [_lane(lane) for lane in view.status.lanes]
    spare = left - max(len(running), 1) - max(len(waiting), 1)
    lane_rows = min(len(lanes) or 1, max(left // 3, spare, 1))
    left -= lane_rows
    waiting_rows = min(len(waiting) or 1, max(left // 3, 1))
    running_rows = min(len(running) or 1, max(left - waiting_rows, 1))
    waiting_rows = min(len(waiting) or 1, max(left - running_rows, 1))
    body = [
        *blank,
        *_table(_LANES, lanes, None, (columns, lane_rows), "no lanes"),
        *blank,
        *_table(
            _RUNNING,
            [_running(run, names) for run in running],
            place,
            (columns, running_rows),
            "nothing is running",
        ),
        *blank,
        *_table(
            _QUEUED,
            [_waiting(run, names) for run in waiting],
            place - len(running),
            (columns, waiting_rows),
            "no run is queued",
        ),
    ]
    return body, Shown(ids, frozenset(ids), max(running_rows - 1, 1))


def _ended(view: TopView, state: TopState, columns: int, room: int) -> tuple[list[Text], Shown]:
    ids = [run.id for run in view.ended]
    has_failed = state.tab is TopTab.FAILED
    names, titles = DisplayNames(view.names), _FAILED if has_failed else _ENDED
    rows = [_end(run, names, view.status.now, has_failed=has_failed) for run in view.ended]
    empty = f"no run has {'failed' if has_failed else 'ended yet'}"
    size = columns, room - 2
    body = _table(titles, rows, place_of(state, ids), size, empty, most=MOST_ENDED)
    active = frozenset(run.id for run in view.status.runs)
    return [_line("", columns), *body], Shown(ids, active & frozenset(ids), max(room - 3, 1))


def _text(view: TopView, state: TopState, columns: int, room: int) -> tuple[list[Text], Shown]:
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    active = frozenset(run.id for run in view.status.runs)
    console = Console(width=columns)

    def whole(texts: Sequence[str]) -> list[str]:
        return [
            part.plain.rstrip()
            for text in texts
            for part in Text(text).wrap(console, columns) or [Text()]
        ]

    if state.opened is not None:
        lines = whole(view.details)
        most = max(len(lines) - room, 0)
        begin = min(state.scroll, most)
        page = lines[begin : begin + room]
    else:
        none = (
            "no line names this run yet; one comes when it ends" if state.log_of else "no log lines"
        )
        lines = whole(view.log or [none])
        if state.log_of is not None:
            room -= 1
        most = max(len(lines) - room, 0)
        end = len(lines) - min(state.scroll, most)
        page = lines[max(end - room, 0) : end]
        if state.log_of is not None:
            page = [f"lines about run {state.log_of[:SHORT_ID]}; l: all lines", *page]
    return [_line(text, columns) for text in page], Shown((), active, max(room - 1, 1), most)


def _table(
    titles: Sequence[str | Column],
    rows: Sequence[Sequence[str]],
    place: int | None,
    size: tuple[int, int],
    empty: str,
    *,
    most: int = 0,
) -> list[Text]:
    """Return a table and its head, in which the row at a place is visible.

    ``size``: its columns and, without the head, its rows; ``most``: the number of the newest rows
    that are read, 0 if all are.
    """
    from rich.text import Text  # noqa: PLC0415

    columns, room = size
    mark = "" if place is None else "  "
    chosen = place if place is not None and 0 <= place < len(rows) else None
    shown = len(rows) if len(rows) <= room else max(room - 1, 1)
    begin = max((chosen or 0) - shown + 1, 0)
    head, *lines = table_lines(titles, rows[begin : begin + shown], columns - len(mark))
    texts = [_line(mark + head, columns, "bold")]
    if not rows:
        return [*texts, _line(mark + empty, columns, "dim")]
    for number, line in enumerate(lines, begin):
        is_chosen = number == chosen
        text = f"{'> ' if is_chosen else mark}{line}"
        texts.append(_line(text, columns, "reverse" if is_chosen else ""))
    if shown < len(rows) and room > 1:
        newest = f" of the newest {most}" if len(rows) == most else ""
        more = f"{mark}… and {len(rows) - shown} more{newest}"
        texts.append(Text(more, "dim", no_wrap=True))
    return texts


def _lane(lane: LaneView) -> tuple[str, ...]:
    taken = used_text(lane) + (" closed" if lane.closed else "")
    return lane.name, taken, *map(str, (lane.waiting, lane.finished, lane.cancelled, lane.failed))


def _running(run: RunView, names: DisplayNames) -> tuple[str, ...]:
    doing = run.activity
    # A run that is being stopped says so where its tool would be.
    state = "" if run.state is RunState.RUNNING else run.state.value
    return (
        run.id[:SHORT_ID],
        f"{duration(run.for_s):<{_FOR}}",
        names.of(run.session),
        one_line(doing.prompt, _CELL) if doing else "",
        state or (", ".join(doing.tools) if doing else ""),
        f"{doing.tokens:,}" if doing and doing.tokens else "",
        doing.model if doing else "",
    )


def _waiting(run: RunView, names: DisplayNames) -> tuple[str, ...]:
    return (
        run.id[:SHORT_ID],
        f"{duration(run.for_s):<{_FOR}}",
        names.of(run.session),
        waits_for(run),
    )


def _end(
    run: StoredRun, names: DisplayNames, now: datetime, *, has_failed: bool
) -> tuple[str, ...]:
    error = (one_line(run.error or "", _CELL),) if has_failed else ()
    begin = run.id[:SHORT_ID], age(run.started_at, now), names.of(run.session), outcome(run)
    return (*begin, *error, one_line(run.prompt, _CELL))
