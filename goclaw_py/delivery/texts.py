"""The sentences that people in a chat read from the runtime itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import assert_never

from goclaw_py.common.text import count, cut_text, first_words
from goclaw_py.common.time_texts import lasting
from goclaw_py.model.budget import Budget, Limit, Scope, Spent
from goclaw_py.model.chat_commands import MENU, Greet, Help, Misspelt
from goclaw_py.model.ids import AgentName, RunId, SessionKey
from goclaw_py.model.messages import Attachment, InboundMessage
from goclaw_py.model.outcomes import Ending, Outcome, Reason, Trigger
from goclaw_py.scheduler.models import Drop, Mode, QueuePolicy
from goclaw_py.scheduler.views import RunState, RunView

_SNIPPET = 40
_MAX_SNIPPETS = 3

GREETING = "Hello. Write to me and I will answer. /help shows what else I understand."
NEW_SESSION = "A fresh conversation. I have forgotten what we said before."
NOTHING_RUNNING = "Nothing was running."
ALREADY_STOPPING = "Already stopping."
LOST = (
    "I could not answer your message: the program crashed each time I tried. "
    "Please send it again, perhaps in other words."
)
FAILED = "Something went wrong while I worked on this. The operator finds the cause in the log."
NOT_RETRIED = "That was tried again already, or is forgotten. Please send it once more."
KEPT = (
    "I cannot reach my model right now. I keep your message and answer as soon as it is back; "
    "/stop takes it back."
)
NOT_AN_OWNER = "Only an owner may change how messages wait here."
EMPTY_MESSAGE = "There was no text in that message that I could read."


def told(command: Greet | Help | Misspelt) -> str:
    """The answer to a command that is always the same."""
    match command:
        case Misspelt(meant):
            return f"Did you mean /{meant}?"
        case Greet():
            return GREETING
        case Help():
            return help_text()
        case _:
            assert_never(command)


def help_text() -> str:
    """The answer to ``/help``."""
    menu = dict(MENU)
    lines = ["Write to me in plain words, such as: remind me in 20 minutes to call Ann."]
    for group, names in _HELP:
        lines += ["", f"{group}:", *(f"/{name} - {menu[name]}" for name in names)]
    return "\n".join([*lines, "", *_EXAMPLES])


_HELP = (
    ("What runs", ("stop", "stopall", "status", "queue")),
    ("This conversation", ("new", "usage", "whoami", "help")),
    ("Jobs and reminders", ("jobs", "timezone")),
    ("What I look after unasked", ("heartbeat", "mute")),
)
_EXAMPLES = (
    "Examples:",
    "/jobs pause 2 - pause the second job of /jobs",
    "/timezone Europe/Paris - set your clock",
    "/heartbeat add every 2h: is the build green?",
    "/mute until 18:00",
    "Reply /stop to one of your messages to stop only that one.",
)


def stopped(runs: int, dropped: int, *, already: bool, jobs: int = 0, parts: int = 0) -> str:
    """The answer to ``/stop`` and ``/stopall``: what was stopped and how many were dropped.

    ``jobs``: so many runs of jobs besides the ``runs`` of the chat. ``parts``: so many messages of
    answers that were written already are not sent any more.
    """
    if parts:
        rest = f"{count(parts, 'part')} of my answer {'is' if parts == 1 else 'are'} not sent."
        if not (runs or dropped or jobs):
            return f"⏹ Stopped. {rest}"
        return f"{stopped(runs, dropped, already=already, jobs=jobs)} {rest}"
    if jobs:
        tasks = f"{count(runs, 'task')} and " if runs else ""
        did = f"Stopped {tasks}{count(jobs, 'job')}"
        comma = "," if runs else ""
        return (
            f"{did}{comma} and dropped {count(dropped, 'waiting message')}."
            if dropped
            else f"{did}."
        )
    if runs and dropped:
        return f"Stopped {count(runs, 'task')} and dropped {count(dropped, 'waiting message')}."
    if runs:
        return "Stopped." if runs == 1 else f"Stopped {runs} tasks."
    if dropped:
        return f"Dropped {count(dropped, 'waiting message')}."
    return ALREADY_STOPPING if already else NOTHING_RUNNING


def not_yours(names: Sequence[str]) -> str:
    """The answer to a stop of what others have asked for; ``names`` of those who have them."""
    who = " and ".join(cut_text(name, _SNIPPET) for name in names[:2]) or "somebody else"
    who = f"{who} and others" if len(names) > 2 else who
    return f"That was started by {who}; only they, an owner or an admin of this group can stop it."


def dropped(texts: Sequence[str], reason: Reason | None) -> str:
    """One line about messages that will not be answered (SPEC QUEUE-3, QUEUE-5)."""
    named = [f"“{snippet(text)}”" for text in texts[:_MAX_SNIPPETS]]
    if len(texts) > _MAX_SNIPPETS:
        named.append("…")
    what, which = count(len(texts), "message"), ", ".join(named)
    match reason:
        case Reason.NEWER_MESSAGE:
            return f"A newer message replaced {what} that waited: {which}"
        case Reason.QUEUE_FULL:
            return f"Too much is waiting already, so I did not take {what}: {which}"
        case Reason.QUEUE_DROPPED:
            return f"Too much was waiting, so I dropped {what}, the oldest first: {which}"
        case _:
            # Of a closed lane, or of a run that asked for it, nobody in a chat has heard.
            return f"I cannot work on this now, so I did not take {what}: {which}"


def overflowed(texts: Sequence[str]) -> str:
    """One line about messages that were too much for one turn (SPEC QUEUE-6)."""
    first = snippet(texts[0])
    return f"That is too much for one turn. I answer what follows “{first}” after the part before."


def timed_out(reason: Reason | None) -> str:
    """What the sender reads when a time limit ended the run or the wait."""
    if reason is Reason.DEADLINE:
        return "I could not finish this in time, so I stopped."
    return "This took too long, so I stopped working on it."


def file_name(attachment: Attachment) -> str:
    """A file where only words are kept."""
    name = " ".join(attachment.name.split())
    return f"[{attachment.kind.value}{f' “{name}”' if name else ''}]"


def file_missing(attachment: Attachment, reason: str) -> str:
    """What the agent reads in place of a file that could not be downloaded."""
    return f"{file_name(attachment)} could not be loaded: {reason}"


def file_not_sent(name: str, reason: str) -> str:
    """What stands in the chat for a file of the agent that cannot be sent."""
    return f"(The file “{snippet(name)}” could not be sent: {reason}.)"


def sent_again(channel: str) -> str:
    """The last line of a message that may be in the chat twice (SPEC IO-5)."""
    return f"(sent again: {channel.capitalize()} did not confirm the first)"


def channel_trouble(channel: str, account: str, what: str) -> str:
    """What owners are told when a channel does not work as it should (SPEC CHAN-10)."""
    return f"My channel {channel} ({account}) has a problem: {what}. See: goclaw status"


def unsupported(kind: str) -> str:
    """What the sender of something reads that no agent could be given (SPEC CHAN-6)."""
    return f"I cannot read {kind} yet. Please send it as text, a picture or a file."


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a session remembers.

    ``context`` is the share of the model's context that it takes, None if that is not known.
    """

    entries: int
    context: float | None = None
    summaries: int = 0
    """How often its older part became a summary."""
    pinned: int = 0
    """Facts that it must not forget."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a run does: the message that it answers, and the tools that it uses now."""

    text: str
    tools: Sequence[str] = ()


def status(
    runs: Sequence[RunView],
    history: Conversation,
    *,
    agent: AgentName,
    model: str = "",
    works: Mapping[RunId, Work] = MappingProxyType({}),
) -> str:
    """The answer to ``/status`` for one session; ``works``: what runs do, as far as is known."""
    working = [run for run in runs if run.state in (RunState.RUNNING, RunState.FINISHING)]
    stopping = [run for run in runs if run.state in (RunState.STOPPING, RunState.ABANDONED)]
    waiting = [run for run in runs if run not in working and run not in stopping]
    lines = [
        f"Agent: {agent}" + (f", model {model}" if model else ""),
        f"Running: {len(working)}",
        *(_working(run, works.get(run.id)) for run in working),
        f"Waiting: {len(waiting)}",
    ]
    if stopping:
        lines.append(f"Stopping: {len(stopping)}")
    lines.append(f"Messages in this conversation: {history.entries}")
    if history.context is not None:
        lines.append(f"Context used: {history.context:.0%}")
    if history.summaries:
        times = count(history.summaries, "time")
        lines.append(f"Older messages were summarised {times}")
    if history.pinned:
        lines.append(f"Facts to remember: {history.pinned}")
    return "\n".join(lines)


def _working(run: RunView, work: Work | None) -> str:
    now = f", {tools(work.tools)}" if work is not None and work.tools else ""
    what = f"“{snippet(work.text)}”" if work is not None and work.text else "a message"
    return f"- {what}, for {lasting(timedelta(seconds=run.for_s))}{now}"


def usage(agent: AgentName, session: Spent, whole: Spent) -> str:
    """The answer to ``/usage``."""
    lines = [
        "Today (UTC):",
        f"This conversation: {_spent(session)}",
        f"Agent {agent}, all conversations: {_spent(whole)}",
    ]
    if whole.used.tokens and whole.used.cost_usd is None:
        lines.append("What the model costs is not known to me.")
    return "\n".join(lines)


def _spent(spent: Spent) -> str:
    used, budget = spent.used, spent.budget
    of_turns = f" of {budget.turns:,}" if budget.turns else ""
    of_tokens = f" of {budget.tokens:,}" if budget.tokens else ""
    parts = [f"{used.requests:,}{of_turns} model requests", f"{used.tokens:,}{of_tokens} tokens"]
    if used.cost_usd is not None or budget.usd is not None:
        of_usd = f" of ${budget.usd:.2f}" if budget.usd is not None else ""
        parts.append(f"${used.cost_usd or 0:.2f}{of_usd}")
    return ", ".join(parts)


def tools(names: Sequence[str]) -> str:
    """What stands below a growing reply while its agent uses tools."""
    return f"⚙ {', '.join(dict.fromkeys(names))} …" if names else ""


def who(message: InboundMessage, *, owner: bool, session: SessionKey) -> str:
    """The answer to ``/whoami``."""
    sender, target = message.sender, message.target
    name = " ".join(sender.name.split()) or "no name"
    lines = [
        f"You: {name}" + (f" (@{sender.username})" if sender.username else ""),
        f"Your id: {sender.id}" + (", an owner" if owner else ""),
        f"This chat: {target.channel}, {target.chat}"
        + (f", topic {target.thread}" if target.thread else ""),
        f"Session: {session}",
    ]
    return "\n".join(lines)


def queue(policy: QueuePolicy, runs: Sequence[RunView], *, chosen: bool, full: bool) -> str:
    """The answer to ``/queue``.

    ``chosen``: the mode is this chat's own choice; ``full``: the conversation takes so much of the
    context that one run at a time works (SPEC QUEUE-7).
    """
    waiting = sum(run.state in _WAITING for run in runs)
    origin = "chosen in this chat" if chosen else "from the settings"
    at_once = "1, because this conversation is long" if full else f"{policy.concurrency}"
    last = "the oldest is dropped" if policy.drop is Drop.OLD else "new ones are not taken"
    burst = f"messages within {policy.debounce_s:g} s become one"
    return "\n".join(
        [
            f"Mode: {policy.mode.value} ({origin}): {_MEANING[policy.mode]}",
            f"Running: {len(runs) - waiting}, at once: {at_once}",
            f"Waiting: {waiting}, at most: {policy.capacity}; then {last}",
            f"Bursts: {burst if policy.debounce_s else 'each message is a turn of its own'}",
            _modes(),
        ]
    )


def queue_changed(mode: Mode, *, chosen: bool) -> str:
    """The answer to ``/queue MODE``, for the messages to come."""
    return f"{'From now on' if chosen else 'Back to the settings'}: {mode.value}, {_MEANING[mode]}."


def unknown_mode(word: str) -> str:
    """The answer to ``/queue`` with a word that is no mode."""
    return f"I know no mode “{snippet(word)}”. {_modes()}"


def _modes() -> str:
    return f"Modes: {', '.join(Mode)}; /queue default goes back to the settings."


_MEANING: Mapping[Mode, str] = {
    Mode.QUEUE: "messages wait for their turn",
    Mode.FOLLOWUP: "messages wait for their turn",
    Mode.INTERRUPT: "a new message stops what runs and replaces what waits",
    Mode.COLLECT: "what waits becomes one turn",
    Mode.STEER: "a new message goes into the running task if that can take it, else it waits",
}

_WAITING = (RunState.COLLECTING, RunState.QUEUED, RunState.READY)


def topic_gone(place: str, *, closed: bool) -> str:
    """What the general topic reads once below what was for another one (SPEC CHAN-6)."""
    return f"This was for {place}, which {'is closed' if closed else 'was deleted'}."


def not_delivered(file: str, why: str, number: int) -> str:
    """What a chat reads of a part of a reply, or a file, that its channel refuses (SPEC IO-3)."""
    what = f"the file “{cut_text(file, 60)}”" if file else "a part of my answer"
    short = cut_text(" ".join(why.split()), 200)
    return (
        f"⚠️ I could not send {what}: it was refused ({short}). "
        f"The operator finds it with: goclaw outbox show {number}"
    )


CALL_UNKNOWN = "outcome unknown: it may have taken effect"
CALL_DONE = "done"
CALL_FAILED = "failed"


def cut_calls(lines: Sequence[str], more: int) -> str:
    """What an agent is told of the tool calls of runs for the same that were cut (SPEC AGENT-9)."""
    first = [f"({more} earlier calls are left out.)"] if more else []
    called = "\n".join([*first, *lines])
    return (
        "An earlier attempt at this task was cut off. It had made these tool calls:\n"
        f"{called}\n"
        "Do not repeat any of them blindly. Use the results that you see here. Where the outcome "
        "is unknown, find out whether it took effect; if you cannot, ask before you repeat it."
    )


def not_repeated(tools: Sequence[str]) -> str:
    """Why a job is not run again whose run was cut off (SPEC AGENT-9)."""
    return (
        f"its run was cut off after it had called {', '.join(tools)}, so it was not repeated; "
        "retry_after_effects allows that"
    )


def cut_note(outcome: Outcome) -> str:
    """What stands in the history at the end of a reply that was cut off."""
    return f"[{outcome.value.replace('_', ' ')}]"


def cut_reply(text: str, outcome: Outcome) -> str:
    """What the history holds for a reply that was cut off."""
    return "\n".join(filter(None, [text, cut_note(outcome)]))


def over_budget(scope: Scope, limit: Limit, budget: Budget) -> str:
    """What stands below what a run has said when it has used up a budget (SPEC AGENT-5)."""
    amount = {
        Limit.TURNS: f"{budget.turns} model requests",
        Limit.TOKENS: f"{budget.tokens or 0:,} tokens",
        Limit.USD: f"${budget.usd or 0:.2f}",
        Limit.SECONDS: f"{budget.seconds or 0:g} seconds",
    }[limit]
    match scope:
        case Scope.RUN:
            return f"I stopped here: one task may take {amount}, and this one has."
        case Scope.SESSION_DAY:
            return f"I stopped here: this conversation has used up {amount}, its budget for today."
        case Scope.AGENT_DAY:
            return f"I stopped here: I have used up {amount}, my budget for today."


def sent_from(session: SessionKey, text: str) -> str:
    """What the history of a chat holds for a message that a run of another session sent there."""
    return f"[sent by {session}]\n{text}"


def child_task(trigger: Trigger, parent: AgentName) -> str:
    """What a subagent or delegate is told about itself."""
    who = "a subagent" if trigger is Trigger.SUBAGENT else "asked"
    return (
        f"You work as {who} for the agent “{parent}”. It gets your last answer and nothing else of "
        "what you do, so put all that it needs into that. Nobody can answer questions meanwhile."
    )


def subagent_said(label: str, outcome: Outcome, text: str) -> str:
    """The message by which a subagent's result comes into the chat of its parent."""
    ended = "finished" if outcome is Outcome.COMPLETED else "did not finish"
    return f"[Subagent “{snippet(label)}” {ended}]\n{text}"


def subagent_lost() -> str:
    """The same for one that a crash has cut off, of which nothing else is known."""
    return "[Subagent did not finish]\nIt was cut off by a crash."


def with_files(text: str, paths: Sequence[str]) -> str:
    """A child's answer with the files that it wants to be sent, for its parent to decide."""
    return "\n".join(filter(None, [text, *(f"[file: {path}]" for path in paths)]))


def child_failed(ended: Ending, friendly: str, said: str) -> str:
    """Why there is no result of a child, for its parent."""
    why = _REFUSED.get(ended.reason) or friendly or f"It ended: {ended.outcome.value}."
    return f"{why}\nUntil then it said: {said}" if said else why


_REFUSED: Mapping[Reason | None, str] = {
    Reason.TOO_DEEP: "Not started: subagents and delegates may nest no deeper. Do this yourself.",
    Reason.TOO_MANY_CHILDREN: "Not started: too many of yours work at once. Wait for some first.",
    Reason.WAITS_FOR_ITSELF: "Not started: what it needs is held by those who would wait for it. "
    "Do this yourself.",
    Reason.PARENT_ENDED: "Not started: you are being stopped.",
    Reason.DRAINING: "Not started: the program is about to end.",
    Reason.LANE_CLOSED: "Not started: its lane is closed.",
    Reason.SHUTDOWN: "It was cut off, because the program ends.",
    Reason.RUN_TIMEOUT: "It took too long and was stopped.",
    Reason.DEADLINE: "It took too long and was stopped.",
}


def cut_draft(outcome: Outcome) -> str:
    """What stands below a growing reply that nobody will finish (SPEC CMD-3)."""
    return "⏹ Stopped." if outcome is Outcome.CANCELLED else "⚠️ This answer was cut off."


def snippet(text: str) -> str:
    """The first words of a text, on one line."""
    return first_words(text, _SNIPPET)
