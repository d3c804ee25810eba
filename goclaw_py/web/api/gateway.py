"""The gateway as a whole: nodes, channels, and why (SPEC OPS-2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from fastapi import APIRouter, Query

from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.messages import Target
from goclaw_py.operations.control import Control
from goclaw_py.operations.explanation import Explanation
from goclaw_py.records import OutboxQuery, OutboxState
from goclaw_py.scheduler.views import ChannelState

About = Annotated[str | None, Query(min_length=1, max_length=512, examples=["telegram:100"])]
TextZone = Annotated[
    str,
    Query(
        max_length=64,
        description="The time zone of times in texts. Without it each names its zone.",
        examples=["Europe/Berlin"],
    ),
]
_LOOKED_AT: Final = 200
"""The number of newest chats and messages that are searched for the last use of a channel."""


@dataclass(frozen=True, slots=True)
class ChannelAnswer:
    """An account of a channel.

    Args:
        state: ``connected``, ``reconnecting``, ``conflict`` (another program receives for it),
            ``unauthorized`` (its token is refused), ``stopped`` (refused for minutes), ``waiting``
            (another gateway receives for it), ``failed`` (it begins again) or ``starting``.
        detail: The problem in words; "" if there is none.
        last_received_at: When an approved person last wrote there, null if unknown.
        last_sent_at: When a message was last sent there, null if unknown.
    """

    name: str
    account: str
    state: ChannelState
    detail: str
    last_received_at: datetime | None = None
    last_sent_at: datetime | None = None


def gateway_routes(control: Control) -> APIRouter:
    """Return the routes below ``/api``."""
    api = APIRouter()

    @api.get("/why", tags=["why"])
    async def why(about: About = None, zone: TextZone = "") -> Explanation:
        """Explain why something did or did not happen, and what to do about it.

        `about` is an id or name of a session, chat, person, message, run, job, agent or node;
        without it, the problems of the gateway are explained. `code` and the codes in `chain` are
        stable over releases. If the name is ambiguous, the error lists the candidates.
        """
        return await control.why(about, zone=zone)

    @api.get("/channels")
    async def channels() -> list[ChannelAnswer]:
        """List the accounts of channels, their state, and when they were last used."""
        return await channel_answers(control)

    return api


async def channel_answers(control: Control) -> list[ChannelAnswer]:
    """Return the accounts of channels; what the database cannot tell now is null.

    Raises ``NoGateway``.
    """
    views = (await control.lanes.status()).channels
    try:
        heard = await control.people.activity(limit=_LOOKED_AT)
        sent = await control.deliveries.outbox(OutboxQuery(OutboxState.SENT, limit=_LOOKED_AT))
    except StoreUnavailable:
        heard, sent = [], []
    received_at = _newest((one.target, one.at) for one in heard)
    sent_at = _newest((row.message.target, row.sent_at) for row in sent)
    return [
        ChannelAnswer(
            view.name,
            view.account,
            view.state,
            view.detail,
            received_at.get((view.name, view.account)),
            sent_at.get((view.name, view.account)),
        )
        for view in views
    ]


def _newest(
    times: Iterable[tuple[Target, datetime | None]],
) -> dict[tuple[str, str], datetime]:
    found: dict[tuple[str, str], datetime] = {}
    for target, at in times:
        place = (target.channel, target.account)
        if at is not None and (place not in found or at > found[place]):
            found[place] = at
    return found
