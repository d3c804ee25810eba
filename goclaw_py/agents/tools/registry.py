"""The registry of all tools, and the toolbox of each run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from goclaw_py.agents.tools.agents import Delegate, SpawnSubagent
from goclaw_py.agents.tools.chats import SendMessage
from goclaw_py.agents.tools.files import EditFile, ListFiles, ReadFile, SendFile, WriteFile
from goclaw_py.agents.tools.heartbeat import HeartbeatDone, HeartbeatTool
from goclaw_py.agents.tools.permissions import Permissions
from goclaw_py.agents.tools.pins import PinFact, UnpinFact
from goclaw_py.agents.tools.schedule_arguments import Figures
from goclaw_py.agents.tools.schedules import guidance, schedule_tools, service_of
from goclaw_py.agents.tools.tool import Tool
from goclaw_py.core.errors import ToolFailed
from goclaw_py.core.ids import AgentName
from goclaw_py.runs.toolbox import NO_TOOLS, Toolbox, ToolContext, ToolSpec

_ALWAYS: Final[tuple[Tool[Any], ...]] = (
    ReadFile(),
    WriteFile(),
    EditFile(),
    ListFiles(),
    SendFile(),
    SpawnSubagent(),
    Delegate(),
    SendMessage(),
    PinFact(),
    UnpinFact(),
)

_HEARTBEAT: Final = HeartbeatTool()
_DONE: Final = HeartbeatDone()

TOOLS: Final[tuple[Tool[Any], ...]] = (*_ALWAYS, *schedule_tools(Figures()), _HEARTBEAT, _DONE)
"""All tools, in the order in which they are sent to models."""

_NAME_CHARS = 80


@dataclass(frozen=True, slots=True)
class _Offer:
    """The tools that one agent may call, with guidance for the model."""

    specs: tuple[ToolSpec, ...]
    tools: Mapping[str, Tool[Any]]
    guidance: tuple[str, ...]


class Registry:
    """Creates toolboxes. An agent without permissions gets no tools.

    Runs that may use the job service also get the schedule tools, and runs of agents with a
    heartbeat its tool. The tools are cached for runs with equal permissions.
    """

    def __init__(self, permissions: Mapping[AgentName, Permissions]) -> None:
        self._permissions = dict(permissions)
        self._offers: dict[tuple[AgentName, Figures | None, bool, bool], _Offer] = {}

    def toolbox(self, here: ToolContext) -> Toolbox:
        """Return the tools of one run."""
        if here.agent not in self._permissions:
            return NO_TOOLS
        found = service_of(here)
        # The figures come from the settings, so the cache stays small.
        figures = None if found is None else Figures.of(found[0].rules.profile)
        heartbeat_runs, ends = here.heartbeats is not None, here.heartbeat_run_done is not None
        key = here.agent, figures, heartbeat_runs, ends
        if key not in self._offers:
            permissions = self._permissions[here.agent]
            self._offers[key] = _offer(
                permissions, figures, heartbeat_runs=heartbeat_runs, ends=ends
            )
        return _Box(self._offers[key], here)


def _offer(
    permissions: Permissions, figures: Figures | None, *, heartbeat_runs: bool, ends: bool
) -> _Offer:
    there = [*_ALWAYS]
    if figures is not None:
        there += schedule_tools(figures)
    if heartbeat_runs:
        there.append(_HEARTBEAT)
    if ends:
        there.append(_DONE)
    tools = [found for tool in there if (found := tool.permitted(permissions)) is not None]
    by_name = {tool.name: tool for tool in tools}
    return _Offer(tuple(tool.spec for tool in tools), by_name, guidance(by_name))


class _Box:
    """The tools of one run."""

    def __init__(self, offer: _Offer, here: ToolContext) -> None:
        self._offer = offer
        self._here = here

    @property
    def guidance(self) -> tuple[str, ...]:
        return self._offer.guidance

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._offer.specs

    async def call(self, name: str, arguments: Mapping[str, object], key: str = "") -> str:
        tool = self._offer.tools.get(name)
        if tool is None:
            names = ", ".join(self._offer.tools) or "none"
            raise ToolFailed(f"there is no tool {name[:_NAME_CHARS]!r}; there are: {names}")
        return await tool.use(arguments, replace(self._here, key=key) if key else self._here)
