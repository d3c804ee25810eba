"""A toolbox of plain functions, which agents are tested with."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from goclaw_py.core.errors import ToolFailed
from goclaw_py.runs.agent_loop import (
    AgentLoop,
    AgentResult,
    Emit,
    RunRequest,
)
from goclaw_py.runs.toolbox import Toolbox, ToolSpec

Function = Callable[..., Awaitable[str]]

_TYPES = {"str": "string", "int": "integer", "bool": "boolean"}


class Functions:
    """Each function is a tool of its name; its parameters are all required.

    ``calls`` are the calls that reached one, in order.
    """

    def __init__(
        self,
        *functions: Function,
        harmless: tuple[str, ...] = (),
        acting_on_run: tuple[str, ...] = (),
        idempotent: tuple[str, ...] = (),
    ) -> None:
        self._functions = {function.__name__: function for function in functions}
        self._specs = tuple(
            replace(
                _spec(function, harmless),
                acts_on_run=name in acting_on_run,
                idempotent=name in idempotent,
            )
            for name, function in self._functions.items()
        )
        self.calls: list[tuple[str, dict[str, Any]]] = []

    @property
    def guidance(self) -> tuple[str, ...]:
        return ()

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._specs

    async def call(self, name: str, arguments: Mapping[str, object], key: str = "") -> str:
        function = self._functions.get(name)
        if function is None:
            raise ToolFailed(f"there is no tool {name!r}")
        try:
            inspect.signature(function).bind(**arguments)
        except TypeError as error:
            raise ToolFailed(str(error)) from error
        self.calls.append((name, dict(arguments)))
        return await function(**arguments)


def _spec(function: Function, harmless: tuple[str, ...]) -> ToolSpec:
    parameters = inspect.signature(function).parameters
    schema = {
        "type": "object",
        "properties": {
            name: {"type": _TYPES.get(str(parameter.annotation), "string")}
            for name, parameter in parameters.items()
        },
        "required": list(parameters),
        "additionalProperties": False,
    }
    name = function.__name__
    return ToolSpec(name, function.__doc__ or "", schema, side_effects=name not in harmless)


class Armed:
    """An agent that is given these tools for each run."""

    def __init__(self, agent: AgentLoop, tools: Toolbox) -> None:
        self._agent = agent
        self._tools = tools

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        return await self._agent.run(replace(request, tools=self._tools), emit)

    async def warm_up(self) -> None:
        await self._agent.warm_up()

    async def close(self) -> None:
        await self._agent.close()
