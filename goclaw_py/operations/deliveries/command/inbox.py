"""``goclaw deliveries incoming``: messages that failed, or are unfinished (SPEC IO-2, OPS-4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated

import typer

from goclaw_py.cli.context import (
    AsJson,
    Watch,
    answer,
    answer_or_watch,
    choice,
    no_rows,
    note_stored,
    selects,
    with_options,
    with_wide,
)
from goclaw_py.cli.messages import display
from goclaw_py.cli.names import DisplayNames, with_names
from goclaw_py.cli.output import Column, clock, short_id, show_facts, show_table
from goclaw_py.core.display_names import person_key
from goclaw_py.core.messages import Attachment, InboundMessage
from goclaw_py.operations.control import Control
from goclaw_py.operations.deliveries import HELP_OF_INCOMING
from goclaw_py.operations.deliveries.command import selection
from goclaw_py.records import DeadLetter, DeadLetterQuery, IncomingState, Unanswered
from goclaw_py.scheduler.texts import why

app = typer.Typer(help=HELP_OF_INCOMING, no_args_is_help=True)

_COLUMNS = (
    "ID",
    Column("CHAT", least=12),
    Column("FROM", drop=2, least=12),
    Column("RECEIVED", drop=1),
    Column("ATTEMPTS", drop=3),
    Column("REASON", least=20),
    Column("TEXT", least=16),
    Column("PERSON", drop=8),
    Column("KEY", drop=9),
)


@app.command("list")
@with_wide
@with_options(selection.MessageOptions)
def list_(
    ctx: typer.Context,
    options: selection.MessageOptions,
    *,
    state: Annotated[str, choice(IncomingState)] = IncomingState.FAILED.value,
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Former name of --state waiting.", hidden=True)
    ] = False,
    watch: Watch = None,
    as_json: AsJson = False,
) -> None:
    """List incoming messages without an answer, newest first."""
    wanted = IncomingState.WAITING if waiting else IncomingState(state)

    async def ask(control: Control) -> list[DeadLetter]:
        query = DeadLetterQuery(wanted, options.filter(), options.limit)
        return await control.deliveries.dead_letters(query)

    def show_all(found: list[DeadLetter], names: DisplayNames) -> None:
        note_stored(ctx, unfinished=wanted is IncomingState.WAITING and bool(found))
        every = f"deliveries incoming list --state {wanted}"
        empty = no_rows(
            "messages", every, filtered=selects(options), otherwise=f"no {wanted} messages"
        )
        show_table(_COLUMNS, [_row(one, names) for one in found], empty=empty)

    question, output = with_names(ask, _keys, list[DeadLetter], show_all, as_json)
    answer_or_watch(ctx, question, output, watch)


def _keys(found: Sequence[DeadLetter]) -> Iterator[str]:
    for letter in found:
        yield from (letter.session, _sender(letter.row.message))


def _sender(message: InboundMessage) -> str:
    return person_key(message.target, message.sender.id)


def _row(letter: DeadLetter, names: DisplayNames) -> tuple[str, ...]:
    row = letter.row
    return (
        str(row.id),
        names.of(letter.session),
        names.of(_sender(row.message)),
        display.moment(row.received_at),
        str(letter.attempts),
        _why(row),
        display.words(row.message.text) or _without_text(row.message),
        display.who(row.message.sender),
        display.cell(letter.session),
    )


def _why(row: Unanswered) -> str:
    """Return why a message has no answer."""
    if row.outcome is not None:
        return why(row.outcome, row.reason, row.run_id and short_id(row.run_id))
    if row.asking_run is not None:
        return f"run {short_id(row.asking_run)} asks for an approval; see: goclaw approvals list"
    return f"run {short_id(row.run_id)} is in progress" if row.run_id else "waiting for a run"


def _without_text(message: InboundMessage) -> str:
    """Describe a message without text by its attachments."""
    kinds = [file.kind.value for file in message.attachments]
    return f"({display.cell(', '.join(kinds) or message.unsupported or 'no text')})"


# ---------------------------------------------------------------------------- show


@app.command()
def show(ctx: typer.Context, row_id: selection.Id, *, as_json: AsJson = False) -> None:
    """Show the details of a message, with its full text."""

    async def ask(control: Control) -> DeadLetter:
        return await control.deliveries.dead_letter(row_id)

    answer(ctx, *with_names(ask, lambda found: _keys([found]), DeadLetter, _show, as_json))


def _show(found: DeadLetter, names: DisplayNames) -> None:
    message = found.row.message
    facts = [*_facts(found, names, display.now()), *_message(message)]
    if not _no_change(found):
        facts.append(("to retry", f"goclaw deliveries incoming retry {found.row.id}"))
    show_facts(facts)
    if message.quote:
        display.show_text("quoted", message.quote)
    if message.text:
        display.show_text("text", message.markdown)


def _facts(letter: DeadLetter, names: DisplayNames, seen_at: datetime) -> Iterator[tuple[str, str]]:
    row = letter.row
    message = row.message
    yield "message", f"{row.id} (incoming)"
    yield "state", _why(row)
    yield "chat", f"{names.of(letter.session)} ({display.place(message.target)})"
    if message.place_name:
        yield "chat name", display.cell(message.place_name)
    yield "from", display.who(message.sender)
    yield "session", names.with_key(letter.session)
    yield "agent", letter.agent
    yield "run", row.run_id or "none"
    yield "sent", clock(message.sent_at)
    yield "received", f"{clock(row.received_at)} ({display.age(row.received_at, seen_at)})"
    yield "ended", clock(row.finished_at) or "not yet"
    yield "attempts", str(letter.attempts)
    yield "received as", display.cell(message.external_id)


def _message(message: InboundMessage) -> Iterator[tuple[str, str]]:
    """Yield the facts that only some messages have."""
    known = (
        ("reply to", message.reply_to),
        ("edits", message.edits),
        ("album", message.album),
        ("button", message.press),
        ("unsupported", message.unsupported),
    )
    yield from ((name, display.cell(value)) for name, value in known if value)
    if message.cut:
        yield "cut", "the channel split a long text here; the next message continues it"
    for file in message.attachments:
        yield "file", _file(file)
    for file in message.quoted_files:
        yield "file quoted", _file(file)


def _file(file: Attachment) -> str:
    size = "" if file.size is None else f"{file.size} bytes"
    about = ", ".join(filter(None, (file.kind.value, display.cell(file.mime), size)))
    return f"{display.cell(file.name) or 'unnamed'} ({about})"


# ---------------------------------------------------------------------------- retry, drop


def _no_change(letter: DeadLetter) -> str:
    """Return why a message cannot be retried, "" if it can."""
    outcome = letter.row.outcome
    if outcome is None:
        return "is still in progress or waiting"
    return "is answered" if outcome.value == "completed" else ""


def _not_dropped(letter: DeadLetter) -> str:
    """Return why a message cannot be dropped, "" if it can."""
    row = letter.row
    if row.outcome is None:
        return "waits for an approval" if row.asking_run else "is in progress" if row.run_id else ""
    return _no_change(letter)


def _line(letter: DeadLetter, names: DisplayNames) -> str:
    message = letter.row.message
    where, words = names.of(letter.session), display.words(message.text)
    return f"{letter.row.id}  from {display.who(message.sender)} in {where}: {words}"


_BOX: selection.MessageBox[DeadLetter] = selection.MessageBox(
    one=lambda control, row_id: control.deliveries.dead_letter(row_id),
    every=lambda control: control.deliveries.dead_letters(DeadLetterQuery(limit=selection.PAGE)),
    id_of=lambda letter: letter.row.id,
    key=lambda letter: letter.session,
    line=_line,
)
selection.add_retry(
    app,
    selection.MessageChange(
        _BOX, lambda control, ids: control.deliveries.retry_dead_letters(ids), _no_change
    ),
    "Retry failed messages: run the agent on them again.",
)
selection.add_drop(
    app,
    selection.MessageChange(
        _BOX,
        lambda control, ids: control.deliveries.dismiss_dead_letters(ids),
        _not_dropped,
        consequence="Dropped messages get no answer and are no longer listed",
    ),
    "Drop failed messages, or waiting ones by id. They get no answer.",
)
