"""What is measured of both sides, each time by a process of its own that prints JSON."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.compare.trees import Side, environment
from bench.telegram.gateways import CASES, HERE
from channels.telegram.settings import Library

PARTS = ("telegram", "inbox", "jobs", "start")
LEDGER = "ledger"

_LIMIT_S = 900.0
_ENDING_S = 60.0
"""How long a process may take to end what it has started."""
_CLOCK_STEP_S = 0.1


class MeasurementFailed(Exception):
    """There are no figures. The message is for people."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A benchmark that can be run with one of the sides.

    ``in_own_tree``: it imports the product, so each side runs its own copy of it. Otherwise this
    checkout's copy starts the gateway of either side.
    """

    part: str
    name: str
    arguments: tuple[str, ...]
    in_own_tree: bool = False

    def command(self, side: Side) -> list[str]:
        """The command for a side."""
        if self.in_own_tree or side.tree == HERE:
            return [str(side.tree.python), "-m", *self.arguments]
        return [str(HERE.python), "-m", *self.arguments, "--tree", str(side.tree.folder)]


@dataclass(frozen=True, slots=True)
class Reading:
    """A figure of one round."""

    value: float
    unit: str


Readings = Mapping[tuple[str, str], Reading]
"""By what was measured, and the name of the figure."""


def measurements(parts: Sequence[str], *, quick: bool) -> Iterator[Measurement]:
    """All measurements of one round."""
    once = ("--rounds", "1", *(["--quick"] if quick else []))
    for part in parts:
        match part:
            case "telegram":
                for case in CASES:
                    own = ("bench.telegram", "answering", "--case", str(case), *once)
                    yield Measurement(part, f"telegram, {case}", own)
            case "inbox":
                inserts = ("bench.inbox", "--only", "goclaw_py", "--rounds", "1", "--seconds")
                yield Measurement(part, part, (*inserts, "1" if quick else "4"), in_own_tree=True)
            case "jobs":
                yield Measurement(part, part, ("bench.jobs", "together", *once), in_own_tree=True)
            case "start":
                for library in Library:
                    own = ("bench.start", "--library", library.value, *once)
                    yield Measurement(part, f"start, {library.value}", own)


def measure(measurement: Measurement, side: Side) -> Readings:
    """Run a benchmark once. Raises ``MeasurementFailed``."""
    before = time.time() - time.monotonic()
    folder = side.tree.folder if measurement.in_own_tree else HERE.folder
    output = output_of(measurement.command(side), folder)
    # Jobs are due by the wall clock, and no figure is worth anything if it was set meanwhile.
    step_s = time.time() - time.monotonic() - before
    if abs(step_s) > _CLOCK_STEP_S:
        raise MeasurementFailed(f"the clock was set by {step_s:+.1f} s meanwhile")
    return dict(_readings(output))


def _readings(output: str) -> Iterator[tuple[tuple[str, str], Reading]]:
    for line in _json_of(output)["lines"]:
        for figure in line["figures"]:
            yield (line["label"], figure["name"]), Reading(figure["median"], figure["unit"])


def _json_of(output: str) -> Any:
    """What a program printed for other programs: everything, or the last line."""
    with suppress(ValueError):
        return json.loads(output)
    try:
        return json.loads(output.splitlines()[-1])
    except (ValueError, IndexError) as error:
        raise MeasurementFailed("it printed no figures") from error


# ---------------------------------------------------------------------------- counters

Counters = Mapping[str, Mapping[str, float]]
"""By scenario and name."""

_BORROWED = """
import runpy, sys, tests
tests.__path__.append(sys.argv.pop(1))
runpy.run_module("tests.ledger", run_name="__main__", alter_sys=True)
"""
"""Counts the product of a checkout that has no ledger, with that of this one."""


def counters_of(side: Side) -> Counters:
    """The counters of a side. Raises ``MeasurementFailed``."""
    python, ours = str(side.tree.python), HERE.folder / "tests"
    if not (ours / "ledger/__main__.py").is_file():
        raise MeasurementFailed("this checkout has no tests.ledger")
    if (side.tree.folder / "tests/ledger/__main__.py").is_file():
        command = [python, "-m", "tests.ledger", "--json"]
    else:
        command = [python, "-c", _BORROWED, str(ours), "--json"]
    found: Counters = _json_of(output_of(command, side.tree.folder))
    return found


# ---------------------------------------------------------------------------- processes


def output_of(command: Sequence[str], folder: Path, limit_s: float = _LIMIT_S) -> str:
    """What a program prints; it ends, with all that it has started, in any case."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        # The same order of sets each time; the ledger would start itself again without it.
        env=environment() | {"PYTHONHASHSEED": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            output, errors = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired as error:
            raise MeasurementFailed(f"it took longer than {limit_s:g} s") from error
        finally:
            _end(process)
    if process.returncode:
        said = errors.strip().splitlines() or [f"it ended with {process.returncode}"]
        raise MeasurementFailed(said[-1])
    return output


def _end(process: subprocess.Popen[str]) -> None:
    """Interrupt it, so that it ends what it has started; kill it after a while."""
    if process.poll() is not None:
        return
    try:
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=_ENDING_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
