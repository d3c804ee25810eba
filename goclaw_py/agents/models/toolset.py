"""The tools of one run as pydantic-ai wants them. Imports heavy libraries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

import orjson
from pydantic import TypeAdapter
from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.exceptions import ToolFailed as ToolRefused
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.toolsets.abstract import SchemaValidatorProt, ToolsetTool

from goclaw_py.model.errors import ToolFailed
from goclaw_py.ports.agent import not_recorded
from goclaw_py.ports.tools import Toolbox

REPEATS = 1_000
"""How often a model may make a mistake with the same tool: as often as it likes.

The library would end the run after so many. The model reads each time what was wrong, and the brake
for one that never learns is the budget of its run.
"""

_ARGUMENTS = cast("SchemaValidatorProt", TypeAdapter(dict[str, Any]).validator)
"""Arguments are an object; whatever else is asked of them, their toolbox checks.

What is no JSON, or no object, goes back to the model without a call.
"""


class RunTools(AbstractToolset[None]):
    """Some toolboxes as one set of tools. Where two have a name in common, the first one wins.

    Args:
        recorded: Awaited before each call; see ``RunRequest.recorded``.
    """

    def __init__(
        self,
        boxes: Sequence[Toolbox],
        recorded: Callable[[], Awaitable[None]] = not_recorded,
    ) -> None:
        self._recorded = recorded
        self._boxes: dict[str, Toolbox] = {}
        self._tools: dict[str, ToolsetTool[None]] = {}
        self._effects: dict[str, bool] = {}
        for box in boxes:
            for spec in box.specs:
                if spec.name in self._boxes:
                    continue
                self._boxes[spec.name] = box
                self._effects[spec.name] = spec.side_effects
                self._tools[spec.name] = ToolsetTool(
                    toolset=self,
                    tool_def=ToolDefinition(
                        name=spec.name,
                        description=spec.description,
                        parameters_json_schema=dict(spec.parameters),
                    ),
                    max_retries=REPEATS,
                    args_validator=_ARGUMENTS,
                )

    @property
    def id(self) -> str | None:
        """Nothing refers to it."""
        return None

    @property
    def definitions(self) -> Sequence[ToolDefinition]:
        """What the model is told of each tool."""
        return [tool.tool_def for tool in self._tools.values()]

    @property
    def chars(self) -> int:
        """How many characters describe them to the model, about."""
        return sum(
            len(each.name)
            + len(each.description or "")
            + len(orjson.dumps(each.parameters_json_schema))
            for each in self.definitions
        )

    def has_side_effects(self, name: str) -> bool:
        """Whether a call may change something; also for a name that is not known."""
        return self._effects.get(name, True)

    async def get_tools(self, ctx: RunContext[None]) -> dict[str, ToolsetTool[None]]:
        """The same for all steps of a run."""
        del ctx
        return self._tools

    async def call_tool(
        self,
        name: str,
        tool_args: Mapping[str, object],
        ctx: RunContext[None],
        tool: ToolsetTool[None],
    ) -> str:
        """Call a tool. That it failed is a result, and costs nothing but the model's next turn."""
        del ctx, tool
        await self._recorded()
        try:
            return await self._boxes[name].call(name, tool_args)
        except ToolFailed as error:
            raise ToolRefused(str(error)) from error
