"""Streaming replies: one draft per run, edited while the agent speaks (SPEC CHAN-4).

A draft is stored before it is posted, and its id before it is edited. So after a crash the next run
for the same messages continues the draft, and the final reply, an edit of it, can be repeated
without appearing twice (SPEC IO-5). A draft whose response was lost is searched in the chat: by its
run while that is running, then by the outbox.

The rules of SPEC CHAN-4:

Typing from 0.25 s after a message is accepted or a waiting run starts, if nothing was sent to the
chat meanwhile and the run has not ended: a quick answer costs no call. Every 4-5 s while the run
works; once for messages that wait, none in the 2 s after a message of the bot; in a forum's
General topic with thread 1, which only this call needs. Replies stream into one draft by edits (≥
1 s apart, none that changes nothing), which has a stop button; `streaming = "native"` uses
Telegram's own drafts in direct chats instead, `"off"` none. The buttons of a message are removed
once. Reactions: waiting for 2 s in which nothing was sent to the chat 👀 (unless its run starts
before the call), done cleared, failed 👎; setting.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from goclaw_py.chat.channel import Channel
from goclaw_py.chat.outbound.rate_limiter import RateLimiter
from goclaw_py.core.errors import ChannelError, MaybeSent, RunNotStarted, StoreError, Undeliverable
from goclaw_py.core.ids import NodeId, RunId
from goclaw_py.core.messages import LostDraft, OutboundMessage
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.retry import retry_until_available
from goclaw_py.core.run_events import RunSignal, RunWaiting
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import Place, RunStartResult
from goclaw_py.records.bound import BoundStore
from goclaw_py.runs.replies.draft import OrphanedReply, ReplyDraft
from goclaw_py.runs.replies.wait_line import WaitLine
from goclaw_py.runs.turn import Turn

log = logging.getLogger(__name__)

FIRST_AFTER_S = 0.8
"""A reply that is complete this soon after its first text needs no draft, in seconds."""

EDIT_EVERY_S = 1.0
"""The shortest time between two edits of a draft, in seconds (SPEC CHAN-4)."""

_LOOKS = 3
"""How often a run searches for its draft, if the channel can search."""

_SETTLE_S = 5.0
"""Seconds that the end of a run waits for a request in progress.

An edit that arrives after the final one would undo it.
"""


class StreamingReplies:
    """Updates the drafts of turns.

    Args:
        shows_first: Called before the chat shows anything of a run.
    """

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        channels: Mapping[Place, Channel],
        pacing: RateLimiter,
        shows_first: Callable[[RunId], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._channels = channels
        self._pacing = pacing
        self._shows_first = shows_first
        self._late: set[asyncio.Task[None]] = set()
        """Drafts of runs that have ended while a request was in progress."""

    def begin(self, turn: Turn, begun: RunStartResult, node: NodeId) -> None:
        """Start a run, for which an earlier run may have left a draft."""
        target = turn.target
        channel = self._channels[target.channel, target.account]
        wait = turn.wait = WaitLine(begun, partial(self._wait_changed, turn))
        if begun.draft or begun.lost or channel.drafts(target, turn.peer):
            after = next(iter(turn.message_ids), None)
            turn.draft = ReplyDraft(
                turn.id,
                target,
                turn.reply_to,
                channel,
                begun.draft,
                begun.lost or LostDraft(turn.id, after),
                begun.lost is not None,
                node,
                wait,
                kept=begun.draft is not None,
            )

    def add(self, turn: Turn, text: str) -> bool:
        """Add text of the agent; return whether the run has a draft."""
        draft = turn.draft
        if draft is None:
            return False
        if draft.room > 0:
            draft.said.append(text[: draft.room])
            draft.room -= len(text)
            self._change(draft)
        return True

    def _wait_changed(self, turn: Turn) -> None:
        if turn.draft is not None:
            self._change(turn.draft)
        elif (wait := turn.wait) is not None:
            line = wait.text_without_tools
            if line != wait.signalled:
                wait.signalled = line
                self.signal(turn, RunWaiting(turn.id, turn.target, line))

    def signal(self, turn: Turn, signal: RunSignal) -> None:
        """Signal to the channel of a turn what its run does."""
        channel = self._channels.get((signal.target.channel, signal.target.account))
        if channel is None:
            return
        try:
            channel.signal(signal)
        except Exception:
            # A channel is a boundary: what it fails to show must not cost the answer.
            log.exception("channel_signal_failed", extra=turn.facts)

    def _change(self, draft: ReplyDraft) -> None:
        draft.changed.set()
        if draft.task is None:
            draft.task = asyncio.create_task(self._show(draft), name=f"draft {draft.run_id}")

    def stop(self, turn: Turn) -> OrphanedReply:
        """Stop updating a draft; return what is in the chat now, as far as known.

        A request in progress continues until ``end``.
        """
        if turn.wait is not None:
            turn.wait.close()
        draft = turn.draft
        if draft is None:
            return OrphanedReply()
        if draft.task is not None:
            draft.task.cancel()
        return draft.left

    async def end(self, turn: Turn) -> OrphanedReply:
        """Stop updating a draft, wait for a request in progress, and return what is in the chat."""
        draft = await self._ended(turn)
        if draft is None:
            return OrphanedReply()
        await self._store_id_at_end(draft)
        return draft.left

    async def hand_over(self, turn: Turn) -> None:
        """Store a run's draft for the node that owns the session now.

        If that node ended the run without knowing the draft, it will never be closed, so it is
        removed. Waits for the database.
        """
        draft = await self._ended(turn)
        if draft is not None and draft.id is not None and not draft.kept:
            await self._store_or_remove(draft)

    async def remove_lost(self, turn: Turn) -> None:
        """Remove the lost draft of an ended run, if it is in the chat; no message completes it.

        Waits for the database.
        """
        if turn.draft is not None:
            await self._remove(turn.draft)

    async def _ended(self, turn: Turn) -> ReplyDraft | None:
        """Return the draft of a run, with no update in progress."""
        draft = turn.draft
        if draft is None:
            return None
        if draft.task is not None:
            draft.task.cancel()
            await asyncio.wait({draft.task})
        if draft.request is not None:
            await self._settle(draft, draft.request)
            draft.request = None
        return draft

    async def _settle(self, draft: ReplyDraft, request: asyncio.Task[ChannelError | None]) -> None:
        """Wait a while for a request in progress."""
        await asyncio.wait({request}, timeout=_SETTLE_S)
        if request.done():
            return
        if draft.id is None:
            draft.unsure = True
            late = asyncio.create_task(self._end_late(draft, request), name=f"late {draft.run_id}")
            self._late.add(late)
            late.add_done_callback(self._late.discard)
        else:
            # What has not left by now must not arrive after the final edit.
            request.cancel()

    async def _end_late(
        self, draft: ReplyDraft, request: asyncio.Task[ChannelError | None]
    ) -> None:
        """Remove a draft that was posted after its run had ended."""
        error = await request
        if draft.id is not None or isinstance(error, MaybeSent):
            await self._store_or_remove(draft)

    async def _store_or_remove(self, draft: ReplyDraft) -> None:
        """Remove a draft, unless another run continues it."""
        if draft.id is None or not await retry_until_available(lambda: self._store_id(draft)):
            await self._remove(draft)

    async def _remove(self, draft: ReplyDraft) -> None:
        """Let the outbox remove a draft that is unchanged since its run.

        The outbox orders it with other messages of the chat.
        """
        lost = replace(draft.lost, id=draft.id)
        say = [OutboundMessage(draft.target, "", run_id=draft.run_id, lost=lost)]
        now = self._clock.now()
        await self._store.retried.settle([], Outcome.COMPLETED, now=now, say=say)

    # ------------------------------------------------------------------ one draft

    async def _show(self, draft: ReplyDraft) -> None:
        """Update a draft until its run ends."""
        try:
            await asyncio.sleep(FIRST_AFTER_S)
            while True:
                await draft.changed.wait()
                draft.changed.clear()
                if not draft.view:
                    if draft.id is not None:
                        continue  # there is nothing that it could be edited to
                    # A tool was used too briefly to be shown: wait again for the first text.
                    draft.task = None
                    return
                pause = await self._show_once(draft)
                if pause is None:
                    return
                await asyncio.sleep(pause)
        except RunNotStarted:
            log.debug("draft_too_late", extra={"run_id": draft.run_id})
        except StoreError as error:
            log.warning("draft_given_up", extra={"run_id": draft.run_id, "error": str(error)})

    async def _show_once(self, draft: ReplyDraft) -> float | None:
        """Update a draft; return the seconds until the next update, None to stop."""
        await self._pacing.draft(draft.target)
        self._shows_first(draft.run_id)
        if draft.id is None and not draft.unsure:
            await retry_until_available(
                lambda: self._store.open_draft(draft.run_id, draft.target, now=self._clock.now())
            )
        live = self._store.live()
        if live != draft.node:
            # Another node may continue the run: an edit now could undo its final edit.
            draft.changed.set()
            return EDIT_EVERY_S if live is None else None
        ask = self._search(draft) if draft.unsure else _request(draft)
        draft.request = asyncio.create_task(ask, name=f"draft {draft.run_id}")
        with self._pacing.sending(draft.target):
            error = await asyncio.shield(draft.request)
        if error is not None:
            return _pause_after(draft, error)
        if draft.unsure:
            return 2 * EDIT_EVERY_S if draft.looks < _LOOKS else None
        if draft.kept or await retry_until_available(lambda: self._store_id(draft)):
            return EDIT_EVERY_S
        return None

    async def _search(self, draft: ReplyDraft) -> ChannelError | None:
        """Search for a draft whose response was lost; return the error, if any."""
        draft.changed.set()
        try:
            everywhere = draft.channel.counts_everywhere(draft.target.chat)
            own = await self._store.retried.own_messages(draft.target, everywhere=everywhere)
            draft.id = await draft.channel.find_draft(
                draft.target, draft.lost, before=None, known=own
            )
        except ChannelError as error:
            return error
        except Exception as error:
            log.exception("draft_search_crashed", extra={"run_id": draft.run_id})
            return Undeliverable(f"{type(error).__name__}: {error}")
        draft.unsure = draft.id is None
        draft.looks += 1
        log.info("draft_looked_for", extra={"run_id": draft.run_id, "found": not draft.unsure})
        return None

    async def _store_id(self, draft: ReplyDraft) -> bool:
        """Store the id of a posted draft; return False if nothing will use it."""
        assert draft.id is not None
        draft.kept = await self._store.draft_posted(draft.run_id, draft.id)
        return draft.kept

    async def _store_id_at_end(self, draft: ReplyDraft) -> None:
        """Store the id at the end of a run, for the process that may continue it."""
        if draft.id is None or draft.kept:
            return
        try:
            await self._store_id(draft)
        except StoreError as error:
            log.debug("draft_id_not_stored", extra={"run_id": draft.run_id, "error": str(error)})


async def _request(draft: ReplyDraft) -> ChannelError | None:
    """Post or edit the draft; return the error, if any."""
    text = draft.text
    try:
        message = OutboundMessage(
            draft.target, draft.view, reply_to=draft.reply_to, run_id=draft.run_id, draft=draft.id
        )
        if draft.id is None:
            draft.id = await draft.channel.post_draft(message)
        else:
            await draft.channel.edit_draft(message)
            draft.lost = replace(draft.lost, run_id=draft.run_id)
    except ChannelError as error:
        return error
    except Exception as error:
        # A channel is a boundary: what it fails to show must not cost the answer.
        log.exception("draft_update_crashed", extra={"run_id": draft.run_id})
        return MaybeSent(f"{type(error).__name__}: {error}")
    draft.shown = text
    return None


def _pause_after(draft: ReplyDraft, error: ChannelError) -> float | None:
    log.debug("draft_update_failed", extra={"run_id": draft.run_id, "error": str(error)})
    draft.changed.set()
    if isinstance(error, MaybeSent) and draft.id is None:
        draft.unsure = True
    if isinstance(error, Undeliverable) or not error.retryable:
        return None
    return max(error.retry_after_s or 0.0, 2 * EDIT_EVERY_S)
