"""The agent loop over the table of phrases."""

from __future__ import annotations

import asyncio

from goclaw_py.agents.approval import CallJudge
from goclaw_py.agents.offline.phrases import (
    HEARTBEAT_ANSWERS,
    TALKING,
    TOOLING,
    announced,
    heartbeat_run,
    say,
)
from goclaw_py.agents.offline.scheduling import SCHEDULING
from goclaw_py.agents.offline.turn import Answer, OfflineTurn, phrase, quote
from goclaw_py.core.approvals import NO_APPROVALS, ApprovalPolicy
from goclaw_py.core.errors import ToolFailed
from goclaw_py.core.outcomes import Trigger
from goclaw_py.runs.agent_loop import AgentResult, Emit, FilePart, RunRequest


async def _help(turn: OfflineTurn) -> str:
    tools = {"", *(spec.name for spec in turn.request.tools.specs)}
    known = (one for one in PHRASES if one.tool in tools)
    lines = [f"- `{one.usage}`: {one.does}" for one in known]
    return turn.reply("\n".join(["I am the offline agent. I understand:", *lines]))


async def _thank(turn: OfflineTurn) -> str:
    files = [part for part in turn.request.parts if isinstance(part, FilePart)]
    sizes = await asyncio.to_thread(lambda: [file.path.stat().st_size for file in files])
    lines = [
        f"- {file.kind.value} “{file.name}”, {size:,} bytes"
        for file, size in zip(files, sizes, strict=True)
    ]
    return turn.reply("\n".join(["I got this, but without an AI model I cannot read it:", *lines]))


async def _introduce(turn: OfflineTurn) -> str:
    said = quote(turn.request.own_texts)
    return turn.reply(
        f"I cannot answer “{said}” yet: no AI model is set up. I am the offline agent, and "
        "understand some phrases. Try one of these:\n"
        "- `count to 10`\n"
        "- `remind me in 1 minute to stretch`\n"
        "- `help`: all of them\n\n"
        "For real answers, the operator sets up an AI model, such as `openai:gpt-4o`."
    )


PHRASES = (
    phrase("help", "shows this list", r"(help|\?)", _help),
    *TALKING,
    *TOOLING,
    *SCHEDULING,
    *HEARTBEAT_ANSWERS,
)
"""In the order in which they are tried."""


def _understands(text: str) -> bool:
    return any(known.pattern.fullmatch(text.strip()) for known in PHRASES)


def _find(request: RunRequest, prompt: str) -> tuple[Answer, str, str]:
    """Return the phrase that answers a request, with its text."""
    if request.trigger is Trigger.HEARTBEAT:
        return heartbeat_run, prompt, ""
    if any(isinstance(part, FilePart) for part in request.parts):
        return _thank, prompt, ""
    if results := announced(prompt):
        return say, results, ""
    for known in PHRASES:
        if match := known.pattern.fullmatch(prompt):
            said, rest, *_ = (*((group or "").strip() for group in match.groups()), "", "")
            return known.answer, said, rest
    return _introduce, prompt, ""


class OfflineAgent:
    """Answers a few phrases. ``tick_s`` is the pace of slow ones, in seconds.

    The same request always gets the same answer, unless that depends on tools. After an approval
    the run begins again: its calls have the same ids, by which the decisions name them.
    """

    def __init__(self, *, tick_s: float = 1.0, approval: ApprovalPolicy = NO_APPROVALS) -> None:
        self._tick_s = tick_s
        self._approval = approval

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        """Answer the prompt. The streamed text is exactly the reply."""
        answer, said, rest = _find(request, request.own_texts.strip())
        judge = CallJudge(self._approval, can_ask=request.can_ask, is_granted=request.is_granted)
        turn = OfflineTurn(said, rest, request, self._tick_s, emit, _understands, judge)
        try:
            return AgentResult(await answer(turn))
        except ToolFailed as error:
            return AgentResult(turn.reply(f"That did not work: {error}"))

    async def warm_up(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""
