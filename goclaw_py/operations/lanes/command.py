"""``goclaw lanes`` and ``goclaw status`` (SPEC LANE-7, LANE-9, OPS-1)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from math import isinf
from typing import Annotated

import typer

from goclaw_py.cli import completion
from goclaw_py.cli.context import AsJson, Watch, answer, answer_or_watch, named, with_wide
from goclaw_py.cli.names import DisplayNames, with_names
from goclaw_py.cli.output import (
    Column,
    Columns,
    Printer,
    folded,
    plain,
    short_id,
    show_facts,
    show_table,
    since,
    table_text,
)
from goclaw_py.core.containers import HistogramView
from goclaw_py.core.ids import LaneName
from goclaw_py.core.text import count
from goclaw_py.core.time.texts import duration
from goclaw_py.operations.control import Control
from goclaw_py.operations.lanes.operations import Resized
from goclaw_py.scheduler.texts import state_text, used_text, waits_for
from goclaw_py.scheduler.views import (
    MAX_LANE_SIZE,
    Backlog,
    GatewayStatus,
    LanesView,
    LaneUse,
    RunView,
)

app = typer.Typer(invoke_without_command=True)

_LANES: Columns = (
    *("LANE", "ACTIVE", "WAITING"),
    *(Column(name, drop=2) for name in ("STARTED", "FINISHED", "CANCELLED")),
    Column("FAILED", drop=1),
    *(Column("WAIT 50%", drop=1), "WAIT 95%", Column("RUN 50%", drop=1), "RUN 95%"),
)
_PEOPLE: Columns = (
    *("POSITION", "RUN", Column("SESSION", least=16), Column("AGENT", drop=2)),
    *(Column("STATE", state=True), Column("SINCE", drop=1), "FOR", Column("KEY", drop=9)),
)
_TYPICAL, _NEARLY_ALL = 0.5, 0.95


@app.callback()
@with_wide
def lanes(
    ctx: typer.Context,
    *,
    watch: Watch = None,
    as_json: AsJson = False,
) -> None:
    """Show lanes with their runs, and change their sizes.

    To resize a lane until the gateway restarts: goclaw lanes set; for good: goclaw config set.
    """
    if ctx.invoked_subcommand is not None:
        if watch is not None or as_json:
            raise typer.BadParameter("put options after the subcommand: lanes set … --json")
        return

    async def ask(control: Control) -> LanesView:
        return await control.lanes.list()

    question, output = with_names(ask, _keys, LanesView, _show, as_json)
    answer_or_watch(ctx, question, output, watch, live=True)


def _keys(found: LanesView) -> Iterator[str]:
    return (run.session for use in found.lanes for run in (*use.inside, *use.waiting))


def _show(found: LanesView, names: DisplayNames) -> None:
    typer.echo(lanes_text(found, names))


def _size(text: str) -> str:
    # int() also accepts 1_0 and digits of other scripts.
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= MAX_LANE_SIZE:
        raise typer.BadParameter(f"must be a whole number from 1 to {MAX_LANE_SIZE}, not {text!r}")
    return text


# Otherwise -1 is parsed as an unknown option.
@app.command("set", context_settings={"ignore_unknown_options": True})
def set_(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="LANE",
            callback=named,
            autocompletion=completion.lanes,
            help="Name of the lane.",
        ),
    ],
    size: Annotated[str, typer.Argument(callback=_size, help="Maximum number of concurrent runs.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Resize a lane immediately, until the gateway restarts. No run is cancelled.

    For good, and on all gateways: goclaw config set lanes.LANE.size SIZE
    """

    async def ask(control: Control) -> Resized:
        known = [use.lane.name for use in (await control.lanes.list()).lanes]
        if name not in known:
            raise typer.BadParameter(f"no lane {name!r}; lanes: {', '.join(known)}")
        return await control.lanes.resize(LaneName(name), int(size))

    answer(ctx, ask, Printer(Resized, _show_resized, as_json))


def _show_resized(done: Resized) -> None:
    for line in _resized(done):
        typer.echo(plain(line))


def _resized(done: Resized) -> Iterator[str]:
    lane = done.lane
    if done.before == lane.concurrency:
        yield f"lane {lane.name} already has size {done.before}"
    else:
        yield f"lane {lane.name}: {done.before} → {lane.concurrency}"
        if lane.active > lane.concurrency:
            yield (
                f"{lane.active} runs in the lane continue; "
                f"the next one starts when fewer than {lane.concurrency} are left"
            )
    if lane.shared:
        yield (
            "this lane is shared by all gateways, but only this gateway was changed: "
            "run the same command on each of them"
        )
    yield (
        "valid until the gateway restarts, whatever goclaw config show says; to keep it: "
        f"goclaw config set lanes.{lane.name}.size {lane.concurrency}"
    )


def lanes_text(found: LanesView, names: DisplayNames) -> str:
    """Return a table of all lanes, and below it the runs of each lane in use."""
    text = table_text(_LANES, [_row(use) for use in found.lanes], empty="no lanes")
    for use in found.lanes:
        rows = list(_people(use, names, found.at))
        if rows:
            title = f"lane {plain(use.lane.name)}, {_used(use)}"
            text += f"\n\n{title}\n{table_text(_PEOPLE, rows, empty='')}"
    return text


def _row(use: LaneUse) -> tuple[str, ...]:
    lane = use.lane
    return (
        lane.name,
        used_text(lane) + (" closed" if lane.closed else ""),
        *map(str, (lane.waiting, lane.started, lane.finished, lane.cancelled, lane.failed)),
        *_times(lane.wait_times),
        *_times(lane.run_times),
    )


def _times(times: HistogramView) -> tuple[str, str]:
    """Return the median and the 95th percentile."""
    return _bound(times, _TYPICAL), _bound(times, _NEARLY_ALL)


def _bound(times: HistogramView, share: float) -> str:
    bound = times.quantile(share)
    if bound is None:
        return "-"
    return f"> {_brief(times.bounds_s[-1])}" if isinf(bound) else f"≤ {_brief(bound)}"


def _brief(bound_s: float) -> str:
    """Format a bound of the histogram."""
    return f"{bound_s * 1000:g} ms" if bound_s < 1 else duration(bound_s)


def _used(use: LaneUse) -> str:
    lane = use.lane
    elsewhere = f", {lane.elsewhere} by other nodes" if lane.elsewhere else ""
    waiting = f", {lane.waiting} waiting" if lane.waiting else ""
    return f"{lane.used} of {lane.concurrency} taken{elsewhere}{waiting}"


def _people(use: LaneUse, names: DisplayNames, at: datetime) -> Iterator[tuple[str, ...]]:
    for run in use.inside:
        yield ("running", *_one(run, names, run.state.value, at))
    for place, run in enumerate(use.waiting, 1):
        yield (f"{place}.", *_one(run, names, "waiting", at))


def _one(run: RunView, names: DisplayNames, state: str, at: datetime) -> tuple[str, ...]:
    lasted = since(at, run.for_s)
    return short_id(run.id), names.of(run.session), run.agent, state, *lasted, run.session


_STATUS_LANES: Columns = (
    *("LANE", "ACTIVE", "WAITING"),
    *(Column(name, drop=1) for name in ("STARTED", "FINISHED", "CANCELLED", "FAILED")),
)
_RUNS: Columns = (
    *("RUN", Column("SESSION", least=16), Column("LANE", drop=2), Column("STATE", state=True)),
    *(Column("FOR", drop=1), Column("WAITS FOR", least=24, wraps=True), Column("KEY", drop=9)),
)
_CHANNELS = (
    *("CHANNEL", "ACCOUNT", Column("STATE", state=True)),
    Column("DETAIL", least=24, wraps=True),
)
_PEERS: Columns = (
    *("OTHER NODE", Column("MACHINE", drop=1), Column("STATE", state=True)),
    *(Column("RUNNING", drop=2), Column("WAITING", drop=2), Column("RECEIVES", least=16)),
)


@with_wide
def status(ctx: typer.Context, *, watch: Watch = None, as_json: AsJson = False) -> None:
    """Show the state of the gateway.

    Lists lanes, runs, channels, other nodes and the backlog of messages.
    """

    async def ask(control: Control) -> GatewayStatus:
        return await control.lanes.status()

    def keys(found: GatewayStatus) -> list[str]:
        return [run.session for run in found.runs]

    question, output = with_names(ask, keys, GatewayStatus, _show_status, as_json)
    answer_or_watch(ctx, question, output, watch, live=True)


def _show_status(status: GatewayStatus, names: DisplayNames) -> None:
    up = duration((status.now - status.started_at).total_seconds())
    show_facts(
        [
            ("gateway", f"release {status.release}, pid {status.pid}, node {status.node}, up {up}"),
            ("state", "draining: accepts no new messages" if status.draining else "running"),
            ("database", status.database),
            *_backlog(status.backlog),
        ]
    )
    typer.echo()
    lanes = []
    for lane in status.lanes:
        counts = (lane.waiting, lane.started, lane.finished, lane.cancelled, lane.failed)
        lanes.append((lane.name, used_text(lane), *map(str, counts)))
    show_table(_STATUS_LANES, lanes, empty="no lanes")
    typer.echo()
    runs = [_status_run(one, names) for one in status.runs]
    show_table(_RUNS, runs, empty="nothing is running")
    typer.echo()
    channels = [(c.name, c.account, c.state, c.detail) for c in status.channels]
    show_table(_CHANNELS, channels, empty="no channels")
    if status.peers:
        typer.echo()
        _show_peers(status)
    for warning in status.warnings:
        typer.echo("\n" + "\n".join(folded(f"warning: {plain(str(warning))}")))
        if warning.command:
            typer.echo(f"  {plain(warning.command)}")


def _status_run(run: RunView, names: DisplayNames) -> tuple[str, ...]:
    state, lasted = state_text(run), duration(run.for_s)
    name, key = names.of(run.session), run.session
    return short_id(run.id), name, run.lane, state, lasted, waits_for(run), key


def _show_peers(status: GatewayStatus) -> None:
    rows = [
        (
            short_id(peer.id),
            plain(peer.machine),
            peer.health,
            str(peer.running),
            str(peer.waiting),
            ", ".join(map(plain, peer.receives)) or "nothing",
        )
        for peer in status.peers
    ]
    show_table(_PEERS, rows, empty="")


def _backlog(backlog: Backlog | None) -> list[tuple[str, str]]:
    if backlog is None:
        return [("backlog", "unknown")]
    return [
        ("messages", f"{backlog.inbox} unfinished, {backlog.unanswered} failed"),
        ("deliveries", f"{backlog.outbox} waiting, {backlog.failed} failed"),
        ("approvals", f"{count(backlog.approvals, 'tool call')} waiting"),
    ]
