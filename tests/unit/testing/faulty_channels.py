"""Channels that each break one promise."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

from goclaw_py.chat.channel import Channel, Hook, InboundHandler, WebAnswer, WebRequest
from goclaw_py.chat.outbound.rate_limit import RateLimit
from goclaw_py.core.errors import ChannelRefused, MaybeSent, NotSent, StoreUnavailable
from goclaw_py.core.messages import (
    Attachment,
    Inbound,
    InboundMessage,
    OutboundMessage,
    PeerKind,
    Target,
)
from goclaw_py.core.run_events import RunSignal, RunStarted
from goclaw_py.testing.channel import RecordingChannel

Change = Callable[[InboundMessage], InboundMessage]
_numbers = count(1)


class Via:
    """An intake made of a function."""

    def __init__(self, accept: Callable[[Sequence[Inbound]], Awaitable[None]]) -> None:
        self._accept = accept

    async def accept(self, batch: Sequence[Inbound]) -> None:
        await self._accept(batch)


def changing(change: Change) -> type[RecordingChannel]:
    """A channel that hands over something else than was said."""

    class Changing(RecordingChannel):
        async def receive(self, intake: InboundHandler) -> None:
            async def changed(batch: Sequence[Inbound]) -> None:
                told = [change(one) if isinstance(one, InboundMessage) else one for one in batch]
                await intake.accept(told)

            await super().receive(Via(changed))

    return Changing


# ---------------------------------------------------------------------------- receiving


class ConfirmsEarly(RecordingChannel):
    async def receive(self, intake: InboundHandler) -> None:
        async def early(batch: Sequence[Inbound]) -> None:
            for delivery in self._unconfirmed:
                if not delivery.committed.done():
                    delivery.committed.set_result(None)
            await intake.accept(batch)

        await super().receive(Via(early))


class ForgetsWhatTheStoreRefused(RecordingChannel):
    async def receive(self, intake: InboundHandler) -> None:
        async def swallowing(batch: Sequence[Inbound]) -> None:
            with suppress(StoreUnavailable):
                await intake.accept(batch)

        await super().receive(Via(swallowing))


class ForgetsWhatWasCancelled(RecordingChannel):
    async def receive(self, intake: InboundHandler) -> None:
        try:
            await super().receive(intake)
        finally:
            self._unconfirmed.clear()


class WaitsForTheStore(RecordingChannel):
    """Offers nothing new until the old is committed."""

    def _deliver_all(self) -> None:
        return


class MixesUp(RecordingChannel):
    async def receive(self, intake: InboundHandler) -> None:
        async def reverse(batch: Sequence[Inbound]) -> None:
            await intake.accept(batch[::-1])

        await super().receive(Via(reverse))


class LeavesATask(RecordingChannel):
    async def receive(self, intake: InboundHandler) -> None:
        self.left = asyncio.create_task(asyncio.Event().wait())
        await super().receive(intake)

    __slots__ = ("left",)


class EndsWhenCancelledWithoutAWord(RecordingChannel):
    async def receive(self, intake: InboundHandler) -> None:
        with suppress(asyncio.CancelledError):
            await super().receive(intake)


class DiesOfTheStore(RecordingChannel):
    async def receive(self, intake: InboundHandler) -> None:
        async def stern(batch: Sequence[Inbound]) -> None:
            try:
                await intake.accept(batch)
            except StoreUnavailable as error:
                raise OSError("lost") from error

        await super().receive(Via(stern))


class IsNeverRefused(RecordingChannel):
    async def receive(self, intake: InboundHandler) -> None:
        with suppress(ChannelRefused):
            await super().receive(intake)
        await asyncio.Event().wait()


# ---------------------------------------------------------------------------- sending


class SendsTwice(RecordingChannel):
    async def send(self, message: OutboundMessage) -> str:
        await super().send(message)
        return await super().send(message)


class HasOneId(RecordingChannel):
    async def send(self, message: OutboundMessage) -> str:
        await super().send(message)
        return "1"


class Trims(RecordingChannel):
    async def send(self, message: OutboundMessage) -> str:
        return await super().send(replace(message, text=message.text.replace("<", "")))


class HasOneSender(RecordingChannel):
    __slots__ = ("turn",)

    def __init__(self) -> None:
        super().__init__()
        self.turn = asyncio.Lock()

    async def send(self, message: OutboundMessage) -> str:
        async with self.turn:
            return await super().send(message)


def raising(instead: type[Exception]) -> type[RecordingChannel]:
    """A channel that knows one error only."""

    class Raising(RecordingChannel):
        async def send(self, message: OutboundMessage) -> str:
            try:
                return await super().send(message)
            except Exception as error:
                raise instead(str(error)) from error

    return Raising


class ClaimsToHaveSent(RecordingChannel):
    async def send(self, message: OutboundMessage) -> str:
        try:
            return await super().send(message)
        except NotSent:
            return str(len(self.sent))


class SwallowsCancellation(RecordingChannel):
    async def send(self, message: OutboundMessage) -> str:
        with suppress(asyncio.CancelledError):
            return await super().send(message)
        return "?"


# ---------------------------------------------------------------------------- texts


def cutting(cut: Callable[[str], list[str]]) -> type[RecordingChannel]:
    """A channel that cuts replies in its own way."""

    class Cutting(RecordingChannel):
        def parts(self, text: str) -> list[str]:
            return cut(text)

    return Cutting


class HidesWhatItShows(RecordingChannel):
    def readable(self, part: str) -> str:
        return part[:-1]


def never_the_same(text: str) -> list[str]:
    return [f"{text} ({next(_numbers)})"]


def refusing_odd(text: str) -> list[str]:
    text.encode()
    return [text]


# ---------------------------------------------------------------------------- drafts


class PostsEveryEdit(RecordingChannel):
    async def edit_draft(self, so_far: OutboundMessage) -> None:
        await self.post_draft(so_far)


class FinishesBeside(RecordingChannel):
    async def send(self, message: OutboundMessage) -> str:
        return await super().send(replace(message, draft=None))


class EditsOnce(RecordingChannel):
    async def edit_draft(self, so_far: OutboundMessage) -> None:
        if self.drafted[so_far.draft or ""][-1] == so_far.text:
            raise NotSent("not modified")
        await super().edit_draft(so_far)


class LosesWithTheDraft(RecordingChannel):
    async def send(self, message: OutboundMessage) -> str:
        if message.draft in self.deleted:
            return message.draft or ""
        return await super().send(message)


class DoubtsEdits(RecordingChannel):
    async def edit_draft(self, so_far: OutboundMessage) -> None:
        try:
            await super().edit_draft(so_far)
        except NotSent as error:
            raise MaybeSent(str(error)) from error


class HidesItsDrafts(RecordingChannel):
    def drafts(self, target: Target, peer: PeerKind) -> bool:
        return False


class AnswersTheEndOfARun(RecordingChannel):
    def signal(self, signal: RunSignal) -> None:
        if getattr(signal, "draft", None):
            self.sent.append(OutboundMessage(signal.target, "stopped"))


# ---------------------------------------------------------------------------- files


class LeavesHalfAFile(RecordingChannel):
    async def fetch(self, attachment: Attachment, to: Path) -> None:
        to.touch()
        await super().fetch(attachment, to)


class FetchesHalf(RecordingChannel):
    async def fetch(self, attachment: Attachment, to: Path) -> None:
        await super().fetch(attachment, to)
        to.write_bytes(to.read_bytes()[:-1])


class TriesAMissingFileAgain(RecordingChannel):
    async def send(self, message: OutboundMessage) -> str:
        if message.file is not None and not Path(message.file.path).is_file():
            raise NotSent("no file yet")
        return await super().send(message)


class DropsFiles(RecordingChannel):
    async def send(self, message: OutboundMessage) -> str:
        return await super().send(replace(message, file=None))


class StumblesOverAnUnknownFile(RecordingChannel):
    async def fetch(self, attachment: Attachment, to: Path) -> None:
        if attachment.ref not in self.files:
            raise KeyError(attachment.ref)
        await super().fetch(attachment, to)


# ---------------------------------------------------------------------------- manners


class StumblesOverASignal(RecordingChannel):
    def signal(self, signal: RunSignal) -> None:
        int(signal.target.thread or 0)
        signal.target.chat.encode()


class KeepsTypingForEver(RecordingChannel):
    __slots__ = ("tasks",)

    def signal(self, signal: RunSignal) -> None:
        if isinstance(signal, RunStarted):
            self.tasks = asyncio.create_task(asyncio.Event().wait())


class ClosesOnce(RecordingChannel):
    __slots__ = ("complained",)

    def __init__(self) -> None:
        super().__init__()
        self.complained = False

    async def close(self) -> None:
        if self.closed and not self.complained:
            self.complained = True
            raise RuntimeError("closed already")
        await super().close()


class SendsAfterClose(RecordingChannel):
    async def close(self) -> None:
        """Goes on."""


class HasNoPace(RecordingChannel):
    def pace(self, chat: str) -> RateLimit:
        return RateLimit(gap_s=-1.0)


class RenamesItself(RecordingChannel):
    async def receive(self, intake: InboundHandler) -> None:
        self.lease = "another"
        await super().receive(intake)


class SendsItsAtSign(RecordingChannel):
    async def receive(self, intake: InboundHandler) -> None:
        self.handle = "@our_bot"
        await super().receive(intake)


class Hooked(RecordingChannel):
    """Its hook refuses all, as one that is called by nobody may."""

    status = 403

    @property
    def hook(self) -> Hook | None:
        return Hook("/hook", self._answer)

    async def _answer(self, request: WebRequest) -> WebAnswer:
        return WebAnswer(self.status)


class OpenDoor(Hooked):
    status = 200


class BreakingDoor(Hooked):
    async def _answer(self, request: WebRequest) -> WebAnswer:
        request.method.encode()
        return WebAnswer(403)


class CarelessKind:
    name = "telegram"

    def build(self, account: str, options: Mapping[str, object]) -> Channel:
        return RecordingChannel(account=account)
