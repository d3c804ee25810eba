"""What the model and the tools have seen, in their own process."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from goclaw_py.agents.models.replay import UNKNOWN_RESULT
from tests.chaos.kills.script import Task, number_of


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool that the model asks for.

    Args:
        purpose: What it is for: the same after the same request was sent again.
        id: Differs in each response.
    """

    tool: str
    purpose: str
    id: str


@dataclass(slots=True)
class Asked:
    """A request that the model got.

    Args:
        place: How many responses to the same message came before.
        attempt: How often this one was requested, from 1.
        life: How often the node had been killed before it sent the request.
        calls: What the model answers; none in the last response.
        delivered_at: When its response had left as a whole, None if that never was.
    """

    task: Task
    place: int
    attempt: int
    node: int
    life: int
    calls: Sequence[Call]
    delivered_at: float | None = None

    @property
    def id(self) -> str:
        """The id of its response."""
        return f"response-{self.task.number}.{self.place}.{self.attempt}"

    @property
    def words(self) -> list[str]:
        """The text of its response."""
        return [f"t{self.task.number}r{self.place}:", *["so"] * (self.task.words - 1)]


@dataclass(slots=True)
class Start:
    """A call that reached the shop. ``ended`` is False if it was cut."""

    call: str
    tool: str
    count: int
    at: float
    ended: bool = False

    @property
    def result(self) -> str:
        """What it returns."""
        return f"{self.tool} {self.call} took effect as start {self.count}"


@dataclass(slots=True)
class History:
    """Requests, starts of calls, and the results that the model was told."""

    tasks: dict[int, Task] = field(default_factory=dict)
    requests: list[Asked] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    calls: dict[str, Call] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    killed_at: defaultdict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    """The times at which each node was killed."""
    _attempts: Counter[tuple[int, int]] = field(default_factory=Counter)
    _started: Counter[str] = field(default_factory=Counter)

    def request(self, node: int, life: int, body: dict[str, Any]) -> Asked:
        """Note a request; its answer is a function of the conversation."""
        messages: list[dict[str, Any]] = body["messages"]
        last = max(at for at, one in enumerate(messages) if one["role"] == "user")
        task = self.tasks[number_of(str(messages[last]["content"]))]
        since = messages[last + 1 :]
        results = {
            one["tool_call_id"]: str(one["content"]) for one in since if one["role"] == "tool"
        }
        self.told |= results
        place = sum(one["role"] == "assistant" for one in since)
        self._attempts[task.number, place] += 1
        attempt = self._attempts[task.number, place]
        calls = [
            Call(tool, purpose, f"{purpose}.{attempt}")
            for tool, purpose in _next_calls(task, self._by_purpose(results))
        ]
        self.calls |= {call.id: call for call in calls}
        asked = Asked(task, place, attempt, node, life, calls)
        self.requests.append(asked)
        return asked

    def delivered(self, asked: Asked) -> None:
        """Note that a response has left as a whole, unless the node was killed meanwhile."""
        if asked.life == len(self.killed_at[asked.node]):
            asked.delivered_at = time.monotonic()

    def start(self, tool: str, call: str) -> Start:
        """Note that a call began."""
        self._started[call] += 1
        started = Start(call, tool, self._started[call], time.monotonic())
        self.starts.append(started)
        return started

    def _by_purpose(self, results: dict[str, str]) -> dict[str, str]:
        return {self.calls[call].purpose: result for call, result in results.items()}


def _next_calls(task: Task, results: dict[str, str]) -> list[tuple[str, str]]:
    """The tools that the model calls next, each with its purpose; none: it is done."""
    for step, tools in enumerate(task.calls):
        purposes = [f"{task.number}.{step}.{place}" for place in range(len(tools))]
        if purposes[0] not in results:
            return list(zip(tools, purposes, strict=True))
        unknown = [
            (tool, f"{purpose}.again")
            for tool, purpose in zip(tools, purposes, strict=True)
            if tool == "pay" and UNKNOWN_RESULT in results[purpose]
        ]
        if task.insists and unknown and unknown[0][1] not in results:
            return unknown
    return []
