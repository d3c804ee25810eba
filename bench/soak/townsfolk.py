"""Who talks to the gateway in virtual time, and who answers: people, passers-by, an agent."""

from __future__ import annotations

import asyncio
import math
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from goclaw_py.core.errors import AgentError, ToolFailed
from goclaw_py.core.messages import InboundMessage, OutboundMessage, PeerKind, Sender, Target
from goclaw_py.core.outcomes import Trigger
from goclaw_py.core.run_events import TextDelta, Usage
from goclaw_py.core.time.clock import Clock
from goclaw_py.runs.agent_loop import AgentResult, Emit, RunRequest
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import OpenToolbox

FAIL: Final = "fail"
CHILD: Final = "child"
SPAWN: Final = "spawn"
WORK: Final = "work"
"""Words that a prompt may begin with: what the agent then does. ``work`` is long, to be stopped."""

PASSER: Final = "passer-"
"""How the chats of people begin who never come again."""

_DOWN: Final = 0.30, 0.315
"""From when to when in a day the provider is down."""

_LONG_S: Final = 120.0
_MARK: Final = re.compile(r"#\d+#")
_TEXT: Final = "It will be sunny, with 21 degrees, and nobody needs an umbrella. " * 3


class Street(RecordingChannel):
    """A channel with drafts that forgets what was read of it: it must not be what grows."""

    def __init__(self) -> None:
        super().__init__(drafting=True)
        self._drafts = count(1)

    async def post_draft(self, beginning: OutboundMessage) -> str:
        """Its number is its own, though others are forgotten."""
        return await self._apply_faults(beginning, self._draft, f"draft-{next(self._drafts)}")

    def read(self) -> list[str]:
        """What has arrived since the last time."""
        texts = [message.text for message in self.sent]
        for kept in (self.attempts, self.sent, self.signals, self.uploads, self.drafted):
            kept.clear()
        self.deleted.clear()
        return texts


@dataclass(slots=True)
class Clerk:
    """Implements ``AgentLoop``: takes some seconds, speaks in pieces, and repeats the marks.

    Args:
        day_s: Each day of this length its provider is down for a while.
    """

    chance: random.Random
    day_s: float
    mean_s: float = 2.0
    runs: int = 0
    _heartbeat_runs: Iterator[int] = field(default_factory=count)

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        """Do what the first word says."""
        self.runs += 1
        if self._is_down():
            raise AgentError("Please wait.", "the provider is down", retryable=True)
        if request.trigger is Trigger.HEARTBEAT:
            # Each alert is another one, or it would not be told again.
            number = next(self._heartbeat_runs)
            text = f"Look at entry {number}." if number % 5 == 0 else "HEARTBEAT_OK"
            return AgentResult(text, usage=Usage(requests=1, input_tokens=10, output_tokens=2))
        await self._work(request)
        marks = " ".join(_MARK.findall(request.prompt))
        for piece in (f"About {marks}: ", _TEXT[:80], _TEXT[80:]):
            emit(TextDelta(piece))
            await asyncio.sleep(self.chance.expovariate(3 / self.mean_s))
        usage = Usage(requests=1, input_tokens=500, output_tokens=60)
        tokens = min(100 * (1 + len(request.history)), 900)
        return AgentResult(f"About {marks}: {_TEXT}", usage=usage, context_tokens=tokens)

    def _is_down(self) -> bool:
        part = asyncio.get_running_loop().time() % self.day_s / self.day_s
        return _DOWN[0] <= part < _DOWN[1]

    async def _work(self, request: RunRequest) -> None:
        word = request.prompt.split(maxsplit=1)[0] if request.prompt.strip() else ""
        assert isinstance(request.tools, OpenToolbox)
        children = request.tools.here.children
        try:
            if word == CHILD:
                await children.subagent("look it up")
            elif word == SPAWN:
                await children.spawn("look it up", "some work")
        except ToolFailed:
            pass  # it was not let in: the answer comes all the same
        if word == FAIL:
            raise AgentError("I could not do that.", "the model has said nothing")
        if word == WORK:
            await asyncio.sleep(_LONG_S)

    async def warm_up(self) -> None:
        """Nothing is slow here."""

    async def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, slots=True)
class Day:
    """How much is said when: by day up to twice the mean, at night almost nothing.

    Args:
        length_s: From one midnight to the next.
        mean_per_s: Messages over the whole of it.
        night: The part of a day, at its end, that is night.
    """

    length_s: float
    mean_per_s: float
    night: float = 0.35
    quiet: float = 0.02
    """How much of the mean is said at night."""

    def per_s(self, at_s: float) -> float:
        """The rate at an instant."""
        part = at_s % self.length_s / self.length_s
        if part >= 1 - self.night:
            return self.quiet * self.mean_per_s
        left = 1 - self.quiet * self.night
        return (
            left
            * self.mean_per_s
            * math.pi
            / 2
            / (1 - self.night)
            * math.sin(math.pi * part / (1 - self.night))
        )


@dataclass(slots=True)
class Town:
    """Writes messages and looks whether each is answered once.

    Args:
        regulars: So many people write again and again, a fifth of them in groups.
        passers: A part of the messages comes from people who never come again.
    """

    chance: random.Random
    clock: Clock
    regulars: int = 200
    passers: float = 0.01
    said: int = 0
    strangers: int = 0
    answered: int = 0
    doubled: list[str] = field(default_factory=list)
    waiting: set[str] = field(default_factory=set)
    """Marks of messages without an answer."""
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def next_batch(self) -> list[InboundMessage]:
        """What somebody says now: mostly one message, sometimes a burst or a command."""
        if self.chance.random() < self.passers:
            self.strangers += 1
            return [self._message(f"{PASSER}{self.strangers}", self._asked())]
        chat = f"chat-{self.chance.randrange(self.regulars)}"
        draw = self.chance.random()
        if draw < 0.90:
            burst = 1 if draw < 0.85 else 3
            return [self._message(chat, self._asked()) for _ in range(burst)]
        if draw < 0.96:
            word = self.chance.choice((CHILD, SPAWN))
            return [self._message(chat, f"{word} {self._asked()}")]
        # What follows is not waited for: it ends a run, or its answer has no mark.
        loner = f"loner-{self.chance.randrange(20)}"
        texts = self.chance.choice(
            (["/status"], ["/new"], ["/queue collect"], ["/queue default"], [FAIL], [WORK, "/stop"])
        )
        return [self._message(loner, text) for text in texts]

    def _asked(self) -> str:
        mark = f"#{next(self._numbers)}#"
        self.waiting.add(mark)
        self.said += 1
        return f"What about {mark}?"

    def _message(self, chat: str, text: str) -> InboundMessage:
        number = str(next(self._numbers))
        is_group = chat.startswith("chat-") and int(chat.removeprefix("chat-")) % 5 == 0
        return InboundMessage(
            external_id=f"{chat}:{number}",
            target=Target("telegram", "default", chat),
            peer=PeerKind.GROUP if is_group else PeerKind.DIRECT,
            sender=Sender(chat, chat.title()),
            text=text,
            sent_at=self.clock.now(),
            message_id=number,
        )

    def hear(self, texts: list[str]) -> None:
        """These have arrived."""
        for text in texts:
            for mark in _MARK.findall(text):
                if mark in self.waiting:
                    self.waiting.discard(mark)
                    self.answered += 1
                else:
                    self.doubled.append(mark)
