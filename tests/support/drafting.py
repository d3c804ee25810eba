"""A channel that shows drafts, and keeps all that people see of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Self

from goclaw_py.chat.outbound.rate_limit import UNPACED, RateLimit
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import OutboxQuery, OutboxRow
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import ScriptedAgent, Step
from goclaw_py.testing.channel import RecordingChannel, SendFailure
from tests.support.harness import GatewayProcess, Ways, a_process


class DraftingChannel(RecordingChannel):
    """Shows drafts, and keeps when it was asked to and what it was asked for."""

    def __init__(self, limits: RateLimit = UNPACED, *, part_limit: int = 4096) -> None:
        super().__init__(drafting=True, part_limit=part_limit, limits=limits)
        self.asked: list[tuple[float, OutboundMessage]] = []
        self.draft_failures: list[SendFailure] = []
        self.draft_slow_s = 0.0
        """How long a request takes to arrive."""
        self.answer_slow_s = 0.0
        """How long the answer takes then."""
        self.before_post: Callable[[], object] = lambda: None
        self.before_edit: Callable[[], object] = lambda: None

    def beside(self, other: DraftingChannel) -> Self:
        """The same, in the chats of another process's channel."""
        self.drafted, self.sent = other.drafted, other.sent
        self.stoppable, self.deleted = other.stoppable, other.deleted
        return self

    async def post_draft(self, beginning: OutboundMessage) -> str:
        self.before_post()
        self._note_request(beginning)
        await asyncio.sleep(self.draft_slow_s)
        external_id = await super().post_draft(beginning)
        await asyncio.sleep(self.answer_slow_s)
        return external_id

    async def edit_draft(self, so_far: OutboundMessage) -> None:
        self.before_edit()
        self._note_request(so_far)
        await asyncio.sleep(self.draft_slow_s)
        await super().edit_draft(so_far)
        await asyncio.sleep(self.answer_slow_s)

    def _note_request(self, message: OutboundMessage) -> None:
        self.asked.append((asyncio.get_running_loop().time(), message))
        if self.draft_failures:
            self.fail(self.draft_failures.pop(0), chat=message.target.chat)

    @property
    def edits(self) -> list[float]:
        """When each request for a draft came."""
        return [at for at, _ in self.asked]

    def closed_drafts(self) -> list[tuple[str, Outcome, str]]:
        """The drafts that were closed by a signal."""
        ended = self.ended()
        return [(end.draft, end.outcome, end.shown) for end in ended if end.draft is not None]

    def visible(self) -> list[str]:
        """What people see in the end: drafts as they are now, and messages of their own."""
        removed = self.deleted | {
            draft for draft, outcome, _ in self.closed_drafts() if outcome is Outcome.COMPLETED
        }
        drafts = [texts[-1] for draft, texts in self.drafted.items() if draft not in removed]
        return drafts + [sent.text for sent in self.sent if sent.draft is None]


def drafting(process: GatewayProcess) -> DraftingChannel:
    """The channel of a process."""
    assert isinstance(process.channel, DraftingChannel)
    return process.channel


async def outbox(process: GatewayProcess) -> list[OutboxRow]:
    """All rows, the oldest first."""
    return (await process.store.outbox(OutboxQuery(limit=1000)))[::-1]


@asynccontextmanager
async def replying(
    agent: Step | ScriptedAgent, channel: DraftingChannel | None = None, **trouble: object
) -> AsyncIterator[tuple[GatewayProcess, DraftingChannel]]:
    """Ann has just said hello to this agent; ``trouble`` are attributes of the channel."""
    shown = channel or DraftingChannel()
    for name, value in trouble.items():
        setattr(shown, name, value)
    loop = agent if isinstance(agent, ScriptedAgent) else ScriptedAgent(agent)
    ways = Ways(QueuePolicy(), QueuePolicy(concurrency=3))
    async with a_process(loop, ways, channels=(shown,)) as gateway:
        await gateway.say("hello")
        yield gateway, shown


async def only_row(process: GatewayProcess) -> tuple[str | None, bool]:
    """The draft of the only row of the outbox, and whether it may be there twice."""
    (row,) = await outbox(process)
    return row.message.draft, row.possible_duplicate
