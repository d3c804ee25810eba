"""The way out: one sender per chat, so that a slow or flooded chat delays no other (SPEC IO-4).

A row is claimed, in a transaction of its own, before its request leaves, and marked after the
answer came. Between the two nobody knows whether the message was sent; only in that window can it
appear twice, and then it is marked ``possible_duplicate`` (SPEC IO-5).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial

from goclaw_py.core import wording
from goclaw_py.core.errors import (
    ChannelError,
    ChannelRefused,
    ChatGone,
    ChatMoved,
    Fenced,
    MaybeSent,
    StoreUnavailable,
    Undeliverable,
)
from goclaw_py.core.ids import NodeId
from goclaw_py.core.messages import OutboundMessage, PeerKind, Target
from goclaw_py.core.routing import peer_of
from goclaw_py.ports.channel import Channel
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import OutboxRow, Place, Store
from goclaw_py.runtime.about import work_on
from goclaw_py.runtime.meter import NO_METER, Delivery, Meter
from goclaw_py.runtime.pacing import Pacing
from goclaw_py.runtime.retry import send_delay_s, until_available, until_stored
from goclaw_py.runtime.wake import Wake

log = logging.getLogger(__name__)

POLL_S = 1.0
"""How often the table is looked at without any notice; notices are only hints (SPEC DB-3)."""

UNSURE_FOR = timedelta(hours=1)
"""A message that is older and may again have been delivered is dead: a person decides.

An outage of the channel's server looks the same as a lost answer, and outages last for minutes.
"""

_REFUSED_WAIT_S = 60.0
_SURE_WAIT_S = 60.0
_UNSURE_WAIT_S = 900.0
_MARK_S = 2.0
"""How long the end of the process waits for the mark on a message that was cut off."""


_MARK_TRIES = 3
"""How often a mark is tried that fails for a bug, before the message is put back as unsure."""


class Outbox:
    """Sends what is due.

    Args:
        goes_last: Whether what is said in a chat lets other chats go first.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        channels: Mapping[Place, Channel],
        pacing: Pacing,
        node: Callable[[], NodeId],
        *,
        goes_last: Callable[[Target], bool] = lambda _: False,
    ) -> None:
        self._node = node
        self._goes_last = goes_last
        self._meter: Meter = NO_METER
        self.wake = Wake()
        self._pacing = pacing
        self._store = store
        self._clock = clock
        self._channels = channels
        self._senders: dict[Target, asyncio.Task[bool]] = {}
        self._overlooked: set[Target] = set()
        self._in_found: dict[int, OutboundMessage] = {}
        """By row: messages that become a draft which was lost; their edits are repeated."""
        """Chats with a sender that a look found due: there may be more than it sends."""
        self._closed = False

    def connect(self, meter: Meter) -> None:
        """Give it who counts. Call it once, before anything is sent."""
        self._meter = meter

    async def run(self) -> None:
        """Start a sender for each chat that has something due. Runs until cancelled."""
        while True:
            self.wake.clear()
            try:
                wait_s = await self._look()
            except StoreUnavailable as error:
                log.debug("store_unavailable", extra={"error": str(error), "part": "outbox"})
                wait_s = POLL_S
            await self.wake.wait(wait_s)

    async def close(self, wait_s: float) -> None:
        """Send what is due, for at most ``wait_s`` seconds, and then no more.

        What is being sent at that moment is cut off; this may take ``_MARK_S`` seconds more.
        """
        try:
            async with asyncio.timeout(wait_s):
                await self._send_all()
        except (TimeoutError, StoreUnavailable):
            log.info("outbox_not_empty")
        self._closed = True
        senders = list(self._senders.values())
        for task in senders:
            task.cancel()
        await asyncio.gather(*senders, return_exceptions=True)

    async def _send_all(self) -> None:
        """Look and send until nothing more is sent."""
        while True:
            await self._look()
            if not self._senders:
                return
            done, _ = await asyncio.wait(list(self._senders.values()))
            # A chat that is due but cannot be claimed would spin.
            if not self._senders and not any(map(_has_sent, done)):
                return

    async def drop(self, ids: Collection[int]) -> int:
        """Give up messages that are dead or wait; how many there were.

        Raises ``StoreUnavailable``.
        """
        dropped = await self._store.drop_outbox(ids, now=self._clock.now())
        for channel in dropped.elements():
            self._meter.delivered(channel, Delivery.DROPPED)
        return dropped.total()

    @property
    def sending(self) -> int:
        """Chats that are being written to now."""
        return len(self._senders)

    async def _look(self) -> float:
        places = list(self._channels)
        for chat in await self._store.chats_due(places, now=self._clock.now()):
            if chat in self._senders:
                self._overlooked.add(chat)
            elif self._reaches(chat) and not self._closed:
                task = asyncio.create_task(self._serve(chat), name=f"send {chat.chat}")
                self._senders[chat] = task
                task.add_done_callback(partial(self._done, chat))
        due = await self._store.next_due(places)
        if due is None:
            return POLL_S
        seconds = (due - self._clock.now()).total_seconds()
        # A row that is due already is being worked on, or becomes free by a notice.
        return min(POLL_S, seconds) if seconds > 0 else POLL_S

    def _reaches(self, chat: Target) -> bool:
        return self._channels[chat.channel, chat.account].reaches(chat.chat)

    def _done(self, chat: Target, task: asyncio.Task[bool]) -> None:
        del self._senders[chat]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("outbox_sender_crashed", extra={"chat": chat.chat}, exc_info=error)
        if chat in self._overlooked:
            # Not after every end: a chat that is due but cannot be claimed would spin.
            self._overlooked.discard(chat)
            self.wake.call()

    async def _serve(self, chat: Target) -> bool:
        """Send the oldest message of a chat, once it may be sent; False if there is none."""
        # Claimed after the wait: what is claimed counts as being sent if we die.
        ticket = await self._pacing.message(chat, last=self._goes_last(chat))
        row = None
        try:
            if self._reaches(chat):
                # Repeated until there is an answer: a claim whose answer was lost is a claim.
                row = await until_available(partial(self._claim, chat))
        finally:
            if row is None:
                self._pacing.give_back(chat, ticket)
        if row is None:
            return False
        self._overlooked.add(chat)
        _work_on(row)
        try:
            await self._send(self._channels[chat.channel, chat.account], row)
        except Fenced:
            log.warning("outbox_message_taken_over", extra={"chat": chat})
        return True

    async def _claim(self, chat: Target) -> OutboxRow | None:
        return await self._store.claim_next(chat, node=self._node(), now=self._clock.now())

    async def _send(self, channel: Channel, row: OutboxRow) -> None:
        try:
            external_id = await self._deliver(channel, row)
        except ChannelError as error:
            await self._failed(row, error)
        except asyncio.CancelledError:
            await self._cut_off(row)
            raise
        except Exception as error:
            # A channel is a boundary: its bug must not leave the chat behind this row waiting.
            log.exception("channel_send_crashed", extra={"outbox": row.id})
            await self._failed(row, MaybeSent(f"{type(error).__name__}: {error}"))
        else:
            await self._mark(
                row,
                Delivery.SENT,
                lambda: self._store.mark_sent(row, external_id, now=self._clock.now()),
            )
            await self._remove_lost(channel, row.message, external_id)

    async def _deliver(self, channel: Channel, row: OutboxRow) -> str:
        """Send a message, in the draft that it finishes if that is found; returns the id of it."""
        message = self._in_found.get(row.id)
        if message is None:
            message = _told_if_again(channel, row)
            if message.draft is None and message.lost is not None:
                found = await self._find_draft(channel, message)
                message = replace(message, draft=found)
                if found is not None:
                    self._in_found[row.id] = message
        if not (message.text or message.draft or message.file):
            return ""  # it would only remove a draft, and there is none
        external_id = await channel.send(message)
        self._in_found.pop(row.id, None)
        return external_id

    async def _find_draft(
        self, channel: Channel, message: OutboundMessage, before: str | None = None
    ) -> str | None:
        """Look for the lost draft of a message. Raises ``ChannelError``: nothing was sent."""
        assert message.lost is not None
        target = message.target
        own = await until_available(lambda: self._store.own_messages(target))
        return await channel.find_draft(target, message.lost, before=before, known=own)

    async def _remove_lost(self, channel: Channel, message: OutboundMessage, sent: str) -> None:
        """Remove a lost draft that was not found before its message was sent beside it."""
        if message.draft is not None or message.lost is None or not sent:
            return
        try:
            found = await self._find_draft(channel, message, before=sent)
            if found is not None:
                await channel.send(OutboundMessage(message.target, "", draft=found))
        except ChannelError as error:
            log.info("draft_search_failed", extra={"run_id": message.run_id, "error": str(error)})
        except Exception:
            log.exception("draft_search_crashed", extra={"run_id": message.run_id})

    async def _mark(
        self, row: OutboxRow, result: Delivery, mark: Callable[[], Awaitable[None]]
    ) -> None:
        """Store what became of a message. A row that stays ``sending`` would block its chat."""
        facts = {"outbox": row.id, "chat": row.message.target.chat}
        try:
            await until_stored(mark, facts, tries=_MARK_TRIES)
        except Fenced:
            raise
        except Exception as bug:
            log.exception("outbox_message_not_marked", extra=facts)
            await until_stored(partial(self._put_back, row, f"{type(bug).__name__}: {bug}"), facts)
        else:
            self._count(row, result)

    def _count(self, row: OutboxRow, result: Delivery) -> None:
        delay_s = None
        if result is Delivery.SENT:
            delay_s = (self._clock.now() - row.created_at).total_seconds()
        self._meter.delivered(row.message.target.channel, result, delay_s)

    async def _put_back(self, row: OutboxRow, error: str) -> None:
        now = self._clock.now()
        if now - row.created_at > UNSURE_FOR:
            await self._store.mark_dead(row, error, now=now)
            self._count(row, Delivery.FAILED)
            return
        retry_at = now + timedelta(seconds=send_delay_s(row.attempts, _UNSURE_WAIT_S))
        await self._store.mark_failed(row, error, retry_at=retry_at, maybe_sent=True)
        self._count(row, Delivery.RETRIED)

    async def _cut_off(self, row: OutboxRow) -> None:
        """Mark a message whose sending the shutdown cut. Without it the node's end marks it."""
        try:
            async with asyncio.timeout(_MARK_S):
                await self._failed(row, MaybeSent("cut off by the shutdown"))
        except (TimeoutError, Fenced):
            log.info("outbox_message_cut_off", extra={"outbox": row.id})

    async def _failed(self, row: OutboxRow, error: ChannelError) -> None:
        facts = {"outbox": row.id, "chat": row.message.target.chat, "attempt": row.attempts}
        unsure = isinstance(error, MaybeSent)
        now = self._clock.now()
        if isinstance(error, ChatGone):
            await self._note_gone(row, error)
        if isinstance(error, Undeliverable) or (unsure and now - row.created_at > UNSURE_FOR):
            self._in_found.pop(row.id, None)
            log.warning("outbox_message_failed", extra={**facts, "error": str(error)})
            await self._mark(
                row,
                Delivery.FAILED,
                lambda: self._store.mark_dead(row, str(error), now=now, say=_words(row, error)),
            )
            return
        delay_s = error.retry_after_s
        if isinstance(error, ChatMoved) and await self._move(row, error):
            delay_s = 0.0
        if delay_s is None:
            refused = isinstance(error, ChannelRefused)
            # Each try that may be delivered may be seen twice: fewer of them.
            most_s = _UNSURE_WAIT_S if unsure else _SURE_WAIT_S
            delay_s = _REFUSED_WAIT_S if refused else send_delay_s(row.attempts, most_s)
        log.info(
            "outbox_message_retry", extra={**facts, "retry_in_s": delay_s, "error": str(error)}
        )
        retry_at = now + timedelta(seconds=delay_s)
        await self._mark(
            row,
            Delivery.RETRIED,
            lambda: self._store.mark_failed(row, str(error), retry_at=retry_at, maybe_sent=unsure),
        )

    async def _note_gone(self, row: OutboxRow, error: ChatGone) -> None:
        """Nobody is written to who does not want it, until they write again (SPEC CHAN-7)."""
        target = row.message.target
        peer = PeerKind.DIRECT if row.session is None else peer_of(row.session)
        await self._learn(
            row,
            lambda: self._store.mark_chat(target, peer, gone=str(error), now=self._clock.now()),
        )

    async def _move(self, row: OutboxRow, error: ChatMoved) -> bool:
        """The chat's new id came with a refusal: what waits for the old one goes there.

        False if nothing was moved, this row neither.
        """
        target = row.message.target
        log.info("chat_moved", extra={"chat": target.chat, "new_chat": error.chat})
        moved: list[bool] = []

        async def move() -> None:
            moved.append(
                await self._store.move_chat(
                    target.channel,
                    target.account,
                    old=target.chat,
                    new=error.chat,
                    now=self._clock.now(),
                )
            )

        await self._learn(row, move)
        return any(moved)

    async def _learn(self, row: OutboxRow, note: Callable[[], Awaitable[None]]) -> None:
        """Store what a channel told of a chat. A bug there must not keep the row ``sending``."""
        facts = {"outbox": row.id, "chat": row.message.target.chat}
        try:
            await until_stored(note, facts, tries=_MARK_TRIES)
        except Fenced:
            raise
        except Exception:
            log.exception("chat_state_not_stored", extra=facts)


def _told_if_again(channel: Channel, row: OutboxRow) -> OutboundMessage:
    """The message, with a line that tells if an earlier try of it may be in the chat (SPEC IO-5).

    What is repeated by an edit is seen once. A lost draft makes a row doubtful before its first.
    """
    message = row.message
    first = message.lost is not None and row.attempts <= 1
    if message.draft is not None or not row.possible_duplicate or first:
        return message
    line = wording.sent_again(channel.name)
    lines = channel.parts(line) if message.rich else [line]
    return replace(message, text="\n\n".join(filter(None, [message.text, *lines])))


def _words(row: OutboxRow, error: ChannelError) -> tuple[OutboundMessage, ...]:
    """What the chat reads of a part of a reply that its channel refuses for good (SPEC IO-3).

    Nothing if it reads nothing any more, or if who looks after heartbeats and jobs tells it.
    """
    message = row.message
    of_others = message.beat is not None or message.occurrence is not None
    if message.run_id is None or of_others or not isinstance(error, Undeliverable):
        return ()
    if isinstance(error, ChatGone):
        return ()
    name = "" if message.file is None else message.file.name
    text = wording.not_delivered(name, str(error), row.id)
    return (OutboundMessage(message.target, text, reply_to=message.reply_to),)


def _work_on(row: OutboxRow) -> None:
    message = row.message
    work_on(
        outbox=row.id,
        chat=message.target.chat,
        channel=message.target.channel,
        run_id=message.run_id,
        session=row.session,
        occurrence=message.occurrence,
        heartbeat_run=message.beat,
    )


def _has_sent(task: asyncio.Task[bool]) -> bool:
    """Whether a sender had something to send."""
    return not task.cancelled() and task.exception() is None and task.result()
