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
from goclaw_py.chat.stop.cancellation import CancelResult, RunCanceller
from goclaw_py.chat.stop.remote_cancellation import RemoteCanceller
from goclaw_py.core.actors import Actor, ActorKind
from goclaw_py.core.chat_commands import StopCommand, unread_words
from goclaw_py.core.errors import ChannelError, StoreUnavailable, TopicGone
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import InboundMessage, OutboundMessage, Target, person_at
from goclaw_py.core.run_events import ButtonsUsed
from goclaw_py.core.targets import target_text
from goclaw_py.operations.audit import AuditLog, NoAudit, NoChange
from goclaw_py.records import DraftStore, Place
from goclaw_py.records.audit import OK

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
            held=self.held,
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
        canceller: RunCanceller,
        remote_canceller: RemoteCanceller,
        shows_stop: Callable[[RunId], Awaitable[bool]],
    ) -> None:
        """``shows_stop`` returns whether a draft shows that its run was stopped."""
        self._store = store
        self._channels = channels
        self._pacing = pacing
        self._canceller = canceller
        self._remote_canceller = remote_canceller
        self._shows_stop = shows_stop
        self.audit: AuditLog = NoAudit()
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: Counter[Target] = Counter()
        """The number of stops of each chat whose result is not known yet."""
        self._untold: dict[Target, _Did] = {}
        self._telling: set[Target] = set()

    def tell(
        self,
        message: InboundMessage,
        stopped: CancelResult,
        command: StopCommand,
        *,
        covered: int = 0,
    ) -> None:
        """Announce what was stopped.

        If ``command`` may stop more than was found here, other nodes are asked first. ``covered``:
        the number of messages that were cancelled before they were committed.
        """
        self._open[message.target] += 1
        self._run_in_background(self._answer(message, stopped, command, covered))

    async def close(self) -> None:
        """Wait shortly for the last answers."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2.0)
        for task in self._tasks:
            task.cancel()

    async def _answer(
        self, message: InboundMessage, stopped: CancelResult, command: StopCommand, covered: int
    ) -> None:
        chat = message.target
        try:
            # What waits to be sent, and jobs of other nodes, are not among what was spared.
            more = command.everything or stopped.nothing or stopped.has_spared
            rights = self._canceller.rights
            if stopped.by is not None and more and await rights.is_admin_after_all(message):
                stopped = await self._stop_spared(chat, stopped, command)
            did = await self._find_out(message, stopped, command, covered)
            # Beside the answer, which must not wait for the database.
            self._run_in_background(self._record(message, stopped, command, did))
            did = replace(did, unread=with_unread("", message))
            self._untold[chat] = self._untold.get(chat, _Did()) + did
        finally:
            self._open[chat] -= 1
            if not self._open[chat]:
                del self._open[chat]
        # Otherwise the answer in progress, or the last stop to finish, includes this one.
        if chat not in self._open and chat not in self._telling:
            self._telling.add(chat)
            try:
                await self._tell_all(chat)
            finally:
                self._telling.discard(chat)

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _record(
        self, message: InboundMessage, stopped: CancelResult, command: StopCommand, did: _Did
    ) -> None:
        """Record a stop (SPEC SEC-9); it has acted before anything was stored."""
        found = {
            "runs": did.runs or int(did.shown),
            "dropped": did.dropped,
            "jobs": did.jobs,
            "unsent": did.parts,
        }
        after = {name: number for name, number in found.items() if number}
        words = OK if did.refused is None else "not allowed: the runs are those of others"
        await self.audit.record(
            "session.stop_all" if command.everything else "session.stop",
            f"session {stopped.session}" if stopped.session else "",
            by=author_of(message),
            after=after,
            result=words if after else NoChange(words, words),
        )

    async def _stop_spared(
        self, chat: Target, stopped: CancelResult, command: StopCommand
    ) -> CancelResult:
        """Stop what was spared, because the sender turned out to be an administrator."""
        if not stopped.has_spared:
            return replace(stopped, by=None)
        stopped = self._canceller.stop_spared(chat, stopped, everything=command.everything)
        await self._keep(stopped)
        return stopped

    async def _find_out(
        self, message: InboundMessage, stopped: CancelResult, command: StopCommand, covered: int
    ) -> _Did:
        chat, below, runs, jobs = message.target, message.reply_to, 0, len(stopped.jobs)
        asks = command.everything or (stopped.nothing and not covered)
        if asks:
            try:
                runs, remote = await self._remote_canceller.stop_jobs(chat, command, stopped)
                jobs += remote
            except StoreUnavailable as error:
                log.warning("remote_jobs_not_stopped", extra={"error": str(error)})
        report = stopped.report
        only = report.stopped[0] if len(report.stopped) == 1 else None
        is_all = not (stopped.dropped or covered or runs or jobs)
        if only is not None and is_all and await self._shows_stop(only):
            return _Did(shown=True)
        nothing = stopped.nothing and not (covered or runs or jobs)
        if nothing and command.run is not None and below is not None:
            await self._remove_button(chat, below)
        waiting = parts = 0
        if nothing or command.everything:
            waiting = await self._stop_approvals(chat, stopped, command)
        if command.everything or (nothing and not waiting):
            parts = await self._cut_answers(chat, stopped, command)
        held = [turn for turn in stopped.waiting if turn.kept_since is not None]
        refused = nothing and not (waiting or parts) and stopped.has_spared
        return _Did(
            len(report.stopped) + runs + waiting,
            stopped.dropped + covered,
            jobs,
            parts,
            already=report.already_stopping,
            refused=names_of(stopped.of_others) if refused else None,
            held=tuple(text for turn in held for text in turn.texts),
        )

    async def _remove_button(self, chat: Target, below: str) -> None:
        """Remove the stop button of a lost draft, which stops nothing."""
        try:
            known = await self._store.own_messages(chat)
        except StoreUnavailable as error:
            log.warning("stop_button_not_removed", extra={"error": str(error)})
            return
        if below not in known:
            self._channels[chat.channel, chat.account].signal(ButtonsUsed(chat, below))

    async def _keep(self, stopped: CancelResult) -> None:
        try:
            await self._canceller.keep(stopped)
        except StoreUnavailable as error:
            # It has stopped. It is stored as soon as the database is back.
            log.warning("stop_not_stored", extra={"error": str(error)})

    async def _stop_approvals(
        self, chat: Target, stopped: CancelResult, command: StopCommand
    ) -> int:
        """Stop turns that wait for the answer of a person (SPEC AGENT-11)."""
        if stopped.session is None or stopped.run is not None:
            return 0
        try:
            return await self._canceller.stop_approvals(
                stopped.session, everything=command.everything, chat=chat, by=stopped.by
            )
        except StoreUnavailable as error:
            log.warning("waiting_approvals_not_stopped", extra={"error": str(error)})
            return 0

    async def _cut_answers(self, chat: Target, stopped: CancelResult, command: StopCommand) -> int:
        """Drop waiting parts of answers (SPEC CMD-2)."""
        if stopped.session is None:
            return 0
        try:
            return await self._canceller.cut_answers(
                stopped.session,
                chat,
                everything=command.everything,
                run=stopped.run,
                by=stopped.by,
            )
        except StoreUnavailable as error:
            log.warning("queued_answers_not_cancelled", extra={"error": str(error)})
            return 0

    async def _tell_all(self, chat: Target) -> None:
        """Send the pending answers of a chat, including those that come meanwhile."""
        while chat in self._untold and chat not in self._open:
            if not self._untold[chat].text:
                del self._untold[chat]
                continue
            await self._send(chat)

    async def _send(self, chat: Target) -> None:
        channel = self._channels[chat.channel, chat.account]
        text, to = "", chat
        for _ in range(_TRIES):
            ticket = await self._pacing.urgent(chat)
            text = text or self._untold.pop(chat).text
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


def with_unread(answer: str, message: InboundMessage) -> str:
    """Return the answer to a command, and what came with the command but was not read."""
    files = 0 if message.press is not None else len(message.attachments)
    note = texts.not_read(unread_words(message), files)
    return "\n".join(filter(None, [answer, note]))


def names_of(messages: Iterable[InboundMessage]) -> tuple[str, ...]:
    """Return the names of the senders of messages, if known."""
    senders = (one.sender for one in messages if not one.source)
    names = (sender.name or sender.username or "" for sender in senders)
    return tuple(dict.fromkeys(" ".join(name.split()) for name in names if name.strip()))
