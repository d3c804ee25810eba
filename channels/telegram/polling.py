"""Long polling: updates come in, are committed, and only then are confirmed (SPEC IO-1)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from channels.telegram.client import Bot, BotClient, PollConflict
from channels.telegram.inbound import Malformed, parse_update, update_id
from goclaw_py.core.commands import MENU
from goclaw_py.core.errors import ChannelError, ChannelRefused, StoreUnavailable
from goclaw_py.core.messages import InboundMessage
from goclaw_py.ports.channel import Intake

_log = logging.getLogger("channels.telegram")

_MENU = {"start": "Begin", **dict(MENU)}
_KINDS = ("message",)

_LONGEST_PAUSE_S = 30.0
_CONFLICT_PAUSE_S = 10.0
_WEBHOOK_PAUSE_S = 1.0
_DOUBLINGS = 5
_STORE_PAUSE_S = 1.0
"""The longest pause while nothing can be committed: a ``/stop`` that comes meanwhile must act."""
_IDS_LAST_S = 24 * 60 * 60.0
"""After a day without updates their ids may start anew, below the offset."""


class _Outage:
    """Logs when a trouble begins and when it is over, and nothing in between."""

    def __init__(self, what: str, account: str, longest_pause_s: float) -> None:
        self._what = what
        self._account = account
        self._longest_pause_s = longest_pause_s
        self._since: float | None = None
        self._tries = 0

    def again(self, reason: str) -> float:
        """It happened (again). Returns how many seconds to wait."""
        if self._since is None:
            self._since = asyncio.get_running_loop().time()
            _log.warning(self._what, extra={"account": self._account, "reason": reason})
        pause = self._longest_pause_s / 2.0 ** (_DOUBLINGS - self._tries)
        self._tries = min(self._tries + 1, _DOUBLINGS)
        return pause

    def over(self) -> None:
        """It went well."""
        if self._since is not None:
            lasted = asyncio.get_running_loop().time() - self._since
            _log.info(
                "%s: over", self._what, extra={"account": self._account, "lasted_s": round(lasted)}
            )
        self._since = None
        self._tries = 0


class Poller:
    """Takes the updates of one bot, from the first poll to its cancellation."""

    def __init__(self, client: BotClient, *, account: str, wait_s: int) -> None:
        """``wait_s``: how long one poll waits at the server."""
        self._client = client
        self._account = account
        self._wait_s = wait_s
        # The offset belongs to this bot and this process: another bot's would make us deaf.
        self._offset: int | None = None
        self._first = True
        self._uncommitted = False
        self._redelivered_to = -1
        self._last_update_at = 0.0
        self._network = _Outage("telegram cannot be reached", account, _LONGEST_PAUSE_S)
        self._store = _Outage("telegram messages cannot be committed", account, _STORE_PAUSE_S)
        self._junk = _Outage("telegram updates cannot be confirmed", account, _LONGEST_PAUSE_S)
        self._conflict = _Outage(
            "another program takes this bot's updates", account, _CONFLICT_PAUSE_S
        )

    async def identify(self) -> Bot:
        """Ask for the bot until there is an answer. Raises ``ChannelRefused``."""
        while True:
            try:
                bot = await self._client.get_me()
            except ChannelRefused:
                raise
            except ChannelError as error:
                await self._pause(error)
            else:
                self._network.over()
                return bot

    async def publish_commands(self) -> None:
        """Publish the command menu, if that works at the first try."""
        try:
            await self._client.set_commands(_MENU)
        except ChannelError as error:
            _log.info(
                "the command menu was not published",
                extra={"account": self._account, "reason": str(error)},
            )

    async def run(self, intake: Intake) -> None:
        """Poll until cancelled. Raises ``ChannelRefused``."""
        self._last_update_at = asyncio.get_running_loop().time()
        while True:
            updates = await self._poll()
            if updates:
                await self._take(updates, intake)

    async def _poll(self) -> list[object]:
        """One poll; an empty list also after trouble, which has been waited for by then."""
        now = asyncio.get_running_loop().time()
        if now - self._last_update_at > _IDS_LAST_S:
            self._offset = None
            self._last_update_at = now
        # The first poll tells apart what an earlier process may have seen from what comes now; and
        # while a batch is uncommitted every poll has something to bring.
        wait_s = 0 if self._first or self._uncommitted else self._wait_s
        try:
            updates = await self._client.get_updates(
                offset=self._offset, wait_s=wait_s, kinds=_KINDS
            )
        except ChannelRefused:
            raise
        except PollConflict as error:
            await self._on_conflict(error)
            return []
        except ChannelError as error:
            await self._pause(error)
            return []
        self._network.over()
        self._conflict.over()
        self._note(updates, now)
        return updates

    def _note(self, updates: Sequence[object], now: float) -> None:
        if updates:
            self._last_update_at = now
        if self._first:
            self._first = False
            self._redelivered_to = max(_ids(updates), default=-1)

    async def _take(self, updates: Sequence[object], intake: Intake) -> None:
        """Commit a batch, then confirm it by moving the offset."""
        batch = self._parse(updates)
        try:
            if batch:
                await intake.accept(batch)
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

    def _parse(self, updates: Sequence[object]) -> list[InboundMessage]:
        messages = []
        for update in updates:
            number = update_id(update)
            old = number is not None and number <= self._redelivered_to
            try:
                message = parse_update(update, account=self._account, redelivered=old)
            except Malformed as error:
                _log.warning(
                    "an update was skipped: it is malformed",
                    extra={"account": self._account, "update_id": number, "reason": str(error)},
                )
                continue
            if message is not None:
                messages.append(message)
        return messages

    async def _on_conflict(self, error: PollConflict) -> None:
        self._conflict.again(str(error))
        pause = _CONFLICT_PAUSE_S
        try:
            if url := await self._client.webhook():
                _log.warning(
                    "a webhook is set for this bot, which keeps polling from working: removing it",
                    extra={"account": self._account, "webhook": url},
                )
                await self._client.delete_webhook()
                pause = _WEBHOOK_PAUSE_S
        except ChannelRefused:
            raise
        except ChannelError as trouble:
            self._network.again(str(trouble))
        await asyncio.sleep(pause)

    async def _pause(self, error: ChannelError) -> None:
        pause = self._network.again(str(error))
        await asyncio.sleep(max(pause, error.retry_after_s or 0))


def _ids(updates: Sequence[object]) -> list[int]:
    return [number for update in updates if (number := update_id(update)) is not None]
