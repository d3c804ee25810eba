"""What the heartbeat commands share: choosing the agent, and tables of heartbeat runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goclaw_py.chat.outbound.ok_token import without_token
from goclaw_py.cli import completion
from goclaw_py.cli.context import maybe_named
from goclaw_py.cli.messages import display
from goclaw_py.cli.names import DisplayNames
from goclaw_py.cli.output import Column, brief_when, one_line, show_table
from goclaw_py.core.display_names import address
from goclaw_py.core.errors import HeartbeatError
from goclaw_py.core.ids import MAIN_AGENT, AgentName
from goclaw_py.core.outcomes import outcome_text
from goclaw_py.core.text import cost
from goclaw_py.core.time.machine_zone import machine_zone
from goclaw_py.core.time.texts import duration
from goclaw_py.schedule.heartbeat.models import HeartbeatRun
from goclaw_py.schedule.heartbeat.status_texts import is_undelivered, next_run, outcome_words
from goclaw_py.schedule.heartbeat.views import OPERATOR, HeartbeatView, Reader

if TYPE_CHECKING:
    from goclaw_py.operations.control import Control
    from goclaw_py.operations.heartbeats.operations import HeartbeatService

_TEXT = 200


def _agent_argument(default: str) -> Any:
    return typer.Argument(
        metavar="AGENT",
        callback=maybe_named,
        show_default=False,
        autocompletion=completion.agents,
        help=f"Agent (default: {default}).",
    )


AgentArgument = Annotated[str | None, _agent_argument("main, or the only agent")]
AgentsArgument = Annotated[str | None, _agent_argument("all agents")]
AgentOption = Annotated[
    str | None,
    typer.Option(
        "--agent",
        callback=maybe_named,
        autocompletion=completion.agents,
        help="Agent (default: main, or the only agent).",
    ),
]
FormerAgentOption = Annotated[
    str | None,
    typer.Option(
        "--agent", callback=maybe_named, help="Former way to name the agent.", hidden=True
    ),
]


# ---------------------------------------------------------------------------- whose


async def every(service: HeartbeatService) -> tuple[AgentName, ...]:
    """Return all agents."""
    return await service.agents()


async def chosen(service: HeartbeatService, name: str | None) -> AgentName:
    """Return the named agent; without a name ``main``, or the only agent.

    Raises ``HeartbeatError`` if there are several agents and none is called ``main``.
    """
    if name is not None:
        return AgentName(name)
    agents = await every(service)
    if MAIN_AGENT in agents:
        return MAIN_AGENT
    if len(agents) != 1:
        raise HeartbeatError(f"name an agent: {', '.join(agents) or 'there are none'}")
    return agents[0]


async def some(service: HeartbeatService, name: str | None) -> tuple[AgentName, ...]:
    """Return the named agent, or all agents."""
    return await every(service) if name is None else (AgentName(name),)


# ---------------------------------------------------------------------------- heartbeat runs

_KINDS = {"interval": "schedule", "manual": "manual", "event": "event", "job": "job"}


_COLUMNS = (
    "STARTED",
    Column("TRIGGER", drop=3),
    Column("TOOK", drop=2),
    Column("OUTCOME", state=True),
    Column("ATTEMPTS", drop=5),
    Column("DELIVERY", drop=4),
    Column("COST", drop=4),
    Column("RESULT", drop=1, least=20),
    Column("REPLY", least=16),
)


NO_RUNS = "no heartbeat runs yet"


def show_heartbeat_runs(
    heartbeat_runs: Sequence[HeartbeatRun], *, with_agent: bool, empty: str = NO_RUNS
) -> None:
    """Print heartbeat runs."""
    rows = [
        (
            *((display.cell(heartbeat_run.agent),) if with_agent else ()),
            display.moment(heartbeat_run.claimed_at),
            _KINDS[heartbeat_run.kind.value],
            duration(heartbeat_run.duration_s),
            outcome_text(outcome(heartbeat_run)),
            str(heartbeat_run.attempts or ""),
            heartbeat_run.delivery,
            cost(heartbeat_run.usage),
            remark(heartbeat_run),
            one_line(summary(heartbeat_run), _TEXT),
        )
        for heartbeat_run in heartbeat_runs
    ]
    columns = (*(("AGENT",) if with_agent else ()), *_COLUMNS)
    show_table(columns, rows, empty=empty)


def outcome(heartbeat_run: HeartbeatRun) -> str:
    """Return the outcome of a run as a value; ``delivery_failed`` if its alert cannot arrive."""
    return "delivery_failed" if is_undelivered(heartbeat_run) else heartbeat_run.outcome


def remark(heartbeat_run: HeartbeatRun) -> str:
    """Return the outcome in words, without the word of its own column."""
    return one_line(outcome_words(heartbeat_run).removeprefix("it was skipped: "), _TEXT)


def summary(heartbeat_run: HeartbeatRun) -> str:
    """Return the reply of the agent as people read it, "" if there is none."""
    return without_token(heartbeat_run.reply).strip()


def due(view: HeartbeatView) -> str:
    """Return when the next run is due that will not be skipped, as in ``why``; "" for none."""
    return brief_when(next_run(view), view.now)


# ---------------------------------------------------------------------------- sentences


async def terminal(control: Control, views: Sequence[HeartbeatView]) -> Reader:
    """Return the reader in a terminal: times are in the zone of this machine, chats have names."""
    found = {view.route.target for view in views} | {
        view.last.target for view in views if view.last
    }
    targets = [one for one in found if one is not None]
    known = await control.sessions.names([address(one) for one in targets]) if targets else {}
    named = [one for one in targets if known.get(address(one)) != f"{one.channel} {one.chat}"]
    places = {one: DisplayNames(known).chat(one) for one in named}
    return replace(OPERATOR, zone=machine_zone(os.environ), places=places)
