"""All tools, and who gets which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from goclaw_py.core.errors import ToolFailed
from goclaw_py.core.ids import AgentName
from goclaw_py.ports.tools import NO_TOOLS, Here, Toolbox, ToolSpec
from goclaw_py.tools.agents import Delegate, SpawnSubagent
from goclaw_py.tools.chats import SendMessage
from goclaw_py.tools.editing import EditFile, WriteFile
from goclaw_py.tools.files import ListFiles, ReadFile, SendFile
from goclaw_py.tools.permissions import Permissions
from goclaw_py.tools.pins import PinFact, UnpinFact
from goclaw_py.tools.tool import Tool

TOOLS: Final[tuple[Tool[Any], ...]] = (
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
"""In the order in which models see them."""

_NAME_CHARS = 80


@dataclass(frozen=True, slots=True)
class _Offer:
    """What one agent may call."""

    specs: tuple[ToolSpec, ...]
    tools: Mapping[str, Tool[Any]]


class Registry:
    """Makes the toolboxes. An agent without permissions of its own gets none at all."""

    def __init__(self, permissions: Mapping[AgentName, Permissions]) -> None:
        self._offers = {agent: _offer(allowed) for agent, allowed in permissions.items()}

    def toolbox(self, here: Here) -> Toolbox:
        """The tools of one run."""
        offer = self._offers.get(here.agent)
        return NO_TOOLS if offer is None else _Box(offer, here)


def _offer(permissions: Permissions) -> _Offer:
    tools = [found for tool in TOOLS if (found := tool.permitted(permissions)) is not None]
    return _Offer(tuple(tool.spec for tool in tools), {tool.name: tool for tool in tools})


class _Box:
    """The tools of one run."""

    def __init__(self, offer: _Offer, here: Here) -> None:
        self._offer = offer
        self._here = here

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._offer.specs

    async def call(self, name: str, arguments: Mapping[str, object]) -> str:
        tool = self._offer.tools.get(name)
        if tool is None:
            names = ", ".join(self._offer.tools) or "none"
            raise ToolFailed(f"there is no tool {name[:_NAME_CHARS]!r}; there are: {names}")
        return await tool.use(arguments, self._here)
