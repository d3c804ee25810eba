"""``goclaw approvals``: questions about tool calls, and their answers (SPEC AGENT-11)."""

from __future__ import annotations

from typing import Annotated

import typer

from goclaw_py.cli.context import AsJson, Limit, Watch, answer, cli, look, named
from goclaw_py.cli.messages import display
from goclaw_py.cli.output import Printer, clock, show_facts, show_json, show_table
from goclaw_py.delivery import approval_texts
from goclaw_py.model.approvals import ABOUT_OUTCOME, Approval, Decision, ToolGrant
from goclaw_py.model.ids import AgentName, SessionKey

app = typer.Typer(
    help="Manage tool calls that need the approval of a person.", no_args_is_help=True
)

_COLUMNS = ("ID", "AGE", "AGENT", "TOOL", "ARGUMENTS", "SESSION", "STATE")

ApprovalId = Annotated[
    str,
    typer.Argument(
        metavar="ID", callback=named, help="Id of the approval, or a unique beginning of it."
    ),
]


@app.command("list")
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

    def show_all(found: list[Approval]) -> None:
        show_table(_COLUMNS, [_row(one) for one in found], empty=empty)

    output = Printer(list[Approval], show_all, as_json)
    look(ctx, lambda control: control.approvals(waiting=not every, limit=limit), output, watch)


def _row(one: Approval) -> tuple[str, ...]:
    return (
        one.id,
        display.age(one.asked_at, display.now()),
        one.agent,
        display.cell(one.request.tool),
        display.words(one.request.arguments),
        display.cell(one.session),
        _state(one),
    )


def _state(one: Approval) -> str:
    if one.decision is not None:
        return display.cell(approval_texts.answer(one.decision, one.decided_by))
    return "did it take effect?" if one.request.uncertain else "waiting"


@app.command()
def show(ctx: typer.Context, approval: ApprovalId, *, as_json: AsJson = False) -> None:
    """Show a tool call with its arguments, and how to answer."""
    answer(ctx, lambda control: control.approval(approval), Printer(Approval, _show, as_json))


def _show(one: Approval) -> None:
    facts = [
        ("approval", one.id),
        ("state", _state(one)),
        ("agent", one.agent),
        ("tool", display.cell(one.request.tool)),
        ("run", one.run_id),
        ("session", display.cell(one.session)),
        ("asked in", "the owners' chats" if one.target is None else display.place(one.target)),
        ("asked", f"{clock(one.asked_at)} ({display.age(one.asked_at, display.now())} ago)"),
        ("answered" if one.decided_at else "expires", clock(one.decided_at or one.expires_at)),
    ]
    if one.decision is None:
        how = "answer" if one.request.uncertain else "allow"
        what = f" {'|'.join(ABOUT_OUTCOME)}" if one.request.uncertain else ""
        facts.append(("to answer", f"goclaw approvals {how} {one.id}{what}"))
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
    as_json: AsJson = False,
) -> None:
    """Allow a tool call once, or the tool for longer."""
    if session and always:
        raise typer.BadParameter("give either --session or --always")
    longer = Decision.ALWAYS if always else Decision.SESSION
    _decide(ctx, approval, longer if session or always else Decision.ONCE, as_json=as_json)


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


def _decide(ctx: typer.Context, approval: str, decision: Decision, *, as_json: bool) -> None:
    def said(one: Approval) -> None:
        typer.echo(f"{display.cell(one.request.tool)}: {_state(one)}")

    output = Printer(Approval, said, as_json)
    answer(ctx, lambda control: control.decide_approval(approval, decision), output)


@app.command()
def grants(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """List tools that were allowed for a session or always."""

    def show_all(found: list[ToolGrant]) -> None:
        rows = [
            (
                one.agent,
                display.cell(one.tool),
                "all" if one.session is None else display.cell(one.session),
                clock(one.granted_at),
                display.cell(one.granted_by) or "the operator",
            )
            for one in found
        ]
        show_table(("AGENT", "TOOL", "SESSION", "SINCE", "BY"), rows, empty="no grants")

    answer(ctx, lambda control: control.grants(), Printer(list[ToolGrant], show_all, as_json))


@app.command()
def revoke(
    ctx: typer.Context,
    agent: Annotated[str, typer.Argument(callback=named, help="Name of the agent.")],
    tool: Annotated[str, typer.Argument(callback=named, help="Name of the tool.")],
    *,
    session: Annotated[
        str | None, typer.Option(help="Session key of the grant (default: that for all sessions).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a grant: the agent asks again before it calls the tool."""
    key = None if session is None else SessionKey(session)
    cli(ctx).ask(lambda control: control.revoke_grant(AgentName(agent), tool, key))
    if as_json:
        show_json(dict[str, bool], {"revoked": True})
    else:
        typer.echo(f"agent {display.cell(agent)} asks again before it calls {display.cell(tool)}")
