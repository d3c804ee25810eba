"""Finding what an attempt without an answer has left in a chat (SPEC IO-5).

The rules of SPEC IO-5:

A text can appear twice only in one window: from the moment its request leaves until its answer is
committed; lost answers are in it.

- A request that certainly did not leave, or that a server before the Bot API refused (a page with
  3xx or 4xx; a 5xx may come after its effect), is retried freely. In the window an edit is
  repeated, which is harmless. A new message is sent again, recorded as `possible_duplicate`, and
  its last line says so: "(sent again, because Telegram did not confirm the first attempt)", with
  the name of its channel. Of an answer in several parts only the repeated part has the line.
  Alerts are compared without it.
- When such a message is stored as sent, a channel that can looks for its first copy; if there
  certainly is none, line and record are taken back. In Telegram it tries up to 16 unknown ids
  between the newest message that was known when it was written and the message itself; more, or an
  answer that says something else than "no message of ours", keeps the line. A file has it in its
  caption; an album, whose files come together, below its first file. A first attempt that takes
  effect even after this look comes without one.
- A reply that people see grow is a draft: its id is stored, and an edit finishes it. A reply that
  is complete within 0.8 s of its first word is a new message instead.
- A draft whose first post got no answer, also because of a crash, is searched for: by its run,
  which continues in it, or else when its reply is sent, which then finishes it. In Telegram it is
  found by its stop button, among the 8 unknown ids after the question and the 8 before the reply;
  ids of stored messages do not count, in direct chats and small groups, whose ids run on over all
  of them, also those of other chats. The search changes nothing else in the chat.
- If the run has nothing to say, or the reply came before the draft, the draft is removed. A draft
  that is not found keeps its beginning, and its reply has the line and the record of a repeated
  message, until a look shows that the draft never came; its stop button goes away when it is
  pressed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from goclaw_py.chat.channel import Channel
from goclaw_py.core.errors import ChannelError, Fenced, MaybeSent, NotSent, Undeliverable
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.retry import until_stored
from goclaw_py.records import OutboxRow
from goclaw_py.records.bound import BoundStore

log = logging.getLogger(__name__)

_CLEAR_TRIES = 3


class Copies:
    """Searches lost drafts, and first copies of messages that were sent again."""

    def __init__(self, store: BoundStore) -> None:
        self._store = store

    async def find_draft(
        self, channel: Channel, message: OutboundMessage, before: str | None = None
    ) -> str | None:
        """Search the lost draft of a message. Raises ``ChannelError``: nothing was sent."""
        assert message.lost is not None
        target = message.target
        try:
            everywhere = channel.counts_everywhere(target.chat)
            own = await self._store.retried.own_messages(target, everywhere=everywhere)
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
            earlier = await self._store.retried.newest_before(
                message.target, row.created_at, everywhere=everywhere
            )
            earlier |= frozenset(filter(None, [message.reply_to]))
        if not earlier:
            return False
        known = await self._store.retried.own_messages(message.target, everywhere=everywhere)
        return await channel.unmark(message, sent, earlier=earlier, known=known)
