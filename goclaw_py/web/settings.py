"""What a gateway was started with, and the channels it is connected to (SPEC OPS-2, OPS-4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from fastapi import APIRouter, Query
from fastapi.responses import Response

from goclaw_py.model.errors import StoreUnavailable
from goclaw_py.model.messages import Target
from goclaw_py.ports.control import Control
from goclaw_py.ports.settings import Setting
from goclaw_py.ports.store import OutboxState
from goclaw_py.scheduler.views import ChannelState, ChannelView
from goclaw_py.web.api.wire import dump

_LOOKED_AT: Final = 200
"""How many of the newest chats and messages are looked through for when a channel was last used."""

Below = Annotated[
    str | None, Query(min_length=1, max_length=512, examples=["lanes", "agents.main"])
]


@dataclass(frozen=True, slots=True)
class ChannelAnswer:
    """One account of a channel.

    Args:
        state: ``connected``, ``reconnecting``, ``conflict`` (another program receives for it),
            ``unauthorized`` (its token is refused), ``stopped`` (for minutes now), ``waiting``
            (another gateway receives for it) or ``starting``.
        detail: What is wrong, in words; "" if nothing is.
        last_received_at: When somebody who may talk last spoke there, null if that is not known.
        last_sent_at: When a message last went out there, null if that is not known.
    """

    name: str
    account: str
    state: ChannelState
    detail: str
    last_received_at: datetime | None = None
    last_sent_at: datetime | None = None


def settings_routes(control: Control, settings: Sequence[Setting]) -> APIRouter:
    """The routes below ``/api``. ``settings`` are those of the gateway, without secrets."""
    api = APIRouter(tags=["gateway"])

    @api.get("/config", response_model=list[Setting])
    async def config(below: Below = None) -> Response:
        """The settings that the gateway was started with, each with its origin; no secret.

        All of them, or those of one section.
        """
        found = [one for one in settings if below is None or is_below(one.path, below)]
        return _answer(list[Setting], found)

    @api.get("/channels", response_model=list[ChannelAnswer])
    async def channels() -> Response:
        """The accounts of channels, whether they work, and when they were last used."""
        return _answer(list[ChannelAnswer], await channel_answers(control))

    return api


def _answer(kind: object, value: object) -> Response:
    return Response(dump(kind, value), media_type="application/json")


def is_below(path: str, section: str) -> bool:
    """Whether a setting is the one named, or in the section of that name."""
    return path == section or path.startswith(f"{section}.")


async def channel_answers(control: Control) -> list[ChannelAnswer]:
    """The accounts of channels. What the database does not tell now is not known.

    Raises ``NoGateway``.
    """
    views: Iterable[ChannelView] = (await control.status()).channels
    try:
        heard = await control.heard(limit=_LOOKED_AT)
        sent = await control.outbox(limit=_LOOKED_AT, state=OutboxState.SENT)
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
