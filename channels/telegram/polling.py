"""Long polling: updates are received, committed, and only then confirmed (SPEC IO-1)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from channels.telegram.client import BotClient, PollConflict
from channels.telegram.inbound.reader import KINDS, update_id
from channels.telegram.outage import Outage, health_of
from channels.telegram.updates import Updates
from goclaw_py.chat.channel import InboundHandler
from goclaw_py.core.errors import ChannelError, ChannelRefused, NotSent, StoreUnavailable
from goclaw_py.core.messages import InboundMessage
from goclaw_py.scheduler.views import ChannelHealth, ChannelState

_log = logging.getLogger("channels.telegram")

_LONGEST_PAUSE_S = 30.0
_CONFLICT_PAUSE_S = 10.0
_WATCHDOG_S = 30.0
"""Seconds that a poll may take longer than requested, whatever the client's limits are."""
_SILENCE_S = 300.0
_STORE_PAUSE_S = 1.0
"""The longest pause while nothing can be committed: a ``/stop`` in the meantime must act."""
_IDS_LAST_S = 24 * 60 * 60.0
"""After a day without updates their ids may restart below the offset."""


class Poller:
    """Receives the updates of a bot, from the first poll to its cancellation."""

    def __init__(
        self,
        client: BotClient,
        updates: Updates,
        *,
        account: str,
        wait_s: int,
        on_answer: Callable[[], None] = lambda: None,
    ) -> None:
        """``wait_s``: how long a poll waits at the server.

        ``on_answer`` is called when the server has accepted the token again.
        """
        self._client = client
        self._updates = updates
        self._account = account
        self._wait_s = wait_s
        self._on_answer = on_answer
        # The offset belongs to this bot and this process: another bot's would make us deaf.
        self._offset: int | None = None
        self._first = True
        self._uncommitted = False
        self._failed = False
        self._redelivered_to = -1
        self._last_update_at = 0.0
        self._looked_at = 0.0
        self._network = Outage("Telegram cannot be reached", account, _LONGEST_PAUSE_S)
        self._store = Outage("messages cannot be committed", account, _STORE_PAUSE_S)
        self._junk = Outage("updates cannot be confirmed", account, _LONGEST_PAUSE_S)
        self._conflict = Outage(
            "another program takes this bot's updates; stop it there",
            account,
            _CONFLICT_PAUSE_S,
            ChannelState.CONFLICT,
        )
        self._webhook = Outage(
            "a webhook is set for this bot, which keeps polling from working; removing it",
            account,
            _LONGEST_PAUSE_S,
            ChannelState.CONFLICT,
        )

    @property
    def health(self) -> ChannelHealth:
        """The health of the connection."""
        return health_of((self._webhook, self._conflict, self._network, self._store, self._junk))

    async def run(self, intake: InboundHandler) -> None:
        """Poll until cancelled. Raises ``ChannelRefused``."""
        self._last_update_at = self._looked_at = asyncio.get_running_loop().time()
        while True:
            updates = await self._poll()
            if updates:
                await self._commit(updates, intake)
            else:
                await self._check_missed_updates()

    async def _poll(self) -> list[object]:
        """Poll once; an empty list also after an error and its pause."""
        now = asyncio.get_running_loop().time()
        if now - self._last_update_at > _IDS_LAST_S:
            self._offset = None
            self._last_update_at = now
        # The first poll distinguishes updates that an earlier process may have seen. While a batch
        # is uncommitted, every poll returns updates. After a failure a quick response shows that
        # the connection works again.
        quick = self._first or self._uncommitted or self._failed
        wait_s = 0 if quick else self._wait_s
        self._failed = True
        try:
            async with asyncio.timeout(wait_s + _WATCHDOG_S):
                updates = await self._client.get_updates(
                    offset=self._offset, wait_s=wait_s, kinds=KINDS
                )
        except ChannelRefused:
            raise
        except PollConflict as error:
            # A quick poll would take the updates from the other program before it can object.
            self._failed = False
            await self._on_conflict(error)
            return []
        except ChannelError as error:
            await self._pause(error)
            return []
        except TimeoutError:
            await self._pause(NotSent("a request for updates never came back"))
            return []
        self._failed = False
        self._network.over()
        self._conflict.over()
        self._webhook.over()
        self._on_answer()
        self._note(updates, now)
        return sorted(updates, key=_place)

    async def _check_missed_updates(self) -> None:
        """After a long silence, ask the server whether updates wait that polls do not get."""
        now = asyncio.get_running_loop().time()
        if now - max(self._last_update_at, self._looked_at) < _SILENCE_S:
            return
        self._looked_at = now
        try:
            webhook = await self._client.webhook()
        except ChannelRefused:
            raise
        except ChannelError as error:
            self._network.again(str(error))
            return
        if webhook.pending and self._offset is not None:
            _log.warning(
                "polling_restarted", extra={"account": self._account, "pending": webhook.pending}
            )
            self._offset = None

    def _note(self, updates: Sequence[object], now: float) -> None:
        if updates:
            self._last_update_at = now
        if self._first:
            self._first = False
            self._redelivered_to = max(_ids(updates), default=-1)

    async def _commit(self, updates: Sequence[object], intake: InboundHandler) -> None:
        """Commit a batch, then confirm it by moving the offset."""
        try:
            await self._updates.commit(updates, intake, self._is_redelivered)
        except StoreUnavailable as error:
            self._uncommitted = True
            await asyncio.sleep(self._store.again(str(error)))
            return
        self._uncommitted = False
        self._redelivered_to = -1
        self._store.over()
        ids = _ids(updates)
        if ids:
            self._offset = max(ids) + 1
            self._junk.over()
        else:
            # Nothing here can be confirmed, so it comes again at once.
            await asyncio.sleep(self._junk.again("none of them has an id"))

    def _is_redelivered(self, number: int | None, _message: InboundMessage) -> bool:
        return number is not None and number <= self._redelivered_to

    async def _on_conflict(self, error: PollConflict) -> None:
        pause = _CONFLICT_PAUSE_S
        try:
            if url := (await self._client.webhook()).url:
                pause = self._webhook.again(url)
                await self._client.delete_webhook()
            else:
                self._webhook.over()
                self._conflict.again(str(error))
        except ChannelRefused:
            raise
        except ChannelError as trouble:
            self._network.again(str(trouble))
        await asyncio.sleep(pause)

    async def _pause(self, error: ChannelError) -> None:
        pause = self._network.again(str(error))
        await asyncio.sleep(max(pause, error.retry_after_s or 0))


def _place(update: object) -> int:
    """Return the id of an update, for sorting."""
    number = update_id(update)
    return -1 if number is None else number


def _ids(updates: Sequence[object]) -> list[int]:
    return [number for update in updates if (number := update_id(update)) is not None]
