"""The tools of a run for pydantic-ai. Heavy imports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.exceptions import ToolFailed as ToolRefused
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.toolsets.abstract import SchemaValidatorProt, ToolsetTool

from goclaw_py.agents.approval import Judgement
from goclaw_py.agents.models.approval import ReplayJudge
from goclaw_py.agents.models.replay import UNKNOWN_RESULT, Replay
from goclaw_py.core.approvals import ApprovalRequest
from goclaw_py.core.errors import ApprovalNeeded, ToolFailed
from goclaw_py.core.run_events import ToolEnded, ToolStarted
from goclaw_py.core.storable import storable
from goclaw_py.runs.agent_loop import RunRequest
from goclaw_py.runs.toolbox import Toolbox, ToolSpec

REPEATS = 1_000
"""The number of mistakes that a model may make with a tool: practically unlimited.

The library would end the run. ``mistakes`` does, and the run's budget limits the others.
"""

_ARGUMENTS = cast("SchemaValidatorProt", TypeAdapter(dict[str, Any]).validator)
"""Arguments must be an object; their toolbox validates everything else.

Other JSON is returned to the model without a call.
"""


_ANYTHING = {"type": "object"}


class RunTools(AbstractToolset[None]):
    """Several toolboxes as one. If two have the same name, the first one is used.

    Args:
        request: The run. ``recorded`` is awaited before each call.
        replay: The run that this one continues.
        judge: Decides which calls are made.
    """

    def __init__(
        self, boxes: Sequence[Toolbox], request: RunRequest, replay: Replay, judge: ReplayJudge
    ) -> None:
        self._request = request
        self._replay = replay
        self._judge = judge
        self._judgements: dict[str, Judgement] = {}
        self._boxes: dict[str, Toolbox] = {}
        self._specs: dict[str, ToolSpec] = {}
        self._tools: dict[str, ToolsetTool[None]] = {}
        for box in boxes:
            for spec in box.specs:
                if spec.name in self._boxes:
                    continue
                self._boxes[spec.name] = box
                self._specs[spec.name] = spec
                self._tools[spec.name] = self._tool(spec)

    @property
    def id(self) -> str | None:
        """None: nothing refers to it."""
        return None

    @property
    def definitions(self) -> Sequence[ToolDefinition]:
        """Return the definitions of the tools for the model."""
        return [tool.tool_def for tool in self._tools.values()]

    @property
    def chars(self) -> int:
        """Return the approximate number of characters of the definitions."""
        return sum(
            len(each.name) + len(each.description or "") + len(str(each.parameters_json_schema))
            for each in self.definitions
        )

    def has(self, name: str) -> bool:
        """Return whether there is such a tool."""
        return name in self._specs

    def has_side_effects(self, name: str, before: ToolStarted | None = None) -> bool:
        """Return whether a call may have side effects; True for an unknown name.

        ``before`` is what an interrupted run has recorded of the call.
        """
        spec = self._specs.get(name)
        if spec is None:
            return before is None or before.side_effects
        return spec.side_effects or (before is not None and before.side_effects)

    async def judge(self, calls: Sequence[ToolCallPart]) -> None:
        """Decide which of the calls of a response are made."""
        for call in calls:
            spec, call_id = self._specs.get(call.tool_name), call.tool_call_id
            is_done = self._replay.result(call_id) is not None
            started = self._replay.unknown(call_id)
            if spec is None and started is not None:
                # Its server may not be back yet: nothing but the record says what it does.
                spec = ToolSpec(call.tool_name, "", _ANYTHING, started.side_effects)
            elif spec is not None and started is not None and started.side_effects:
                # The server may be another one now; the call was made to the one before.
                spec = replace(spec, side_effects=True)
            if spec is None or is_done:
                continue
            judgement = await self._judge.judge(spec, call_id, call.args_as_json_str())
            self._judgements[call_id] = judgement
            if judgement.uncertain:
                self._replay.uncertain.add(call_id)

    def asks(self, call_id: str) -> ApprovalRequest | None:
        """Return the question to a person that a call waits for."""
        judgement = self._judgements.get(call_id)
        return None if judgement is None else judgement.asks

    async def get_tools(self, ctx: RunContext[None]) -> dict[str, ToolsetTool[None]]:
        """Return the tools, the same for all new steps of a run.

        Before a stored response also tools that exist no longer: the response may have called them.
        """
        del ctx
        if not (gone := self._replay.tools_ahead - self._tools.keys()):
            return self._tools
        return self._tools | {name: self._tool(ToolSpec(name, "", _ANYTHING)) for name in gone}

    def _tool(self, spec: ToolSpec) -> ToolsetTool[None]:
        return ToolsetTool(
            toolset=self,
            tool_def=ToolDefinition(
                name=spec.name,
                description=spec.description,
                parameters_json_schema=dict(spec.parameters),
            ),
            max_retries=REPEATS,
            args_validator=_ARGUMENTS,
        )

    async def call_tool(
        self,
        name: str,
        tool_args: Mapping[str, object],
        ctx: RunContext[None],
        tool: ToolsetTool[None],
    ) -> str:
        """Call a tool. A failure is a result for the model."""
        del tool
        call_id, spec = ctx.tool_call_id or "", self._specs.get(name)
        if (stored := self._replay.result(call_id)) is not None:
            return await self._repeated(stored, tool_args)
        await self._request.recorded()
        judgement = self._judgements.get(call_id)
        if judgement is None:
            raise ToolRefused("This call was not made: the tool exists no longer.")
        if judgement.asks is not None:
            raise ApprovalRequired
        if judgement.refusal:
            raise ToolRefused(judgement.refusal)
        if judgement.result:
            return judgement.result
        if spec is None:
            self._replay.uncertain.add(call_id)
            raise ToolRefused(UNKNOWN_RESULT)
        try:
            key = self._request.call_key(call_id)
            return storable(await self._boxes[name].call(name, tool_args, key))
        except ApprovalNeeded as error:
            raise ApprovalRequired from error  # a child run waits, and so does this one
        except ToolFailed as error:
            raise ToolRefused(storable(str(error))) from error

    async def _repeated(self, stored: ToolEnded, arguments: Mapping[str, object]) -> str:
        """Return the stored result of a call, after its effects on the run."""
        if not stored.ok:
            raise ToolRefused(stored.result)
        spec = self._specs.get(stored.name)
        if spec is not None and spec.acts_on_run:
            with suppress(ToolFailed):  # for example, the file exists no longer
                await self._boxes[stored.name].call(stored.name, arguments)
        return stored.result
