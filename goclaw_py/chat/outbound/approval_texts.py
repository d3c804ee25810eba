"""Texts about tool calls that wait for a person (SPEC AGENT-11)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from goclaw_py.core.approvals import (
    NO_CONTEXT,
    Approval,
    ApprovalContext,
    ApprovalRequest,
    Decision,
)
from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.core.session_keys import is_direct_chat
from goclaw_py.core.text import count, truncate, truncate_middle, utf16_len, visible_line

_VALUE_CHARS = 300
_GIVEN_CHARS = 120
_CALL_UNITS = 2_500
"""What a question shows of a call, in UTF-16 units: all of it is one message of 4,096 units."""
_LINES_SHOWN = 12
_LAST_SHOWN = 3
_INDENT = 40
_OF_OTHERS = ("Chat: ", "Job: ")
_QUESTIONS = ("🔐", "❓")
_MOST_VALUES = 15

_ANSWERS: Final[Mapping[Decision, str]] = {
    Decision.ONCE: "✅ Allowed once by {by}.",
    Decision.SESSION: "✅ Allowed for this conversation by {by}.",
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
USAGE = "Use /approve, /approve conversation, /approve always, or /deny."
ALWAYS_NOT_ALLOWED = "Only an owner may always allow a tool."
LOOK = "Please read the rule first."
NOT_DECIDED = "Nothing was decided."
_WAITS = "⏳ I need an approval before I can go on: "
_ASKED_OWNER = "I have asked the owner."
_OPERATOR_CAN = "My operator can give it."

_ANSWERS_ELSEWHERE: Final[Mapping[Decision, str]] = {
    Decision.DENY: "🚫 The {who} did not allow it.",
    Decision.EXPIRED: "⌛ The {who} did not answer in time, so it was not done.",
    Decision.STOPPED: _ANSWERS[Decision.STOPPED],
}
"""The answers as the chat reads them in which nobody could give one; others allow the call."""


def waits_elsewhere(requests: Sequence[ApprovalRequest], job: str, *, asks_owners: bool) -> str:
    """Return what a chat is told in which nobody may answer the questions of a run.

    It names the tools and no arguments, which only those read who may answer.
    """
    often = Counter(request.tool for request in requests).items()
    tools = ", ".join(tool if number == 1 else f"{tool} {number} times" for tool, number in often)
    text = f"{_WAITS}{tools}. {_ASKED_OWNER if asks_owners else _OPERATOR_CAN}"
    return f"“{job}”: {text}" if job else text


def answered(text: str, decision: Decision, by: str) -> str:
    """Return a message about a call with the answer, for those who were asked, or who wait."""
    if _WAITS not in text or text.startswith(_QUESTIONS):
        return f"{text}\n\n{answer(decision, by)}"
    who = "owner" if text.endswith(_ASKED_OWNER) else "operator"
    said = _ANSWERS_ELSEWHERE.get(decision, "✅ The {who} allowed it.").format(who=who)
    return f"{text}\n\n{said}"


def question(
    request: ApprovalRequest, context: ApprovalContext, own: SessionKey | None = None
) -> str:
    """Return the question to people, with the call in readable form, who asks and for what.

    ``own``: the conversation, if its own chat is asked: there people know the chat, and in a direct
    one who asks.
    If values are shortened, it says where all of the call is.
    """
    if own is not None:
        context = replace(context, chat="", people=() if is_direct_chat(own) else context.people)
    values, is_whole = _values(request.arguments)
    call = f"{request.tool}\n{values}".rstrip()
    if not is_whole:
        call += "\n(Shortened. All of it is on the page Approvals.)"
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
    facts.append(("Before", ", ".join(before)))
    return [(label, words) for label, words in facts if words]


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
    """Return an answered question as the call on one line and the answer; other texts as they are.

    That of another chat, or of a job, stays as it is: who asked is read nowhere else.
    """
    question, _, said = text.rpartition("\n\n")
    facts = question.rpartition("\n\n")[2].split("\n")
    if any(one.startswith(_OF_OTHERS) for one in facts):
        return text
    if not question.startswith(_QUESTIONS) or not ends_with_answer(text):
        return text
    tool, *values = question.split("\n\n")[1].split("\n")
    short = [line.strip() for line in values if not line.startswith("  │") and ": " in line]
    given = truncate_middle(", ".join(short), _GIVEN_CHARS)
    call = f"{tool} ({given})" if given else tool
    is_uncertain = question.startswith(_QUESTIONS[1])
    return f"{f'Did {call} take effect?' if is_uncertain else f'May I call {call}?'} {said}"


def is_refusal(line: str) -> bool:
    """Return whether a line of ``answer`` says that the call is not made."""
    return line.startswith(("🚫", "⏭", "⌛", "⏹"))


def typed_answers(decisions: Collection[Decision]) -> str:
    """Return how to answer a question with these answers in a chat without buttons."""
    if Decision.AGAIN in decisions:
        return "Answer with /approve to call it again, or /deny to skip it."
    return "Answer with /approve, /approve conversation, /approve always, or /deny."


def waiting(approval: Approval) -> str:
    """Return a line about a call that waits, for a list of what waits."""
    tool = approval.request.tool
    uncertain = approval.request.uncertain
    return f"🔐 an answer whether {tool} took effect" if uncertain else f"🔐 approval of {tool}"


def arguments(given: str) -> list[tuple[str, str]]:
    """Return the arguments of a call as names and values, for a page; values keep their lines.

    Arguments without names are one value with the name "Arguments".
    """
    named = _named(given)
    if named is None:
        return [("Arguments", given)]
    values = [(visible_line(name), value) for name, value in named.items()]
    more = len(values) - _MOST_VALUES
    return values if more <= 0 else [*values[:_MOST_VALUES], ("…", f"and {more} more")]


def arguments_line(given: str) -> str:
    """Return the arguments of a call on one line, such as ``to: ann, amount: 5``; "" for none."""
    named = _named(given)
    if named is None:
        return _value(given).strip()
    values = [f"{_value(name)}: {_value(value)}" for name, value in named.items()]
    more = len(values) - _MOST_VALUES
    shown = values if more <= 0 else [*values[:_MOST_VALUES], f"and {more} more"]
    return ", ".join(one.strip() for one in shown)


def _named(arguments: str) -> dict[str, str] | None:
    """Return the texts of arguments by name; None without names, or if nested too deep."""
    try:
        given = json.loads(arguments)
        if isinstance(given, dict):
            return {name: _text(value) for name, value in given.items()}
    except (ValueError, RecursionError):
        pass
    return None


def _values(arguments: str) -> tuple[str, bool]:
    """Return arguments with the lines of their values, and whether nothing is left out."""
    named = _named(arguments)
    if named is None:
        return _value(arguments), len(arguments) <= _VALUE_CHARS
    blocks: list[str] = []
    is_whole, room = True, _CALL_UNITS
    for name, value in named.items():
        lines, is_all = _lines(value)
        label = f"  {_value(name)}:"
        # What a value says must not look like what is below the call.
        block = "\n".join([label, *(f"  │ {line}".rstrip() for line in lines)])
        if len(lines) <= 1:
            block = " ".join([label, *lines])
        room -= utf16_len(block)
        if len(blocks) == _MOST_VALUES or (room < 0 and blocks):
            blocks.append(f"  and {len(named) - len(blocks)} more")
            return "\n".join(blocks), False
        blocks.append(block)
        is_whole = is_whole and is_all
    return "\n".join(blocks), is_whole


def _lines(text: str) -> tuple[list[str], bool]:
    """Return the lines of a value, shortened in the middle, and whether all of it is there."""
    whole = [
        " " * min(len(line) - len(line.lstrip()), _INDENT) + visible_line(line)
        for line in text.strip("\r\n").splitlines()
    ]
    most = _VALUE_CHARS if len(whole) == 1 else _VALUE_CHARS // 3
    lines = [truncate_middle(line.rstrip(), most) for line in whole]
    left = len(lines) - _LINES_SHOWN
    if left > 0:
        end = len(lines) - _LAST_SHOWN
        lines[end - left : end] = [f"… {count(left, 'more line')} …"]
    return lines, left <= 0 and all(len(line) <= most for line in whole)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value(value: object) -> str:
    # On one line: it must not look like what is below the call.
    return truncate(visible_line(_text(value)), _VALUE_CHARS)
