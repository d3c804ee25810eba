"""One turn of the offline agent."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from goclaw_py.agents.approval import CallJudge
from goclaw_py.core.errors import ApprovalNeeded, ToolFailed
from goclaw_py.core.run_events import TextDelta, ToolEnded, ToolStarted
from goclaw_py.core.run_steps import DecisionStep
from goclaw_py.core.text import truncate
from goclaw_py.runs.agent_loop import Emit, RunRequest
from goclaw_py.runs.toolbox import ToolSpec

_QUOTE_CHARS = 120
_RESULT_CHARS = 2_000


@dataclass(slots=True)
class OfflineTurn:
    """The input of a phrase; ``said`` and ``rest`` are its first two groups, without blanks.

    ``understands`` returns whether a text is a phrase.
    """

    said: str
    rest: str
    request: RunRequest
    tick_s: float
    emit: Emit
    understands: Callable[[str], bool]
    judge: CallJudge
    calls: int = 0
    """The number of tool calls so far."""

    def reply(self, text: str) -> str:
        """Stream ``text`` in one piece; the whole reply of most phrases."""
        self.emit(TextDelta(text))
        return text

    async def use(self, name: str, /, **arguments: object) -> str:
        """Call a tool, and report it as any agent loop does.

        Raises ``ToolFailed``, and ``ApprovalNeeded`` if a person has to allow it first.
        """
        tools = self.request.tools
        self.calls += 1
        call_id = f"call-{self.calls}"
        spec = next((spec for spec in tools.specs if spec.name == name), None)
        given = json.dumps(arguments, ensure_ascii=False)
        if spec is not None:
            await self._check(spec, call_id, given)
        effects = spec is not None and spec.side_effects
        self.emit(ToolStarted(call_id, name, given, side_effects=effects))
        await self.request.recorded()
        try:
            result = await tools.call(name, arguments, self.request.call_key(call_id))
        except ToolFailed as error:
            self.emit(
                ToolEnded(call_id, name, ok=False, result=truncate(str(error), _RESULT_CHARS))
            )
            raise
        self.emit(ToolEnded(call_id, name, ok=True, result=truncate(result, _RESULT_CHARS)))
        return result

    async def _check(self, spec: ToolSpec, call_id: str, arguments: str) -> None:
        decision = None
        for step in self.request.steps:
            if isinstance(step, DecisionStep) and step.call_id == call_id:
                decision = step.decision
        judgement = await self.judge.judge_new(spec, call_id, arguments, decision)
        if judgement.asks is not None:
            raise ApprovalNeeded((judgement.asks,))
        if judgement.refusal:
            # This agent says it to people: the advice is for models.
            raise ToolFailed(judgement.why)

    async def report(self, name: str, /, **arguments: object) -> str:
        """Call a tool, and reply with its result. Raises ``ToolFailed``."""
        return self.reply(await self.use(name, **arguments))


Answer = Callable[[OfflineTurn], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase of the offline agent.

    Args:
        pattern: It is matched against the whole prompt.
        tool: The tool that it needs, "" for none.
    """

    usage: str
    does: str
    pattern: re.Pattern[str]
    answer: Answer
    tool: str = ""


def phrase(usage: str, does: str, pattern: str, answer: Answer, tool: str = "") -> Phrase:
    """Return a line of the table."""
    return Phrase(usage, does, re.compile(pattern, re.IGNORECASE | re.DOTALL), answer, tool)


def quote(text: str) -> str:
    """Return the beginning of a text in one line."""
    said = " ".join(text.split())
    return said if len(said) <= _QUOTE_CHARS else said[: _QUOTE_CHARS - 1] + "…"
