"""The tracing interface of runs (SPEC OPS-5), without slow imports."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from goclaw_py.core.ids import RunId
from goclaw_py.core.outcomes import Ending
from goclaw_py.records import NewRun
from goclaw_py.runs.agent_loop import LoopEvent
from goclaw_py.runs.run_recorder import RunRecorder


class Tracer:
    """Receives the events of runs. Never blocks, never raises.

    This one traces nothing; OpenTelemetry's is ``observability.opentelemetry.Tracing``.
    """

    def work(self, run: NewRun) -> AbstractContextManager[None]:
        """Trace a run in the current task, while the context manager is open."""
        del run
        return nullcontext()

    def on_event(self, run_id: RunId, event: LoopEvent) -> None:
        """Record an event of a run's agent loop."""

    def ended(self, ended: Ending, progress: RunRecorder, error: BaseException | None) -> None:
        """Record the end of a run, which may not have started, or may still be running."""


NO_SPANS = Tracer()
"""Traces nothing."""
