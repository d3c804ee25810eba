"""``/status``: what runs and waits in a chat, and what comes next (CMD-5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from goclaw_py.chat.commands.command import ChatCommand, CommandUse, Everybody, HelpGroup
from goclaw_py.chat.outbound import approval_texts, texts
from goclaw_py.chat.outbound.wait_texts import tools
from goclaw_py.core.ids import AgentName, RunId
from goclaw_py.core.time.texts import rough
from goclaw_py.records import ApprovalQuery, RunQuery
from goclaw_py.scheduler.views import RunState, RunView

_LATELY: Final = 10
"""The number of runs in which the model that answered last is searched."""


async def _status(use: CommandUse) -> str:
    row, services, key = use.row, use.services, use.row.session
    session = await services.store.session(key)
    history = SessionMemory(
        0 if session is None else session.entries,
        services.policies.contexts.used(key),
        0 if session is None else session.summaries,
        0 if session is None else len(session.pinned),
    )
    # One that runs may not have heard of its model yet.
    lately = await services.store.runs(RunQuery(limit=_LATELY, session=key))
    stops = services.stops.local
    now = status(
        stops.runs(key),
        history,
        agent=row.agent,
        model=next((run.model for run in lately if run.model), ""),
        works={
            turn.id: RunActivity(" ".join(turn.texts), turn.progress.tools_in_use)
            for turn in stops.turns(key)
        },
    )
    asked = await services.store.approvals(ApprovalQuery(key, asked_in=row.message.target))
    waiting = [approval_texts.waiting(one) for one in reversed(asked)]
    return "\n".join([now, *waiting, *await services.jobs.coming(row)])


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


@dataclass(frozen=True, slots=True)
class RunActivity:
    """The message that a run answers, and the tools that it is using now."""

    text: str
    tools: Sequence[str] = ()


def status(
    runs: Sequence[RunView],
    history: SessionMemory,
    *,
    agent: AgentName,
    model: str = "",
    works: Mapping[RunId, RunActivity] = MappingProxyType({}),
) -> str:
    """Return the answer to ``/status`` for one session; ``works``: details of runs, where known."""
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
        times = "once" if history.summaries == 1 else f"{history.summaries} times"
        lines.append(f"Older messages were summarised {times}")
    if history.pinned:
        lines.append(f"Facts to remember: {history.pinned}")
    return "\n".join(lines)


def _working(run: RunView, work: RunActivity | None) -> str:
    now = f", {tools(work.tools)}" if work is not None and work.tools else ""
    what = f"“{texts.snippet(work.text)}”" if work is not None and work.text else "a message"
    return f"- {what}, for {rough(run.for_s)}{now}"


COMMANDS = (ChatCommand("status", Everybody(), HelpGroup.TASKS, _status),)
