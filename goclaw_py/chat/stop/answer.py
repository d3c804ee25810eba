"""Answers to stops: immediate, within the chat's rate limit, several in one (SPEC CMD-1)."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from goclaw_py.chat.access import access_texts
from goclaw_py.chat.channel import Channel
from goclaw_py.chat.outbound import texts
from goclaw_py.chat.outbound.rate_limiter import RateLimiter
from goclaw_py.chat.stop.execute import StopCounts, StopExecutor
from goclaw_py.chat.stop.local import Stopped
from goclaw_py.chat.stop.plan import Stop, WorkKind
from goclaw_py.core.actors import Actor, ActorKind
from goclaw_py.core.chat_commands import unread_words
from goclaw_py.core.errors import ChannelError, StoreUnavailable, TopicGone
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import InboundMessage, OutboundMessage, Target, person_at
from goclaw_py.core.run_events import ButtonsUsed
from goclaw_py.core.targets import target_text
from goclaw_py.records import DraftStore, Place
from goclaw_py.records.audit import OK, AuditLog, NoChange

log = logging.getLogger(__name__)

_TRIES = 3
_APART_S = 1.0


@dataclass(frozen=True, slots=True)
class _Did:
    """The result of some stops of a chat.

    ``shown``: a draft shows it. ``refused``: there were runs that the sender may not stop, for
    people with these names, if known. ``unread``: what was behind the commands. ``held``: texts of
    messages that waited for their provider.
    """

    runs: int = 0
    dropped: int = 0
    jobs: int = 0
    parts: int = 0
    already: bool = False
    shown: bool = False
    refused: tuple[str, ...] | None = None
    unread: str = ""
    held: tuple[str, ...] = ()

    def __add__(self, other: _Did) -> _Did:
        return _Did(
            self.runs + other.runs,
            self.dropped + other.dropped,
            self.jobs + other.jobs,
            self.parts + other.parts,
            self.already or other.already,
            self.shown or other.shown,
            _joined(self.refused, other.refused),
            "\n".join(filter(None, [self.unread, other.unread])),
            (*self.held, *other.held),
        )

    @property
    def text(self) -> str:
        """Return the answer, "" if people see the result already."""
        refusal = "" if self.refused is None else texts.not_yours(self.refused)
        nothing = not (self.runs or self.dropped or self.jobs or self.parts)
        did = texts.stopped(
            self.runs,
            self.dropped,
            already=self.already,
            jobs=self.jobs,
            parts=self.parts,
            quoted=self.held,
        )
        if nothing and (self.shown or (refusal and not self.already)):
            did = ""
        return "\n".join(filter(None, [did, refusal, self.unread]))


def _joined(some: tuple[str, ...] | None, more: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if some is None or more is None:
        return more if some is None else some
    return tuple(dict.fromkeys((*some, *more)))


class StopAnswers:
    """Answers stops directly through the channel, not through the outbox.

    Answers go before all other messages of their chat, within its rate limit. Answers that have to
    wait are combined.
    """

    def __init__(
        self,
        store: DraftStore,
        channels: Mapping[Place, Channel],
        pacing: RateLimiter,
        executor: StopExecutor,
        audit: AuditLog,
        shows_stop: Callable[[RunId], Awaitable[bool]],
    ) -> None:
        """``shows_stop`` returns whether a draft shows that its run was stopped."""
        self._store = store
        self._channels = channels
        self._pacing = pacing
        self._executor = executor
        self._audit = audit
        self._shows_stop = shows_stop
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: Counter[Target] = Counter()
        """The number of stops of each chat whose result is not known yet."""
        self._unsent: dict[Target, _Did] = {}
        self._sending: set[Target] = set()

    def announce(self, message: InboundMessage, stopped: Stopped) -> None:
        """Announce what a stop has stopped, after the places that are asked."""
        self._open[message.target] += 1
        self._run_in_background(self._answer(message, stopped))

    async def close(self) -> None:
        """Wait shortly for the last answers."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2.0)
        for task in self._tasks:
            task.cancel()

    async def _answer(self, message: InboundMessage, stopped: Stopped) -> None:
        chat, stop = message.target, stopped.stop
        try:
            # What waits to be sent, and jobs of other nodes, are not among what was spared.
            more = stop.everything or stopped.nothing or bool(stopped.spared)
            if (
                stop.by is not None
                and more
                and await self._executor.rights.is_admin_after_all(message)
            ):
                stopped = await self._stop_spared(chat, stopped)
            did = await self._find_out(message, stopped)
            # Beside the answer, which must not wait for the database.
            self._run_in_background(self._record(message, stopped.stop, did))
            did = replace(did, unread=with_unread("", message))
            self._unsent[chat] = self._unsent.get(chat, _Did()) + did
        finally:
            self._open[chat] -= 1
            if not self._open[chat]:
                del self._open[chat]
        # Otherwise the answer in progress, or the last stop to finish, includes this one.
        if chat not in self._open and chat not in self._sending:
            self._sending.add(chat)
            try:
                await self._send_all(chat)
            finally:
                self._sending.discard(chat)

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _record(self, message: InboundMessage, stop: Stop, did: _Did) -> None:
        """Record a stop (SPEC SEC-9); it has acted before anything was stored."""
        found = {
            "runs": did.runs + int(did.shown),
            "dropped": did.dropped,
            "jobs": did.jobs,
            "unsent": did.parts,
        }
        after = {name: number for name, number in found.items() if number}
        words = OK if did.refused is None else "not allowed: the runs are those of others"
        await self._audit.record(
            "session.stop_all" if stop.everything else "session.stop",
            f"session {stop.session}" if stop.session else "",
            by=author_of(message),
            after=after,
            result=words if after else NoChange(words, words),
        )

    async def _stop_spared(self, chat: Target, stopped: Stopped) -> Stopped:
        """Stop what was spared, because the sender turned out to be an administrator."""
        if not stopped.spared:
            return replace(stopped, stop=replace(stopped.stop, by=None))
        local = self._executor.local
        stopped = local.stop_spared(chat, stopped)
        try:
            await local.store(stopped)
        except StoreUnavailable as error:
            # It has stopped. It is stored as soon as the database is back.
            log.warning("stop_not_stored", extra={"error": str(error)})
        return stopped

    async def _find_out(self, message: InboundMessage, stopped: Stopped) -> _Did:
        chat, report = message.target, stopped.report
        asked = await self._executor.ask(chat, stopped, StopCounts(), [WorkKind.ELSEWHERE])
        only = report.stopped[0] if len(report.stopped) == 1 else None
        is_all = not (stopped.dropped or stopped.jobs or asked != StopCounts())
        shown = only is not None and is_all and await self._shows_stop(only)
        if stopped.nothing and asked == StopCounts():
            await self._remove_button(message)
        asked = await self._executor.ask(
            chat, stopped, asked, [WorkKind.APPROVALS, WorkKind.ANSWERS]
        )
        held = [turn for turn in stopped.waiting if turn.kept_since is not None]
        refused = stopped.nothing and asked == StopCounts() and stopped.spared
        others = [one for work in stopped.spared for one in work.messages]
        return _Did(
            (0 if shown else len(report.stopped)) + asked.runs + asked.approvals,
            stopped.dropped,
            len(stopped.jobs) + asked.jobs,
            asked.answers,
            already=report.already_stopping,
            shown=shown,
            refused=names_of(others) if refused else None,
            held=tuple(text for turn in held for text in turn.texts),
        )

    async def _remove_button(self, message: InboundMessage) -> None:
        """Remove the stop button of a lost draft, which stops nothing."""
        chat, below = message.target, message.reply_to
        if message.press is None or below is None:
            return
        try:
            known = await self._store.own_messages(chat)
        except StoreUnavailable as error:
            log.warning("stop_button_not_removed", extra={"error": str(error)})
            return
        if below not in known:
            self._channels[chat.channel, chat.account].signal(ButtonsUsed(chat, below))

    async def _send_all(self, chat: Target) -> None:
        """Send the pending answers of a chat, including those that come meanwhile."""
        while chat in self._unsent and chat not in self._open:
            if not self._unsent[chat].text:
                del self._unsent[chat]
                continue
            await self._send(chat)

    async def _send(self, chat: Target) -> None:
        channel = self._channels[chat.channel, chat.account]
        text, to = "", chat
        for _ in range(_TRIES):
            ticket = await self._pacing.urgent(chat)
            text = text or self._unsent.pop(chat).text
            if not text:
                self._pacing.give_back(chat, ticket)
                return
            try:
                with self._pacing.sending(chat):
                    await channel.send(OutboundMessage(to, text))
            except TopicGone as error:
                log.info("stop_answer_redirected", extra={"error": str(error)})
                if to.thread is None:
                    return
                to = to.whole_chat
            except ChannelError as error:
                log.warning("stop_answer_failed", extra={"error": str(error)})
                if not error.retryable:
                    return
                await asyncio.sleep(error.retry_after_s or _APART_S)
            else:
                return


def author_of(message: InboundMessage) -> Actor:
    """Return who wrote a message or pressed a button, with the chat.

    Names can be chosen by anybody, so the id comes first.
    """
    where = message.target
    if message.by is not None:
        return replace(message.by, via=f"{message.by.via} {target_text(where)}".lstrip())
    shown = f"{person_at(where, message.of_whom)} {access_texts.name(message.sender)}"
    return Actor(ActorKind.PERSON, shown, via=target_text(where))


def with_unread(answer: str, message: InboundMessage, read: int | None = 0) -> str:
    """Return the answer to a command, and what came with the command but was not read.

    ``read`` is the number of words that it reads, None for all.
    """
    files = 0 if message.press is not None else len(message.attachments)
    note = texts.not_read(unread_words(message, read), files)
    return "\n".join(filter(None, [answer, note]))


def names_of(messages: Iterable[InboundMessage]) -> tuple[str, ...]:
    """Return the names of the senders of messages, if known."""
    senders = (one.sender for one in messages if not one.source)
    names = (sender.name or sender.username or "" for sender in senders)
    return tuple(dict.fromkeys(" ".join(name.split()) for name in names if name.strip()))
