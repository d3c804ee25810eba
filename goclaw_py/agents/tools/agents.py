"""Tools that start subagents and delegate tasks to other agents (SPEC LANE-8)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field, create_model

from goclaw_py.agents.tools.arguments import NOT_BLANK, Arguments, one_line, one_of
from goclaw_py.agents.tools.permissions import Permissions
from goclaw_py.agents.tools.tool import Tool
from goclaw_py.core.errors import ToolFailed
from goclaw_py.core.ids import AgentName
from goclaw_py.core.text import truncate
from goclaw_py.runs.toolbox import ToolContext

MAX_TASK_CHARS: Final = 20_000
MAX_REPLY_CHARS: Final = 50_000
MAX_LABEL_CHARS: Final = 60
_LABEL_FROM_TASK_CHARS = 40
_QUOTES: Final = str.maketrans(dict.fromkeys('"“”', "'"))

Task = Annotated[str, Field(max_length=MAX_TASK_CHARS), NOT_BLANK]


class Subtask(Arguments):
    """Arguments of ``spawn_subagent``."""

    task: Task = Field(
        description="The task of the subagent. The subagent cannot see this conversation, so "
        "include everything it needs to know."
    )
    label: str | None = Field(
        default=None, max_length=MAX_LABEL_CHARS, description="A short name for the task."
    )
    wait: bool = Field(
        default=False,
        description="true: wait for the subagent and return its result from this call. "
        "false: continue immediately; the result arrives later in this conversation, as a "
        "message.",
    )


class SpawnSubagent(Tool[Subtask]):
    """Starts a run of the same agent in a separate conversation."""

    name = "spawn_subagent"
    description = (
        "Start a subagent: another instance of yourself, without this conversation, that works on "
        "one task. Use it for long tasks, or to do several tasks at the same time."
    )
    arguments = Subtask
    idempotent = True

    async def call(self, arguments: Subtask, here: ToolContext) -> str:
        """Start the subagent. Wait if requested, or if results cannot be delivered later."""
        if not arguments.wait:
            label = _label(arguments)
            if await here.children.spawn(arguments.task, label, here.key) is not None:
                return (
                    "Started. The result will arrive in this conversation as a message of "
                    f"subagent “{label}”."
                )
        return _reply(await here.children.subagent(arguments.task, here.key))


class DelegateArguments(Arguments):
    """Arguments of ``delegate``."""

    agent: str
    task: Task = Field(
        description="The task of the other agent. The agent cannot see this conversation, so "
        "include everything it needs to know."
    )


class Delegate(Tool[DelegateArguments]):
    """Gives a task to another agent and returns its answer."""

    name = "delegate"
    description = "Give a task to another agent, wait until it is finished, and return the answer."
    idempotent = True

    def __init__(self, agents: tuple[AgentName, ...] = ()) -> None:
        named = (one_of(agents), Field(description="The agent that does the task."))
        self.arguments = create_model("DelegateArguments", __base__=DelegateArguments, agent=named)

    def permitted(self, permissions: Permissions) -> Tool[Any] | None:
        """Return the tool with the agents that this one may delegate to."""
        if not permissions.delegates or self.name in permissions.deny:
            return None
        return Delegate(permissions.delegates)

    async def call(self, arguments: DelegateArguments, here: ToolContext) -> str:
        """Run the other agent and wait for its reply."""
        agent = AgentName(arguments.agent)
        if agent == here.agent:
            raise ToolFailed(
                f"{agent}: this is your own name; do the task yourself, or name another agent"
            )
        return _reply(await here.children.delegate(agent, arguments.task, here.key))


def _label(arguments: Subtask) -> str:
    """Return a label in one line, without quotation marks."""
    label, task = (arguments.label or "", MAX_LABEL_CHARS), (arguments.task, _LABEL_FROM_TASK_CHARS)
    for given, most in (label, task):
        if words := one_line(given.translate(_QUOTES)):
            return truncate(words, most)
    return "task"


def _reply(text: str) -> str:
    if not text.strip():
        return "(The agent ended without an answer.)"
    if len(text) <= MAX_REPLY_CHARS:
        return text
    left_out = len(text) - MAX_REPLY_CHARS
    return f"{truncate(text, MAX_REPLY_CHARS)}\n[{left_out:,} more characters were cut]"
