"""``goclaw deliveries``: outgoing messages and their delivery (SPEC IO-3, OPS-4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

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
from goclaw_py.cli.output import Column, brief_when, clock, one_line, show_facts, show_table
from goclaw_py.core.display_names import address
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.operations.deliveries import HELP_OF_OUTGOING
from goclaw_py.operations.deliveries.command import selection
from goclaw_py.records import OutboxQuery, OutboxRow, OutboxState

if TYPE_CHECKING:
    from goclaw_py.operations.control import Control

app = typer.Typer(help=HELP_OF_OUTGOING, no_args_is_help=True)

_COLUMNS = (
    "ID",
    Column("STATE", state=True),
    Column("CHAT", least=12),
    "CREATED",
    Column("ATTEMPTS", drop=3),
    Column("NEXT TRY", drop=2),
    Column("PROBLEM", least=16),
    Column("TEXT", least=16),
    Column("KEY", drop=9),
)
_PROBLEM = 80

# ---------------------------------------------------------------------------- list


@dataclass(frozen=True, slots=True)
class _Listed:
    rows: list[OutboxRow]
    failed: int
    searched_all: bool


@app.command("list")
@with_wide
@with_options(selection.MessageOptions)
def list_(
    ctx: typer.Context,
    options: selection.MessageOptions,
    state: Annotated[str | None, choice(OutboxState, former=("pending", "dead"))] = None,
    chat: Annotated[
        str | None, typer.Option(help="Name or id, or a beginning of CHANNEL/ACCOUNT/ID/TOPIC.")
    ] = None,
    *,
    watch: Watch = None,
    as_json: AsJson = False,
) -> None:
    """List outgoing messages, newest first."""
    wanted = None if state is None else OutboxState(state)
    only, limit = options.filter(), options.limit

    async def ask(control: Control) -> _Listed:
        most = limit if chat is None else selection.PAGE
        query = OutboxQuery(wanted, only=only, limit=most)
        found = await control.deliveries.outbox(query)
        failed: list[OutboxRow] = []
        if wanted is None and not as_json:
            query = OutboxQuery(OutboxState.FAILED, only=only, limit=selection.PAGE)
            failed = await control.deliveries.outbox(query)
        names: dict[str, str] = {}
        if chat is not None:
            keys = {address(row.message.target) for row in (*found, *failed)}
            names = await control.sessions.names(sorted(keys))
        rows = [row for row in found if _goes_to(row.message.target, chat, names)]
        in_chat = sum(_goes_to(row.message.target, chat, names) for row in failed)
        is_whole = chat is None or len(found) < selection.PAGE or len(rows) >= limit
        return _Listed(rows[:limit], in_chat, is_whole)

    def show_all(found: _Listed, names: DisplayNames) -> None:
        open_ = (OutboxState.WAITING, OutboxState.SENDING)
        note_stored(ctx, unfinished=any(row.state in open_ for row in found.rows))
        filtered = selects(options) or state is not None or chat is not None
        empty = no_rows("messages", "deliveries list", filtered=filtered, otherwise="no messages")
        _show_all(found, names, empty)

    kind = list[OutboxRow]
    question, output = with_names(ask, _keys, kind, show_all, as_json, _rows)
    answer_or_watch(ctx, question, output, watch)


def _keys(found: _Listed) -> Iterator[str]:
    return (address(row.message.target) for row in found.rows)


def _rows(found: _Listed) -> list[OutboxRow]:
    if not found.searched_all:
        typer.echo(f"searched only the newest {selection.PAGE} messages", err=True)
    return found.rows


def _show_all(found: _Listed, names: DisplayNames, empty: str) -> None:
    rows, seen_at = _rows(found), display.now()
    if found.failed:
        what = selection.count_of(found.failed)
        see = "goclaw deliveries list --state failed"
        typer.echo(f"{what} could not be delivered; see: {see}", err=True)
    show_table(_COLUMNS, [_row(one, names, seen_at) for one in rows], empty=empty)


def _goes_to(target: Target, chat: str | None, names: Mapping[str, str]) -> bool:
    """Return whether a message goes to a chat, given by name, id or a beginning of its path."""
    if chat is None or chat in (target.chat, names.get(address(target))):
        return True
    return f"{display.place(target)}/".startswith(f"{chat}/")


def _row(row: OutboxRow, names: DisplayNames, seen_at: datetime) -> tuple[str, ...]:
    return (
        str(row.id),
        row.state.value,
        names.chat(row.message.target),
        display.moment(row.created_at),
        str(row.attempts),
        _next_try(row, seen_at),
        _problem(row),
        display.words(display.sent_text(row.message)) or _without_text(row.message),
        display.place(row.message.target),
    )


def _next_try(row: OutboxRow, seen_at: datetime) -> str:
    if row.state is not OutboxState.WAITING:
        return ""
    if row.next_attempt_at <= seen_at:
        return "due"
    return brief_when(row.next_attempt_at, seen_at)


def _problem(row: OutboxRow) -> str:
    problems = [one_line(row.error, _PROBLEM)] if row.error else []
    if row.possible_duplicate:
        problems.append("possible duplicate")
    return "; ".join(problems)


def _without_text(message: OutboundMessage) -> str:
    return "" if message.file is None else f"({message.file.kind.value})"


# ---------------------------------------------------------------------------- show


@app.command()
def show(ctx: typer.Context, row_id: selection.Id, *, as_json: AsJson = False) -> None:
    """Show the details of a message, with its full text."""

    async def ask(control: Control) -> OutboxRow:
        return await control.deliveries.outbox_row(row_id)

    def keys(found: OutboxRow) -> Iterator[str]:
        yield address(found.message.target)
        if found.session:
            yield found.session

    answer(ctx, *with_names(ask, keys, OutboxRow, _show, as_json))


def _show(found: OutboxRow, names: DisplayNames) -> None:
    seen_at = display.now()
    show_facts([*_facts(found, names, seen_at), *_message(found.message), *_what_to_do(found)])
    if found.message.text:
        display.show_text("text", display.sent_text(found.message))


def _facts(row: OutboxRow, names: DisplayNames, seen_at: datetime) -> Iterator[tuple[str, str]]:
    yield "delivery", str(row.id)
    yield "state", row.state.value
    target = row.message.target
    yield "chat", f"{names.chat(target)} ({display.place(target)})"
    yield "session", names.with_key(row.session) if row.session else "none"
    yield "run", display.cell(row.message.run_id or "none")
    yield "created", f"{clock(row.created_at)} ({display.age(row.created_at, seen_at)})"
    yield "attempts", str(row.attempts)
    if next_try := _next_try(row, seen_at):
        yield "next try", f"{clock(row.next_attempt_at)} ({next_try})"
    if row.error:
        yield "problem", display.cell(row.error)
    if row.possible_duplicate:
        yield "duplicate", "possible: it was sent again, because the first try got no response"
    if row.state is OutboxState.SENT:
        yield "delivered", clock(row.sent_at) or "not confirmed by the channel"
    if row.external_id:
        yield "sent as", display.cell(row.external_id)


def _message(message: OutboundMessage) -> Iterator[tuple[str, str]]:
    if message.reply_to:
        yield "reply to", display.cell(message.reply_to)
    if message.draft:
        yield "draft", f"{display.cell(message.draft)}, completed by this message"
    if message.file is not None:
        file = message.file
        about = ", ".join(filter(None, (file.kind.value, display.cell(file.mime))))
        yield "file", f"{display.cell(file.name)} ({about}) from {display.cell(file.path)}"
    if message.album:
        yield "album", f"sent together with the other files of {display.cell(message.album)}"
    for line in message.buttons:
        yield "buttons", " | ".join(display.cell(button.text) for button in line)


def _what_to_do(row: OutboxRow) -> Iterator[tuple[str, str]]:
    if not _no_retry(row):
        yield "to retry", f"goclaw deliveries retry {row.id}"
    if not _no_drop(row):
        yield "to drop", f"goclaw deliveries drop {row.id}"


# ---------------------------------------------------------------------------- retry, drop


def _no_retry(row: OutboxRow) -> str:
    """Return why a message cannot be retried, "" if it can."""
    state = row.state.value
    return "" if state in ("failed", "dropped") else f"is {state}, neither failed nor dropped"


def _no_drop(row: OutboxRow) -> str:
    """Return why a message cannot be dropped, "" if it can."""
    match row.state.value:
        case "failed" | "waiting":
            return ""
        case "sending":
            return "is being sent right now"
        case state:
            return f"is already {state}"


def _line(row: OutboxRow, names: DisplayNames) -> str:
    text = display.words(display.sent_text(row.message))
    return f"{row.id}  to {names.chat(row.message.target)}: {text}"


_FAILED = OutboxQuery(OutboxState.FAILED, limit=selection.PAGE)
_BOX: selection.MessageBox[OutboxRow] = selection.MessageBox(
    one=lambda control, row_id: control.deliveries.outbox_row(row_id),
    every=lambda control: control.deliveries.outbox(_FAILED),
    id_of=lambda row: row.id,
    key=lambda row: address(row.message.target),
    line=_line,
)
selection.add_retry(
    app,
    selection.MessageChange(
        _BOX, lambda control, ids: control.deliveries.retry_outbox(ids), _no_retry
    ),
    "Retry failed or dropped messages. --all retries all failed ones.",
)
selection.add_drop(
    app,
    selection.MessageChange(
        _BOX,
        lambda control, ids: control.deliveries.drop_outbox(ids),
        _no_drop,
        consequence="Dropped messages are not sent unless you retry them",
    ),
    "Drop failed or waiting messages. --all drops all failed ones.",
)
