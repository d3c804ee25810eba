"""Texts about tool calls that wait for a person (SPEC AGENT-11)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from goclaw_py.common.text import cut_text
from goclaw_py.model.approvals import Approval, ApprovalRequest, Decision
from goclaw_py.model.ids import AgentName

_VALUE_CHARS = 300
_MOST_VALUES = 15

_ANSWERS: Final[Mapping[Decision, str]] = {
    Decision.ONCE: "✅ Allowed once by {by}.",
    Decision.SESSION: "✅ Allowed for this session by {by}.",
    Decision.ALWAYS: "✅ Always allowed by {by}.",
    Decision.DENY: "🚫 Denied by {by}.",
    Decision.HAPPENED: "✅ It happened, says {by}.",
    Decision.AGAIN: "🔁 Run again by {by}.",
    Decision.SKIP: "⏭ Skipped by {by}.",
    Decision.EXPIRED: "⌛ Nobody answered in time, so it was not done.",
    Decision.STOPPED: "⏹ Stopped.",
}

NOT_ALLOWED = "Only an owner may answer this."
TOO_LATE = "⌛ This has been answered already, or nobody answered in time."
NOTHING_WAITS = "No tool call waits for an approval here."
USAGE = "Use /approve, /approve session, /approve always, or /deny."
WAITS_FOR_OPERATOR = (
    "⏳ I need an approval before I can go on. The operator can give it: goclaw approvals list"
)
WAITS_ELSEWHERE = "⏳ I need an approval before I can go on. I have asked my owners."


def waits_elsewhere(job: str, *, asks_owners: bool) -> str:
    """Return what a chat is told in which nobody may answer the question of a run."""
    text = WAITS_ELSEWHERE if asks_owners else WAITS_FOR_OPERATOR
    return f"“{job}”: {text}" if job else text


def question(request: ApprovalRequest, agent: AgentName, job: str = "") -> str:
    """Return the question to people, with the call in readable form."""
    asker = f"Job “{job}” of agent {agent}" if job else f"Agent {agent}"
    call = f"{request.tool}\n{_arguments(request.arguments)}".rstrip()
    if request.uncertain:
        was = f"{asker}: I was" if job else "I was"
        return (
            f"❓ {was} interrupted while I called this tool, and I do not know whether the call "
            f"took effect:\n\n{call}\n\nPlease check."
        )
    return f"🔐 {asker} asks for approval to call this tool:\n\n{call}"


def answer(decision: Decision, by: str) -> str:
    """Return the line that a question shows after its answer."""
    return _ANSWERS[decision].format(by=by or "the operator")


def waiting(approval: Approval) -> str:
    """Return a line of a status about a call that waits."""
    what = "whether it took effect" if approval.request.uncertain else "approval"
    return f"🔐 waits for {what}: {approval.request.tool}"


def _arguments(arguments: str) -> str:
    """Return arguments one to a line, each cut to a readable length."""
    try:
        given = json.loads(arguments)
        values = given.items() if isinstance(given, dict) else ()
        lines = [f"  {name}: {_value(value)}" for name, value in list(values)[:_MOST_VALUES]]
    except (ValueError, RecursionError):  # no JSON, or nested too deep
        given, lines = None, []
    if not isinstance(given, dict):
        return cut_text(arguments, _VALUE_CHARS)
    if len(given) > _MOST_VALUES:
        lines.append(f"  and {len(given) - _MOST_VALUES} more")
    return "\n".join(lines)


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return cut_text(" ".join(text.split()), _VALUE_CHARS)
