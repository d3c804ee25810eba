"""Runs as OpenTelemetry spans (SPEC OPS-5).

A run is a span from its start until its end is stored. Within it are its model requests and tool
calls, as far as its agent loop reports them. Child runs are below it, although they run in other
tasks and may outlive it.

Spans leave the machine: they contain no prompts, replies, arguments, results or error texts.
Imports OpenTelemetry, so import it only for tracing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    format_trace_id,
    set_span_in_context,
    use_span,
)
from opentelemetry.util.types import AttributeValue

from goclaw_py.core.ids import RunId
from goclaw_py.core.outcomes import FAILURES, Ending
from goclaw_py.core.run_events import NO_USAGE, ToolEnded, ToolStarted, Usage
from goclaw_py.records import NewRun
from goclaw_py.runs.agent_loop import LoopEvent, ModelStep
from goclaw_py.runs.run_recorder import RunRecorder
from goclaw_py.runs.tracing_port import Tracer

MOST_REMEMBERED = 10_000
"""The newest runs, below which others can be placed; each takes some 500 bytes."""

_NAME = re.compile(r"[\w.:/-]{1,100}")
"""The form of names of tools and models; models also call tools that they invent."""


@dataclass(slots=True, eq=False)
class _Open:
    """The span of a run that has not ended."""

    span: Span
    idle_since: int
    """When it last got a response or a result, in ns: then it asks its model."""
    used: Usage = NO_USAGE
    tools: dict[str, Span] = field(default_factory=dict)
    """The calls that have not returned, by their ids."""


class Tracing(Tracer):
    """Traces with OpenTelemetry."""

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer
        self._open: dict[RunId, _Open] = {}
        self._contexts: dict[RunId, SpanContext] = {}

    def trace_of(self, run_id: str) -> str | None:
        """Return the trace id of a run in hex; None if it is unknown."""
        context = self._contexts.get(RunId(run_id))
        return None if context is None else format_trace_id(context.trace_id)

    @contextmanager
    def work(self, run: NewRun) -> Iterator[None]:
        """Make a run's span current while this is open."""
        span = self._tracer.start_span(
            "run", self._above(run), SpanKind.INTERNAL, attributes=_of_run(run)
        )
        self._open[run.id] = _Open(span, time.time_ns())
        self._remember(run.id, span.get_span_context())
        # How it ends is decided elsewhere, and the text of an exception is private.
        with use_span(
            span, end_on_exit=False, record_exception=False, set_status_on_exception=False
        ):
            yield

    def on_event(self, run_id: RunId, event: LoopEvent) -> None:
        """Create spans of tool calls and model requests."""
        run = self._open.get(run_id)
        if run is None:
            return
        match event:
            case ToolStarted():
                self._begin_tool(run, event)
            case ToolEnded():
                if tool := run.tools.pop(event.call_id, None):
                    _end_tool(tool, ok=event.ok)
                    run.idle_since = time.time_ns()
            case ModelStep():
                self._note_answer(run, event)
            case _:
                pass

    def ended(self, ended: Ending, progress: RunRecorder, error: BaseException | None) -> None:
        """End the span of a run."""
        run = self._open.pop(ended.run_id, None)
        if run is None:
            return
        for tool in run.tools.values():
            _end_tool(tool, ok=False)
        run.span.set_attributes(_of_end(ended, progress))
        if ended.outcome in FAILURES:
            run.span.set_status(Status(StatusCode.ERROR))
            if error is not None:
                run.span.set_attribute("error.type", type(error).__name__)
        run.span.end()

    # ------------------------------------------------------------------ inside

    def _above(self, run: NewRun) -> Context:
        """Return the span of its parent, not that of the task that started its task."""
        parent = None if run.parent is None else self._contexts.get(run.parent)
        empty = Context()
        return empty if parent is None else set_span_in_context(NonRecordingSpan(parent), empty)

    def _remember(self, run_id: RunId, context: SpanContext) -> None:
        self._contexts[run_id] = context
        if len(self._contexts) > MOST_REMEMBERED:
            del self._contexts[next(iter(self._contexts))]

    def _begin_tool(self, run: _Open, event: ToolStarted) -> None:
        name = _name(event.name)
        attributes: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "goclaw.tool.side_effects": event.side_effects,
        }
        above = set_span_in_context(run.span, Context())
        if before := run.tools.pop(event.call_id, None):
            before.end()
        run.tools[event.call_id] = self._tracer.start_span(
            f"execute_tool {name}", above, SpanKind.INTERNAL, attributes=attributes
        )

    def _note_answer(self, run: _Open, step: ModelStep) -> None:
        """Record a model request; its start follows from the previous events."""
        used, since = step.usage.minus(run.used), run.idle_since
        if used.requests <= 0:
            return
        run.used, run.idle_since = step.usage, time.time_ns()
        model = _name(step.model)
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.response.model": model}
        span = self._tracer.start_span(
            f"chat {model}".strip(),
            set_span_in_context(run.span, Context()),
            SpanKind.CLIENT,
            attributes=attributes | _of_usage(used),
            start_time=since,
        )
        span.end(run.idle_since)


def _of_run(run: NewRun) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": run.agent,
        "goclaw.run_id": run.id,
        "goclaw.session": run.session,
        "goclaw.agent": run.agent,
        "goclaw.trigger": run.trigger.value,
        "goclaw.lane": run.lane,
    }
    if run.parent is not None:
        attributes["goclaw.parent"] = run.parent
    if run.submitted_at is not None:
        waited = run.started_at - run.submitted_at
        attributes["goclaw.waited_s"] = max(waited.total_seconds(), 0.0)
    return attributes


def _of_end(ended: Ending, progress: RunRecorder) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {"goclaw.outcome": ended.outcome.value}
    if ended.reason is not None:
        attributes["goclaw.reason"] = ended.reason.value
    if progress.model:
        attributes["gen_ai.response.model"] = _name(progress.model)
    return attributes | _of_usage(progress.usage or NO_USAGE)


def _of_usage(used: Usage) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {
        "goclaw.requests": used.requests,
        "gen_ai.usage.input_tokens": used.input_tokens,
        "gen_ai.usage.output_tokens": used.output_tokens,
    }
    if used.cost_usd is not None:
        attributes["goclaw.cost_usd"] = float(used.cost_usd)
    return attributes


def _end_tool(span: Span, *, ok: bool) -> None:
    span.set_attribute("goclaw.tool.ok", ok)
    if not ok:
        span.set_status(Status(StatusCode.ERROR))
    span.end()


def _name(text: str) -> str:
    """Return a valid name, or a replacement."""
    return text if _NAME.fullmatch(text) else ""
