"""Requests to agents, and an ``emit`` that keeps what it gets."""

from __future__ import annotations

from collections.abc import Iterable

from goclaw_py.core.events import AgentEvent, TextDelta
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.outcomes import Trigger
from goclaw_py.ports.agent import (
    HistoryEntry,
    RunRequest,
    TakeMessages,
    TextPart,
    no_messages,
)


class Events(list[AgentEvent]):
    """Everything emitted. Call it to emit."""

    def __call__(self, event: AgentEvent) -> None:
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
    )
