"""The outbox sender: one task per chat, so that a slow chat delays no other (SPEC IO-4).

A row is claimed, in its own transaction, before its request is sent, and marked after the response.
In between it is unknown whether the message was sent; only then can it appear twice, and then it is
marked ``possible_duplicate`` (SPEC IO-5).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from goclaw_py.chat.channel import Channel
from goclaw_py.chat.outbound import texts
from goclaw_py.chat.outbound.albums import send_together
from goclaw_py.chat.outbound.copies import Copies
from goclaw_py.chat.outbound.places import place_name
from goclaw_py.chat.outbound.rate_limiter import RateLimiter
from goclaw_py.chat.outbound.refusal_texts import has_copy_note, refusal_notice, with_copy_note
from goclaw_py.core.concurrency import WakeEvent, work_on
from goclaw_py.core.errors import (
    ChannelError,
    ChannelRefused,
    ChatGone,
    ChatMoved,
    Fenced,
    MaybeSent,
    StoreUnavailable,
    TopicGone,
    Undeliverable,
)
from goclaw_py.core.messages import OutboundMessage, PeerKind, Target, TopicState
from goclaw_py.core.metrics import NO_METER, Delivery, MetricsRecorder
from goclaw_py.core.retry import retry_until_available, send_delay_s, until_stored
from goclaw_py.core.session_keys import peer_of
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import OutboxRow, Place
from goclaw_py.records.bound import BoundStore

log = logging.getLogger(__name__)

_WENT_BACK = timedelta(seconds=1)
POLL_S = 1.0
"""The polling interval in seconds; notices are only hints (SPEC DB-3)."""

UNSURE_FOR = timedelta(hours=1)
"""An older message that may have been delivered twice is dead: a person decides.

An outage of the channel's server looks like a lost response, and may last for minutes.
"""

_REFUSED_WAIT_S = 60.0
_SURE_WAIT_S = 60.0
_UNSURE_WAIT_S = 900.0
_MARK_S = 2.0
"""Seconds that the shutdown waits to mark a message whose sending it cancelled."""
_MARK_TRIES = 3
"""The attempts to mark a row that fail because of a bug; then it is pending as unsure."""


class OutboxSender:
    """Sends due messages.

    Args:
        goes_last: Returns whether messages of a chat give way to those of other chats.
        is_topic_gone: Returns whether a topic is known to be closed; any other is tried first.
    """

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        channels: Mapping[Place, Channel],
        pacing: RateLimiter,
        *,
        goes_last: Callable[[Target], bool] = lambda _: False,
        is_topic_gone: Callable[[Target], bool] = lambda _: False,
        meter: MetricsRecorder = NO_METER,
    ) -> None:
        self._goes_last = goes_last
        self._meter = meter
        self._is_topic_gone = is_topic_gone
        self.wake = WakeEvent()
        self._pacing = pacing
        self._store = store
        self._clock = clock
        self._channels = channels
        self._senders: dict[Target, asyncio.Task[bool]] = {}
        self._overlooked: set[Target] = set()
        """Chats with a sender in which there may be more messages."""
        self._looks, self._looked_at = 0, clock.now()  # how many have begun, and the last one
        self._in_found: dict[int, OutboundMessage] = {}
        """By row: messages that complete a lost draft which was found; their edits are repeated."""
        self._copies = Copies(store)
        self._closed = False

    async def run(self) -> None:
        """Start a sender for each chat with a due message. Runs until cancelled."""
        while True:
            self.wake.clear()
            try:
                wait_s = await self._poll()
            except StoreUnavailable as error:
                log.debug("store_unavailable", extra={"error": str(error), "part": "outbox"})
                wait_s = POLL_S
            await self.wake.wait(wait_s)

    async def close(self, wait_s: float) -> None:
        """Send what is due for up to ``wait_s`` seconds, then stop.

        Requests in progress are cancelled then, which may take ``_MARK_S`` seconds more.
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
        """Look and send until nothing more is due."""
        while True:
            await self._poll()
            if not self._senders:
                return
            done, _ = await asyncio.wait(list(self._senders.values()))
            sent = [task for task in done if not (task.cancelled() or task.exception())]
            # A chat that is due but cannot be claimed would spin.
            if not self._senders and not any(task.result() for task in sent):
                return

    @property
    def sending(self) -> int:
        """Return the number of chats to which a message is being sent."""
        return len(self._senders)

    async def _poll(self) -> float:
        self._looks += 1
        places, now = list(self._channels), self._clock.now()
        if now < self._looked_at - _WENT_BACK:
            # Else they waited for the former time. What waits for less keeps its backoff.
            longest = timedelta(seconds=_UNSURE_WAIT_S)
            await self._store.advance_outbox(after=now + longest, by=self._looked_at - now)
        self._looked_at = now
        due = await self._store.chats_due(places, now=now)
        for chat, count in due.counts.items():
            if chat in self._senders:
                self._overlooked.add(chat)
            elif self._reaches(chat) and not self._closed:
                task = asyncio.create_task(self._serve(chat, count), name=f"send {chat.chat}")
                self._senders[chat] = task
                task.add_done_callback(partial(self._done, chat))
        if due.next_at is None:
            return POLL_S
        return min(POLL_S, max((due.next_at - self._clock.now()).total_seconds(), 0.0))

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

    async def _serve(self, chat: Target, count: int) -> bool:
        """Send the oldest message of a chat once its limits allow; False if there is none.

        ``count``: the number of messages when it was found, the files of an album.
        """
        # Claimed after the wait: what is claimed counts as being sent if we die.
        ticket = await self._pacing.message(chat, count=count, last=self._goes_last(chat))
        rows: list[OutboxRow] = []
        try:
            if self._reaches(chat):
                # Repeated until there is an answer: a claim whose answer was lost is a claim.
                rows = await retry_until_available(partial(self._claim, chat))
        finally:
            if not rows:
                self._pacing.give_back(chat, ticket)
        if not rows:
            return False
        self._overlooked.add(chat)
        message = rows[0].message
        work_on(
            outbox=rows[0].id,
            chat=message.target.chat,
            channel=message.target.channel,
            run_id=message.run_id,
            session=rows[0].session,
            occurrence=message.occurrence,
            heartbeat_run=message.heartbeat_run,
        )
        try:
            if not await self._send(self._channels[chat.channel, chat.account], rows):
                self._overlooked.discard(chat)
        except Fenced:
            log.warning("outbox_message_taken_over", extra={"chat": chat})
        return True

    async def _claim(self, chat: Target) -> list[OutboxRow]:
        """Claim the oldest message of a chat, with the others of its album."""
        node = self._store.node()
        row = await self._store.claim_next(chat, node=node, now=self._clock.now())
        if row is None:
            return []
        return [row, *(await self._store.claim_album(row, node=node) if row.message.album else ())]

    async def _send(self, channel: Channel, rows: Sequence[OutboxRow]) -> bool:
        """Send, and mark the rows. Returns False if nothing else waits in the chat."""
        try:
            with self._pacing.sending(rows[0].message.target):
                ids = await self._deliver(channel, rows)
        except ChannelError as error:
            await self._all_failed(rows, error)
        except asyncio.CancelledError:
            await asyncio.gather(*map(self._mark_cancelled, rows))
            raise
        except Exception as error:
            # A channel is a boundary: its bug must not leave the chat behind this row waiting.
            log.exception("channel_send_crashed", extra={"outbox": rows[0].id})
            await self._all_failed(rows, MaybeSent(f"{type(error).__name__}: {error}"))
        else:
            is_marked = rows[0].id not in self._in_found and has_copy_note(rows[0])
            others = True
            for row, external_id in zip(rows, ids, strict=True):
                others = await self._sent(channel, row, external_id)
            if not is_marked:
                return others
            await self._copies.unmark(channel, rows, ids[0])
        return True  # others may have come during the search

    async def _sent(self, channel: Channel, row: OutboxRow, external_id: str) -> bool:
        """Mark a row. Returns False if nothing else waits in the chat.

        A look that begins meanwhile may not see a message behind this one, so it does not count.
        """
        message, found = row.message, self._in_found.pop(row.id, None)
        is_finished = message.lost is None or message.draft is not None or found is not None
        beside = bool(external_id) and not is_finished
        looks, others = self._looks, True

        async def mark() -> None:
            nonlocal others
            others = await self._store.mark_sent(
                row, external_id, now=self._clock.now(), beside_draft=beside
            )

        await self._mark(row, Delivery.SENT, mark)
        if beside:
            await self._copies.remove_lost(channel, message, external_id)
        return others or looks != self._looks or self.wake.is_called

    async def _deliver(self, channel: Channel, rows: Sequence[OutboxRow]) -> list[str]:
        """Send to the topic, else to the general topic. Raises the errors of ``send``."""
        first = await self._with_draft(channel, rows[0])
        if not (first.text or first.draft or first.file):
            return [""]  # it would only remove a draft, and there is none
        messages = [first, *(row.message for row in rows[1:])]
        target = first.target
        # A draft may still be finished where it is.
        if target.thread is None or messages[0].draft or not self._is_topic_gone(target):
            try:
                return await self._try(channel, rows[0], messages)
            except TopicGone:
                if target.thread is None:
                    raise
        ids = await self._try(channel, rows[0], [message.in_general for message in messages])
        await self._learn(rows[0], partial(self._say_topic_gone, target))
        return ids

    async def _with_draft(self, channel: Channel, row: OutboxRow) -> OutboundMessage:
        """Return the message to send, with the lost draft that it completes if that is found."""
        message = self._in_found.get(row.id)
        if message is None or message.target != row.message.target:
            message, found = row.message, None
            if message.draft is None and message.lost is not None:
                found = await self._copies.find_draft(channel, message)
            if has_copy_note(row, found):
                message = with_copy_note(channel, message)
            if found is not None:
                message = self._in_found[row.id] = replace(message, draft=found)
        return message

    async def _try(
        self, channel: Channel, row: OutboxRow, messages: Sequence[OutboundMessage]
    ) -> list[str]:
        """Send, and record whether the topic accepts messages. Raises the errors of ``send``."""
        target = messages[0].target
        try:
            ids = await send_together(channel, messages)
        except TopicGone as error:
            log.info("topic_gone", extra={"outbox": row.id, "error": str(error)})
            state = TopicState.CLOSED if error.closed else TopicState.DELETED
            await self._learn(row, partial(self._store.note_topic, target, state=state))
            if target.thread is None:
                words = f"the general topic is {state.value}"
                raise TopicGone(words, closed=error.closed) from None
            raise
        if self._is_topic_gone(target) and not messages[0].draft:
            # It is not known to be open again.
            await self._learn(row, partial(self._store.note_topic, target, state=TopicState.OPEN))
        return ids

    async def _say_topic_gone(self, target: Target) -> None:
        """Announce in the general topic, once, for which topic the last message was."""
        topic = await self._store.topic(target)
        if topic.told or not topic.state:
            return
        place = await place_name(self._store, target)
        text = texts.topic_gone(place, closed=topic.state is TopicState.CLOSED)
        say = [OutboundMessage(target, text).in_general]
        await self._store.notify_topic_gone(target, say, now=self._clock.now())

    async def _all_failed(self, rows: Sequence[OutboxRow], error: ChannelError) -> None:
        for_all = isinstance(error, ChatGone | TopicGone)
        if len(rows) > 1 and isinstance(error, Undeliverable) and not for_all:
            # Only one of the files may be refused: sent one by one, each has its own result.
            log.info("album_taken_apart", extra={"outbox": rows[0].id, "error": str(error)})
            for row in rows:
                await self._release(row, str(error), alone=True)
            return
        for row in rows:
            await self._failed(row, error)

    async def _release(self, row: OutboxRow, error: str, *, alone: bool = False) -> None:
        """Make a message that was certainly not sent pending again."""
        await self._mark(
            row,
            Delivery.RETRIED,
            lambda: self._store.mark_failed(
                row, error, retry_at=self._clock.now(), maybe_sent=False, alone=alone
            ),
        )

    async def _mark(
        self, row: OutboxRow, result: Delivery, mark: Callable[[], Awaitable[None]]
    ) -> None:
        """Store the result of a message. A row that stays ``sending`` would block its chat."""
        facts = {"outbox": row.id, "chat": row.message.target.chat}
        try:
            await until_stored(mark, facts, tries=_MARK_TRIES)
        except Fenced:
            raise
        except Exception as bug:
            log.exception("outbox_message_not_marked", extra=facts)
            await until_stored(partial(self._requeue, row, f"{type(bug).__name__}: {bug}"), facts)
        else:
            self._count(row, result)

    def _count(self, row: OutboxRow, result: Delivery) -> None:
        delay_s = None
        if result is Delivery.SENT:
            delay_s = (self._clock.now() - row.created_at).total_seconds()
        self._meter.delivered(row.message.target.channel, result, delay_s)

    async def _requeue(self, row: OutboxRow, error: str) -> None:
        now = self._clock.now()
        if now - row.created_at > UNSURE_FOR:
            await self._store.mark_dead(row, error, now=now)
            self._count(row, Delivery.FAILED)
            return
        retry_at = now + timedelta(seconds=send_delay_s(row.attempts, _UNSURE_WAIT_S))
        await self._store.mark_failed(row, error, retry_at=retry_at, maybe_sent=True)
        self._count(row, Delivery.RETRIED)

    async def _mark_cancelled(self, row: OutboxRow) -> None:
        """Mark a message whose sending was cancelled; otherwise the node's end marks it."""
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
                lambda: self._store.mark_dead(
                    row, str(error), now=now, say=refusal_notice(row, error)
                ),
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
        """Record that a chat cannot be reached, until somebody writes in it (SPEC CHAN-7)."""
        target = row.message.target
        peer = PeerKind.DIRECT if row.session is None else peer_of(row.session)
        await self._learn(
            row,
            lambda: self._store.mark_chat(target, peer, gone=str(error), now=self._clock.now()),
        )

    async def _move(self, row: OutboxRow, error: ChatMoved) -> bool:
        """Move everything to a chat's new id, which a refusal has told.

        Returns False if nothing was moved, including this row.
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
        """Store news about a chat. A bug there must not keep the row ``sending``."""
        facts = {"outbox": row.id, "chat": row.message.target.chat}
        try:
            await until_stored(note, facts, tries=_MARK_TRIES)
        except Fenced:
            raise
        except Exception:
            log.exception("chat_state_not_stored", extra=facts)
