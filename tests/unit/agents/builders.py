"""Requests to agents, and an ``emit`` that keeps what it gets."""

from __future__ import annotations

from collections.abc import Iterable

from goclaw_py.core.budget import NO_BUDGET, Budget
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.messages import HistoryEntry
from goclaw_py.core.outcomes import Trigger
from goclaw_py.core.run_events import TextDelta
from goclaw_py.runs.agent_loop import (
    LoopEvent,
    ModelStep,
    RequestSent,
    RunRequest,
    TakeMessages,
    TextPart,
    no_messages,
)
from goclaw_py.runs.toolbox import NO_TOOLS, Toolbox


class Events(list[LoopEvent]):
    """Everything emitted, steps in ``steps``. Call it to emit."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[ModelStep] = []

    def __call__(self, event: LoopEvent | ModelStep) -> None:
        if isinstance(event, RequestSent):
            return
        if isinstance(event, ModelStep):
            self.steps.append(event)
        else:
            self.append(event)

    @property
    def text(self) -> str:
        """The text deltas, joined."""
        return "".join(event.text for event in self if isinstance(event, TextDelta))


class Coming:
    """Messages that come while a run works; each call takes the next one."""

    def __init__(self, *texts: str) -> None:
        self.left = list(texts)

    def __call__(self) -> tuple[TextPart, ...]:
        return (TextPart(self.left.pop(0)),) if self.left else ()


def request(
    *texts: str,
    run: str = "run-1",
    session: str = "agent:main:console:direct:me",
    history: Iterable[HistoryEntry] = (),
    system: Iterable[str] = (),
    take: TakeMessages = no_messages,
    tools: Toolbox = NO_TOOLS,
    budget: Budget = NO_BUDGET,
    summary: str = "",
    pinned: Iterable[str] = (),
) -> RunRequest:
    return RunRequest(
        run_id=RunId(run),
        session=SessionKey(session),
        agent=AgentName("main"),
        trigger=Trigger.CHAT,
        parts=tuple(TextPart(text) for text in texts),
        history=tuple(history),
        system=tuple(system),
        take_messages=take,
        tools=tools,
        budget=budget,
        summary=summary,
        pinned=tuple(pinned),
    )
