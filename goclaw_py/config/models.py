"""The settings as the program uses them: frozen, complete, checked.

The field descriptions are the reference of ``goclaw.toml``; an alias is the key in the file where
the field's name adds a unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, SecretStr, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from goclaw_py.config.budgets import RunBudget
from goclaw_py.config.command import Command
from goclaw_py.config.heartbeat import HeartbeatSettings
from goclaw_py.config.lanes import LaneKey, LaneScope, LaneSettings, filled_lanes
from goclaw_py.config.mcp import HeaderKey, HeaderText, McpServerSettings
from goclaw_py.config.origins import DEFAULT, Origin
from goclaw_py.config.scheduler import SchedulerSettings, chosen_profile
from goclaw_py.config.section import Section
from goclaw_py.config.tools import ToolSettings, WorkspaceFiles
from goclaw_py.config.types import Duration, Flag, Ids, Matching, Names, Number, Whole
from goclaw_py.config.web import Web
from goclaw_py.config.work_sources import WorkSourceSettings
from goclaw_py.model.ids import MAIN_AGENT, AgentName, LaneName
from goclaw_py.model.session_keys import DEFAULT_ACCOUNT, DirectPolicy, GroupPolicy, StopPolicy
from goclaw_py.scheduler.models import Drop, Mode

NameKey = Annotated[
    str,
    Matching(r"[a-z0-9][a-z0-9_-]{0,63}", "a name of up to 64 characters of a-z 0-9 _ -"),
]
ChatKey = Annotated[str, Matching(r"\S{1,128}", "the id of a chat, in quotation marks")]
Text = Annotated[str, Matching(r"(?s).*\S.*", "text that is not empty")]


class LogLevel(StrEnum):
    """The least severe kind of log line that is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """``auto``: ``console`` on a terminal, else ``json``."""

    AUTO = "auto"
    CONSOLE = "console"
    JSON = "json"


class Queue(Section):
    """``[queue]``, and the same below an agent or a channel, where it overrides (SPEC section 2).

    A key that is not set says nothing; ``queue_policy`` puts the levels together.
    """

    mode: Mode | None = Field(
        default=None,
        description="queue (default): messages wait for their turn; followup: the same; "
        "interrupt: a new one stops what runs; collect: what waits becomes one turn; "
        "steer: the running task takes it in if it can",
    )
    capacity: Annotated[int | None, Whole(1, 10_000)] = Field(
        default=None, description="the maximum number of waiting messages in a session; default 10"
    )
    drop: Drop | None = Field(
        default=None,
        description="old (default) or new: which message is dropped when the queue is full",
    )
    debounce_ms: Annotated[int | None, Whole(0, 60_000)] = Field(
        default=None,
        description=(
            "messages sent within this many ms are merged into one turn; default 800, 0: off"
        ),
    )
    turn_messages: Annotated[int | None, Whole(1, 10_000)] = Field(
        default=None, description="the maximum number of messages in one turn; default 50"
    )
    turn_chars: Annotated[int | None, Whole(1, 10_000_000)] = Field(
        default=None,
        description="characters that one turn takes at most, unless one message has more; "
        "default 100,000",
    )
    max_concurrent: Annotated[int | None, Whole(1)] = Field(
        default=None,
        description="concurrent runs of one session; default 1 in direct chats, 3 in groups",
    )
    stop_words: bool | None = Field(
        default=None,
        description="whether stop, cancel and the like, alone in a message, stop what runs; "
        "default true",
    )


class Agent(Section):
    """``[agents.NAME]``: an agent (SPEC AGENT-3). Agent ``main`` always exists."""

    model: Text = Field(
        default="offline",
        description="offline, command, or provider:model such as openai:gpt-4o",
    )
    fallback: Annotated[tuple[str, ...], Names()] = Field(
        default=(),
        description="models that are asked where the one before cannot answer; keys from the "
        "environment",
    )
    temperature: Annotated[float | None, Number(0, 2)] = Field(
        default=None,
        description="0 (always the likeliest word) to 2; default the provider's. Some models "
        "take none, or none while they think: these are not given it",
    )
    thinking: Literal["off", "low", "medium", "high"] | None = Field(
        default=None, description="how much it thinks before it answers; default the provider's"
    )
    system_prompt: str | None = Field(default=None, description="the system prompt of the model")
    base_url: Annotated[
        str | None, Matching(r"https?://\S+", "an address that starts with http:// or https://")
    ] = Field(default=None, description="another server with the API of the provider")
    api_key: SecretStr | None = Field(default=None, description="the provider's key itself")
    api_key_file: Path | None = Field(default=None, description="a file that holds the key")
    api_key_env: Text | None = Field(
        default=None, description="the environment variable with the key"
    )
    headers: dict[HeaderKey, HeaderText] = Field(
        default_factory=dict,
        description="HTTP headers sent with every request to the model, not to fallback models",
    )
    workspace: Path | None = Field(
        default=None,
        description="folder; default <home>/workspace for main, <home>/workspaces/NAME",
    )
    context_window: Annotated[int, Whole(1_000)] = Field(
        default=128_000, description="the context size of the model in tokens"
    )
    max_concurrent: Annotated[int | None, Whole(1)] = Field(
        default=None,
        description="concurrent runs of this agent, in all its sessions; default no limit",
    )
    budget: RunBudget = Field(default_factory=RunBudget)
    heartbeat: HeartbeatSettings = Field(default_factory=HeartbeatSettings)
    command: Command = Field(default_factory=Command)
    mcp: dict[NameKey, McpServerSettings] = Field(
        default_factory=dict, description="servers of tools (Model Context Protocol), by name"
    )
    queue: Queue = Field(default_factory=Queue)
    tools: ToolSettings = Field(default_factory=ToolSettings)
    instructions: WorkspaceFiles | None = Field(
        default=None,
        description="files of the workspace with what it is told, each of which has to be there; "
        "default AGENTS.md, if there is one",
    )


class Thread(Section):
    """``[channels.NAME.chats."ID".threads."ID"]``: one topic of a chat.

    What is not set is as for its chat.
    """

    agent: NameKey | None = Field(default=None, description="the agent that answers there")
    mention: Annotated[bool, Flag()] | None = Field(
        default=None, description="in groups: answer only where the bot is mentioned"
    )
    context_messages: Annotated[int | None, Whole(0, 500)] = Field(
        default=None,
        description="in groups: how many messages without a mention are given as context",
    )
    stop: StopPolicy | None = Field(
        default=None, description="in groups: what a member may stop, own or anyone"
    )
    queue: Queue = Field(default_factory=Queue)


class ChatSettings(Thread):
    """``[channels.NAME.chats."ID"]``: one chat; what is not set is as for its account.

    Listing a group here allows it (SPEC CHAN-5).
    """

    enabled: Annotated[bool, Flag()] = Field(
        default=True, description="false: the agent ignores this group"
    )
    threads: dict[ChatKey, Thread] = Field(default_factory=dict)


class AccountSettings(Section):
    """The settings of one account of a channel that all channels have.

    Every other key goes into ``options``, for the channel itself to check.
    """

    enabled: Annotated[bool, Flag()] = Field(
        default=True, description="false switches the account off without deleting its settings"
    )
    agent: NameKey = Field(default=MAIN_AGENT, description="the agent that answers")
    direct: DirectPolicy = Field(
        default=DirectPolicy.PAIRING, description="pairing (default), allowlist, open or disabled"
    )
    allow: Annotated[tuple[str, ...], Ids()] = Field(
        default=(), description="sender ids that may talk without pairing"
    )
    groups: GroupPolicy = Field(
        default=GroupPolicy.ALLOWLIST,
        description="allowlist (default): groups listed in chats or allowed by `goclaw groups`; "
        "open: all; disabled: none",
    )
    mention: Annotated[bool, Flag()] = Field(
        default=True, description="in groups: answer only where the bot is mentioned"
    )
    context_messages: Annotated[int, Whole(0, 500)] = Field(
        default=50,
        description="in groups: so many of the last messages without a mention are told to the "
        "agent with the next one that has it; 0: none",
    )
    stop: StopPolicy = Field(
        default=StopPolicy.OWN,
        description="own (default): in groups a member stops only what answers them; owners and "
        "admins of the group stop everything; anyone: so does each member",
    )
    chats: dict[ChatKey, ChatSettings] = Field(default_factory=dict)
    queue: Queue = Field(default_factory=Queue)
    # Tokens are in here: it must not show up where settings are printed.
    options: dict[str, Any] = Field(default_factory=dict, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _collect_options(cls, values: object) -> object:
        if not isinstance(values, Mapping):
            return values
        known = set(cls.model_fields) - {"options"}
        own = {key: value for key, value in values.items() if key in known}
        return own | {"options": {k: v for k, v in values.items() if k not in known}}


class ChannelSettings(AccountSettings):
    """``[channels.NAME]``: the account ``default``, and more accounts in ``accounts.NAME``.

    Without a key of its own beside ``accounts`` there is no account ``default``.
    """

    accounts: dict[NameKey, AccountSettings] = Field(default_factory=dict)

    @property
    def by_name(self) -> dict[str, AccountSettings]:
        """All of its accounts, those that are switched off too."""
        has_own = self.model_fields_set - {"accounts", "options"} or self.options
        own = {DEFAULT_ACCOUNT: self} if has_own or not self.accounts else {}
        return own | self.accounts


class DatabaseSettings(Section):
    """``[database]``."""

    url: SecretStr | None = Field(
        default=None, description="postgresql://…; without it an embedded server starts by itself"
    )


class State(Section):
    """``[state]``."""

    folder: Path | None = Field(
        default=None, description="embedded database, socket; default <home>/state"
    )


class RunSettings(Section):
    """``[runs]`` (SPEC QUEUE-2, QUEUE-9, LANE-8). Times are in seconds once read."""

    timeout_s: Annotated[float, Duration(1)] = Field(
        default=1800.0, alias="timeout", description="the time limit of a run"
    )
    cancel_grace_s: Annotated[float, Duration(1)] = Field(
        default=10.0,
        alias="cancel_grace",
        description="how long a cancelled run may take to finish",
    )
    deadline_s: Annotated[float | None, Duration(1)] = Field(
        default=None,
        alias="deadline",
        description="from submission to end, waiting included; default none",
    )
    outage_hold_s: Annotated[float, Duration()] = Field(
        default=1800.0,
        alias="outage_hold",
        description="how long messages wait for a model provider to come back; 0s: not at all",
    )
    max_depth: Annotated[int, Whole(1, 100)] = Field(
        default=3, description="how many runs may be above one: its parent, grandparent …"
    )
    max_children: Annotated[int, Whole(1, 1000)] = Field(
        default=8, description="how many runs one may have asked for that are not done"
    )


class Shutdown(Section):
    """``[shutdown]`` (SPEC QUEUE-11)."""

    wait_s: Annotated[float, Duration()] = Field(
        default=30.0,
        alias="wait",
        description="how long running runs may go on; default as the profile of the scheduler says",
    )


class Log(Section):
    """``[log]``."""

    level: LogLevel = Field(
        default=LogLevel.INFO, description="debug, info (default), warning or error"
    )
    format: LogFormat = Field(default=LogFormat.AUTO, description="auto (default), console or json")
    file: Path | None = Field(default=None, description="the log file; default standard error")


class Settings(BaseSettings):
    """Everything. ``load`` reads it from file and environment; made in code it reads neither."""

    model_config = SettingsConfigDict(extra="forbid", frozen=True)

    home: Path = Field(default_factory=lambda: Path.home() / ".goclaw")
    file: Path | None = None

    lanes: dict[LaneKey, LaneSettings] = Field(
        default_factory=dict,
        description="lane name → runs at once, or a table (SPEC LANE-1, NODE-2); the four default "
        "lanes always exist, and cron is as large as the profile of the scheduler says",
    )
    queue: Queue = Field(default_factory=Queue)
    agents: dict[NameKey, Agent] = Field(default_factory=dict)
    channels: dict[NameKey, ChannelSettings] = Field(default_factory=dict)
    database: DatabaseSettings = Field(default_factory=DatabaseSettings)
    state: State = Field(default_factory=State)
    runs: RunSettings = Field(default_factory=RunSettings)
    sources: dict[NameKey, WorkSourceSettings] = Field(
        default_factory=dict, description="the sources of work items for jobs, by name"
    )
    scheduler: SchedulerSettings = Field(default_factory=SchedulerSettings)
    heartbeat: HeartbeatSettings = Field(default_factory=HeartbeatSettings)
    shutdown: Shutdown = Field(default_factory=Shutdown)
    web: Web = Field(default_factory=Web)
    log: Log = Field(default_factory=Log)

    _origins: dict[tuple[str, ...], str] = PrivateAttr(default_factory=dict)
    _places: dict[tuple[str, ...], Origin] = PrivateAttr(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, values: object) -> object:
        """What always exists beside what is configured, and what the profile of jobs says of it."""
        if not isinstance(values, Mapping):
            return values
        filled = dict(values)
        profile = chosen_profile(filled.get("scheduler"))
        lanes = filled.get("lanes", {})
        if isinstance(lanes, Mapping):
            filled["lanes"] = filled_lanes(lanes, profile.lane)
        for key, defaults in (
            ("agents", {MAIN_AGENT: {}}),
            ("shutdown", {"wait": f"{profile.shutdown_wait_s:.0f}s"}),
        ):
            given = filled.get(key, {})
            if isinstance(given, Mapping):
                filled[key] = defaults | dict(given)
        return filled

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take what the caller gives, nothing else."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    @property
    def lane_sizes(self) -> dict[LaneName, int]:
        """How many runs work at once in each lane."""
        return {LaneName(name): lane.size for name, lane in self.lanes.items()}

    @property
    def shared_lanes(self) -> frozenset[LaneName]:
        """The lanes whose size counts the runs of all nodes together (SPEC NODE-2)."""
        shared = (name for name, lane in self.lanes.items() if lane.scope is LaneScope.CLUSTER)
        return frozenset(map(LaneName, shared))

    @property
    def state_folder(self) -> Path:
        """Where the embedded database and the gateway's socket are."""
        return self.state.folder or self.home / "state"

    def workspace(self, agent: AgentName) -> Path:
        """The folder of an agent, with its HEARTBEAT.md."""
        configured = self.agents[agent].workspace
        if configured is not None:
            return configured
        # Beside each other: an agent must not write what another one is told.
        return self.home / "workspace" if agent == MAIN_AGENT else self.home / "workspaces" / agent

    def remember(
        self, origins: Mapping[tuple[str, ...], str], places: Mapping[tuple[str, ...], Origin]
    ) -> None:
        """Note where values come from that are neither from the file nor defaults.

        ``places`` has the origin of everything that is set.
        """
        self._origins.update(origins)
        self._places.update(places)

    def place(self, path: tuple[str, ...]) -> Origin:
        """What has set the value at a path: a variable, a line of the file, or nothing."""
        for length in range(len(path), 0, -1):
            if found := self._places.get(path[:length]):
                return found
        return DEFAULT

    def origin(self, path: tuple[str, ...]) -> str:
        """Where a setting comes from: an environment variable, the file, or the defaults."""
        for length in range(len(path), 0, -1):
            if found := self._origins.get(path[:length]):
                return found
        return str(self.file) if self.file else "the defaults"
