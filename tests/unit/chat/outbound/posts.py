"""Messages that tests put into the outbox of a gateway, and what became of them."""

from __future__ import annotations

from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import OutboxQuery, OutboxRow
from goclaw_py.scheduler.models import QueuePolicy
from tests.support.harness import GatewayProcess, Ways

AT_ONCE = Ways(QueuePolicy(), QueuePolicy())


def to(chat: str, text: str, *, channel: str = "telegram") -> OutboundMessage:
    return OutboundMessage(Target(channel, "default", chat), text)


async def put(gateway: GatewayProcess, *messages: OutboundMessage) -> None:
    """Into the outbox, in one transaction."""
    now = gateway.clock.now()
    await gateway.store.settle((), Outcome.COMPLETED, now=now, say=messages)


async def rows(gateway: GatewayProcess) -> list[OutboxRow]:
    """The oldest first."""
    return (await gateway.store.outbox(OutboxQuery(limit=2000)))[::-1]
