"""A chat channel that keeps what it is given and fails as a test tells it to.

::

    channel = RecordingChannel("telegram")
    channel.fail(NotSent("no route"), RateLimited("slow down", 30.0), chat="ann")
    await channel.deliver(message)  # returns when the intake has committed it
    assert channel.texts("ann") == ["re: hello"]
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from goclaw_py.common.text import split_text
from goclaw_py.delivery.rate_limit import UNPACED, RateLimit
from goclaw_py.model.errors import NotSent, StoreUnavailable, Undeliverable
from goclaw_py.model.ids import RunId
from goclaw_py.model.messages import (
    Attachment,
    Inbound,
    LostDraft,
    OutboundMessage,
    OutFile,
    PeerKind,
    Target,
)
from goclaw_py.model.run_events import RunEnded, RunSignal, RunText
from goclaw_py.ports.channel import InboundHandler, PlainChannel

OFFER_AGAIN_S = 0.5
"""How long ``receive`` waits before it offers again what was not committed."""


@dataclass(frozen=True, slots=True)
class SendFailure:
    """One ``send`` raises ``error``. ``arrives``: the message is in the chat all the same."""

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
    """The longest message that the channel takes, in UTF-16 units."""
    attempts: list[OutboundMessage] = field(default_factory=list)
    """Every call of ``send``."""
    sent: list[OutboundMessage] = field(default_factory=list)
    """What arrived in a chat, in order of arrival."""
    signals: list[RunSignal] = field(default_factory=list)
    unreachable: set[str] = field(default_factory=set)
    """Chats that ``reaches`` denies."""
    slow_s: dict[str, float] = field(default_factory=dict)
    """By chat: how long a ``send`` takes."""
    drafting: bool = False
    """Whether it shows drafts."""
    albums: bool = False
    """Whether files of one kind may be an album."""
    sent_albums: list[tuple[OutboundMessage, ...]] = field(default_factory=list)
    """What arrived as an album; ``sent`` holds it too."""
    limits: RateLimit = UNPACED
    files: dict[str, bytes | Exception] = field(default_factory=dict)
    """What can be downloaded, by the attachment's ``ref``; anything else never comes."""
    slow_files_s: float = 0.0
    """How long a download takes."""
    uploads: dict[str, bytes] = field(default_factory=dict)
    """By id of its message: what a file held that was sent."""
    deleted: set[str] = field(default_factory=set)
    """Drafts that somebody has deleted, or that a message without text has removed."""
    drafted: dict[str, list[str]] = field(default_factory=dict)
    """By id: what each draft showed, one text after the other; the last may be its message."""
    stoppable: dict[str, RunId] = field(default_factory=dict)
    """By id: the run that a draft's stop button names."""
    admins: dict[str, frozenset[str] | Exception] = field(default_factory=dict)
    """By group: who administers it, or why that is not told."""
    slow_admins_s: float = 0.0
    """How long telling it takes."""
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

    # ------------------------------------------------------------------ what a test says

    def fail(self, *failures: Exception | SendFailure, chat: str | None = None) -> None:
        """Let the next sends fail, one after the other: to ``chat``, or to any."""
        for failure in failures:
            scripted = failure if isinstance(failure, SendFailure) else SendFailure(failure)
            self._failures[chat].append(scripted)

    def heal(self) -> None:
        """Let no more sends fail."""
        self._failures.clear()

    def block(self, chat: str) -> None:
        """Let sends to ``chat`` hang until ``unblock``."""
        self._gates[chat] = asyncio.Event()

    def unblock(self, chat: str) -> None:
        """Let the hanging sends to ``chat`` arrive."""
        self._gates.pop(chat).set()

    async def deliver(self, *batch: Inbound) -> None:
        """Let ``receive`` take in a batch; returns when it is committed."""
        delivery = _Delivery(list(batch), asyncio.get_running_loop().create_future())
        self._inbound.put_nowait(delivery)
        await delivery.committed

    def break_off(self, error: Exception) -> None:
        """Let ``receive`` raise ``error`` after what was delivered before."""
        self._inbound.put_nowait(error)

    def cut_off(self) -> None:
        """Behave as in a process that was killed: nothing arrives any more, nothing is shown."""
        self.cut = True

    def texts(self, chat: str | None = None) -> list[str]:
        """The texts that arrived in one chat, or in all."""
        return [m.text for m in self.sent if chat is None or m.target.chat == chat]

    def shown(self, run_id: RunId) -> str:
        """What a run has streamed, as far as it was signalled."""
        mine = [s for s in self.signals if isinstance(s, RunText) and s.run_id == run_id]
        return "".join(signal.text for signal in mine)

    def ended(self) -> list[RunEnded]:
        """The ends of runs that were signalled."""
        return [signal for signal in self.signals if isinstance(signal, RunEnded)]

    async def until(self, reached: Callable[[], bool]) -> None:
        """Return once something is so that depends on what the channel was given."""
        while not reached():
            self._changed.clear()
            await self._changed.wait()

    async def until_sent(self, messages: int) -> None:
        """Return once that many messages have arrived."""
        await self.until(lambda: len(self.sent) >= messages)

    # ------------------------------------------------------------------ what the runtime calls

    def reaches(self, chat: str) -> bool:
        """Whether the chat is not among the ``unreachable``."""
        return chat not in self.unreachable

    def parts(self, text: str) -> list[str]:
        """Cut by ``part_limit``."""
        return split_text(text, self.part_limit)

    async def receive(self, intake: InboundHandler) -> None:
        """Hand over what ``deliver`` brings, in its order, again and again until committed.

        What comes while nothing can be committed is offered together with what waits. What was not
        confirmed when this was cancelled comes first in the next call.
        """
        self.receiving += 1
        self._changed.set()
        try:
            while True:
                if not self._unconfirmed:
                    self._take_in(await self._inbound.get())
                while not await _is_taken(intake, self._unconfirmed):
                    await asyncio.sleep(OFFER_AGAIN_S)
                    self._take_in_all()
                for delivery in self._unconfirmed:
                    if not delivery.committed.done():
                        delivery.committed.set_result(None)
                self._unconfirmed.clear()
        finally:
            self.receiving -= 1
            self._changed.set()

    async def send(self, message: OutboundMessage) -> str:
        """Take as long and fail as the test says; ids count what arrived.

        A file is read, and refused if it cannot be.
        """
        self.attempts.append(message)
        if message.draft is not None and not message.text and message.file is None:
            return await self._take(message, self._remove)
        if message.draft in self.deleted:
            message = replace(message, draft=None)
        content = None if message.file is None else _content(Path(message.file.path))
        number = await self._take(message, self.sent.append)
        if content is not None:
            self.uploads[number] = content
        return number

    def album(self, file: OutFile) -> str:
        """Files of one kind, if there are albums."""
        return file.kind.value if self.albums else ""

    async def send_album(self, messages: Sequence[OutboundMessage]) -> list[str]:
        """As slow and as faulty as one ``send``; refused if one of the files cannot be read."""
        self.attempts += messages
        contents = [_content(Path(message.file.path)) for message in messages if message.file]
        last = int(await self._take(messages[0], lambda _: self._keep_album(messages)))
        numbers = [str(last - len(messages) + place + 1) for place in range(len(messages))]
        self.uploads.update(zip(numbers, contents, strict=True))
        return numbers

    def _keep_album(self, messages: Sequence[OutboundMessage]) -> None:
        self.sent += messages
        self.sent_albums.append(tuple(messages))

    def pace(self, chat: str) -> RateLimit:  # noqa: ARG002
        """The same for all chats."""
        return self.limits

    def drafts(self, target: Target, peer: PeerKind) -> bool:  # noqa: ARG002
        """As the test says, everywhere."""
        return self.drafting

    async def post_draft(self, beginning: OutboundMessage) -> str:
        """As slow and as faulty as ``send``; ids are ``draft-1`` and so on."""
        return await self._take(beginning, self._draft, f"draft-{len(self.drafted) + 1}")

    async def edit_draft(self, so_far: OutboundMessage) -> None:
        """As slow and as faulty as ``send``."""
        if so_far.draft in self.deleted:
            raise Undeliverable("somebody has deleted this draft")
        await self._take(so_far, self._draft)

    async def find_draft(
        self,
        target: Target,
        lost: LostDraft,
        *,
        before: str | None,  # noqa: ARG002
        known: Collection[str],
    ) -> str | None:
        """Find it if it arrived; fails as ``send``."""
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
        """As the test says."""
        await asyncio.sleep(self.slow_admins_s)
        admins = self.admins.get(chat, frozenset())
        if isinstance(admins, Exception):
            raise admins
        return admins

    async def fetch(self, attachment: Attachment, to: Path) -> None:
        """Write what ``files`` holds."""
        await asyncio.sleep(self.slow_files_s)
        content = self.files.get(attachment.ref, Undeliverable("there is no such file"))
        if isinstance(content, Exception):
            raise content
        # Not in a thread, which would continue to write after a cancellation.
        _write(to, content)

    async def _take(
        self, message: OutboundMessage, keep: Callable[[OutboundMessage], None], new: str = ""
    ) -> str:
        """Take as long and fail as the test says; ``new`` is the id of a draft that begins."""
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
            self._arrive(message, keep, new)
        if failure is not None:
            raise failure.error
        return new or message.draft or str(len(self.sent))

    def _arrive(
        self, message: OutboundMessage, keep: Callable[[OutboundMessage], None], new: str
    ) -> None:
        if draft := new or message.draft:
            self.drafted.setdefault(draft, []).append(message.text)
            self.stoppable.pop(draft, None)
            if keep == self._draft and message.run_id is not None:
                self.stoppable[draft] = message.run_id
        keep(message)
        self._changed.set()

    def _remove(self, message: OutboundMessage) -> None:
        self.deleted.add(message.draft or "")

    @staticmethod
    def _draft(message: OutboundMessage) -> None:
        """A draft is kept by its id alone."""

    def signal(self, signal: RunSignal) -> None:
        """Keep it."""
        if isinstance(signal, RunEnded) and signal.draft is not None:
            self.stoppable.pop(signal.draft, None)
        if not self.cut:
            self.signals.append(signal)
            self._changed.set()

    async def close(self) -> None:
        """Send nothing from now on."""
        self.closed = True

    def _take_in(self, delivery: _Delivery | Exception) -> None:
        if isinstance(delivery, Exception):
            raise delivery
        self._unconfirmed.append(delivery)

    def _take_in_all(self) -> None:
        while not self._inbound.empty():
            self._take_in(self._inbound.get_nowait())

    def _next_failure(self, chat: str) -> SendFailure | None:
        failures = self._failures[chat] or self._failures[None]
        return failures.popleft() if failures else None


async def _is_taken(intake: InboundHandler, deliveries: Sequence[_Delivery]) -> bool:
    """Offer all as one batch; whether it was committed."""
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
