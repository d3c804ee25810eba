"""``[agents.NAME]`` and its tables: budget, command, MCP servers and tools (SPEC AGENT)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from goclaw_py.config.heartbeat import HeartbeatSettings
from goclaw_py.config.lanes import Queue
from goclaw_py.config.types import (
    Duration,
    HiddenText,
    Matching,
    Money,
    NameKey,
    Names,
    Number,
    Section,
    Text,
    WebAddress,
    Whole,
    Words,
    allowed,
)
from goclaw_py.core.workspace.paths import BadPath, split_file_path

# ---------------------------------------------------------------------------- budget


class DayBudget(Section):
    """Limits on the usage of one day, in UTC."""

    turns: Annotated[int | None, Whole(1)] = None
    """the maximum number of model requests"""
    tokens: Annotated[int | None, Whole(1)] = None
    """the maximum number of tokens, input and output together"""
    usd: Annotated[Decimal | None, Money()] = None
    """the maximum cost in US dollars; models without a known price are not counted"""


class AgentDayBudget(DayBudget):
    """Limits on the usage of an agent on one day, in UTC."""

    usd: Annotated[Decimal | None, Money(zero=True)] = None
    """the maximum cost in US dollars; default 20 for the models of providers, if none of these
    limits is set; 0: no limit"""


class RunBudget(DayBudget):
    """Limits on one run, including its subagents and delegates, and on one day."""

    time: Annotated[float | None, Duration(1)] = None
    """the maximum duration of a run"""
    session_day: DayBudget = DayBudget()
    """the budget of one conversation for one day, in UTC"""
    day: AgentDayBudget = AgentDayBudget()
    """the budget of the agent for one day, in UTC"""


DEFAULT_DAY_USD: Final = Decimal(20)
"""The daily budget of an agent with a provider's model, where none is set."""

# ---------------------------------------------------------------------------- command


class Paths(Words):
    """One path into a line of JSON, or a list of them."""

    def check(self, value: object) -> tuple[str, ...]:
        """Return the paths."""
        return super().check([value] if isinstance(value, str) else value)


class UsageSettings(Section):
    """``usage``: where the output of a program has its usage. Values of several paths are added."""

    input: Annotated[tuple[str, ...], Paths()] = ()
    """the paths to the input tokens, such as "type=result usage.input_tokens"; or a list"""
    output: Annotated[tuple[str, ...], Paths()] = ()
    """the paths to the output tokens"""
    cost: Annotated[tuple[str, ...], Paths()] = ()
    """the paths to the cost in US dollars"""
    turns: Annotated[tuple[str, ...], Paths()] = ()
    """the paths to the number of model requests; default: one request for each run"""


class Command(Section):
    """``[agents.NAME.command]``."""

    run: Annotated[tuple[str, ...], Words()] = ()
    """the program and its arguments. These placeholders are replaced: {prompt} (if absent, the
    prompt is sent on standard input), {system} (if absent, the system prompt is put before the
    prompt), {session} and {workspace}"""
    first: Annotated[tuple[str, ...], Words()] = ()
    """additional arguments for the first run of a conversation"""
    later: Annotated[tuple[str, ...], Words()] = ()
    """additional arguments for later runs, which continue the conversation"""
    resume_args: Annotated[tuple[str, ...], Words()] = ()
    """additional arguments, with {session}, for a run that continues an interrupted one; default:
    the program cannot continue it"""
    on_interrupted: Literal["retry", "end"] = "retry"
    """what happens to a message whose interrupted run cannot be continued: retry (default): the
    program begins again; end: the message ends as lost, and its sender is told"""
    output: Literal["text", "jsonl"] = "text"
    """the output format: text (default), or jsonl: one JSON object for each line"""
    text: Annotated[tuple[str, ...], Words()] = ()
    """with jsonl: the paths to the pieces of the reply, such as "type=assistant
    message.content.*.text"
    """
    join: str = ""
    """with jsonl: the separator between two pieces of the reply"""
    result: str = ""
    """with jsonl: the path to the complete reply"""
    session: str = ""
    """with jsonl: the path to the program's own id of the conversation"""
    usage: UsageSettings = UsageSettings()
    env: Annotated[tuple[str, ...], Words()] = ()
    """environment variables to pass to the program, in addition to PATH, HOME and similar ones"""
    timeout: Annotated[float | None, Duration(1)] = None
    """the time limit of the program; default: the time limit of the run"""


# ---------------------------------------------------------------------------- MCP servers

API_KEY: Final = HiddenText(r"[ -~]*", "printable ASCII characters without line breaks")
HeaderKey = Annotated[
    str, Matching(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}", "the name of an HTTP header")
]
HeaderText = Annotated[SecretStr, HiddenText(r"[\t\x20-\x7e]*", "ASCII text without line breaks")]
VariableKey = Annotated[
    str, Matching(r"[A-Za-z_][A-Za-z0-9_]{0,99}", "the name of an environment variable")
]
VariableText = Annotated[SecretStr, HiddenText(r"[^\0]*", "text without NUL characters")]


_KEPT_CHARS: Final = 20
"""The length to which the name of a server is cut in names of tools."""


class McpServerSettings(Section):
    """``[agents.NAME.mcp.SERVER]``: an MCP server: a program or an address (SPEC AGENT-6)."""

    command: Annotated[tuple[str, ...], Words()] = ()
    """the program and its arguments; goclaw talks to it over standard input and output"""
    url: Annotated[
        str, Matching(r"(https?://\S+)?", "an address that starts with http:// or https://")
    ] = ""
    """the address of the server, if it is not a program"""
    env: dict[VariableKey, VariableText] = Field(default_factory=dict)
    """environment variables to pass to the program, in addition to PATH, HOME and similar ones"""
    headers: dict[HeaderKey, HeaderText] = Field(default_factory=dict)
    """HTTP headers sent with every request to the address"""
    tools: Annotated[tuple[str, ...], Names()] = ()
    """the tools that the agent may call; default: all tools of the server"""
    call_timeout_s: Annotated[float, Duration(1)] = Field(default=300.0, alias="call_timeout")
    """a call that takes longer fails; the run goes on"""
    trusted: bool = False
    """whether to believe what the server says about its tools: those that it calls read-only are
    called without approval, and these and its idempotent ones are called again after a crash"""

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        has_program = bool(self.command and self.command[0])
        if has_program == bool(self.url):
            raise allowed("must have either a command or a url, not both")
        if (self.headers and has_program) or (self.env and self.url):
            raise allowed("env is only for a command, headers only for a url")
        return self


def _distinct_servers(servers: dict[str, McpServerSettings]) -> dict[str, McpServerSettings]:
    """Refuse servers whose tools could have the same name.

    Approvals are for names of tools. With servers a and a_b, tool a_b_c would be one of either of
    them, depending on which of them is connected.
    """
    for name, longer in combinations(sorted(servers, key=len), 2):
        if longer.startswith(f"{name}_") or longer[:_KEPT_CHARS] == name[:_KEPT_CHARS]:
            raise allowed(
                f"the tools of {name!r} and {longer!r} could have the same name: rename a server"
            )
    return servers


def reveal(secrets: Mapping[str, SecretStr]) -> dict[str, str]:
    """Return the secrets as plain text."""
    return {name: secret.get_secret_value() for name, secret in secrets.items()}


# ---------------------------------------------------------------------------- tools

EVERYBODY: Final = "*"
"""Means all other agents in ``delegates``."""


class ToolSettings(Section):
    """What an agent may call. Tool names are checked when the tools are created."""

    allow: Annotated[tuple[str, ...] | None, Names()] = None
    """the tools that the agent may call; default: the workspace file tools, send_file,
    spawn_subagent, pin_fact, unpin_fact, heartbeat, and the four tools whose names begin with
    schedule_"""
    deny: Annotated[tuple[str, ...], Names()] = ()
    """tools that the agent may not call, even if allow contains them"""
    delegates: Annotated[tuple[str, ...], Names()] = ()
    """the agents to which the agent may delegate tasks; "*": all other agents"""
    send_to: Annotated[tuple[str, ...], Names()] = ()
    """the chats to which the agent may send messages, as channel[.account]:chat[:thread]"""


class ApprovalSettings(Section):
    """The tool calls that people must approve.

    A pattern is the name of a tool, with ``*`` and ``?``.
    """

    ask: Annotated[tuple[str, ...], Names()] = ()
    """patterns of tools whose calls people must approve. As soon as ask, deny or allow is set, they
    must also approve tools with side effects that no pattern contains"""
    deny: Annotated[tuple[str, ...], Names()] = ()
    """patterns of tools that are never called, even if ask or allow contain them"""
    allow: Annotated[tuple[str, ...], Names()] = ()
    """patterns of tools that are called without approval, unless ask contains them"""
    timeout_s: Annotated[float, Duration(1, 30 * 86_400)] = Field(default=86_400.0, alias="timeout")
    """the time until a call that nobody has answered counts as denied"""
    approvers: Literal["owners", "members"] = "owners"
    """who may answer in a group: only owners, or everybody"""


def _in_workspace(paths: tuple[str, ...]) -> tuple[str, ...]:
    for path in paths:
        try:
            split_file_path(path)
        except BadPath as error:
            raise allowed(f"must be paths of files in the workspace; a path {error}") from error
    return paths


WorkspaceFiles = Annotated[tuple[str, ...], Names(), AfterValidator(_in_workspace)]
"""Paths of files, relative to the workspace."""


# ---------------------------------------------------------------------------- the agent


class Agent(Section):
    """``[agents.NAME]``: an agent (SPEC AGENT-3). Agent ``main`` always exists."""

    model: Text = "offline"
    """offline, command, or provider:model such as openai:gpt-4o"""
    fallback: Annotated[tuple[str, ...], Names()] = ()
    """models to try in this order when the model fails; their API keys are read from the
    environment"""
    temperature: Annotated[float | None, Number(0, 2)] = None
    """the sampling temperature, from 0 (least random) to 2; default: the provider's. It is not sent
    to models that do not accept it, or do not accept it while thinking"""
    thinking: Literal["off", "low", "medium", "high"] | None = None
    """how much the model thinks before it answers; default: the provider's"""
    system_prompt: str | None = None
    """the system prompt of the model"""
    base_url: WebAddress | None = None
    """the address of another server that has the API of the provider"""
    api_key: SecretStr | None = None
    """the API key of the provider"""
    api_key_file: Path | None = None
    """a file that contains the API key"""
    api_key_env: Text | None = None
    """the environment variable that contains the API key"""
    headers: dict[HeaderKey, HeaderText] = Field(default_factory=dict)
    """HTTP headers sent with every request to the model, but not to fallback models"""
    workspace: Path | None = None
    """the folder of the agent; default <home>/workspace for main, <home>/workspaces/NAME for others
    """
    context_window: Annotated[int, Whole(1_000)] = 128_000
    """the context size of the model in tokens"""
    max_concurrent: Annotated[int | None, Whole(1)] = None
    """the maximum number of concurrent runs of this agent, in all sessions; default no limit"""
    budget: RunBudget = RunBudget()
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    command: Command = Command()
    mcp: Annotated[dict[NameKey, McpServerSettings], AfterValidator(_distinct_servers)] = Field(
        default_factory=dict
    )
    """tool servers (Model Context Protocol), by name"""
    queue: Queue = Queue()
    tools: ToolSettings = ToolSettings()
    approval: ApprovalSettings = ApprovalSettings()
    on_uncertain: Literal["tell_model", "ask_user", "retry"] = "tell_model"
    """what happens to a tool call that was interrupted, if its tool may not be repeated: the model
    is told that the outcome is unknown, a person is asked, or the tool is called again"""
    instructions: WorkspaceFiles | None = None
    """workspace files that are added to the system prompt, all of which must exist; default:
    AGENTS.md, if it exists"""

    @property
    def has_default_day(self) -> bool:
        """Return whether the default day budget applies: nobody has set one."""
        day = self.budget.day
        return self.is_language_model and (day.turns, day.tokens, day.usd) == (None, None, None)

    @property
    def is_language_model(self) -> bool:
        """Return whether ``model`` names a provider's model."""
        return ":" in self.model and not self.model.strip().startswith("python:")
