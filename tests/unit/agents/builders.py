"""Requests to agents, and an ``emit`` that keeps what it gets."""

from __future__ import annotations

from collections.abc import Iterable

from goclaw_py.core.events import AgentEvent, TextDelta
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.outcomes import Trigger
from goclaw_py.ports.agent import HistoryEntry, RunRequest, TextPart


class Events(list[AgentEvent]):
    """Everything emitted. Call it to emit."""

    def __call__(self, event: AgentEvent) -> None:
        self.append(event)

    @property
    def text(self) -> str:
        """The text deltas, joined."""
        return "".join(event.text for event in self if isinstance(event, TextDelta))


def request(
    *texts: str,
    run: str = "run-1",
    session: str = "agent:main:console:direct:me",
    history: Iterable[HistoryEntry] = (),
    system: Iterable[str] = (),
) -> RunRequest:
    return RunRequest(
        run_id=RunId(run),
        session=SessionKey(session),
        agent=AgentName("main"),
        trigger=Trigger.CHAT,
        parts=tuple(TextPart(text) for text in texts),
        history=tuple(history),
        system=tuple(system),
    )
