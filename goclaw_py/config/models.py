"""The settings as the program uses them: immutable, complete and validated.

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

    A key that is not set is inherited; ``queue_policy`` merges the levels.
    """

    mode: Mode | None = Field(
        default=None,
        description="what happens to a message that arrives during a run. queue (default): "
        "it waits; followup: the same; interrupt: it cancels the run; collect: all waiting "
        "messages become one turn; steer: the run reads it if the agent supports that",
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
        description="the maximum number of characters in one turn; a single longer message "
        "is a turn of its own; default 100,000",
    )
    max_concurrent: Annotated[int | None, Whole(1)] = Field(
        default=None,
        description="the maximum number of concurrent runs of one session; default 1 in "
        "direct chats, 3 in groups",
    )
    stop_words: bool | None = Field(
        default=None,
        description='whether a message that is only "stop", "cancel" or the like stops the '
        "current run; default true",
    )


class Agent(Section):
    """``[agents.NAME]``: an agent (SPEC AGENT-3). Agent ``main`` always exists."""

    model: Text = Field(
        default="offline",
        description="offline, command, or provider:model such as openai:gpt-4o",
    )
    fallback: Annotated[tuple[str, ...], Names()] = Field(
        default=(),
        description="models to try in this order when the model fails; their API keys are "
        "read from the environment",
    )
    temperature: Annotated[float | None, Number(0, 2)] = Field(
        default=None,
        description="the sampling temperature, from 0 (least random) to 2; default: the "
        "provider's. It is not sent to models that do not accept it, or do not accept it "
        "while thinking",
    )
    thinking: Literal["off", "low", "medium", "high"] | None = Field(
        default=None,
        description="how much the model thinks before it answers; default: the provider's",
    )
    system_prompt: str | None = Field(default=None, description="the system prompt of the model")
    base_url: Annotated[
        str | None, Matching(r"https?://\S+", "an address that starts with http:// or https://")
    ] = Field(
        default=None, description="the address of another server that has the API of the provider"
    )
    api_key: SecretStr | None = Field(default=None, description="the API key of the provider")
    api_key_file: Path | None = Field(default=None, description="a file that contains the API key")
    api_key_env: Text | None = Field(
        default=None, description="the environment variable that contains the API key"
    )
    headers: dict[HeaderKey, HeaderText] = Field(
        default_factory=dict,
        description="HTTP headers sent with every request to the model, but not to fallback models",
    )
    workspace: Path | None = Field(
        default=None,
        description="the folder of the agent; default <home>/workspace for main, "
        "<home>/workspaces/NAME for others",
    )
    context_window: Annotated[int, Whole(1_000)] = Field(
        default=128_000, description="the context size of the model in tokens"
    )
    max_concurrent: Annotated[int | None, Whole(1)] = Field(
        default=None,
        description="the maximum number of concurrent runs of this agent, in all sessions; "
        "default no limit",
    )
    budget: RunBudget = Field(default_factory=RunBudget)
    heartbeat: HeartbeatSettings = Field(default_factory=HeartbeatSettings)
    command: Command = Field(default_factory=Command)
    mcp: dict[NameKey, McpServerSettings] = Field(
        default_factory=dict, description="tool servers (Model Context Protocol), by name"
    )
    queue: Queue = Field(default_factory=Queue)
    tools: ToolSettings = Field(default_factory=ToolSettings)
    instructions: WorkspaceFiles | None = Field(
        default=None,
        description="workspace files that are added to the system prompt, all of which must "
        "exist; default: AGENTS.md, if it exists",
    )


class Thread(Section):
    """``[channels.NAME.chats."ID".threads."ID"]``: one topic of a chat.

    Keys that are not set are inherited from its chat.
    """

    agent: NameKey | None = Field(
        default=None, description="the agent that answers in this topic or chat"
    )
    mention: Annotated[bool, Flag()] | None = Field(
        default=None, description="in groups: answer only messages that mention the bot"
    )
    context_messages: Annotated[int | None, Whole(0, 500)] = Field(
        default=None,
        description="in groups: the number of messages without a mention to give to the "
        "agent as context",
    )
    stop: StopPolicy | None = Field(
        default=None, description="in groups: which runs a member may stop: own or anyone"
    )
    queue: Queue = Field(default_factory=Queue)


class ChatSettings(Thread):
    """``[channels.NAME.chats."ID"]``: one chat.

    Keys that are not set are inherited from the account.
    Listing a group here allows it (SPEC CHAN-5).
    """

    enabled: Annotated[bool, Flag()] = Field(default=True, description="false: ignore this group")
    threads: dict[ChatKey, Thread] = Field(default_factory=dict)


class AccountSettings(Section):
    """The settings of one account that are the same for all channels.

    Every other key goes into ``options``, which the channel itself checks.
    """

    enabled: Annotated[bool, Flag()] = Field(
        default=True, description="false: turn the account off without deleting its settings"
    )
    agent: NameKey = Field(default=MAIN_AGENT, description="the agent that answers")
    direct: DirectPolicy = Field(
        default=DirectPolicy.PAIRING,
        description="who may talk to the bot in direct chats: pairing (default), allowlist, "
        "open or disabled",
    )
    allow: Annotated[tuple[str, ...], Ids()] = Field(
        default=(), description="ids of senders who may talk without pairing"
    )
    groups: GroupPolicy = Field(
        default=GroupPolicy.ALLOWLIST,
        description="the groups in which the bot answers. allowlist (default): groups listed "
        "in chats or allowed with `goclaw groups`; open: all; disabled: none",
    )
    mention: Annotated[bool, Flag()] = Field(
        default=True, description="in groups: answer only messages that mention the bot"
    )
    context_messages: Annotated[int, Whole(0, 500)] = Field(
        default=50,
        description="in groups: the number of latest messages without a mention to give to "
        "the agent as context when the bot is mentioned; 0: none",
    )
    stop: StopPolicy = Field(
        default=StopPolicy.OWN,
        description="in groups: which runs a member may stop. own (default): those that "
        "answer the member; owners and group admins may stop all runs; anyone: members may "
        "stop all runs too",
    )
    chats: dict[ChatKey, ChatSettings] = Field(default_factory=dict)
    queue: Queue = Field(default_factory=Queue)
    # It contains tokens, so it must not be printed with the other settings.
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

    If ``accounts`` is the only key, there is no account ``default``.
    """

    accounts: dict[NameKey, AccountSettings] = Field(default_factory=dict)

    @property
    def by_name(self) -> dict[str, AccountSettings]:
        """All accounts of the channel, including disabled ones."""
        has_own = self.model_fields_set - {"accounts", "options"} or self.options
        own = {DEFAULT_ACCOUNT: self} if has_own or not self.accounts else {}
        return own | self.accounts


class DatabaseSettings(Section):
    """``[database]``."""

    url: SecretStr | None = Field(
        default=None,
        description="the address of the database, postgresql://…; if unset, an embedded "
        "server is started",
    )


class State(Section):
    """``[state]``."""

    folder: Path | None = Field(
        default=None,
        description="the folder of the embedded database and the socket; default <home>/state",
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
        description="the maximum time from submission to end, waiting included; default: none",
    )
    outage_hold_s: Annotated[float, Duration()] = Field(
        default=1800.0,
        alias="outage_hold",
        description="how long messages are held while a model provider is down; 0s: not at all",
    )
    max_depth: Annotated[int, Whole(1, 100)] = Field(
        default=3,
        description="the maximum nesting of runs: how many ancestors (parent, grandparent …) "
        "a run may have",
    )
    max_children: Annotated[int, Whole(1, 1000)] = Field(
        default=8, description="the maximum number of unfinished runs that one run may have started"
    )


class Shutdown(Section):
    """``[shutdown]`` (SPEC QUEUE-11)."""

    wait_s: Annotated[float, Duration()] = Field(
        default=30.0,
        alias="wait",
        description="how long to wait for running runs at shutdown; default: set by the "
        "scheduler profile",
    )


class Log(Section):
    """``[log]``."""

    level: LogLevel = Field(
        default=LogLevel.INFO,
        description="the least severe level that is logged: debug, info (default), warning "
        "or error",
    )
    format: LogFormat = Field(
        default=LogFormat.AUTO,
        description="auto (default), console or json; auto is console on a terminal, "
        "otherwise json",
    )
    file: Path | None = Field(default=None, description="the log file; default: standard error")


class Settings(BaseSettings):
    """All settings. ``load`` reads file and environment; the constructor reads neither."""

    model_config = SettingsConfigDict(extra="forbid", frozen=True)

    home: Path = Field(default_factory=lambda: Path.home() / ".goclaw")
    file: Path | None = None

    lanes: dict[LaneKey, LaneSettings] = Field(
        default_factory=dict,
        description="lane name → maximum number of concurrent runs, or a table (SPEC LANE-1, "
        "NODE-2). The four default lanes always exist; the default size of cron is set by "
        "the scheduler profile",
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
        """Add what always exists, and the defaults of the scheduler profile."""
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
        """Use only the values that the caller passes."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    @property
    def lane_sizes(self) -> dict[LaneName, int]:
        """The maximum number of concurrent runs of each lane."""
        return {LaneName(name): lane.size for name, lane in self.lanes.items()}

    @property
    def shared_lanes(self) -> frozenset[LaneName]:
        """The lanes whose size limits the runs of all nodes together (SPEC NODE-2)."""
        shared = (name for name, lane in self.lanes.items() if lane.scope is LaneScope.CLUSTER)
        return frozenset(map(LaneName, shared))

    @property
    def state_folder(self) -> Path:
        """The folder of the embedded database and of the gateway's socket."""
        return self.state.folder or self.home / "state"

    def workspace(self, agent: AgentName) -> Path:
        """The folder of an agent, which contains its HEARTBEAT.md."""
        configured = self.agents[agent].workspace
        if configured is not None:
            return configured
        # Separate folders: an agent must not change the instructions of another one.
        return self.home / "workspace" if agent == MAIN_AGENT else self.home / "workspaces" / agent

    def remember(
        self, origins: Mapping[tuple[str, ...], str], places: Mapping[tuple[str, ...], Origin]
    ) -> None:
        """Store the origins of values: ``origins`` those of environment variables.

        ``places`` has the origin of every value that is set.
        """
        self._origins.update(origins)
        self._places.update(places)

    def place(self, path: tuple[str, ...]) -> Origin:
        """Return what set the value at a path: a variable, a line of the file, or the default."""
        for length in range(len(path), 0, -1):
            if found := self._places.get(path[:length]):
                return found
        return DEFAULT

    def origin(self, path: tuple[str, ...]) -> str:
        """Return the source of a setting: an environment variable, the file, or the defaults."""
        for length in range(len(path), 0, -1):
            if found := self._origins.get(path[:length]):
                return found
        return str(self.file) if self.file else "the defaults"
