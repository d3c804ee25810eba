"""``/status``: what runs and waits in a chat, and what comes next (CMD-5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from goclaw_py.chat.commands.command import ChatCommand, CommandUse, Everybody, HelpGroup
from goclaw_py.chat.outbound import approval_texts, texts
from goclaw_py.chat.stop.local import ChatTask
from goclaw_py.core.display_names import display_name, needed_names
from goclaw_py.core.ids import AgentName
from goclaw_py.core.text import count
from goclaw_py.core.time.texts import rough
from goclaw_py.records import ApprovalQuery, RunQuery
from goclaw_py.runs.turn import Turn
from goclaw_py.scheduler.operator_warnings import names_text
from goclaw_py.scheduler.views import RunState

NOTHING: Final = "Nothing is running or waiting in this chat."

_MOST_WAITING: Final = 5
_MOST_ELSEWHERE: Final = 50


async def _status(use: CommandUse) -> str:
    row, services, key = use.row, use.services, use.row.session
    session = await services.store.session(key)
    history = SessionMemory(
        0 if session is None else session.entries,
        services.policies.contexts.used(key),
        0 if session is None else session.summaries,
        0 if session is None else len(session.pinned),
    )
    local = services.stops.local
    tasks = local.tasks(key, row.message.target)
    asked = await services.store.approvals(ApprovalQuery(key, asked_in=row.message.target))
    waiting = [approval_texts.waiting(one) for one in reversed(asked)]
    lines = task_lines(tasks, local.in_outage(key), waiting, row.agent)
    if use.is_private:
        lines += await _elsewhere(use, tasks)
    model = services.models.get(row.agent, "")
    coming = await services.jobs.coming(row)
    ours = conversation(history, row.agent, model, owner=use.is_by_owner)
    return "\n".join([*lines, *coming, ours])


async def _elsewhere(use: CommandUse, here: Sequence[ChatTask]) -> list[str]:
    """Return a line about the runs of other chats, on all nodes."""
    store, known = use.services.store, {task.run.id for task in here}
    active = await store.runs(RunQuery(active=True, limit=_MOST_ELSEWHERE))
    others = [run.payer for run in active if run.id not in known]
    if not others:
        return []
    names = await store.names(*needed_names(others))
    words = list(dict.fromkeys(display_name(session, names) for session in others))
    return [f"Elsewhere: {count(len(others), 'task')} ({names_text(words)})"]


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """How long the conversation of a session is.

    ``context`` is the share of the model's context window in use, None if unknown.
    """

    entries: int
    context: float | None = None
    summaries: int = 0
    """How often older messages were replaced by a summary."""
    pinned: int = 0
    """Facts that the agent was told to remember."""


def task_lines(
    tasks: Sequence[ChatTask], in_outage: Sequence[Turn], approvals: Sequence[str], agent: AgentName
) -> list[str]:
    """Return what runs, what waits in the queue, and what waits for a person, each as a list.

    Args:
        tasks: Those of the dispatcher.
        in_outage: Turns that wait for the provider of the agent.
        approvals: Lines about tool calls that wait for a person.
        agent: The agent of the chat; child runs of others are shown with their agent.
    """
    running = [
        f"- {_what(task, agent)}, {_since(task)}" for task in tasks if not task.run.state.is_waiting
    ]
    waiting = [f"- {_what(task, agent)}" for task in tasks if task.run.state.is_waiting]
    waiting += [f"- {_message(turn)}, until the AI model answers again" for turn in in_outage]
    if len(waiting) > _MOST_WAITING:
        more = len(waiting) - _MOST_WAITING + 1
        waiting[_MOST_WAITING - 1 :] = [f"- … and {more} more"]
    asking = [f"- {line}" for line in approvals]
    if not running and not waiting and not asking:
        return [NOTHING]
    return [
        *(["Running:", *running] if running else []),
        *(["Waiting:", *waiting] if waiting else []),
        *(["Waiting for a person:", *asking] if asking else []),
    ]


def _what(task: ChatTask, agent: AgentName) -> str:
    if task.turn is not None:
        return _message(task.turn)
    if task.child:
        who = "subagent" if task.run.agent == agent else f"agent {task.run.agent}"
        return f"{who}: “{texts.snippet(task.child)}”"
    return f"job “{texts.snippet(task.job)}”" if task.job else "a task"


def _message(turn: Turn) -> str:
    text = " ".join(turn.texts)
    return f"“{texts.snippet(text)}”" if text else "a message"


def _since(task: ChatTask) -> str:
    if task.run.state in (RunState.STOPPING, RunState.ABANDONED):
        return "is being stopped"
    used = () if task.turn is None else tuple(dict.fromkeys(task.turn.progress.tools_in_use))
    now = f", uses {', '.join(used)}" if used else ""
    time = rough(task.run.for_s)
    return f"{'just started' if time == '0 s' else f'for {time}'}{now}"


def conversation(history: SessionMemory, agent: AgentName, model: str, *, owner: bool) -> str:
    """Return the line about the conversation, for owners also about its agent."""
    facts = [count(history.entries, "message")]
    if not owner:
        return f"This conversation: {facts[0]}"
    if history.context is not None:
        facts.append(f"{history.context:.0%} of the context used")
    if history.summaries:
        times = "once" if history.summaries == 1 else f"{history.summaries} times"
        facts.append(f"older messages summarised {times}")
    if history.pinned:
        facts.append(f"{count(history.pinned, 'fact')} to remember")
    by = f"{agent} ({model})" if model else agent
    return f"This conversation: {', '.join(facts)}, with agent {by}"


COMMANDS = (ChatCommand("status", Everybody(), HelpGroup.TASKS, _status),)
