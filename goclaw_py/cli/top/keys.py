"""Keys as a terminal sends them, and what they do in ``goclaw top``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from goclaw_py.core.ids import RunId

_SEQUENCE: Final = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O[A-Za-z])")
_BEGUN: Final = re.compile(rb"\x1b(?:\[[0-9;?]*|O)?")

_NAMES: Final = {
    **dict.fromkeys((b"\x1b[A", b"\x1bOA", b"k"), "up"),
    **dict.fromkeys((b"\x1b[B", b"\x1bOB", b"j"), "down"),
    **dict.fromkeys((b"\x1b[C", b"\x1bOC", b"\t"), "next"),
    **dict.fromkeys((b"\x1b[D", b"\x1bOD", b"\x1b[Z"), "previous"),
    **dict.fromkeys((b"\x1b[5~", b"\x02"), "page up"),
    **dict.fromkeys((b"\x1b[6~", b"\x06", b" "), "page down"),
    **dict.fromkeys((b"\x1b[H", b"\x1bOH", b"\x1b[1~", b"g"), "first"),
    **dict.fromkeys((b"\x1b[F", b"\x1bOF", b"\x1b[4~", b"G"), "last"),
    **dict.fromkeys((b"\r", b"\n"), "enter"),
}


def keys_of(data: bytes, *, complete: bool) -> tuple[list[str], bytes]:
    """Return the names of keys, and the beginning of a key whose rest is still to come.

    ``complete``: nothing more has come for a moment, so that an escape character is the key Esc.
    Unknown sequences are left out; other characters are keys by themselves.
    """
    keys: list[str] = []
    while data:
        if found := _SEQUENCE.match(data):
            one = found[0]
            if one in _NAMES:
                keys.append(_NAMES[one])
        elif data[:1] == b"\x1b":
            if not complete and _BEGUN.fullmatch(data):
                return keys, data
            one = data[:1]
            keys.append("esc")
        else:
            one = data[:1]
            keys.append(_NAMES.get(one) or one.decode("latin-1"))
        data = data[len(one) :]
    return keys, b""


class TopTab(StrEnum):
    """A list of ``goclaw top``."""

    RUNS = "Runs"
    ENDED = "Ended"
    FAILED = "Failed"
    LOG = "Log"


TABS: Final = tuple(TopTab)

_NO_RUN: Final = {
    "enter": "There is no run to open in this list.",
    "s": "There is no run to stop in this list.",
}


@dataclass(frozen=True, slots=True)
class TopState:
    """What a person sees and has selected.

    Args:
        selected: The run on which the keys act; None: the first one of the list.
        opened: The run whose details are shown.
        stopping: The run about which a person is asked whether to stop it.
        log_of: The run whose log lines are shown; None: those of the gateway.
        back: What Esc shows again; None: the list of runs.
        scroll: How many lines of details or of the log are scrolled: from the beginning of
            details, from the end of the log.
        notice: The result of the last key.
    """

    tab: TopTab = TopTab.RUNS
    selected: RunId | None = None
    opened: RunId | None = None
    stopping: RunId | None = None
    log_of: RunId | None = None
    back: TopState | None = None
    scroll: int = 0
    has_help: bool = False
    notice: str = ""

    @property
    def subject(self) -> tuple[TopTab, RunId | None, RunId | None]:
        """What has to be asked of the gateway, beside its state."""
        return self.tab, self.opened, self.log_of


class Effect(StrEnum):
    """What a key does beside changing the state."""

    QUIT = "quit"
    STOP = "stop"
    """Stop the run of the state before the key."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What the keys can reach.

    Args:
        runs: The runs of the list, in order.
        stoppable: Those that a stop can end.
        page: The number of lines that fit.
        most: The largest possible ``TopState.scroll``.
    """

    runs: Sequence[RunId] = ()
    stoppable: frozenset[RunId] = frozenset()
    page: int = 10
    most: int = 0


def pressed(state: TopState, key: str, shown: Shown) -> tuple[TopState, Effect | None]:
    """Return the state after a key, and what else it does."""
    state = replace(state, notice="")
    if state.stopping is not None:
        return replace(state, stopping=None), Effect.STOP if key == "y" else None
    if state.has_help:
        return replace(state, has_help=False), None
    if key == "?":
        return replace(state, has_help=True), None
    if key in ("q", "esc") and state.opened is not None:
        return replace(state, opened=None, scroll=0), None
    if key == "q":
        return state, Effect.QUIT
    if key in ("1", "2", "3", "4", "next", "previous"):
        return _on_tab(state, key), None
    if state.opened is not None or state.tab is TopTab.LOG:
        return _in_text(state, key, shown), None
    return _in_list(state, key, shown), None


def place_of(state: TopState, runs: Sequence[RunId]) -> int:
    """Return the place of the selected run, 0 if it is not in the list any more."""
    return runs.index(state.selected) if state.selected in runs else 0


def _on_tab(state: TopState, key: str) -> TopState:
    number = TABS.index(state.tab)
    match key:
        case "next":
            number += 1
        case "previous":
            number -= 1
        case _:
            number = int(key) - 1
    return TopState(tab=TABS[number % len(TABS)])


def _in_list(state: TopState, key: str, shown: Shown) -> TopState:
    if not shown.runs:
        if key == "l":
            return TopState(tab=TopTab.LOG, back=state)
        return replace(state, notice=_NO_RUN.get(key, ""))
    place = place_of(state, shown.runs)
    run = shown.runs[place]
    match key:
        case "enter":
            return replace(state, selected=run, opened=run, scroll=0)
        case "l":
            return TopState(tab=TopTab.LOG, log_of=run, back=replace(state, selected=run))
        case "s" if run in shown.stoppable:
            return replace(state, selected=run, stopping=run)
        case "s":
            return replace(state, notice="This run has ended.")
    place = min(max(_moved(place, key, shown.page, len(shown.runs) - 1), 0), len(shown.runs) - 1)
    return replace(state, selected=shown.runs[place])


def _in_text(state: TopState, key: str, shown: Shown) -> TopState:
    run = state.opened or state.log_of
    match key:
        case "l" if state.opened is not None:
            return TopState(tab=TopTab.LOG, log_of=run, back=state)
        case "l":
            return replace(state, log_of=None, scroll=0)
        case "esc":
            return state.back or TopState()
        case "s" | "enter" if run is None:
            return replace(state, notice="Select a run first: 1 shows the runs, ↑↓ select one.")
        case "s" if run in shown.stoppable:
            return replace(state, stopping=run)
        case "s":
            return replace(state, notice="This run has ended.")
    scroll = min(state.scroll, shown.most)
    if state.opened is None:  # a log is scrolled from its end
        opposite = {"up": "down", "down": "up", "page up": "page down", "page down": "page up"}
        key = {"first": "last", "last": "first", **opposite}.get(key, key)
    scroll = min(max(_moved(scroll, key, shown.page, shown.most), 0), shown.most)
    return replace(state, scroll=scroll)


def _moved(place: int, key: str, page: int, last: int) -> int:
    steps = {"up": -1, "down": 1, "page up": -page, "page down": page, "first": -place}
    return last if key == "last" else place + steps.get(key, 0)
