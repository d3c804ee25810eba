"""Streaming replies: one draft per run, edited while the agent speaks (SPEC CHAN-4).

A draft is stored before it is posted, and its id before it is edited. So after a crash the next run
for the same messages continues the draft, and the final reply, an edit of it, can be repeated
without appearing twice (SPEC IO-5). A draft whose response was lost is searched in the chat: by its
run while that is running, then by the outbox.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from goclaw_py.chat.channel import Channel
from goclaw_py.chat.outbound.ok_token import conversation_text
from goclaw_py.chat.outbound.rate_limiter import RateLimiter
from goclaw_py.core.errors import ChannelError, MaybeSent, RunNotStarted, StoreError, Undeliverable
from goclaw_py.core.ids import NodeId, RunId
from goclaw_py.core.messages import LostDraft, OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.retry import retry_until_available
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.values import value
from goclaw_py.records import Place, RunStartResult, Store
from goclaw_py.runs.replies.wait_line import HeardEvent, WaitLine
from goclaw_py.runs.turn import Turn

log = logging.getLogger(__name__)

FIRST_AFTER_S = 0.8
"""A reply that is complete this soon after its first text needs no draft, in seconds."""

EDIT_EVERY_S = 1.0
"""The shortest time between two edits of a draft, in seconds (SPEC CHAN-4)."""

MOST_CHARS = 16_000
"""The length of a draft; no message of a channel is longer. It is formatted at each edit."""

_LOOKS = 3
"""How often a run searches for its draft, if the channel can search."""

_SETTLE_S = 5.0
"""Seconds that the end of a run waits for a request in progress.

An edit that arrives after the final one would undo it.
"""


@value(frozen=True, slots=True)
class OrphanedReply:
    """The draft that is in the chat when a run ends.

    Args:
        id: The channel's id of the draft, None if there is none.
        shown: The text that it shows.
        lost: A draft that may be there with an unknown id.
    """

    id: str | None = None
    shown: str = ""
    lost: LostDraft | None = None


@dataclass(slots=True, eq=False)
class _Draft:
    """The draft of a run."""

    run_id: RunId
    target: Target
    reply_to: str | None
    channel: Channel
    id: str | None
    lost: LostDraft
    """How to search for it."""
    unsure: bool
    """It may be in the chat, and its id is unknown."""
    node: NodeId
    """The scheduler that a run belongs to."""
    wait: WaitLine
    """What the run waits for."""
    looks: int = 0
    """The number of searches without result."""
    said: list[str] = field(default_factory=list)
    room: int = MOST_CHARS
    """How many more characters it shows."""
    shown: str = ""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    kept: bool = False
    """Whether its id is stored."""
    task: asyncio.Task[None] | None = None
    request: asyncio.Task[ChannelError | None] | None = None
    """The request in progress. A post is never cancelled, because its outcome must be known."""

    @property
    def text(self) -> str:
        return conversation_text("".join(self.said), growing=True)

    @property
    def view(self) -> str:
        """Return what people see: the text, and what the run waits for."""
        text = self.text if self.text.strip() else ""
        return "\n\n".join(filter(None, [text, self.wait.text]))

    @property
    def left(self) -> OrphanedReply:
        """Return what is in the chat now, as far as known."""
        return OrphanedReply(self.id, self.shown, self.lost if self.unsure else None)


class StreamingReplies:
    """The drafts of all runs of this process."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        channels: Mapping[Place, Channel],
        pacing: RateLimiter,
        live: Callable[[], NodeId | None],
    ) -> None:
        """``live`` returns this node; None when others may have taken over its runs."""
        self._live = live
        self._store = store
        self._clock = clock
        self._channels = channels
        self._pacing = pacing
        self.shows_first: Callable[[RunId], None] = lambda _: None
        """Called before the chat shows anything of a run."""
        self.shows_wait: Callable[[RunId, str], None] = lambda _, __: None
        """Called with what a run waits for where it has no draft, "" if it goes on."""
        self._drafts: dict[RunId, _Draft] = {}
        self._waits: dict[RunId, WaitLine] = {}
        self._late: set[asyncio.Task[None]] = set()
        """Drafts of runs that have ended while a request was in progress."""

    def begin(self, turn: Turn, begun: RunStartResult, node: NodeId) -> None:
        """Start a run, for which an earlier run may have left a draft."""
        target = turn.target
        channel = self._channels[target.channel, target.account]
        wait = WaitLine(begun, partial(self._wait_changed, turn.id))
        self._waits[turn.id] = wait
        if begun.draft or begun.lost or channel.drafts(target, turn.peer):
            after = next(iter(turn.message_ids), None)
            self._drafts[turn.id] = _Draft(
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

    def add(self, run_id: RunId, text: str) -> bool:
        """Add text of the agent; return whether the run has a draft."""
        draft = self._drafts.get(run_id)
        if draft is None:
            return False
        if draft.room > 0:
            draft.said.append(text[: draft.room])
            draft.room -= len(text)
            self._change(draft)
        return True

    def hear(self, run_id: RunId, event: HeardEvent) -> None:
        """Show what an event says about what a run waits for."""
        if (wait := self._waits.get(run_id)) is not None:
            wait.hear(event)

    def _wait_changed(self, run_id: RunId) -> None:
        if (draft := self._drafts.get(run_id)) is not None:
            self._change(draft)
        elif (wait := self._waits.get(run_id)) is not None:
            line = wait.text_without_tools
            if line != wait.signalled:
                wait.signalled = line
                self.shows_wait(run_id, line)

    def _change(self, draft: _Draft) -> None:
        draft.changed.set()
        if draft.task is None:
            draft.task = asyncio.create_task(self._show(draft), name=f"draft {draft.run_id}")

    def of(self, run_id: RunId) -> str | None:
        """Return the channel's id of a run's draft, as far as known."""
        draft = self._drafts.get(run_id)
        return None if draft is None else draft.id

    def stop(self, run_id: RunId) -> OrphanedReply:
        """Stop updating a draft; return what is in the chat now, as far as known.

        A request in progress continues until ``end``.
        """
        if (wait := self._waits.get(run_id)) is not None:
            wait.close()
        draft = self._drafts.get(run_id)
        if draft is None:
            return OrphanedReply()
        if draft.task is not None:
            draft.task.cancel()
        return draft.left

    async def end(self, run_id: RunId) -> OrphanedReply:
        """Stop updating a draft, wait for a request in progress, and return what is in the chat."""
        draft = await self._ended(run_id)
        if draft is None:
            return OrphanedReply()
        await self._keep_at_last(draft)
        return draft.left

    async def hand_over(self, run_id: RunId) -> None:
        """Store a run's draft for the node that owns the session now.

        If that node ended the run without knowing the draft, it will never be closed, so it is
        removed. Waits for the database.
        """
        draft = await self._ended(run_id)
        if draft is not None and draft.id is not None and not draft.kept:
            await self._keep_or_remove(draft)

    async def remove_lost(self, run_id: RunId) -> None:
        """Remove the lost draft of an ended run, if it is in the chat; no message completes it.

        Waits for the database.
        """
        if (draft := self._drafts.get(run_id)) is not None:
            await self._remove(draft)

    def forget(self, run_id: RunId) -> None:
        """Forget a run."""
        self._drafts.pop(run_id, None)
        self._waits.pop(run_id, None)

    async def _ended(self, run_id: RunId) -> _Draft | None:
        """Return the draft of a run, with no update in progress."""
        draft = self._drafts.get(run_id)
        if draft is None:
            return None
        if draft.task is not None:
            draft.task.cancel()
            await asyncio.wait({draft.task})
        if draft.request is not None:
            await self._settle(draft, draft.request)
            draft.request = None
        return draft

    async def _settle(self, draft: _Draft, request: asyncio.Task[ChannelError | None]) -> None:
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

    async def _end_late(self, draft: _Draft, request: asyncio.Task[ChannelError | None]) -> None:
        """Remove a draft that was posted after its run had ended."""
        error = await request
        if draft.id is not None or isinstance(error, MaybeSent):
            await self._keep_or_remove(draft)

    async def _keep_or_remove(self, draft: _Draft) -> None:
        """Remove a draft, unless another run continues it."""
        if draft.id is None or not await retry_until_available(lambda: self._keep(draft)):
            await self._remove(draft)

    async def _remove(self, draft: _Draft) -> None:
        """Let the outbox remove a draft that is unchanged since its run.

        The outbox orders it with other messages of the chat.
        """
        lost = replace(draft.lost, id=draft.id)
        say = [OutboundMessage(draft.target, "", run_id=draft.run_id, lost=lost)]
        now = self._clock.now()
        await retry_until_available(
            lambda: self._store.settle([], Outcome.COMPLETED, now=now, say=say)
        )

    # ------------------------------------------------------------------ one draft

    async def _show(self, draft: _Draft) -> None:
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

    async def _show_once(self, draft: _Draft) -> float | None:
        """Update a draft; return the seconds until the next update, None to stop."""
        await self._pacing.draft(draft.target)
        self.shows_first(draft.run_id)
        if draft.id is None and not draft.unsure:
            await retry_until_available(
                lambda: self._store.open_draft(draft.run_id, draft.target, now=self._clock.now())
            )
        live = self._live()
        if live != draft.node:
            # Another node may continue the run: an edit now could undo its final edit.
            draft.changed.set()
            return EDIT_EVERY_S if live is None else None
        ask = self._look(draft) if draft.unsure else _request(draft)
        draft.request = asyncio.create_task(ask, name=f"draft {draft.run_id}")
        with self._pacing.sending(draft.target):
            error = await asyncio.shield(draft.request)
        if error is not None:
            return _pause_after(draft, error)
        if draft.unsure:
            return 2 * EDIT_EVERY_S if draft.looks < _LOOKS else None
        if draft.kept or await retry_until_available(lambda: self._keep(draft)):
            return EDIT_EVERY_S
        return None

    async def _look(self, draft: _Draft) -> ChannelError | None:
        """Search for a draft whose response was lost; return the error, if any."""
        draft.changed.set()
        try:
            everywhere = draft.channel.counts_everywhere(draft.target.chat)
            own = await retry_until_available(
                lambda: self._store.own_messages(draft.target, everywhere=everywhere)
            )
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

    async def _keep(self, draft: _Draft) -> bool:
        """Store the id of a posted draft; return False if nothing will use it."""
        assert draft.id is not None
        draft.kept = await self._store.draft_posted(draft.run_id, draft.id)
        return draft.kept

    async def _keep_at_last(self, draft: _Draft) -> None:
        """Store the id at the end of a run, for the process that may continue it."""
        if draft.id is None or draft.kept:
            return
        try:
            await self._keep(draft)
        except StoreError as error:
            log.debug("draft_id_not_stored", extra={"run_id": draft.run_id, "error": str(error)})


async def _request(draft: _Draft) -> ChannelError | None:
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


def _pause_after(draft: _Draft, error: ChannelError) -> float | None:
    log.debug("draft_update_failed", extra={"run_id": draft.run_id, "error": str(error)})
    draft.changed.set()
    if isinstance(error, MaybeSent) and draft.id is None:
        draft.unsure = True
    if isinstance(error, Undeliverable) or not error.retryable:
        return None
    return max(error.retry_after_s or 0.0, 2 * EDIT_EVERY_S)
