"""The sentences that people in a chat read from the runtime itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from goclaw_py.core.budget import Budget, BudgetScope, Limit
from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.core.messages import Attachment
from goclaw_py.core.outcomes import Ending, Outcome, Reason, Trigger
from goclaw_py.core.session_keys import DEFAULT_ACCOUNT
from goclaw_py.core.text import clause, count, first_words, truncate
from goclaw_py.records import ToolCall

_SNIPPET = 40
_PROBLEM_CHARS = 200
_MAX_SNIPPETS = 3
_MOST_TOOLS = 10

NOTHING_RUNNING = "Nothing was running."
ALREADY_STOPPING = "It is already being stopped."
LOST = (
    "I could not answer your message: the program crashed each time I tried. "
    "Please send it again, perhaps worded differently."
)
FAILED = "Something went wrong and I could not answer. My operator can find the cause."
KEPT = (
    "My AI model is unavailable right now. I kept your message and will try again; /stop cancels "
    "it."
)
NEW_SESSION = "I begin afresh: I no longer remember what was said here before."
EMPTY_MESSAGE = "I found no text in that message."


def stopped(
    runs: int,
    dropped: int,
    *,
    already: bool,
    jobs: int = 0,
    parts: int = 0,
    quoted: Sequence[str] = (),
) -> str:
    """Return the answer to ``/stop`` and ``/stopall``: how much was stopped and dropped.

    ``runs``: stopped runs of the chat. ``jobs``: stopped runs of jobs. ``dropped``: dropped waiting
    messages. ``parts``: messages of a finished answer that will not be sent any more. ``quoted``:
    the texts of messages that waited for their provider.
    """
    if parts:
        rest = f"{count(parts, 'part')} of my answer will not be sent."
        if not (runs or dropped or jobs):
            return f"⏹ Stopped. {rest}"
        return f"{stopped(runs, dropped, already=already, jobs=jobs, quoted=quoted)} {rest}"
    did = [count(number, what) for number, what in ((runs, "task"), (jobs, "job")) if number]
    which = f": {_quoted(quoted)}" if quoted and len(quoted) == dropped else ""
    waiting = f"dropped {count(dropped, 'waiting message')}{which}." if dropped else ""
    if not did:
        if waiting:
            return waiting[0].upper() + waiting[1:]
        return ALREADY_STOPPING if already else NOTHING_RUNNING
    if did == ["1 task"] and not waiting:
        return "Stopped."
    comma = "," if len(did) > 1 else ""
    return f"Stopped {' and '.join(did)}" + (f"{comma} and {waiting}" if waiting else ".")


def not_read(words: str, files: int) -> str:
    """Return what a command has not read: the words behind it and files; "" if nothing."""
    parts = [f"“{snippet(words)}”"] if words else []
    parts += ["the file"] if files else []
    if not parts:
        return ""
    return f"I did not read {' and '.join(parts)} after the command. Send it by itself."


def _quoted(texts: Sequence[str]) -> str:
    named = [f"“{snippet(text)}”" for text in texts[:_MAX_SNIPPETS]]
    return ", ".join([*named, "…"] if len(texts) > _MAX_SNIPPETS else named)


def not_yours(names: Sequence[str]) -> str:
    """Return the refusal to stop a task of other people, whose ``names`` are given if known."""
    who = " and ".join(truncate(name, _SNIPPET) for name in names[:2]) or "someone else"
    who = f"{who} and others" if len(names) > 2 else who
    return f"That was started by {who}; only they, an owner or an admin of this group can stop it."


def dropped(texts: Sequence[str], reason: Reason | None) -> str:
    """Say which waiting messages will not be answered, and why (SPEC QUEUE-3, QUEUE-5)."""
    what, which = count(len(texts), "message"), _quoted(texts)
    later = f"Please send {'it' if len(texts) == 1 else 'them'} again later"
    match reason:
        case Reason.NEWER_MESSAGE:
            return f"A newer message replaced {count(len(texts), 'waiting message')}: {which}"
        case Reason.QUEUE_FULL:
            return f"The queue is full, so I did not accept {what}. {later}: {which}"
        case Reason.QUEUE_DROPPED:
            return f"The queue was full, so I dropped {what}, oldest first: {which}"
        case Reason.STOPPED_ALL:
            return f"Stopped before I could store an answer to {what}: {which}"
        case _:
            # The other reasons, such as a closed lane, mean nothing to people in a chat.
            return f"I cannot work on this now, so I did not accept {what}. {later}: {which}"


def overflowed(texts: Sequence[str]) -> str:
    """Say that waiting messages are too long for one turn and are split (SPEC QUEUE-6)."""
    first = snippet(texts[0])
    return f"This is too long for one turn. I will answer the rest, from “{first}” on, separately."


def timed_out(reason: Reason | None) -> str:
    """Return the text about a time limit that ended the run or the wait."""
    if reason is Reason.DEADLINE:
        return "I could not finish this in time, so I stopped."
    return "This took too long, so I stopped working on it."


def file_name(attachment: Attachment) -> str:
    """Return the placeholder for a file where only text is stored."""
    name = " ".join(attachment.name.split())
    return f"[{attachment.kind.value}{f' “{name}”' if name else ''}]"


def file_missing(attachment: Attachment, reason: str, *, quoted: bool = False) -> str:
    """Return the agent's text in place of a file, or of one of the quoted message."""
    of = " of the message replied to" if quoted else ""
    return f"{file_name(attachment)}{of} could not be loaded: {reason}"


def file_not_sent(name: str, reason: str) -> str:
    """Return the text that replaces a file of the agent that cannot be sent."""
    return f"(The file “{snippet(name)}” could not be sent: {reason}.)"


def sent_again(channel: str) -> str:
    """Return the last line of a message that may be in the chat twice (SPEC IO-5)."""
    return f"(sent again, because {channel.capitalize()} did not confirm the first attempt)"


def channel_trouble(channel: str, account: str, what: str) -> str:
    """Return the alert to owners about a channel with a problem (SPEC CHAN-10)."""
    bot = "" if account == DEFAULT_ACCOUNT else f" (bot {account})"
    return (
        f"⚠️ {channel.capitalize()}{bot} has a problem: {clause(what, _PROBLEM_CHARS)}. Until it is "
        "solved, messages may be late. The operator can see more on the page Health of the "
        "dashboard."
    )


def unsupported(kind: str) -> str:
    """Return the answer to a kind of message that the agent cannot read (SPEC CHAN-6)."""
    return f"I cannot read {kind} yet. Please send it as text, a picture or a file."


def topic_gone(place: str, *, closed: bool) -> str:
    """Return the note in the general topic about a message for another topic (SPEC CHAN-6)."""
    return f"This was for {place}, which {'is closed' if closed else 'was deleted'}."


def not_delivered(file: str, why: str, channel: str) -> str:
    """Return the notice about a reply or a file that its channel refused (SPEC IO-3)."""
    what = f"the file “{truncate(file, 60)}”" if file else "a part of my answer"
    return (
        f"⚠️ I could not send {what}: {channel.capitalize()} refused it "
        f"({clause(why, _PROBLEM_CHARS)}). Ask me to send it in another way."
    )


CALL_UNKNOWN = "outcome unknown: it may have taken effect"
CALL_DONE = "done"
CALL_FAILED = "failed"


def interrupted_calls(lines: Sequence[str], more: int) -> str:
    """Return the prompt about tool calls of interrupted runs of the same task (SPEC AGENT-9)."""
    first = [f"({more} earlier calls are omitted.)"] if more else []
    called = "\n".join([*first, *lines])
    return (
        "An earlier attempt at this task was interrupted. It had made these tool calls:\n"
        f"{called}\n"
        "Do not repeat any of them blindly. Use the results that you see here. Where the outcome "
        "is unknown, find out whether it took effect; if you cannot, ask before you repeat it."
    )


def done_before(calls: Sequence[ToolCall]) -> str:
    """Say to people what interrupted attempts did; "" if they called no tools (SPEC IO-2).

    A later attempt reports a call that it must not repeat as uncertain, and another one again.
    """
    unknown = {(call.name, call.arguments): call for call in calls if call.ok is None}
    for call in calls:
        if call.ok is not None and not call.side_effects:
            unknown.pop((call.name, call.arguments), None)
    parts = {
        "completed": [call for call in calls if call.ok],
        "failed": [call for call in calls if call.has_failed],
        "outcome unknown": list(unknown.values()),
    }
    said = [f"{what}: {_tools(called)}" for what, called in parts.items() if called]
    return f"Before that I had called tools ({'; '.join(said)})." if said else ""


def _tools(calls: Sequence[ToolCall]) -> str:
    """Return the names of the called tools, each once."""
    often = Counter(truncate(call.name, _SNIPPET) for call in calls).most_common()
    names = [name if number == 1 else f"{name} {number} times" for name, number in often]
    more = [f"{len(names) - _MOST_TOOLS} more"] if len(names) > _MOST_TOOLS else []
    return ", ".join(names[:_MOST_TOOLS] + more)


def crashed(times: int) -> str:
    """Say why a job is not run again (SPEC CRON-5)."""
    return f"the program crashed {'' if times == 1 else f'{times} times '}while it ran"


def not_repeated(tools: Sequence[str]) -> str:
    """Say why a job whose run was interrupted is not retried (SPEC AGENT-9)."""
    return f"its run was interrupted after it had called {', '.join(tools)}, so it was not retried"


def interrupted_note(outcome: Outcome) -> str:
    """Return the mark in the history at the end of a reply that was cut off."""
    return f"[{outcome.value.replace('_', ' ')}]"


def interrupted_reply(text: str, outcome: Outcome) -> str:
    """Return the history entry for a reply that was cut off."""
    return "\n".join(filter(None, [text, interrupted_note(outcome)]))


ANSWER_CUT = "[The answer ends here: the model reached its limit of length.]"
"""The last paragraph of an answer that its model could not complete."""

ANSWER_FILTERED = "[The answer ends here: the provider's content filter stopped it.]"
"""The last paragraph of an answer of which the filter left the beginning."""


def over_budget(scope: BudgetScope, limit: Limit, budget: Budget) -> str:
    """Return the line below the reply of a run that has used up a budget (SPEC AGENT-5)."""
    amount = {
        Limit.TURNS: f"{budget.turns} model requests",
        Limit.TOKENS: f"{budget.tokens or 0:,} tokens",
        Limit.USD: f"${budget.usd or 0:.2f}",
        Limit.SECONDS: f"{budget.seconds or 0:g} seconds",
    }[limit]
    day = f"budget for today, {amount}. It starts again at 00:00 UTC."
    match scope:
        case BudgetScope.RUN:
            return f"I stopped here: this task reached its limit of {amount}."
        case BudgetScope.SESSION_DAY:
            return f"I stopped here: this conversation has used its {day}"
        case BudgetScope.AGENT_DAY:
            return f"I stopped here: I have used my {day}"


def sent_from(session: SessionKey, text: str) -> str:
    """Return the history entry for a message that a run of another session sent to this chat."""
    return f"[sent by {session}]\n{text}"


def child_task(trigger: Trigger, parent: AgentName) -> str:
    """Return the instruction of a subagent or delegate about its role."""
    role = "are a subagent of" if trigger is Trigger.SUBAGENT else "answer a request of"
    return (
        f"You {role} the agent “{parent}”. It receives only your final answer, so include "
        "everything that it needs. Do not ask questions: nobody can answer them."
    )


def subagent_result(label: str, outcome: Outcome, text: str) -> str:
    """Return the message that brings the result of a subagent into the chat of its parent."""
    ended = "finished" if outcome is Outcome.COMPLETED else "did not finish"
    return f"[Subagent “{snippet(label)}” {ended}]\n{text}"


def subagent_lost(label: str, calls: Sequence[ToolCall]) -> str:
    """Return the same message for a subagent that crashes have interrupted too often."""
    why = " ".join(filter(None, ["The program crashed each time it tried.", done_before(calls)]))
    return subagent_result(label, Outcome.LOST, why)


def with_files(text: str, paths: Sequence[str]) -> str:
    """Return the answer of a child run with the files that its parent may send."""
    return "\n".join(filter(None, [text, *(f"[file: {path}]" for path in paths)]))


def child_failed(ended: Ending, friendly: str, text: str) -> str:
    """Say to a parent run why its child run has no result."""
    why = _REFUSED.get(ended.reason) or friendly or f"It ended: {ended.outcome.value}."
    return f"{why}\nIts answer so far: {text}" if text else why


_REFUSED: Mapping[Reason | None, str] = {
    Reason.TOO_DEEP: "Not started: the nesting limit of subagents and delegates is reached. "
    "Do this yourself.",
    Reason.TOO_MANY_CHILDREN: "Not started: too many of your subagents and delegates are running. "
    "Wait until one finishes.",
    Reason.WAITS_FOR_ITSELF: "Not started: it would wait for a slot of a run that waits for it. "
    "Do this yourself.",
    Reason.PARENT_ENDED: "Not started: your run is being stopped.",
    Reason.DRAINING: "Not started: the gateway is shutting down.",
    Reason.LANE_CLOSED: "Not started: its lane is closed.",
    Reason.SHUTDOWN: "It was interrupted: the gateway is shutting down.",
    Reason.RUN_TIMEOUT: "It took too long and was stopped.",
    Reason.DEADLINE: "It took too long and was stopped.",
}


def interrupted_draft(outcome: Outcome) -> str:
    """Return the line below a streamed reply that will not be finished (SPEC CMD-3)."""
    return "⏹ Stopped." if outcome is Outcome.CANCELLED else "⚠️ This answer was cut off."


def snippet(text: str) -> str:
    """The first words of a text, on one line."""
    return first_words(text, _SNIPPET)
