"""Replies that people see grow: one draft per run, edited while the agent speaks (SPEC CHAN-4).

A draft is noted in the database before it is posted, and its id before it is edited. So after a
crash the next run for the same messages goes on in the same draft, and the reply, which is an edit
of it, can be repeated without being seen twice (SPEC IO-5).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from goclaw_py.core import wording
from goclaw_py.core.errors import ChannelError, MaybeSent, NeverBegan, StoreError, Undeliverable
from goclaw_py.core.events import RunEnded
from goclaw_py.core.heartbeat_reply import conversation_text
from goclaw_py.core.ids import NodeId, RunId
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.ports.channel import Channel
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import Begun, DraftStore, Place
from goclaw_py.runtime.pacing import Pacing
from goclaw_py.runtime.retry import until_available
from goclaw_py.runtime.turn import Turn

log = logging.getLogger(__name__)

FIRST_AFTER_S = 0.8
"""A reply that is complete this soon after its first word needs no draft."""

EDIT_EVERY_S = 1.0
"""The least time between two edits of a draft (SPEC CHAN-4)."""

_SETTLE_S = 5.0
"""How long the end of a run waits for a request that is under way.

An edit that the server gets to see after the final one would undo that.
"""


@dataclass(frozen=True, slots=True)
class LeftDraft:
    """What is in the chat when a run ends.

    Args:
        id: The channel's id of the draft, None if there is none.
        shown: What it shows.
        unsure: There may be one whose id nobody knows.
    """

    id: str | None = None
    shown: str = ""
    unsure: bool = False


@dataclass(slots=True, eq=False)
class _Draft:
    """One run's draft."""

    run_id: RunId
    target: Target
    reply_to: str | None
    channel: Channel
    id: str | None
    unsure: bool
    node: NodeId
    """Whose run it is."""
    said: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    """The tools that the agent uses now."""
    shown: str = ""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    kept: bool = False
    """Whether the database knows the id."""
    task: asyncio.Task[None] | None = None
    request: asyncio.Task[ChannelError | None] | None = None
    """What is under way to the channel. A post is never cancelled: its outcome has to be known."""

    @property
    def text(self) -> str:
        return conversation_text("".join(self.said), growing=True)

    @property
    def view(self) -> str:
        """What people see: the text, and the tools that are in use."""
        text = self.text if self.text.strip() else ""
        return "\n\n".join(filter(None, [text, wording.tools(self.tools)]))

    @property
    def left(self) -> LeftDraft:
        """What is in the chat now, as far as it is known."""
        return LeftDraft(self.id, self.shown, self.unsure)


class Drafts:
    """The drafts of all runs of this process."""

    def __init__(
        self,
        store: DraftStore,
        clock: Clock,
        channels: Mapping[Place, Channel],
        pacing: Pacing,
        live: Callable[[], NodeId | None],
    ) -> None:
        """``live`` is this node; None when others may have taken its runs over."""
        self._live = live
        self._store = store
        self._clock = clock
        self._channels = channels
        self._pacing = pacing
        self._drafts: dict[RunId, _Draft] = {}
        self._late: set[asyncio.Task[ChannelError | None]] = set()
        """Posts that are under way although their runs have ended."""

    def begin(self, turn: Turn, begun: Begun, node: NodeId) -> None:
        """A run of ``node`` has begun; an earlier one for its messages may have left a draft."""
        target = turn.target
        channel = self._channels[target.channel, target.account]
        if begun.draft or begun.unsure or channel.drafts(target, turn.peer):
            self._drafts[turn.id] = _Draft(
                turn.id,
                target,
                turn.reply_to,
                channel,
                begun.draft,
                begun.unsure,
                node,
                kept=begun.draft is not None,
            )

    def add(self, run_id: RunId, text: str) -> None:
        """The agent said more."""
        draft = self._drafts.get(run_id)
        if draft is None:
            return
        draft.said.append(text)
        self._change(draft)

    def tool(self, run_id: RunId, name: str, *, works: bool) -> None:
        """The agent uses a tool, or does not any more."""
        draft = self._drafts.get(run_id)
        if draft is None:
            return
        if works:
            draft.tools.append(name)
        elif name in draft.tools:
            draft.tools.remove(name)
        self._change(draft)

    def _change(self, draft: _Draft) -> None:
        draft.changed.set()
        if draft.task is None:
            draft.task = asyncio.create_task(self._show(draft), name=f"draft {draft.run_id}")

    def of(self, run_id: RunId) -> str | None:
        """The channel's id of a run's draft, as far as it is known."""
        draft = self._drafts.get(run_id)
        return None if draft is None else draft.id

    def stop(self, run_id: RunId) -> LeftDraft:
        """Begin to show nothing more; what is in the chat now, as far as it is known.

        What is under way to the channel goes on until ``end``.
        """
        draft = self._drafts.get(run_id)
        if draft is None:
            return LeftDraft()
        if draft.task is not None:
            draft.task.cancel()
        return draft.left

    async def end(self, run_id: RunId) -> LeftDraft:
        """Show no more of a run; takes as long as a request of its draft is under way."""
        draft = await self._ended(run_id)
        if draft is None:
            return LeftDraft()
        await self._keep_at_last(draft)
        return draft.left

    async def hand_over(self, run_id: RunId) -> None:
        """Others decide now what becomes of a run: let them know of what it has shown.

        If the database tells that they did so without knowing, nobody else will ever close the
        draft, so it is closed here. Waits for the database.
        """
        draft = await self._ended(run_id)
        if draft is None or draft.id is None or draft.kept:
            return
        if not await until_available(lambda: self._keep(draft)):
            _close(draft, Outcome.INTERRUPTED)

    def forget(self, run_id: RunId) -> None:
        """Nothing more will be asked about a run."""
        self._drafts.pop(run_id, None)

    async def _ended(self, run_id: RunId) -> _Draft | None:
        """The draft of a run, of which nothing more is shown or under way."""
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
        """Let what is under way to the channel end, for a while."""
        await asyncio.wait({request}, timeout=_SETTLE_S)
        if request.done():
            return
        if draft.id is None:
            draft.unsure = True
            self._late.add(request)
            request.add_done_callback(self._late.discard)
            request.add_done_callback(lambda _: _close(draft, Outcome.COMPLETED))
        else:
            # What has not left by now must not arrive after the final edit.
            request.cancel()

    # ------------------------------------------------------------------ one draft

    async def _show(self, draft: _Draft) -> None:
        """Show what a run says until it ends."""
        try:
            await asyncio.sleep(FIRST_AFTER_S)
            while not draft.unsure:
                await draft.changed.wait()
                draft.changed.clear()
                if not draft.view:
                    if draft.id is not None:
                        continue  # there is nothing that it could be edited to
                    # A tool was used too shortly to be seen: the first word begins anew.
                    draft.task = None
                    return
                pause = await self._show_once(draft)
                if pause is None:
                    return
                await asyncio.sleep(pause)
        except NeverBegan:
            log.debug("draft_too_late", extra={"run_id": draft.run_id})
        except StoreError as error:
            log.warning("draft_given_up", extra={"run_id": draft.run_id, "error": str(error)})

    async def _show_once(self, draft: _Draft) -> float | None:
        """Show what was said so far; returns how long to wait then, None: show no more."""
        await self._pacing.draft(draft.target)
        if draft.id is None:
            await until_available(
                lambda: self._store.open_draft(draft.run_id, draft.target, now=self._clock.now())
            )
        live = self._live()
        if live != draft.node:
            # Others may go on with the run: what is shown now could undo their final edit.
            draft.changed.set()
            return EDIT_EVERY_S if live is None else None
        draft.request = asyncio.create_task(_request(draft), name=f"draft {draft.run_id}")
        error = await asyncio.shield(draft.request)
        if error is not None:
            return _pause_after(draft, error)
        if draft.kept or await until_available(lambda: self._keep(draft)):
            return EDIT_EVERY_S
        return None

    async def _keep(self, draft: _Draft) -> bool:
        """Let the database know the id of a draft that was posted; False: it is not asked for."""
        assert draft.id is not None
        draft.kept = await self._store.draft_posted(draft.run_id, draft.id)
        return draft.kept

    async def _keep_at_last(self, draft: _Draft) -> None:
        """The same at the end of a run, for the process that may go on with it."""
        if draft.id is None or draft.kept:
            return
        try:
            await self._keep(draft)
        except StoreError as error:
            log.debug("draft_id_not_stored", extra={"run_id": draft.run_id, "error": str(error)})


async def _request(draft: _Draft) -> ChannelError | None:
    """Post the draft, or show in it what was said since; returns what went wrong."""
    text = draft.text
    try:
        message = OutboundMessage(
            draft.target, draft.view, reply_to=draft.reply_to, run_id=draft.run_id, draft=draft.id
        )
        if draft.id is None:
            draft.id = await draft.channel.post_draft(message)
        else:
            await draft.channel.edit_draft(message)
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
    if isinstance(error, MaybeSent):
        draft.unsure = draft.id is None
    if isinstance(error, Undeliverable) or not error.retryable:
        return None
    return max(error.retry_after_s or 0.0, 2 * EDIT_EVERY_S)


def _close(draft: _Draft, outcome: Outcome) -> None:
    """Remove a draft of which only this process knows, or mark it as cut off."""
    if draft.id is not None:
        draft.channel.signal(
            RunEnded(draft.run_id, draft.target, outcome, draft=draft.id, shown=draft.shown)
        )
