"""An agent for ``python:tests.chaos.agent:run``: what it will answer is known beforehand."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Self

from goclaw_py.core.run_events import TextDelta
from goclaw_py.runs.agent_loop import Emit, RunRequest

_PROMPT = re.compile(r"count to (\d+) every (\d+) ms m(\d+)")


@dataclass(frozen=True, slots=True)
class Task:
    """Something to be answered word by word: ``m37 1 2 3``. No other task has its ``number``."""

    number: int
    count: int
    every_ms: int

    @property
    def prompt(self) -> str:
        """What a person writes to ask for it."""
        return f"count to {self.count} every {self.every_ms} ms {self.name}"

    @property
    def name(self) -> str:
        """How every text about it begins."""
        return f"m{self.number}"

    @property
    def text(self) -> str:
        """The whole answer."""
        return " ".join([self.name, *map(str, range(1, self.count + 1))])

    @property
    def seconds(self) -> float:
        """How long the answer takes."""
        return self.count * self.every_ms / 1000

    @classmethod
    def of(cls, prompt: str) -> Self | None:
        """The task in a prompt, if there is one."""
        found = _PROMPT.fullmatch(prompt.strip())
        if found is None:
            return None
        count, every_ms, number = map(int, found.groups())
        return cls(number, count, every_ms)


async def run(request: RunRequest, emit: Emit) -> str:
    """Say the answer word by word."""
    task = Task.of(request.prompt)
    if task is None:
        return f"This is no task: {request.prompt}"
    emit(TextDelta(task.name))
    for word in range(1, task.count + 1):
        await asyncio.sleep(task.every_ms / 1000)
        emit(TextDelta(f" {word}"))
    return task.text
