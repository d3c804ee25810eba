"""``goclaw queue``: runs and waiting messages of a session (SPEC OPS-4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from goclaw_py.cli.context import AsJson, SessionName, Watch, look
from goclaw_py.cli.output import Printer, clock, duration, one_line, show_facts, show_table, since
from goclaw_py.model.messages import Sender
from goclaw_py.ports.control import QueueView
from goclaw_py.scheduler import texts as wording

if TYPE_CHECKING:
    from goclaw_py.ports.store import Unanswered

_RUNNING = ("RUN", "AGENT", "LANE", "STATE", "SINCE", "FOR", "MESSAGES")
_WAITING = ("POSITION", "WAITING", "SINCE", "FOR", "MESSAGES", "WAITS FOR")
_TEXT = 48


def queue(
    ctx: typer.Context, session: SessionName, *, watch: Watch = None, as_json: AsJson = False
) -> None:
    """Show the queue of a session.

    Lists running and waiting runs, and messages that got no answer, with the reason.
    """
    look(ctx, lambda control: control.queue(session), Printer(QueueView, _show, as_json), watch)


def _show(found: QueueView) -> None:
    facts: list[tuple[str, str]] = [("session", found.session)]
    if found.policy is not None:
        facts.append(("queue", wording.policy(found.policy)))
    if found.unmentioned_at is not None:
        passed = (found.at - found.unmentioned_at).total_seconds()
        facts.append(("unmentioned", f"last message without a mention: {duration(passed)} ago"))
    if not found.live:
        facts.append(("gateway", "none is running here; showing the state in the database"))
    show_facts(facts)
    typer.echo()
    running = [
        (
            run.id,
            run.agent,
            run.lane,
            run.state.value,
            *since(found.at, run.for_s),
            str(run.messages),
        )
        for run in found.running
    ]
    show_table(_RUNNING, running, empty="nothing is running")
    typer.echo()
    waiting = [
        (
            f"{place}.",
            run.id,
            *since(found.at, run.for_s),
            str(run.messages),
            wording.waits_for(run),
        )
        for place, run in enumerate(found.waiting, 1)
    ]
    nothing = "nothing is waiting" if found.live else "waiting runs are known only to a gateway"
    show_table(_WAITING, waiting, empty=nothing)
    if found.messages:
        typer.echo()
        rows = [_message(row, _run(row)) for row in found.messages]
        show_table(("UNFINISHED", "FROM", "RUN", "TEXT"), rows, empty="")
    if found.unanswered:
        typer.echo()
        newest_first = sorted(
            found.unanswered, key=lambda row: (row.finished_at or row.received_at, row.id)
        )[::-1]
        rows = [
            _message(row, wording.why(row.outcome, row.reason, row.run_id)) for row in newest_first
        ]
        show_table(("UNANSWERED", "FROM", "REASON", "TEXT"), rows, empty="")


def _message(row: Unanswered, about: str) -> tuple[str, ...]:
    """Return the row of a message, with the time it arrived or ended."""
    at = clock(row.finished_at or row.received_at)
    return at, _who(row.message.sender), about, one_line(row.message.text, _TEXT)


def _run(row: Unanswered) -> str:
    return "waits for an approval" if row.asking_run else row.run_id or ""


def _who(sender: Sender) -> str:
    return one_line(sender.name, 20) or sender.id
