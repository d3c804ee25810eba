"""Prints the details of a run: facts, tool calls, history entries and messages."""

from __future__ import annotations

from collections.abc import Iterator

import typer

from goclaw_py.cli.messages import display
from goclaw_py.cli.output import clock, duration, one_line, plain, show_facts, show_table
from goclaw_py.ports.control import RunRecord
from goclaw_py.ports.store import OutboxRow, StoredRun, ToolCall

_TOOLS = ("TOOL", "STARTED", "TOOK", "RESULT", "ARGUMENTS")
_SAID = ("ID", "STATE", "CHAT", "SENT", "PROBLEM", "TEXT")
_CELL = 200


def show_record(record: RunRecord) -> None:
    """Print a run. Arguments and results of tools are cut to a line; ``--json`` has all."""
    run = record.run
    show_facts(_facts(run))
    if run.tools:
        typer.echo()
        show_table(_TOOLS, [_call(call) for call in run.tools], empty="")
    for stored in record.entries:
        typer.echo(f"\n{clock(stored.at)}  {stored.entry.role.value}\n{plain(stored.entry.text)}")
    if not record.entries:
        nothing = "no history entries" if run.outcome else "history is stored when the run ends"
        typer.echo(f"\n{nothing}")
    typer.echo()
    rows = [_message(row) for row in record.said]
    show_table(_SAID, rows, empty="no messages sent to a chat")


def took(run: StoredRun) -> str:
    """Return how long a run took, "" while it is in progress."""
    if run.finished_at is None:
        return ""
    return duration((run.finished_at - run.started_at).total_seconds())


def outcome(run: StoredRun) -> str:
    """Return the outcome of a run, with the reason."""
    if run.outcome is None:
        return "running"
    return f"{run.outcome.value} ({run.reason.value})" if run.reason else run.outcome.value


def _facts(run: StoredRun) -> Iterator[tuple[str, str]]:
    yield "run", run.id
    yield "session", run.session
    yield "agent", run.agent
    yield "trigger", run.trigger.value
    yield "lane", run.lane
    yield "node", run.node
    yield "model", run.model or "unknown"
    yield "submitted", clock(run.submitted_at)
    waited = duration((run.started_at - run.submitted_at).total_seconds())
    yield "started", f"{clock(run.started_at)}, after waiting {waited}"
    yield "first text", clock(run.first_text_at) or "none"
    yield "finished", clock(run.finished_at) or "not yet"
    yield "took", took(run) or "still running"
    yield "outcome", outcome(run)
    if run.error:
        yield "error", run.error
    if run.parent:
        yield "parent", run.parent
        yield "charged to", run.payer
    yield from _usage(run)


def _usage(run: StoredRun) -> Iterator[tuple[str, str]]:
    usage = run.usage
    if usage is None:
        return
    yield "requests", str(usage.requests)
    cached = f"{usage.input_tokens} in ({usage.cached_tokens} cached)"
    yield "tokens", f"{cached}, {usage.output_tokens} out"
    yield "cost", "unknown" if usage.cost_usd is None else f"{usage.cost_usd} USD"


def _call(call: ToolCall) -> tuple[str, ...]:
    lasted = "" if call.seconds is None else duration(call.seconds)
    ended = {None: "no result", True: "ok", False: "failed"}[call.ok]
    result = f"{ended}: {one_line(call.result, _CELL)}" if call.result else ended
    return call.name, clock(call.started_at), lasted, result, one_line(call.arguments, _CELL)


def _message(row: OutboxRow) -> tuple[str, ...]:
    return (
        str(row.id),
        row.state.value,
        display.place(row.message.target),
        clock(row.sent_at) or "not yet",
        one_line(row.error or "", _CELL),
        one_line(row.message.text, _CELL) or "(no text)",
    )
