"""``goclaw config agents``, ``models`` and ``channels``: what the settings define (SPEC OPS-1)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import typer

from goclaw_py.cli.context import AsJson, cli, gateway_alone, waited_for, with_wide
from goclaw_py.cli.messages import display
from goclaw_py.cli.output import Column, show_json, show_table
from goclaw_py.cli.progress import progress
from goclaw_py.core.errors import NoGateway
from goclaw_py.core.ids import AgentName

if TYPE_CHECKING:
    from goclaw_py.config import Settings
    from goclaw_py.config.agents import Agent
    from goclaw_py.scheduler.views import ChannelView

_NOT_RUNNING: Final = "not running"


# ---------------------------------------------------------------------------- agents


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent. ``tools`` and ``tool_servers`` are what it may call; None means the default.

    ``trusted_servers`` are those of ``tool_servers`` whose read-only tools need no approval.
    """

    agent: str
    model: str
    fallback: tuple[str, ...]
    tools: tuple[str, ...] | None
    denied: tuple[str, ...]
    tool_servers: tuple[str, ...]
    trusted_servers: tuple[str, ...]
    delegates: tuple[str, ...]
    workspace: str


@with_wide
def agents(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """List agents with their models and tools."""
    settings = cli(ctx).settings_in_effect()
    found = [_agent(settings, name, agent) for name, agent in settings.agents.items()]
    if as_json:
        show_json(list[AgentRow], found)
        return
    columns = (
        *("AGENT", Column("MODEL", least=16), Column("FALLBACK", drop=1, least=16)),
        *(Column("TOOLS", least=16), Column("DELEGATES", drop=3), Column("WORKSPACE", drop=2)),
    )
    rows = [
        (
            one.agent,
            one.model,
            ", ".join(one.fallback),
            _tools(one),
            ", ".join(one.delegates),
            one.workspace,
        )
        for one in found
    ]
    show_table(columns, rows, empty="no agents")


def _agent(settings: Settings, name: str, agent: Agent) -> AgentRow:
    tools = agent.tools
    return AgentRow(
        agent=name,
        model=agent.model,
        fallback=agent.fallback,
        tools=tools.allow,
        denied=tools.deny,
        tool_servers=tuple(agent.mcp),
        trusted_servers=tuple(name for name, server in agent.mcp.items() if server.trusted),
        delegates=tools.delegates,
        workspace=str(settings.workspace(AgentName(name))),
    )


def _tools(one: AgentRow) -> str:
    words = ["default"] if one.tools is None else list(one.tools)
    words += [f"not {name}" for name in one.denied]
    for name in one.tool_servers:
        words.append(f"server {name}{' (trusted)' if name in one.trusted_servers else ''}")
    return ", ".join(words) or "none"


# ---------------------------------------------------------------------------- models


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model of one or more agents.

    Args:
        provider: None for a model that is no language model, such as ``offline``.
        input_usd: USD for a million tokens; None if the price is not known.
        context_window: The number of tokens that the model takes; None if it is not known.
        agents: The agents that use it, also as fallback.
    """

    model: str
    provider: str | None
    input_usd: Decimal | None
    output_usd: Decimal | None
    context_window: int | None
    agents: tuple[str, ...]


@with_wide
def models(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """List models with their prices in USD for a million tokens.

    To check keys and libraries: goclaw doctor
    """
    found = list(_models(cli(ctx).settings_in_effect()))
    if as_json:
        show_json(list[ModelRow], found)
        return
    columns = (
        *(
            "MODEL",
            Column("PROVIDER", drop=1),
            "INPUT USD",
            "OUTPUT USD",
            Column("CONTEXT", drop=2),
        ),
        Column("AGENTS", least=16),
    )
    rows = [
        (
            one.model,
            one.provider or "",
            _price(one.input_usd),
            _price(one.output_usd),
            "" if one.context_window is None else f"{one.context_window:,}",
            ", ".join(one.agents),
        )
        for one in found
    ]
    show_table(columns, rows, empty="no models")


def _models(settings: Settings) -> Iterator[ModelRow]:
    from goclaw_py.agents.models import find_url, price_of, read_model  # noqa: PLC0415

    users: dict[tuple[str, str | None], list[str]] = {}
    for name, agent in settings.agents.items():
        users.setdefault((agent.model, agent.base_url), []).append(name)
        for model in agent.fallback:
            users.setdefault((model, None), []).append(name)
    for (model, base_url), names in users.items():
        read = read_model(model)
        price = None
        if read is not None:
            price = price_of(*read, find_url(read[0], base_url, os.environ))
        yield ModelRow(
            model=model,
            provider=None if read is None else read[0].value,
            input_usd=None if price is None else price.input_usd,
            output_usd=None if price is None else price.output_usd,
            context_window=None if price is None else price.context_window,
            agents=tuple(dict.fromkeys(names)),
        )


def _price(usd: Decimal | None) -> str:
    return "" if usd is None else f"{usd.normalize():f}"


# ---------------------------------------------------------------------------- channels


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """An account of a channel: its state in the gateway, and who may talk to it."""

    channel: str
    account: str
    state: str
    detail: str
    agent: str
    direct: str
    groups: str


@with_wide
def channels(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """List channels with their state and who may talk there.

    DIRECT: who may write to the bot. GROUPS: in which groups it answers.
    """
    settings = cli(ctx).settings_in_effect()
    found = list(_channels(settings, _at_work(settings)))
    if as_json:
        show_json(list[ChannelRow], found)
        return
    columns = (
        *("CHANNEL", "ACCOUNT", Column("STATE", state=True), Column("AGENT", drop=2)),
        *("DIRECT", "GROUPS", Column("DETAIL", drop=1, least=16)),
    )
    rows = [
        (one.channel, one.account, one.state, one.agent, one.direct, one.groups, one.detail)
        for one in found
    ]
    show_table(columns, rows, empty="no channels in the settings; try: goclaw chat")


def _at_work(settings: Settings) -> Iterable[ChannelView]:
    """Return the channels of the gateway, none if no gateway is running."""

    async def ask() -> Iterable[ChannelView]:
        async with gateway_alone(settings) as control:
            return (await control.lanes.status()).channels

    try:
        with progress("asking the gateway"):
            return waited_for(ask())
    except NoGateway:
        return ()


def _channels(settings: Settings, at_work: Iterable[ChannelView]) -> Iterator[ChannelRow]:
    from goclaw_py.config import accounts  # noqa: PLC0415

    views = {(one.name, one.account): one for one in at_work}
    for one in accounts(settings):
        view, given = views.get((one.channel, one.name)), one.settings
        yield ChannelRow(
            channel=one.channel,
            account=one.name,
            state=_NOT_RUNNING if view is None else view.state.value,
            detail="" if view is None else display.cell(view.detail),
            agent=given.agent,
            direct=given.direct.value,
            groups=given.groups.value,
        )


# ---------------------------------------------------------------------------- former groups


def _group(kind: str, command: Callable[..., None]) -> typer.Typer:
    group = typer.Typer(help=f"List the {kind} of the settings.", no_args_is_help=True)
    group.command("list")(command)
    # A group, also with one command only.
    group.callback()(lambda: None)
    return group


old_agents = _group("agents", agents)
old_models = _group("models", models)
old_channels = _group("channels", channels)
