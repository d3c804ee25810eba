"""Services for the tools of a run: messages to chats, pinned facts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from goclaw_py.chat.channel import Channel
from goclaw_py.chat.outbound import texts
from goclaw_py.chat.outbound.ok_token import HEARTBEAT_OK, without_token
from goclaw_py.chat.outbound.places import where_read
from goclaw_py.core.concurrency import in_thread_if_long
from goclaw_py.core.errors import StoreError, ToolFailed
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.messages import HistoryEntry, OutboundMessage, PeerKind, Role, Target
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.session_keys import chat_session
from goclaw_py.core.text import is_blank
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import NewRun, Place, Store
from goclaw_py.runs.session_settings import SessionSettings

log = logging.getLogger(__name__)

_SPOKEN_TO: Final = frozenset({Trigger.CHAT, Trigger.API})
"""Runs for a person, who may have asked about the token."""

_AWAY = "the database is unavailable; try again later"


def sessions_of(agent: AgentName, target: Target) -> list[SessionKey]:
    """Return the possible session keys of an agent in a chat."""
    return [chat_session(agent, target, peer) for peer in PeerKind]


class ToolMessenger:
    """Sends messages for runs (SPEC AGENT-6, AGENT-7).

    Args:
        may_speak: Returns whether a run is running and not stopped.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        channels: Mapping[Place, Channel],
        policies: SessionSettings,
        may_speak: Callable[[RunId], bool],
    ) -> None:
        self._may_speak = may_speak
        self._store = store
        self._clock = clock
        self._channels = channels
        self._policies = policies

    def of(self, run: NewRun) -> RunMessenger:
        """Return the messenger of a run."""
        return RunMessenger(self, run)

    async def send(self, run: NewRun, target: Target, text: str) -> None:
        text = _sendable(run, text)
        channel = self._channels.get((target.channel, target.account))
        if channel is None:
            raise ToolFailed(f"there is no channel {target.channel} ({target.account}) here")
        now = self._clock.now()
        parts = await in_thread_if_long(len(text), partial(channel.parts, text))
        say = [OutboundMessage(target, part, run_id=run.id, rich=True) for part in parts]
        if not self._may_speak(run.id):
            raise ToolFailed("you were stopped; nothing was sent")
        try:
            await self._store.settle([], Outcome.COMPLETED, now=now, say=say)
        except StoreError as error:
            raise ToolFailed(
                "the database is unavailable; it is unknown whether the message was sent"
            ) from error
        try:
            await self._remember(run, target, text)
        except StoreError as error:
            # It is sent all the same; to fail now would have it sent twice.
            log.warning("history_not_updated", extra={"error": str(error), "run_id": run.id})
        log.info("run_sent_message", extra={"run_id": run.id, "channel": target.channel})

    async def _remember(self, run: NewRun, target: Target, text: str) -> None:
        """Add it to the history of that chat, so that the agent understands an answer."""
        agent = self._policies.rules(target).agent
        entry = HistoryEntry(Role.ASSISTANT, texts.sent_from(run.session, text))
        for session in sessions_of(agent, await where_read(self._store, target)):
            # The run's own history contains the tool call. A session without messages does not
            # exist, and gets no entry.
            if session != run.session:
                await self._store.note(session, entry, rows=(), now=self._clock.now())


def _sendable(run: NewRun, text: str) -> str:
    """Return the text without the token (SPEC HB-6). Raises ``ToolFailed`` if it is empty."""
    if run.trigger in _SPOKEN_TO:
        return text
    cleaned = without_token(text)
    if cleaned != text and is_blank(cleaned):
        raise ToolFailed(f"{HEARTBEAT_OK} is never sent to a chat; nothing was sent")
    return cleaned


@dataclass(frozen=True, slots=True)
class RunMessenger:
    """Implements ``runs.toolbox.Messenger`` for one run."""

    mail: ToolMessenger
    run: NewRun

    async def send(self, target: Target, text: str) -> None:
        """Send a message for the run."""
        await self.mail.send(self.run, target, text)


class SessionFacts:
    """Implements ``runs.toolbox.Pins`` for one run.

    Args:
        turns: Locked while facts are changed, because a session may have several runs.
    """

    def __init__(self, store: Store, turns: asyncio.Lock, run: NewRun) -> None:
        self._store = store
        self._turns = turns
        self._run = run

    async def change(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> tuple[str, ...]:
        """Read, change and store the pinned facts of the run's session."""
        run = self._run
        try:
            async with self._turns:
                session = await self._store.session(run.session)
                if session is None:
                    raise ToolFailed("this conversation has moved to another gateway; try again")
                pinned = change(session.pinned)
                kept = await self._store.pin(run.session, pinned, run=run.id)
        except StoreError as error:
            raise ToolFailed(_AWAY) from error
        if not kept:
            raise ToolFailed("a new conversation was started meanwhile; nothing was changed")
        return pinned
