"""A chat channel that records its messages and fails as a test configures.

::

    channel = RecordingChannel("telegram")
    channel.fail(NotSent("no route"), RateLimited("slow down", 30.0), chat="ann")
    await channel.deliver(message)  # returns after the intake has committed it
    assert channel.texts("ann") == ["re: hello"]
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from goclaw_py.chat.channel import InboundHandler, PlainChannel
from goclaw_py.chat.outbound.rate_limit import UNPACED, RateLimit
from goclaw_py.core.errors import NotSent, StoreUnavailable, Undeliverable
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import (
    Attachment,
    Inbound,
    LostDraft,
    OutboundMessage,
    OutFile,
    PeerKind,
    Target,
)
from goclaw_py.core.run_events import RunEnded, RunSignal, RunText
from goclaw_py.core.text import split_text

OFFER_AGAIN_S = 0.5
"""How long ``receive`` waits before it offers uncommitted messages again."""


@dataclass(frozen=True, slots=True)
class SendFailure:
    """One ``send`` raises ``error``. ``arrives``: the message arrives in the chat anyway."""

    error: Exception
    arrives: bool = False


@dataclass(slots=True)
class _Delivery:
    batch: list[Inbound]
    committed: asyncio.Future[None]


@dataclass(slots=True)
class RecordingChannel(PlainChannel):
    """Implements ``Channel``; see the module's docstring. Use one in one event loop only."""

    name: str = "telegram"
    account: str = "default"
    lease: str | None = None
    trusted: bool = True
    handle: str | None = "our_bot"
    part_limit: int = 4096
    """The longest message that the channel accepts, in UTF-16 units."""
    attempts: list[OutboundMessage] = field(default_factory=list)
    """Every call of ``send``."""
    sent: list[OutboundMessage] = field(default_factory=list)
    """Messages that arrived in a chat, in order of arrival."""
    signals: list[RunSignal] = field(default_factory=list)
    unreachable: set[str] = field(default_factory=set)
    """Chats for which ``reaches`` returns False."""
    slow_s: dict[str, float] = field(default_factory=dict)
    """By chat: how many seconds a ``send`` takes."""
    drafting: bool = False
    """Whether the channel shows drafts."""
    albums: bool = False
    """Whether files of one kind may be sent as an album."""
    sent_albums: list[tuple[OutboundMessage, ...]] = field(default_factory=list)
    """Albums that arrived; ``sent`` also contains their messages."""
    limits: RateLimit = UNPACED
    files: dict[str, bytes | Exception] = field(default_factory=dict)
    """Files that can be downloaded, by the attachment's ``ref``; others are ``Undeliverable``."""
    slow_files_s: float = 0.0
    """How long a download takes."""
    uploads: dict[str, bytes] = field(default_factory=dict)
    """By message id: the content of the file that was sent."""
    deleted: set[str] = field(default_factory=set)
    """Drafts that a person has deleted, or that a message without text has removed."""
    drafted: dict[str, list[str]] = field(default_factory=dict)
    """By id: the texts that each draft showed, in order; the last may be its final message."""
    stoppable: dict[str, RunId] = field(default_factory=dict)
    """By draft id: the run that the stop button of the draft names."""
    admins: dict[str, frozenset[str] | Exception] = field(default_factory=dict)
    """By group: its administrators, or the error that ``administrators`` raises."""
    slow_admins_s: float = 0.0
    """How many seconds ``administrators`` takes."""
    receiving: int = 0
    """How many ``receive`` calls are active."""
    closed: bool = False
    cut: bool = False
    _failures: defaultdict[str | None, deque[SendFailure]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    _inbound: asyncio.Queue[_Delivery | Exception] = field(default_factory=asyncio.Queue)
    _unconfirmed: list[_Delivery] = field(default_factory=list)
    _gates: dict[str, asyncio.Event] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    # ------------------------------------------------------------------ called by tests

    def fail(self, *failures: Exception | SendFailure, chat: str | None = None) -> None:
        """Make the next sends fail, one per failure: to ``chat``, or to any chat."""
        for failure in failures:
            scripted = failure if isinstance(failure, SendFailure) else SendFailure(failure)
            self._failures[chat].append(scripted)

    def heal(self) -> None:
        """Remove all failures that are left."""
        self._failures.clear()

    def block(self, chat: str) -> None:
        """Make sends to ``chat`` hang until ``unblock``."""
        self._gates[chat] = asyncio.Event()

    def unblock(self, chat: str) -> None:
        """Let the hanging sends to ``chat`` arrive."""
        self._gates.pop(chat).set()

    async def deliver(self, *batch: Inbound) -> None:
        """Pass a batch to ``receive``; return when it is committed."""
        delivery = _Delivery(list(batch), asyncio.get_running_loop().create_future())
        self._inbound.put_nowait(delivery)
        await delivery.committed

    def break_off(self, error: Exception) -> None:
        """Make ``receive`` raise ``error`` after all earlier deliveries."""
        self._inbound.put_nowait(error)

    def disconnect(self) -> None:
        """Behave as in a killed process: no message arrives and no signal is recorded."""
        self.cut = True

    def texts(self, chat: str | None = None) -> list[str]:
        """Return the texts that arrived in one chat, or in all chats."""
        return [m.text for m in self.sent if chat is None or m.target.chat == chat]

    def shown(self, run_id: RunId) -> str:
        """Return the text that a run has streamed, as far as it was signalled."""
        mine = [s for s in self.signals if isinstance(s, RunText) and s.run_id == run_id]
        return "".join(signal.text for signal in mine)

    def ended(self) -> list[RunEnded]:
        """Return the signalled ends of runs."""
        return [signal for signal in self.signals if isinstance(signal, RunEnded)]

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until ``reached`` returns true; test it again whenever the channel changes."""
        while not reached():
            self._changed.clear()
            await self._changed.wait()

    async def until_sent(self, messages: int) -> None:
        """Wait until that many messages have arrived."""
        await self.until(lambda: len(self.sent) >= messages)

    # ------------------------------------------------------------------ called by the runtime

    def reaches(self, chat: str) -> bool:
        """Return whether the chat is not in ``unreachable``."""
        return chat not in self.unreachable

    def parts(self, text: str) -> list[str]:
        """Split a text by ``part_limit``."""
        return split_text(text, self.part_limit)

    async def receive(self, intake: InboundHandler) -> None:
        """Offer the batches of ``deliver`` in order, repeatedly until they are committed.

        Batches that arrive while no commit is possible are offered together with those that wait.
        Batches that were unconfirmed at a cancellation come first in the next call.
        """
        self.receiving += 1
        self._changed.set()
        try:
            while True:
                if not self._unconfirmed:
                    self._deliver(await self._inbound.get())
                while not await _is_committed(intake, self._unconfirmed):
                    await asyncio.sleep(OFFER_AGAIN_S)
                    self._deliver_all()
                for delivery in self._unconfirmed:
                    if not delivery.committed.done():
                        delivery.committed.set_result(None)
                self._unconfirmed.clear()
        finally:
            self.receiving -= 1
            self._changed.set()

    async def send(self, message: OutboundMessage) -> str:
        """Send with the configured delay and failures; ids count the messages that arrived.

        A file is read; one that cannot be read raises ``Undeliverable``.
        """
        self.attempts.append(message)
        if message.draft is not None and not message.text and message.file is None:
            return await self._apply_faults(message, self._remove)
        if message.draft in self.deleted:
            message = replace(message, draft=None)
        content = None if message.file is None else _content(Path(message.file.path))
        number = await self._apply_faults(message, self.sent.append)
        if content is not None:
            self.uploads[number] = content
        return number

    def album(self, file: OutFile) -> str:
        """Return the kind of the file if ``albums`` is true, otherwise an empty string."""
        return file.kind.value if self.albums else ""

    async def send_album(self, messages: Sequence[OutboundMessage]) -> list[str]:
        """Send an album with the delay and failures of one ``send``; refuse unreadable files."""
        self.attempts += messages
        contents = [_content(Path(message.file.path)) for message in messages if message.file]
        last = int(await self._apply_faults(messages[0], lambda _: self._store_album(messages)))
        numbers = [str(last - len(messages) + place + 1) for place in range(len(messages))]
        self.uploads.update(zip(numbers, contents, strict=True))
        return numbers

    def _store_album(self, messages: Sequence[OutboundMessage]) -> None:
        self.sent += messages
        self.sent_albums.append(tuple(messages))

    def pace(self, chat: str) -> RateLimit:  # noqa: ARG002
        """Return ``limits`` for every chat."""
        return self.limits

    def drafts(self, target: Target, peer: PeerKind) -> bool:  # noqa: ARG002
        """Return ``drafting`` for every chat."""
        return self.drafting

    async def post_draft(self, beginning: OutboundMessage) -> str:
        """Post a draft with the delay and failures of ``send``; ids are ``draft-1`` and so on."""
        return await self._apply_faults(beginning, self._draft, f"draft-{len(self.drafted) + 1}")

    async def edit_draft(self, so_far: OutboundMessage) -> None:
        """Edit a draft with the delay and failures of ``send``."""
        if so_far.draft in self.deleted:
            raise Undeliverable("somebody has deleted this draft")
        await self._apply_faults(so_far, self._draft)

    async def find_draft(
        self,
        target: Target,
        lost: LostDraft,
        *,
        before: str | None,  # noqa: ARG002
        known: Collection[str],
    ) -> str | None:
        """Return the lost draft if it arrived, else None; fail as ``send`` does."""
        if (failure := self._next_failure(target.chat)) is not None:
            raise failure.error
        return next(
            (
                draft
                for draft, run_id in self.stoppable.items()
                if run_id == lost.run_id and draft not in known and lost.id in (None, draft)
            ),
            None,
        )

    async def administrators(self, chat: str) -> frozenset[str]:
        """Return the entry of ``admins`` for the group, or raise it."""
        await asyncio.sleep(self.slow_admins_s)
        admins = self.admins.get(chat, frozenset())
        if isinstance(admins, Exception):
            raise admins
        return admins

    async def fetch(self, attachment: Attachment, to: Path) -> None:
        """Write the entry of ``files`` for the attachment, or raise it."""
        await asyncio.sleep(self.slow_files_s)
        content = self.files.get(attachment.ref, Undeliverable("there is no such file"))
        if isinstance(content, Exception):
            raise content
        # Not in a thread, which would continue to write after a cancellation.
        _write(to, content)

    async def _apply_faults(
        self, message: OutboundMessage, record: Callable[[OutboundMessage], None], new: str = ""
    ) -> str:
        """Apply the configured delay and failures; ``new`` is the id of a new draft."""
        if self.closed:
            raise NotSent("the channel is closed")
        chat = message.target.chat
        self._changed.set()
        if (gate := self._gates.get(chat)) is not None:
            await gate.wait()
        if chat in self.slow_s:
            await asyncio.sleep(self.slow_s[chat])
        if self.cut:
            await asyncio.Event().wait()
        failure = self._next_failure(chat)
        if failure is None or failure.arrives:
            self._arrive(message, record, new)
        if failure is not None:
            raise failure.error
        return new or message.draft or str(len(self.sent))

    def _arrive(
        self, message: OutboundMessage, record: Callable[[OutboundMessage], None], new: str
    ) -> None:
        if draft := new or message.draft:
            self.drafted.setdefault(draft, []).append(message.text)
            self.stoppable.pop(draft, None)
            if record == self._draft and message.run_id is not None:
                self.stoppable[draft] = message.run_id
        record(message)
        self._changed.set()

    def _remove(self, message: OutboundMessage) -> None:
        self.deleted.add(message.draft or "")

    @staticmethod
    def _draft(message: OutboundMessage) -> None:
        """Do nothing: ``_arrive`` has recorded the draft by its id."""

    def signal(self, signal: RunSignal) -> None:
        """Record the signal."""
        if isinstance(signal, RunEnded) and signal.draft is not None:
            self.stoppable.pop(signal.draft, None)
        if not self.cut:
            self.signals.append(signal)
            self._changed.set()

    async def close(self) -> None:
        """Refuse every later ``send``."""
        self.closed = True

    def _deliver(self, delivery: _Delivery | Exception) -> None:
        if isinstance(delivery, Exception):
            raise delivery
        self._unconfirmed.append(delivery)

    def _deliver_all(self) -> None:
        while not self._inbound.empty():
            self._deliver(self._inbound.get_nowait())

    def _next_failure(self, chat: str) -> SendFailure | None:
        failures = self._failures[chat] or self._failures[None]
        return failures.popleft() if failures else None


async def _is_committed(intake: InboundHandler, deliveries: Sequence[_Delivery]) -> bool:
    """Offer all deliveries as one batch. Return whether it was committed."""
    try:
        await intake.accept([one for delivery in deliveries for one in delivery.batch])
    except StoreUnavailable:
        return False
    return True


def _content(path: Path) -> bytes:
    if not path.is_file():
        raise Undeliverable(f"{path.name} cannot be read")
    return path.read_bytes()


def _write(to: Path, content: bytes) -> None:
    to.write_bytes(content)
