"""Create the parts of a gateway from the settings: channels, agents and rules."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points

from goclaw_py.agents import (
    AgentSpec,
    CommandSpec,
    McpServer,
    OutputKind,
    Thinking,
    UsagePaths,
    build_agent,
    is_model,
    run_model_problem,
)
from goclaw_py.agents.tools import SAFE, TOOLS, Delegate, Permissions, Registry, SendMessage
from goclaw_py.app.log_ring import LogRing
from goclaw_py.chat.channel import Channel, ChannelKind, Hook
from goclaw_py.chat.terminals import Terminals, Uploads
from goclaw_py.config import accounts, api_key, knows_stop_words, option_error, queue_policy
from goclaw_py.config.agents import EVERYBODY, Command, reveal
from goclaw_py.config.agents import Agent as AgentSection
from goclaw_py.config.agents import McpServerSettings as McpSection
from goclaw_py.config.lanes import Queue
from goclaw_py.config.models import AccountSettings, Settings, Thread
from goclaw_py.config.resolve import ChannelAccount
from goclaw_py.core.approvals import ApprovalPolicy, OnUncertain
from goclaw_py.core.errors import GoclawError, SettingError
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import OutboundMessage, PeerKind, Target
from goclaw_py.core.session_keys import CONSOLE, DEFAULT_ACCOUNT, AccessRules
from goclaw_py.core.targets import TARGET_FORM, parse_target
from goclaw_py.core.web_links import OWN_CHANNELS, WEB, WEB_PLACE
from goclaw_py.records import Place
from goclaw_py.runs.agent_loop import AgentLoop
from goclaw_py.runs.session_settings import ChatRules
from goclaw_py.runs.toolbox import ToolboxFactory
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.web.hooks import collect_hooks

log = logging.getLogger(__name__)

GROUP = "goclaw_py.channels"

_CLOSE_S = 8.0
"""Seconds that a part may take to close: programs of MCP servers get 4 s before they are killed."""


@dataclass(frozen=True, slots=True)
class Parts:
    """All parts that the settings define, created but not started."""

    channels: Mapping[Place, Channel]
    rules: Mapping[Place, ChatRules]
    agents: Mapping[AgentName, AgentLoop]
    tool_factory: ToolboxFactory
    logs: LogRing = field(default_factory=LogRing)
    """The newest log lines, once ``configure`` knows of it."""

    @property
    def hooks(self) -> list[Hook]:
        """The webhooks of the channels. Raises ``HookConflict``."""
        return collect_hooks(self.channels.values())

    @property
    def terminals(self) -> Terminals:
        """The console channel, in its role for terminals."""
        console = self.channels[CONSOLE, DEFAULT_ACCOUNT]
        assert isinstance(console, Terminals)
        return console

    @property
    def guest_terminals(self) -> Terminals:
        """The web chat of invited people, in its role for their browsers."""
        chat = self.channels[WEB_PLACE]
        assert isinstance(chat, Terminals)
        return chat

    @property
    def uploads(self) -> Uploads:
        """The console channel, in its role for uploaded files."""
        console = self.channels[CONSOLE, DEFAULT_ACCOUNT]
        assert isinstance(console, Uploads)
        return console

    @property
    def guest_uploads(self) -> Uploads:
        """The web chat, in its role for uploaded files."""
        chat = self.channels[WEB_PLACE]
        assert isinstance(chat, Uploads)
        return chat

    def read(self, message: OutboundMessage) -> str:
        """The text of a message as people in its chat read it.

        Where its channel is not set up any more, nobody knows its markup: it stays as it is.
        """
        target = message.target
        channel = self.channels.get((target.channel, target.account))
        return channel.readable(message.text) if message.rich and channel else message.text


async def close_part(part: Channel | AgentLoop) -> None:
    """Close a part; an error or a hang does not affect the other parts."""
    try:
        async with asyncio.timeout(_CLOSE_S):
            await part.close()
    except Exception:
        log.exception("part_close_failed", extra={"part": type(part).__name__})


def build_parts(settings: Settings) -> Parts:
    """Create all parts. Raises ``SettingError``; does not use the network."""
    channels = build_channels(settings)
    rules = chat_rules(settings, {place: each.trusted for place, each in channels.items()})
    return Parts(channels, rules, build_agents(settings), build_tools(settings))


def channel_kinds() -> dict[str, ChannelKind]:
    """Return the installed kinds of channels, by name; each is imported when it is needed."""
    return {point.name: _Lazy(point.name) for point in entry_points(group=GROUP)}


class ForeignChannels(GoclawError):
    """The import name ``channels`` belongs to another package."""


class _Lazy:
    """A kind of channel that is imported when an account of it is built."""

    def __init__(self, name: str) -> None:
        self.name = name

    def build(self, account: str, options: Mapping[str, object]) -> Channel:
        (point,) = entry_points(group=GROUP, name=self.name)
        try:
            kind: ChannelKind = point.load()
        except ImportError as error:
            raise ForeignChannels(
                f"{point.value} cannot be imported ({error}): another package named channels "
                "(such as Django Channels) hides ours; install goclaw_py in its own environment"
            ) from error
        return kind.build(account, options)


def build_channels(settings: Settings) -> dict[Place, Channel]:
    """Create every enabled account, the console, and the web chat, which are always enabled.

    Raises ``SettingError`` for an unknown kind of channel, a refused option, and two accounts that
    would take each other's messages.
    """
    kinds = channel_kinds()
    known: dict[str, str] = {}
    limits = {"max_bytes": settings.web.upload_mb << 20, "max_files": settings.web.upload_files}
    folder = settings.state_folder.absolute() / "uploads"
    console = kinds[CONSOLE].build(DEFAULT_ACCOUNT, {"uploads": folder, **limits})
    channels: dict[Place, Channel] = {(console.name, console.account): console}
    # The same plug-in supplies both.
    own = folder.with_name("guest-uploads")
    channels[WEB_PLACE] = kinds[CONSOLE].build(WEB, {"uploads": own, **limits})
    for account in accounts(settings):
        if account.channel in OWN_CHANNELS:
            continue
        kind = kinds.get(account.channel)
        if kind is None:
            names = ", ".join(sorted(kinds))
            raise SettingError(
                ".".join(account.path),
                account.channel,
                f"there is no such channel; use one of {names}",
            )
        try:
            channel = kind.build(account.name, account.options)
        except SettingError as error:
            raise option_error(settings, account, error) from error
        key, identity = ".".join(account.path), channel.identity
        if identity is not None and (other := known.setdefault(identity, key)) != key:
            # Two that poll would each get some of its messages, and some would get two answers. A
            # bot has one webhook: polling removes it, and another account's replaces it.
            raise SettingError(
                key, account.name, f"has the same bot as {other}; remove one of them"
            )
        channels[channel.name, channel.account] = channel
    return channels


def chat_rules(settings: Settings, trusted: Mapping[Place, bool]) -> dict[Place, ChatRules]:
    """Return the rules of each account; ``trusted`` says of each whether its channel is."""
    configured = {(a.channel, a.name): a for a in accounts(settings)}
    return {
        place: _rules(
            settings,
            configured.get(place) or ChannelAccount(*place, AccountSettings()),
            is_trusted=is_trusted,
        )
        for place, is_trusted in trusted.items()
    }


def _rules(settings: Settings, account: ChannelAccount, *, is_trusted: bool) -> ChatRules:
    level = _Level(settings, is_trusted, account)
    chats = {}
    for chat_id, chat in account.settings.chats.items():
        inner = level.within(chat, ("chats", chat_id), listed=chat.enabled)
        threads = {
            thread_id: inner.within(thread, ("threads", thread_id)).rules()
            for thread_id, thread in chat.threads.items()
        }
        chats[chat_id] = inner.rules(threads)
    return level.rules(chats)


@dataclass(frozen=True, slots=True)
class _Choice:
    """An agent, and the section that names it, seen from the account."""

    agent: AgentName
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Level:
    """The settings of an account, one of its chats or one of their threads."""

    settings: Settings
    is_trusted: bool
    account: ChannelAccount
    own: tuple[Thread, ...] = ()
    """The sections of chat and thread, the outer one first."""
    path: tuple[str, ...] = ()
    """Where the innermost of them stands, seen from the account."""
    agent: _Choice | None = None
    listed: bool | None = None

    def within(self, own: Thread, path: tuple[str, ...], *, listed: bool | None = None) -> _Level:
        path = (*self.path, *path)
        return replace(
            self,
            own=(*self.own, own),
            path=path,
            agent=self.agent if own.agent is None else _Choice(AgentName(own.agent), path),
            listed=self.listed if listed is None else listed,
        )

    def rules(self, narrower: Mapping[str, ChatRules] | None = None) -> ChatRules:
        settings, account, own = self.settings, self.account, self.account.settings
        choice = self.agent or _Choice(AgentName(own.agent), ())
        agent = choice.agent
        if agent not in settings.agents:
            key, names = ".".join((*choice.path, "agent")), ", ".join(settings.agents)
            error = SettingError(key, agent, f"there is no such agent; use one of {names}")
            raise option_error(settings, account, error)
        mention = [each.mention for each in self.own if each.mention is not None]
        context = [each.context_messages for each in self.own if each.context_messages is not None]
        access = AccessRules(
            direct=own.direct,
            allow=frozenset(own.allow),
            group=own.groups,
            listed=self.listed,
            mention=mention[-1] if mention else own.mention,
            trusted=self.is_trusted,
            invited=account.channel == WEB,
        )
        stop = [each.stop for each in self.own if each.stop is not None]
        within = [each.queue for each in self.own]
        policies = {
            peer: queue_policy(settings, agent, account.channel, account.name, peer, within)
            for peer in PeerKind
        }
        return ChatRules(
            agent=agent,
            access=access,
            direct=policies[PeerKind.DIRECT],
            group=policies[PeerKind.GROUP],
            run_timeout_s=settings.runs.timeout_s,
            deadline_s=settings.runs.deadline_s,
            stop_words=knows_stop_words(settings, agent, account.channel, account.name, within),
            context_messages=context[-1] if context else own.context_messages,
            stop=stop[-1] if stop else own.stop,
            narrower=narrower or {},
            chosen=self._chosen(within) if self.is_trusted else {},
        )

    def _chosen(self, within: Sequence[Queue]) -> dict[AgentName, QueuePolicy]:
        """Return the queue policies of all agents: operators may choose one."""
        channel, account = self.account.channel, self.account.name
        names = map(AgentName, self.settings.agents)
        direct = PeerKind.DIRECT
        return {
            name: queue_policy(self.settings, name, channel, account, direct, within)
            for name in names
        }


def _command(section: Command) -> CommandSpec:
    return CommandSpec(
        run=section.run,
        first=section.first,
        later=section.later,
        resume=section.resume_args,
        ends_interrupted=section.on_interrupted == "end",
        output=OutputKind(section.output),
        text=section.text,
        join=section.join,
        result=section.result,
        session=section.session,
        usage=UsagePaths(
            input=section.usage.input,
            output=section.usage.output,
            cost=section.usage.cost,
            turns=section.usage.turns,
        ),
        env=section.env,
        timeout_s=section.timeout,
    )


def _mcp(section: McpSection) -> McpServer:
    return McpServer(
        command=section.command,
        url=section.url,
        env=reveal(section.env),
        headers=reveal(section.headers),
        tools=section.tools,
        call_timeout_s=section.call_timeout_s,
        trusted=section.trusted,
    )


def _approval(section: AgentSection) -> ApprovalPolicy:
    given = section.approval
    return ApprovalPolicy(
        given.ask,
        given.deny,
        given.allow,
        timeout_s=given.timeout_s,
        members=given.approvers == "members",
        on_uncertain=OnUncertain(section.on_uncertain),
    )


def build_agents(settings: Settings) -> dict[AgentName, AgentLoop]:
    """Create the loop of every agent. Raises ``SettingError``."""
    specs = agent_specs(settings, api_keys(settings))
    return {name: build_agent(spec) for name, spec in specs.items()}


def api_keys(settings: Settings) -> dict[AgentName, str | None]:
    """Return the API key of each agent, which may be in a file. Raises ``SettingError``."""
    secrets = {name: api_key(settings, AgentName(name), os.environ) for name in settings.agents}
    return {
        AgentName(name): None if secret is None else secret.get_secret_value()
        for name, secret in secrets.items()
    }


def agent_specs(
    settings: Settings, keys: Mapping[AgentName, str | None]
) -> dict[AgentName, AgentSpec]:
    """Return what the loop of each agent is created from. Raises ``SettingError``."""
    _check_models_of_heartbeats(settings)
    return {
        AgentName(name): AgentSpec(
            name=AgentName(name),
            model=section.model,
            system_prompt=section.system_prompt or "",
            base_url=section.base_url,
            api_key=keys[AgentName(name)],
            headers=reveal(section.headers),
            command=_command(section.command),
            fallback=section.fallback,
            temperature=section.temperature,
            thinking=None if section.thinking is None else Thinking(section.thinking),
            context_window=section.context_window,
            mcp={key: _mcp(server) for key, server in section.mcp.items()},
            approval=_approval(section),
        )
        for name, section in settings.agents.items()
    }


def _check_models_of_heartbeats(settings: Settings) -> None:
    """Raise ``SettingError`` for a heartbeat model that no run of its agents can use."""
    for_all = settings.heartbeat.model
    if for_all:
        # The problem of an agent with a language model says more.
        agents = sorted(settings.agents, key=lambda name: not is_model(settings.agents[name].model))
        problems = [model_problem(settings, name, for_all) for name in agents]
        if all(problems):
            raise SettingError("heartbeat.model", for_all, problems[0])
    for name, agent in settings.agents.items():
        model = agent.heartbeat.model
        if model and (problem := model_problem(settings, name, model)):
            raise SettingError(f"agents.{name}.heartbeat.model", model, problem)


def model_problem(settings: Settings, agent: str, model: str) -> str:
    """Return why runs of an agent cannot use a model; "" if they can."""
    section = settings.agents[agent]
    return run_model_problem(section.model, section.base_url, model)


def build_tools(settings: Settings) -> ToolboxFactory:
    """Create the tools of every agent. Raises ``SettingError``."""
    names = [AgentName(name) for name in settings.agents]
    return Registry({name: _permissions(settings, name) for name in names})


def _permissions(settings: Settings, agent: AgentName) -> Permissions:
    section = settings.agents[agent].tools
    tools = [tool.name for tool in TOOLS]
    for key, names in (("allow", section.allow or ()), ("deny", section.deny)):
        for name in names:
            if name not in tools:
                allowed = f"there is no such tool; use one of {', '.join(tools)}"
                raise settings.error(_tools_path(agent, key), name, allowed)
    # Tools of a server have its name in front. Permissions and approvals are for names: "file" of
    # server "write" would be called where write_file is denied, with the approval of write_file.
    for server in settings.agents[agent].mcp:
        own = next((tool for tool in tools if tool.startswith(f"{server}_")), "")
        if own:
            reason = f"its tools could have the name of {own}, which is built in: rename the server"
            raise settings.error(("agents", agent, "mcp"), server, reason)
    delegates = _delegates(settings, agent)
    targets = tuple(_target(settings, agent, text) for text in section.send_to)
    for name, given, key in (
        (Delegate.name, delegates, "delegates"),
        (SendMessage.name, targets, "send_to"),
    ):
        if name in (section.allow or ()) and not given:
            allowed = f"this tool is enabled by setting {key}; remove it here"
            raise settings.error(_tools_path(agent, "allow"), name, allowed)
    allow = SAFE if section.allow is None else frozenset(section.allow)
    return Permissions(allow, frozenset(section.deny), delegates, targets)


def _delegates(settings: Settings, agent: AgentName) -> tuple[AgentName, ...]:
    others = [AgentName(name) for name in settings.agents if name != agent]
    given = settings.agents[agent].tools.delegates
    if EVERYBODY in given:
        given = (*given, *others)
    for name in given:
        if name not in (*others, EVERYBODY):
            there = ", ".join([*others, f'"{EVERYBODY}" for all others'])
            reason = (
                "an agent cannot delegate to itself" if name == agent else "there is no such agent"
            )
            raise settings.error(
                _tools_path(agent, "delegates"), name, f"{reason}; use one of {there}"
            )
    return tuple(dict.fromkeys(AgentName(name) for name in given if name != EVERYBODY))


def _target(settings: Settings, agent: AgentName, text: str) -> Target:
    path = _tools_path(agent, "send_to")
    target = parse_target(text)
    if target is None:
        raise settings.error(path, text, f"must have the form {TARGET_FORM}")
    channels = settings.channels
    accounts_of = {
        **{name: [DEFAULT_ACCOUNT] for name in OWN_CHANNELS},
        **{name: [DEFAULT_ACCOUNT, *section.accounts] for name, section in channels.items()},
    }
    if target.account not in accounts_of.get(target.channel, ()):
        known = [
            name if account == DEFAULT_ACCOUNT else f"{name}.{account}"
            for name, own in accounts_of.items()
            for account in own
        ]
        raise settings.error(
            path,
            text,
            f"there is no such channel or account; use one of {', '.join(known)}",
        )
    return target


def _tools_path(agent: AgentName, key: str) -> tuple[str, ...]:
    return ("agents", agent, "tools", key)
