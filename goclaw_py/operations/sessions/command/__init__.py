"""``goclaw sessions``, ``send`` and ``stop``: list, show, change conversations; send to one."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import typer

from goclaw_py.cli import completion
from goclaw_py.cli.context import (
    AsJson,
    Limit,
    OfChannel,
    SessionName,
    answer,
    check_agent,
    choice,
    cli,
    confirm,
    maybe_named,
    no_rows,
    note_stored,
    selects,
    with_options,
    with_wide,
)
from goclaw_py.cli.messages.display import Yes, moment
from goclaw_py.cli.names import DisplayNames, with_names
from goclaw_py.cli.output import (
    Column,
    Printer,
    clock,
    plain,
    show_facts,
    show_table,
    show_text,
    started_text,
)
from goclaw_py.core.errors import NotAccepted, NotFound, SessionBusy
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.text import count
from goclaw_py.operations.control import Control
from goclaw_py.operations.sessions import HELP
from goclaw_py.operations.sessions.operations import SessionFork, Submitted, deletable_chat
from goclaw_py.records import Session, SessionQuery, SessionState, StoredEntry
from goclaw_py.scheduler.views import StopReport

app = typer.Typer(help=HELP, no_args_is_help=True)


_COLUMNS = (
    Column("SESSION", least=16),
    Column("AGENT", drop=3),
    "LAST ACTIVE",
    Column("WAITING", drop=1),
    Column("ENTRIES", drop=2),
    Column("KEY", drop=9),
)


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The options that select sessions."""

    limit: Limit = 50
    search: Annotated[str, typer.Option(help="List only those with this in name or key.")] = ""
    agent: Annotated[
        str | None,
        typer.Option(autocompletion=completion.agents, help="List only sessions of this agent."),
    ] = None
    channel: OfChannel = None
    state: Annotated[
        str | None,
        choice(
            SessionState,
            "One of running, waiting: with a run in progress, or with a waiting message.",
        ),
    ] = None

    def query(self) -> SessionQuery:
        """Return the query for these options."""
        return SessionQuery(
            agent=None if self.agent is None else AgentName(self.agent),
            channel=self.channel,
            state=None if self.state is None else SessionState(self.state),
            search=self.search,
            limit=self.limit,
        )


@app.command("list")
@with_wide
@with_options(SessionOptions)
def list_(ctx: typer.Context, wanted: SessionOptions, *, as_json: AsJson = False) -> None:
    """List sessions, most recently active first."""

    async def ask(control: Control) -> list[Session]:
        found = await control.sessions.list(wanted.query())
        if not found:
            await check_agent(control, wanted.agent)
        return found

    def show_all(found: list[Session], names: DisplayNames) -> None:
        note_stored(ctx, unfinished=any(one.waiting or one.running for one in found))
        empty = no_rows(
            "sessions", "sessions list", filtered=selects(wanted), otherwise="no sessions yet"
        )
        show_table(_COLUMNS, [_row(one, names) for one in found], empty=empty)

    answer(ctx, *with_names(ask, _keys, list[Session], show_all, as_json))


def _keys(found: list[Session]) -> list[str]:
    return [one.key for one in found]


def _row(one: Session, names: DisplayNames) -> tuple[str, ...]:
    return (
        names.of(one.key),
        one.agent,
        moment(one.last_active_at),
        str(one.waiting),
        str(one.entries),
        one.key,
    )


@dataclass(frozen=True, slots=True)
class SessionHistory:
    """What ``goclaw sessions show`` shows."""

    session: Session
    entries: list[StoredEntry]


@app.command()
def show(
    ctx: typer.Context, session: SessionName, limit: Limit = 20, *, as_json: AsJson = False
) -> None:
    """Show a session and the last entries of its history."""

    async def ask(control: Control) -> SessionHistory:
        found = await control.sessions.get(session)
        entries = await control.sessions.history(found.key, limit=limit)
        return SessionHistory(found, entries)

    shown = with_names(ask, lambda found: [found.session.key], SessionHistory, _show, as_json)
    answer(ctx, *shown)


def _show(answered: SessionHistory, names: DisplayNames) -> None:
    found = answered.session
    show_facts(
        [
            ("session", names.with_key(found.key)),
            ("agent", found.agent),
            ("created", clock(found.created_at)),
            ("last active", clock(found.last_active_at)),
            ("node", found.owner or "none"),
            ("running", str(found.running)),
            ("waiting", str(found.waiting)),
            ("entries", str(found.entries)),
        ]
    )
    for stored in answered.entries:
        who = stored.entry.role.value
        typer.echo(f"\n{clock(stored.at)}  {who}")
        show_text(stored.entry.text)


async def _named(part: str, control: Control) -> tuple[Session, str]:
    """Return a session, and its name with its key."""
    found = await control.sessions.get(part)
    names = DisplayNames(await control.sessions.names([found.key]))
    return found, names.with_key(found.key)


@app.command()
def reset(
    ctx: typer.Context,
    session: SessionName,
    *,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Stop all runs of a session and start a new history.

    Messages waiting in the session are dropped.
    """
    found, name = cli(ctx).ask(partial(_named, session))
    key = found.key
    confirm(f"Reset {name}? The agent forgets this conversation.", yes=yes)

    async def ask(control: Control) -> dict[str, str]:
        await control.sessions.reset(key)
        return {"reset": key}

    def show(done: dict[str, str]) -> None:
        del done
        typer.echo(f"reset {name}")

    answer(ctx, ask, Printer(dict[str, str], show, as_json))


@app.command()
def rename(
    ctx: typer.Context,
    session: SessionName,
    title: Annotated[str, typer.Argument(help='New title, at most 80 characters; "" removes it.')],
    *,
    as_json: AsJson = False,
) -> None:
    """Give a conversation of the console a title.

    Works for conversations of goclaw chat and of the dashboard.
    """

    async def ask(control: Control) -> dict[str, str]:
        found = await control.sessions.get(session)
        try:
            given = await control.sessions.rename(found.key, title)
        except NotAccepted as error:
            raise typer.BadParameter(str(error), param_hint="TITLE") from error
        return {"session": found.key, "title": given}

    def show(done: dict[str, str]) -> None:
        said = f"is now called {plain(done['title'])}" if done["title"] else "has no title now"
        typer.echo(f"{plain(done['session'])} {said}")

    answer(ctx, ask, Printer(dict[str, str], show, as_json))


@app.command("rm", hidden=True)
@app.command()
def delete(
    ctx: typer.Context, session: SessionName, *, yes: Yes = False, as_json: AsJson = False
) -> None:
    """Delete a conversation of the console or the web chat.

    Stops what runs in it, and deletes its history, its messages and the tool calls of its runs.
    Their usage is kept.
    """
    found, name = cli(ctx).ask(partial(_named, session))
    deletable_chat(found.key)
    confirm(f"Delete {name} with {count(found.entries, 'entry', 'entries')}?", yes=yes)

    async def ask(control: Control) -> dict[str, str]:
        await control.sessions.delete(found.key)
        return {"deleted": found.key}

    def show(done: dict[str, str]) -> None:
        del done
        typer.echo(f"deleted {name}")

    answer(ctx, ask, Printer(dict[str, str], show, as_json))


@app.command()
def fork(
    ctx: typer.Context,
    session: SessionName,
    *,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            callback=maybe_named,
            autocompletion=completion.runs,
            help="Copy what was remembered when this run ended (default: now).",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Copy a conversation into a new session, to try another way.

    The original is unchanged. Prints how to continue the copy.
    """

    async def ask(control: Control) -> SessionFork:
        return await control.sessions.fork((await control.sessions.get(session)).key, at=at)

    answer(ctx, ask, Printer(SessionFork, _show_fork, as_json))


def _show_fork(made: SessionFork) -> None:
    copied = count(made.entries, "entry", "entries")
    typer.echo(f"copied {copied} of {plain(made.origin)} to {plain(made.session)}")
    how = f'send {made.session} "TEXT"' if made.chat is None else f"chat --chat {made.chat}"
    typer.echo(f"to continue: goclaw {plain(how)}")


def send(
    ctx: typer.Context,
    session: SessionName,
    text: Annotated[
        str, typer.Argument(help="Text of the message. - reads it from standard input.")
    ],
    *,
    queue: Annotated[
        bool,
        typer.Option(
            "--queue", help="If the session is busy, queue the message instead of failing."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Send a message to the agent in a session.

    The agent handles it as if it arrived in the chat of the session, and replies there.
    Example: goclaw send telegram:direct:1001 "what is new?"
    """
    words = sys.stdin.read() if text == "-" else text
    if not words.strip():
        raise typer.BadParameter("the message is empty")

    async def ask(control: Control) -> Submitted:
        found = await control.sessions.get(session)
        try:
            return await control.sessions.send_message(found.key, words, queue=queue)
        except SessionBusy as error:
            raise SessionBusy("the session is busy; to queue the message: --queue") from error

    answer(ctx, ask, Printer(Submitted, _show_sent, as_json))


def _show_sent(done: Submitted) -> None:
    elsewhere = "stored; another node owns this session and will run it"
    typer.echo(started_text(done.run) if done.run else elsewhere)


def stop(
    ctx: typer.Context,
    session: SessionName,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Stop all runs and drop all waiting messages.")
    ] = False,
    run: Annotated[
        str | None, typer.Option("--run", metavar="ID", help="Stop this run, not the oldest one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Stop the oldest run of a session."""
    if everything and run is not None:
        raise typer.BadParameter("--all stops all runs, --run only one")

    async def ask(control: Control) -> StopReport:
        found = await control.sessions.get(session)
        only = None if run is None else await _run_of(control, found.key, run)
        return await control.sessions.stop(found.key, everything=everything, run=only)

    answer(ctx, ask, Printer(StopReport, lambda report: typer.echo(stop_text(report)), as_json))


async def _run_of(control: Control, session: SessionKey, prefix: str) -> RunId:
    """Return a run of a session that runs or waits. Raises ``NotFound``."""
    queue = await control.sessions.queue(session)
    found = [run.id for run in (*queue.running, *queue.waiting) if run.id.startswith(prefix)]
    if len(found) != 1:
        many = "several" if found else "no"
        raise NotFound(f"{many} unfinished runs of this session begin with {prefix!r}")
    return found[0]


def stop_text(report: StopReport) -> str:
    """Return what a stop did, in words."""
    parts = ["already stopping"] if report.already_stopping else []
    if report.stopped:
        parts.append(f"stopped {', '.join(report.stopped)}")
    if report.dropped:
        parts.append(f"dropped {len(report.dropped)} waiting")
    if report.asking:
        parts.append(f"stopped {count(report.asking, 'task')} waiting for an approval")
    if report.unsent:
        parts.append(f"dropped {count(report.unsent, 'unsent part')} of an answer")
    return "; ".join(parts) or "nothing was running"
