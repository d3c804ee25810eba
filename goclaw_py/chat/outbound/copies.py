"""Finding what an attempt without an answer has left in a chat (SPEC IO-5)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from goclaw_py.chat.channel import Channel
from goclaw_py.core.errors import ChannelError, Fenced, MaybeSent, NotSent, Undeliverable
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.retry import retry_until_available, until_stored
from goclaw_py.records import OutboxRow, Store

log = logging.getLogger(__name__)

_CLEAR_TRIES = 3


class Copies:
    """Searches lost drafts, and first copies of messages that were sent again."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find_draft(
        self, channel: Channel, message: OutboundMessage, before: str | None = None
    ) -> str | None:
        """Search the lost draft of a message. Raises ``ChannelError``: nothing was sent."""
        assert message.lost is not None
        target = message.target
        try:
            everywhere = channel.counts_everywhere(target.chat)
            own = await retry_until_available(
                lambda: self._store.own_messages(target, everywhere=everywhere)
            )
            return await channel.find_draft(target, message.lost, before=before, known=own)
        except Undeliverable:
            return None
        except MaybeSent as error:
            raise NotSent(str(error)) from error
        except ChannelError:
            raise
        except Exception:
            # A boundary: a bug here must not cost the message.
            log.exception("draft_search_crashed", extra={"run_id": message.run_id})
            return None

    async def remove_lost(self, channel: Channel, message: OutboundMessage, sent: str) -> None:
        """Remove a lost draft that was not found before its message was sent beside it."""
        try:
            found = await self.find_draft(channel, message, before=sent)
            if found is not None:
                await channel.send(OutboundMessage(message.target, "", draft=found))
        except ChannelError as error:
            log.info("lost_draft_not_removed", extra={"error": str(error)})

    async def unmark(self, channel: Channel, rows: Sequence[OutboxRow], sent: str) -> None:
        """Take the line off a message that is in its chat once after all, and its record.

        Call it when the message is stored as sent: a crash before would send it once more. Of an
        album only the first file, which was ``sent``, has the line and is searched: its files come
        together or not at all.
        """
        facts = {"outbox": rows[0].id, "chat": rows[0].message.target.chat}
        try:
            if await self._is_unmarked(channel, rows[0], sent):
                for row in rows:
                    clear = partial(self._store.clear_duplicate, row)
                    await until_stored(clear, facts, tries=_CLEAR_TRIES)
        except ChannelError as error:
            log.info("copy_not_looked_for", extra={**facts, "error": str(error)})
        except Fenced:
            raise
        except Exception:
            # A boundary: the message was sent, and others wait behind it.
            log.exception("copy_search_crashed", extra=facts)

    async def _is_unmarked(self, channel: Channel, row: OutboxRow, sent: str) -> bool:
        message = row.message
        everywhere = channel.counts_everywhere(message.target.chat)
        if message.lost is not None:
            # The draft was posted before the message was stored.
            earlier = frozenset(filter(None, [message.lost.after]))
        else:
            earlier = await retry_until_available(
                lambda: self._store.newest_before(
                    message.target, row.created_at, everywhere=everywhere
                )
            )
            earlier |= frozenset(filter(None, [message.reply_to]))
        if not earlier:
            return False
        known = await retry_until_available(
            lambda: self._store.own_messages(message.target, everywhere=everywhere)
        )
        return await channel.unmark(message, sent, earlier=earlier, known=known)
