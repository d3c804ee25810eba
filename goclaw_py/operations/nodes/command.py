"""``goclaw nodes``: manage the gateways that share the database (SPEC NODE-1)."""

from __future__ import annotations

from typing import Annotated

import typer

from goclaw_py.cli import completion
from goclaw_py.cli.context import (
    AsJson,
    Watch,
    answer,
    answer_or_watch,
    cli,
    confirm,
    named,
    with_wide,
)
from goclaw_py.cli.messages import display
from goclaw_py.cli.output import (
    Column,
    Printer,
    clock,
    plain,
    short_id,
    show_facts,
    show_json,
    show_table,
)
from goclaw_py.cluster.membership import other_sections
from goclaw_py.core.time.texts import age, duration
from goclaw_py.operations.control import Control
from goclaw_py.operations.lookup import only
from goclaw_py.operations.nodes import HELP
from goclaw_py.operations.nodes.operations import NodesView
from goclaw_py.records import Node

app = typer.Typer(no_args_is_help=True, help=HELP)

NodeName = Annotated[
    str,
    typer.Argument(
        metavar="NODE",
        callback=named,
        autocompletion=completion.nodes,
        help="Id of the node, or any unique part of it.",
    ),
]

_COLUMNS = (
    "NODE",
    Column("HOST", drop=1),
    Column("PID", drop=4),
    Column("RELEASE", drop=5),
    Column("SINCE", drop=3),
    Column("STATE", state=True),
    Column("RUNNING", drop=2),
    Column("WAITING", drop=2),
    Column("RECEIVES", least=16),
)


@app.command("list")
@with_wide
def list_(ctx: typer.Context, *, watch: Watch = None, as_json: AsJson = False) -> None:
    """List nodes with their state and load, oldest first."""
    output = Printer(NodesView, _show_nodes, as_json)
    answer_or_watch(ctx, lambda control: control.nodes.list(), output, watch)


def _show_nodes(found: NodesView) -> None:
    rows = [_row(found, node) for node in found.nodes]
    show_table(
        _COLUMNS, rows, empty="no gateway is running on this database; to start one: goclaw run"
    )


@app.command()
def show(ctx: typer.Context, node: NodeName, *, as_json: AsJson = False) -> None:
    """Show the details of a node: lease, clock, load."""

    async def ask(control: Control) -> tuple[NodesView, Node]:
        found = await control.nodes.list()
        nodes = list(found.nodes)
        what = f"node {node!r}"
        return found, only(nodes, node, lambda one: one.id, what, "nodes list")

    found, one = cli(ctx).ask(ask)
    if as_json:
        show_json(Node, one)
        return
    expires = "expires" if one.lease_until > found.at else "expired"
    lease = f"{expires} {age(one.lease_until, found.at)}"
    show_facts(
        [
            ("node", one.id),
            ("host", plain(one.machine)),
            ("pid", str(one.pid)),
            ("release", plain(one.release)),
            ("since", clock(one.started_at)),
            ("state", found.health(one)),
            ("lease", lease),
            ("clock", _skew(one)),
            ("running", str(one.state.running)),
            ("waiting", str(one.state.waiting)),
            ("receives", ", ".join(map(plain, one.state.places)) or "nothing"),
            *_differs(found, one),
        ]
    )


@app.command()
def drain(
    ctx: typer.Context, node: NodeName, *, yes: display.Yes = False, as_json: AsJson = False
) -> None:
    """Shut a node down gracefully, as SIGTERM does.

    The node accepts no new work, and exits when its runs are finished or the time limit is over.
    """
    found = cli(ctx).ask(lambda control: control.nodes.list())
    one = found.live_node(node)
    stay = [other for other in found.nodes if found.health(other) == "live" and other.id != one.id]
    alone = "" if stay else " It is the only gateway: nothing will be answered until one starts."
    confirm(f"Shut down node {short_id(one.id)} ({one.machine}, pid {one.pid})?{alone}", yes=yes)
    output = Printer(Node, _show_drained, as_json)
    answer(ctx, lambda control: control.nodes.drain(one.id), output)


def _show_drained(node: Node) -> None:
    typer.echo(
        f"node {node.id} (pid {node.pid}) is shutting down and accepts no new work; "
        "see: goclaw nodes list --watch"
    )


def _row(found: NodesView, node: Node) -> tuple[str, ...]:
    told = node.state
    return (
        f"{short_id(node.id)}{' *' if node.id == found.here else ''}",
        plain(node.machine),
        str(node.pid),
        plain(node.release),
        display.moment(node.started_at),
        found.health(node),
        str(told.running),
        str(told.waiting),
        ", ".join(map(plain, told.places)) or "nothing",
    )


def _differs(found: NodesView, node: Node) -> list[tuple[str, str]]:
    asked = next((one for one in found.nodes if one.id == found.here), node)
    parts = [f"release {asked.release}"] if asked.release != node.release else []
    if other := other_sections(asked, node):
        parts.append(f"other settings: {', '.join(other)}")
    return [("differs", plain(f"node {asked.id} has {' and '.join(parts)}"))] if parts else []


def _skew(node: Node) -> str:
    skew_s = node.state.skew_s
    if abs(skew_s) < 1:
        return "in sync with the database"
    return f"{duration(abs(skew_s))} {'ahead of' if skew_s > 0 else 'behind'} the database"
