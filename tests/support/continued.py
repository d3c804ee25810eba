"""Runs of a model agent that pays, whole or from stored steps (SPEC AGENT-10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from goclaw_py.agents.models import ModelAgent
from goclaw_py.core.messages import HistoryEntry
from goclaw_py.core.run_events import TextDelta, Usage
from goclaw_py.core.run_steps import RunStep
from goclaw_py.runs.agent_loop import AgentResult, LoopEvent, ModelStep, RunRequest
from goclaw_py.runs.run_journal import step_of
from tests.support.model_agents import look_up
from tests.support.toolbox import Functions
from tests.unit.agents.builders import Coming, request

ORDER = 'tools [["pay", {"to": "Ann"}], ["look_up", {"word": "owl"}]]'
STEERED = 'tool pay {"to": "Bob"}'
ALL_CALLS = [("pay", {"to": "Ann"}), ("look_up", {"word": "owl"}), ("pay", {"to": "Bob"})]


async def pay(to: str) -> str:
    """Pay somebody."""
    return f"paid {to}"


@dataclass
class Journal:
    """Keeps steps and text of a run, as the runtime does."""

    steps: list[RunStep] = field(default_factory=list)
    events: list[LoopEvent] = field(default_factory=list)

    def __call__(self, event: LoopEvent) -> None:
        self.events.append(event)
        if (step := step_of(event)) is not None:
            self.steps.append(step)

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    def ended(self, note: str) -> tuple[HistoryEntry, ...]:
        """The entries of a run that ends now, without an answer."""
        made = [event.entries for event in self.events if isinstance(event, ModelStep)]
        return made[-1](note) if made and made[-1] else ()

    @property
    def usage(self) -> Usage:
        return next(event.usage for event in reversed(self.events) if isinstance(event, ModelStep))


@dataclass
class Done:
    """A run that has ended."""

    result: AgentResult
    journal: Journal
    calls: list[tuple[str, dict[str, object]]]


async def execute(agent: ModelAgent, asked: RunRequest, steps: Sequence[RunStep] = ()) -> Done:
    """Run it, from these steps."""
    tools, journal = Functions(pay, look_up, harmless=("look_up",)), Journal()
    result = await agent.run(replace(asked, tools=tools, steps=tuple(steps)), journal)
    return Done(result, journal, tools.calls)


def steered(*, run: str = "run-1") -> RunRequest:
    """A run in which somebody writes again before the second response."""
    return request(ORDER, take=Coming(STEERED), run=run)
