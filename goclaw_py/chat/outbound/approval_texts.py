"""Texts about tool calls that wait for a person (SPEC AGENT-11)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Final

from goclaw_py.core.approvals import (
    NO_CONTEXT,
    Approval,
    ApprovalContext,
    ApprovalRequest,
    Decision,
)
from goclaw_py.core.ids import AgentName
from goclaw_py.core.text import truncate, visible_line

_VALUE_CHARS = 300
_LONG_VALUE_CHARS = 2000
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
ALWAYS_NOT_ALLOWED = "Only an owner may always allow a tool."
LOOK = "Please read the rule first."
NOT_DECIDED = "Nothing was decided."
WAITS_FOR_OPERATOR = "⏳ I need an approval before I can go on. My operator can give it."
WAITS_ELSEWHERE = "⏳ I need an approval before I can go on. I have asked the owner."


def waits_elsewhere(job: str, *, asks_owners: bool) -> str:
    """Return what a chat is told in which nobody may answer the question of a run."""
    text = WAITS_ELSEWHERE if asks_owners else WAITS_FOR_OPERATOR
    return f"“{job}”: {text}" if job else text


def question(request: ApprovalRequest, context: ApprovalContext) -> str:
    """Return the question to people, with the call in readable form, who asks and for what."""
    call = f"{request.tool}\n{_arguments(request.arguments)}".rstrip()
    facts = "\n".join(f"{label}: {words}" for label, words in about(context))
    job = f"Job “{context.job}”: " if context.job else ""
    if request.uncertain:
        asks = (
            f"❓ {job}I was interrupted while I called this tool, and I do not know whether the "
            "call took effect:"
        )
        return "\n\n".join(filter(None, [asks, call, facts, "Please check."]))
    return f"🔐 {job}May I call this tool?\n\n{call}\n\n{facts}".rstrip()


def about(context: ApprovalContext) -> list[tuple[str, str]]:
    """Return who asks for a call and for what, as labels and words; nothing if it is unknown."""
    if context == NO_CONTEXT:
        return []
    people = ", ".join(f"{one.name} (guest)" if one.guest else one.name for one in context.people)
    facts = [("From", people), ("Chat", context.chat), ("Job", context.job)]
    facts.append(("Request", context.request))
    before = [
        f"{word} {number} {'time' if number == 1 else 'times'}"
        for word, number in (("allowed", context.allowed), ("denied", context.denied))
        if number
    ]
    known = [(label, words) for label, words in facts if words]
    return [*known, ("Before", ", ".join(before) or "not asked about in this session")]


def rule(agent: AgentName, tool: str) -> str:
    """Return the rule that “always allow” adds, for people who decide about it."""
    return (
        f"Agent {agent} may call {tool} without asking: with any arguments, in all chats and jobs, "
        "for everybody who may talk to it, also guests. The rule holds until it is revoked."
    )


def rule_question(agent: AgentName, tool: str, request: str = "") -> str:
    """Return the question whether to add a rule; ``request``: how to type the answer."""
    return f"🔐 Always allow adds this rule:\n\n{rule(agent, tool)}" + (
        f"\n\nTo add it: {request}" if request else ""
    )


def answer(decision: Decision, by: str) -> str:
    """Return the line that a question shows after its answer."""
    return _ANSWERS[decision].format(by=by or "the operator")


def ends_with_answer(text: str) -> bool:
    """Return whether a text ends with a line of ``answer``, whoever gave the answer."""
    last = text.rpartition("\n")[2]
    return any(form.partition("{by}")[0] in last for form in _ANSWERS.values())


def without_question(text: str) -> str:
    """Return an answered question as its tool and the answer; any other text as it is."""
    question, _, said = text.rpartition("\n\n")
    if not question.startswith(("🔐", "❓")) or not ends_with_answer(text):
        return text
    tool = question.partition("\n\n")[2].partition("\n")[0]
    return f"{tool}: {said}"


def is_refusal(line: str) -> bool:
    """Return whether a line of ``answer`` says that the call is not made."""
    return line.startswith(("🚫", "⏭", "⌛", "⏹"))


def typed_answers(decisions: Collection[Decision]) -> str:
    """Return how to answer a question with these answers in a chat without buttons."""
    if Decision.AGAIN in decisions:
        return "Answer with /approve to call it again, or /deny to skip it."
    return "Answer with /approve, /approve session, /approve always, or /deny."


def waiting(approval: Approval) -> str:
    """Return a line about a call that waits, for a list of what waits."""
    tool = approval.request.tool
    uncertain = approval.request.uncertain
    return f"🔐 an answer whether {tool} took effect" if uncertain else f"🔐 approval of {tool}"


def arguments(given: str) -> list[tuple[str, str]]:
    """Return the arguments of a call as names and values, for a page; values keep their lines.

    Arguments without names are one value with the name "Arguments".
    """
    try:
        named = json.loads(given)
        values = [
            (visible_line(name), _text(value)[:_LONG_VALUE_CHARS]) for name, value in named.items()
        ]
    except (ValueError, RecursionError, AttributeError):  # no JSON, too deep, or without names
        return [("Arguments", given[:_LONG_VALUE_CHARS])]
    more = len(values) - _MOST_VALUES
    return values if more <= 0 else [*values[:_MOST_VALUES], ("…", f"and {more} more")]


def arguments_line(given: str) -> str:
    """Return the arguments of a call on one line, such as ``to: ann, amount: 5``; "" for none."""
    return ", ".join(line.strip() for line in _arguments(given).split("\n")) if given else ""


def _arguments(arguments: str) -> str:
    """Return arguments one to a line, each cut to a readable length."""
    try:
        given = json.loads(arguments)
        values = given.items() if isinstance(given, dict) else ()
        lines = [
            f"  {_value(name)}: {_value(value)}" for name, value in list(values)[:_MOST_VALUES]
        ]
    except (ValueError, RecursionError):  # no JSON, or nested too deep
        given, lines = None, []
    if not isinstance(given, dict):
        return _value(arguments)
    if len(given) > _MOST_VALUES:
        lines.append(f"  and {len(given) - _MOST_VALUES} more")
    return "\n".join(lines)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value(value: object) -> str:
    # On one line: it must not look like what is below the call.
    return truncate(visible_line(_text(value)), _VALUE_CHARS)
