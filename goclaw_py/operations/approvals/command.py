"""``goclaw approvals``: questions about tool calls, and their answers (SPEC AGENT-11)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from goclaw_py.chat.outbound import approval_texts
from goclaw_py.cli.context import (
    AsJson,
    Limit,
    Watch,
    answer,
    answer_or_watch,
    cli,
    confirm,
    maybe_named,
    named,
    note_stored,
    with_wide,
)
from goclaw_py.cli.messages import display
from goclaw_py.cli.names import DisplayNames, with_names
from goclaw_py.cli.output import Column, Printer, clock, plain, show_facts, show_json, show_table
from goclaw_py.core.approvals import ABOUT_OUTCOME, Approval, Decision, ToolGrant
from goclaw_py.core.display_names import address
from goclaw_py.core.errors import ApprovalClosed
from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.operations.approvals import HELP
from goclaw_py.operations.control import Control
from goclaw_py.operations.lookup import only
from goclaw_py.records import ApprovalQuery

app = typer.Typer(help=HELP, no_args_is_help=True)

_COLUMNS = (
    "ID",
    Column("ASKED", drop=1),
    Column("AGENT", drop=4),
    Column("FROM", drop=2, least=10),
    Column("TOOL", least=12),
    Column("ARGUMENTS", least=16),
    Column("SESSION", least=12),
    Column("STATE", least=16, state=True),
    Column("KEY", drop=9),
)
_GRANTS = (
    "AGENT",
    Column("TOOL", least=12),
    Column("SESSION", least=12),
    Column("SINCE", drop=1),
    Column("BY", drop=2),
    Column("KEY", drop=9),
)

ApprovalId = Annotated[
    str,
    typer.Argument(
        metavar="ID", callback=named, help="Id of the approval, or a unique beginning of it."
    ),
]


@app.command("list")
@with_wide
def list_(
    ctx: typer.Context,
    limit: Limit = 50,
    *,
    every: Annotated[bool, typer.Option("--all", help="List answered ones too.")] = False,
    watch: Watch = None,
    as_json: AsJson = False,
) -> None:
    """List tool calls that wait for an approval, newest first."""
    empty = "no approvals" if every else "no tool call waits for an approval"

    async def ask(control: Control) -> list[Approval]:
        return await control.approvals.list(ApprovalQuery(waiting=not every, limit=limit))

    def show_all(found: list[Approval], names: DisplayNames) -> None:
        note_stored(ctx, unfinished=any(one.decision is None for one in found))
        show_table(_COLUMNS, [_row(one, names) for one in found], empty=empty)

    def keys(found: list[Approval]) -> Iterator[str]:
        return (one.session for one in found)

    question, output = with_names(ask, keys, list[Approval], show_all, as_json)
    answer_or_watch(ctx, question, output, watch)


def _row(one: Approval, names: DisplayNames) -> tuple[str, ...]:
    return (
        one.id,
        display.moment(one.asked_at),
        one.agent,
        display.cell(dict(approval_texts.about(one.context)).get("From", one.context.job)),
        display.cell(one.request.tool),
        display.words(one.request.arguments),
        names.of(one.session),
        _state(one),
        display.cell(one.session),
    )


def _state(one: Approval) -> str:
    if one.decision is not None:
        return display.cell(approval_texts.answer(one.decision, one.decided_by))
    return "did it take effect?" if one.request.uncertain else "waiting"


@app.command()
def show(ctx: typer.Context, approval: ApprovalId, *, as_json: AsJson = False) -> None:
    """Show a tool call with its arguments, and how to answer."""

    async def ask(control: Control) -> Approval:
        return await control.approvals.get(approval)

    def keys(one: Approval) -> Iterator[str]:
        yield one.session
        if one.target is not None:
            yield address(one.target)

    answer(ctx, *with_names(ask, keys, Approval, _show, as_json))


def _show(one: Approval, names: DisplayNames) -> None:
    facts = [
        ("approval", one.id),
        ("state", _state(one)),
        ("agent", one.agent),
        ("tool", display.cell(one.request.tool)),
        ("run", one.run_id),
        ("session", names.with_key(one.session)),
        ("asked in", "the owners' chats" if one.target is None else names.chat(one.target)),
        ("asked", f"{clock(one.asked_at)} ({display.age(one.asked_at, display.now())})"),
        ("answered" if one.decided_at else "expires", clock(one.decided_at or one.expires_at)),
    ]
    if one.decision is None and one.request.uncertain:
        answers = "|".join(ABOUT_OUTCOME)
        facts.append(("to answer", f"goclaw approvals answer {one.id} {answers}"))
    elif one.decision is None:
        facts.append(("to allow", f"goclaw approvals allow {one.id}"))
        facts.append(("to deny", f"goclaw approvals deny {one.id}"))
    about = approval_texts.about(one.context)
    facts += [(label.lower(), display.cell(words)) for label, words in about]
    show_facts(facts)
    display.show_text("arguments", one.request.arguments)


@app.command()
def allow(
    ctx: typer.Context,
    approval: ApprovalId,
    *,
    session: Annotated[
        bool, typer.Option("--session", help="Allow the tool until the session is reset.")
    ] = False,
    always: Annotated[
        bool, typer.Option("--always", help="Allow the tool in all sessions of the agent.")
    ] = False,
    yes: display.Yes = False,
    as_json: AsJson = False,
) -> None:
    """Allow a tool call once, or the tool for longer.

    With --always the rule that it adds is shown first, to be confirmed; in scripts add --yes.
    """
    if session and always:
        raise typer.BadParameter("give either --session or --always")
    if always:
        asked = cli(ctx).ask(lambda control: control.approvals.get(approval))
        if asked.decision is not None:
            raise ApprovalClosed(f"{asked.id} is answered already: {_state(asked)}")
        rule = plain(approval_texts.rule(asked.agent, asked.request.tool))
        confirm(f"{rule} Add this rule?", yes=yes)
        _decide(ctx, asked.id, Decision.ALWAYS, rule=asked.request.tool, as_json=as_json)
    else:
        _decide(ctx, approval, Decision.SESSION if session else Decision.ONCE, as_json=as_json)


@app.command()
def deny(ctx: typer.Context, approval: ApprovalId, *, as_json: AsJson = False) -> None:
    """Deny a tool call. The model is told."""
    _decide(ctx, approval, Decision.DENY, as_json=as_json)


@app.command("answer")
def answer_(
    ctx: typer.Context,
    approval: ApprovalId,
    outcome: Annotated[
        str,
        typer.Argument(metavar="happened|again|skip", help="The outcome of the call."),
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Tell whether an interrupted tool call took effect.

    happened: it did. again: repeat it. skip: do not repeat it, whether it took effect or not.
    """
    if outcome not in ABOUT_OUTCOME:
        raise typer.BadParameter(f"must be one of {', '.join(ABOUT_OUTCOME)}")
    _decide(ctx, approval, Decision(outcome), as_json=as_json)


def _decide(
    ctx: typer.Context, approval: str, decision: Decision, *, rule: str = "", as_json: bool
) -> None:
    def show(one: Approval) -> None:
        typer.echo(f"{display.cell(one.request.tool)}: {_state(one)}")

    output = Printer(Approval, show, as_json)
    answer(ctx, lambda control: control.approvals.decide(approval, decision, rule=rule), output)


@app.command()
@with_wide
def grants(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """List tools that were allowed for a session or always."""

    async def ask(control: Control) -> list[ToolGrant]:
        return await control.approvals.grants()

    def keys(found: list[ToolGrant]) -> Iterator[str]:
        return (one.session for one in found if one.session is not None)

    def show_all(found: list[ToolGrant], names: DisplayNames) -> None:
        rows = [
            (
                one.agent,
                display.cell(one.tool),
                "all" if one.session is None else names.of(one.session),
                display.moment(one.granted_at),
                display.cell(one.granted_by) or "the operator",
                display.cell(one.session or ""),
            )
            for one in found
        ]
        show_table(_GRANTS, rows, empty="no grants")

    answer(ctx, *with_names(ask, keys, list[ToolGrant], show_all, as_json))


@app.command()
def revoke(
    ctx: typer.Context,
    agent: Annotated[str, typer.Argument(callback=named, help="Name of the agent.")],
    tool: Annotated[str, typer.Argument(callback=named, help="Name of the tool.")],
    *,
    session: Annotated[
        str | None,
        typer.Option(
            callback=maybe_named,
            help="Session key of the grant, or any unique part of it (default: all sessions).",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a grant: the agent asks again before it calls the tool."""

    async def ask(control: Control) -> None:
        keys = {one.session for one in await control.approvals.grants() if one.session is not None}
        key = SessionKey(session) if session is not None else None
        if session is not None and key not in keys:
            what = f"grant for session {session!r}"
            key = only(sorted(keys), session, str, what, "approvals grants")
        await control.approvals.revoke(AgentName(agent), tool, key)

    cli(ctx).ask(ask)
    if as_json:
        show_json(dict[str, bool], {"revoked": True})
    else:
        typer.echo(f"agent {display.cell(agent)} asks again before it calls {display.cell(tool)}")
