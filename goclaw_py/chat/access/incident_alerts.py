"""Alerts to the owners about lasting problems, one for each problem (SPEC CHAN-10)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from goclaw_py.chat.outbound import texts
from goclaw_py.core.display_names import operator_in
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import ActivityQuery, ChatStore, IncidentStore, Place
from goclaw_py.runs.session_settings import SessionSettings
from goclaw_py.scheduler.views import ChannelState, ChannelView

log = logging.getLogger(__name__)

LOOK_S = 15.0
LASTS_S = 300.0
"""A channel that recovers by itself within this time causes no alert."""

_MOST_PLACES = 200


class IncidentState(IncidentStore, ChatStore, Protocol):
    """The store operations that this module needs."""


class IncidentAlerts:
    """Watches the channels and alerts the owners."""

    def __init__(
        self,
        store: IncidentState,
        clock: Clock,
        policies: SessionSettings,
        views: Callable[[], Iterable[ChannelView]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._policies = policies
        self._views = views
        self._since: dict[str, float] = {}
        """Channels with a problem, and since when."""
        self._told: set[str] = set()
        self._well: set[str] = set()
        """Channels without an open incident."""

    async def watch(self) -> None:
        """Check the channels repeatedly. Runs until cancelled."""
        while True:
            for view in self._views():
                try:
                    await self._check(view)
                except StoreUnavailable as error:
                    log.debug("store_unavailable", extra={"error": str(error), "part": "incidents"})
            await asyncio.sleep(LOOK_S)

    async def alert(self, key: str, text: str, besides: Target | None = None) -> None:
        """Alert the owners in the direct chats they used last, unless this was already done.

        ``besides`` is a chat that is told in other words. Raises ``StoreUnavailable``; then no
        alert was sent.
        """
        chats = [target for target in await self.owners_chats() if target != besides]
        say = [OutboundMessage(target, text) for target in chats]
        if await self._store.open_incident(key, text, say=say, now=self._clock.now()):
            log.warning(
                "incident_opened", extra={"incident": key, "chats_told": len(say), "warning": text}
            )

    async def _check(self, view: ChannelView) -> None:
        key = f"channel:{view.name}/{view.account}"
        now = asyncio.get_running_loop().time()
        if view.detail and view.state is not ChannelState.WAITING:
            since = self._since.setdefault(key, now)
            self._well.discard(key)
            is_old = view.state is ChannelState.STOPPED or now - since >= LASTS_S
            if is_old and key not in self._told:
                await self.alert(key, texts.channel_trouble(view.name, view.account, view.detail))
                self._told.add(key)
        elif view.state is ChannelState.CONNECTED and key not in self._well:
            # Also without an alert of this process: an earlier process may have sent one.
            await self._store.close_incident(key)
            self._well.add(key)
            self._told.discard(key)
            self._since.pop(key, None)

    async def owners_chats(self) -> list[Target]:
        """Return the last direct chat of each owner on the accounts of this process.

        All conversations of the console are chats of the operator, each with an id of its own.
        Raises ``StoreUnavailable``.
        """
        chats: dict[tuple[str, str, str], Target] = {}
        owners = self._policies.owners
        query = ActivityQuery(direct=True, owners=owners, limit=_MOST_PLACES)
        for one in await self._store.activity(query):
            target = one.target
            place: Place = target.channel, target.account
            if place in self._policies.places:
                person = operator_in(target) or one.sender_id
                chats.setdefault((*place, person), target)
        return list(chats.values())
