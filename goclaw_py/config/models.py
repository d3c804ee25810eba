"""The settings as the program uses them: immutable, complete and validated.

The docstrings of the fields are the reference of ``goclaw.toml``; an alias is the key in the file
where the field's name adds a unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, SecretStr, model_validator

from goclaw_py.config.agents import Agent
from goclaw_py.config.heartbeat import HeartbeatSettings
from goclaw_py.config.lanes import LaneKey, LaneScope, LaneSettings, Queue, filled_lanes
from goclaw_py.config.masking import printable
from goclaw_py.config.origins import DEFAULT, KeyPath, Origin, Origins
from goclaw_py.config.scheduler import SchedulerSettings, chosen_profile
from goclaw_py.config.sources import Layer
from goclaw_py.config.types import Duration, Flag, Ids, Matching, NameKey, Section, Whole
from goclaw_py.config.web import Web
from goclaw_py.config.work_sources import WorkSourceSettings
from goclaw_py.core.errors import SettingError
from goclaw_py.core.ids import MAIN_AGENT, AgentName, LaneName
from goclaw_py.core.session_keys import DEFAULT_ACCOUNT, DirectPolicy, GroupPolicy, StopPolicy

ChatKey = Annotated[str, Matching(r"\S{1,128}", "the id of a chat, in quotation marks")]


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


class Thread(Section):
    """``[channels.NAME.chats."ID".threads."ID"]``: one topic of a chat.

    Keys that are not set are inherited from its chat.
    """

    agent: NameKey | None = None
    """the agent that answers in this topic or chat"""
    mention: Annotated[bool, Flag()] | None = None
    """in groups: answer only messages that mention the bot"""
    context_messages: Annotated[int | None, Whole(0, 500)] = None
    """in groups: the number of messages without a mention to give to the agent as context"""
    stop: StopPolicy | None = None
    """in groups: which runs a member may stop: own or anyone"""
    queue: Queue = Queue()


class ChatSettings(Thread):
    """``[channels.NAME.chats."ID"]``: one chat.

    Keys that are not set are inherited from the account.
    Listing a group here allows it (SPEC CHAN-5).
    """

    enabled: Annotated[bool, Flag()] = True
    """false: ignore this group"""
    threads: dict[ChatKey, Thread] = Field(default_factory=dict)


class AccountSettings(Section):
    """The settings of one account that are the same for all channels.

    Every other key goes into ``options``, which the channel itself checks.
    """

    enabled: Annotated[bool, Flag()] = True
    """false: turn the account off without deleting its settings"""
    agent: NameKey = MAIN_AGENT
    """the agent that answers"""
    direct: DirectPolicy = DirectPolicy.PAIRING
    """who may talk to the bot in direct chats: pairing (default), allowlist, open or disabled"""
    allow: Annotated[tuple[str, ...], Ids()] = ()
    """ids of senders who may talk without pairing"""
    groups: GroupPolicy = GroupPolicy.ALLOWLIST
    """the groups in which the bot answers. allowlist (default): groups listed in chats or allowed
    with `goclaw people groups`; open: all; disabled: none"""
    mention: Annotated[bool, Flag()] = True
    """in groups: answer only messages that mention the bot"""
    context_messages: Annotated[int, Whole(0, 500)] = 50
    """in groups: the number of latest messages without a mention to give to the agent as context
    when the bot is mentioned; 0: none"""
    stop: StopPolicy = StopPolicy.OWN
    """in groups: which runs a member may stop. own (default): those that answer the member; owners
    and group admins may stop all runs; anyone: members may stop all runs too"""
    chats: dict[ChatKey, ChatSettings] = Field(default_factory=dict)
    queue: Queue = Queue()
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

    url: SecretStr | None = None
    """the address of the database, postgresql://…; if unset, an embedded server is started"""


class State(Section):
    """``[state]``."""

    folder: Path | None = None
    """the folder of the embedded database and the socket; default <home>/state"""


class RunSettings(Section):
    """``[runs]`` (SPEC QUEUE-2, QUEUE-9, LANE-8). Times are in seconds once read."""

    timeout_s: Annotated[float, Duration(1)] = Field(default=1800.0, alias="timeout")
    """the time limit of a run"""
    cancel_grace_s: Annotated[float, Duration(1)] = Field(default=10.0, alias="cancel_grace")
    """how long a cancelled run may take to finish"""
    deadline_s: Annotated[float | None, Duration(1)] = Field(default=None, alias="deadline")
    """the maximum time from submission to end, waiting included; default: none"""
    outage_hold_s: Annotated[float, Duration()] = Field(default=1800.0, alias="outage_hold")
    """how long messages are held while a model provider is down; 0s: not at all"""
    max_depth: Annotated[int, Whole(1, 100)] = 3
    """the maximum nesting of runs: how many ancestors (parent, grandparent …) a run may have"""
    max_children: Annotated[int, Whole(1, 1000)] = 8
    """the maximum number of unfinished runs that one run may have started"""
    max_chained_turns: Annotated[int, Whole(0)] = 10
    """the maximum number of turns and runs in a row that only results of subagents begin, or runs
    of jobs schedule, without a person; 0: no limit"""


class Shutdown(Section):
    """``[shutdown]`` (SPEC QUEUE-11)."""

    wait_s: Annotated[float, Duration()] = Field(default=30.0, alias="wait")
    """how long to wait for running runs at shutdown; default: set by the scheduler profile"""


class Log(Section):
    """``[log]``."""

    level: LogLevel = LogLevel.INFO
    """the least severe level that is logged: debug, info (default), warning or error"""
    format: LogFormat = LogFormat.AUTO
    """auto (default), console or json; auto is console on a terminal, otherwise json"""
    file: Path | None = None
    """the log file; default: standard error"""


class Audit(Section):
    """``[audit]`` (SPEC SEC-9)."""

    retention_s: Annotated[float, Duration(86_400)] = Field(default=31_536_000.0, alias="retention")
    """how long entries of the audit log are kept; default: 365d"""


class Settings(Section):
    """All settings. ``load`` reads file and environment; the constructor reads neither."""

    home: Path = Field(default_factory=lambda: Path.home() / ".goclaw")
    file: Path | None = None

    lanes: dict[LaneKey, LaneSettings] = Field(default_factory=dict)
    """lane name → maximum number of concurrent runs, or a table (SPEC LANE-1, NODE-2). The four
    default lanes always exist; the default size of cron is set by the scheduler profile"""
    queue: Queue = Queue()
    agents: dict[NameKey, Agent] = Field(default_factory=dict)
    channels: dict[NameKey, ChannelSettings] = Field(default_factory=dict)
    database: DatabaseSettings = DatabaseSettings()
    state: State = State()
    runs: RunSettings = RunSettings()
    sources: dict[NameKey, WorkSourceSettings] = Field(default_factory=dict)
    """the sources of work items for jobs, by name"""
    scheduler: SchedulerSettings = SchedulerSettings()
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    shutdown: Shutdown = Shutdown()
    web: Web = Web()
    log: Log = Log()
    audit: Audit = Audit()

    _origins: Origins = PrivateAttr(default_factory=Origins)
    _layers: tuple[Layer, ...] = PrivateAttr(default=())

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

    def remember(self, origins: Origins, layers: Sequence[Layer]) -> None:
        """Store what has set each value, and all values that were read."""
        self._origins = origins
        self._layers = tuple(layers)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The values of the environment and of the file; empty if these were not read."""
        return self._layers

    def place(self, path: KeyPath) -> Origin:
        """Return what set the value at a path: a variable, a line of the file, or the default."""
        return self._origins.at(path) or DEFAULT

    def error(self, path: KeyPath, value: object, allowed: str) -> SettingError:
        """Create the error of a setting that is found to be wrong after loading."""
        file = str(self.file) if self.file else "the defaults"
        origin = self._origins.at(path)
        source = origin.words if origin else file
        return SettingError(".".join(path), printable(path, value), allowed, source=source)
