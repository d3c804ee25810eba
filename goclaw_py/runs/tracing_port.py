"""The tracing interface of runs (SPEC OPS-5). Imports nothing that costs time."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from goclaw_py.model.ids import RunId
from goclaw_py.model.outcomes import Ending
from goclaw_py.ports.agent import LoopEvent
from goclaw_py.ports.store import NewRun
from goclaw_py.runs.run_recorder import RunRecorder


class Tracer(Protocol):
    """Receives the events of runs. Never blocks, never raises."""

    def work(self, run: NewRun) -> AbstractContextManager[None]:
        """A run begins its work, which is done while this is open, in the task that opened it."""

    def hear(self, run_id: RunId, event: LoopEvent) -> None:
        """The agent loop of a run reports something."""

    def ended(self, ended: Ending, progress: RunRecorder, error: BaseException | None) -> None:
        """The end of a run is decided. It may never have begun its work, or still be at it."""


class NoTracer:
    """Tracing is off."""

    def work(self, run: NewRun) -> AbstractContextManager[None]:
        """Nothing is opened."""
        del run
        return nullcontext()

    def hear(self, run_id: RunId, event: LoopEvent) -> None:
        """Nothing is noted."""

    def ended(self, ended: Ending, progress: RunRecorder, error: BaseException | None) -> None:
        """Nothing is open."""


NO_SPANS = NoTracer()
"""See ``NoTracer``."""
