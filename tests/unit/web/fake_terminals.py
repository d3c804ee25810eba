"""A console without a runtime: what is said is written down, events are put in by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from goclaw_py.chat.terminals import ChatEvent, UploadedFile
from goclaw_py.core.errors import BadUpload, StoreUnavailable
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import Attachment, FileKind


class FakeTerminals:
    """Implements ``Terminals``. Putting None ends the stream."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str, str]] = []
        self.more: list[tuple[AgentName | None, tuple[UploadedFile, ...]]] = []
        """Of each message its agent and its files."""
        self.pressed: list[tuple[str, str, str, str]] = []
        self.confirmed: list[str] = []
        self.attached: list[str] = []
        self.detached = 0
        self.refusals = 0
        self.events: asyncio.Queue[ChatEvent | None] = asyncio.Queue()
        self.heard = asyncio.Event()

    async def attach(self, chat: str) -> AsyncIterator[ChatEvent]:
        self.attached.append(chat)
        try:
            while (event := await self.events.get()) is not None:
                yield event
        finally:
            self.detached += 1

    async def say(
        self,
        chat: str,
        message_id: str,
        text: str,
        *,
        agent: AgentName | None = None,
        files: Sequence[UploadedFile] = (),
    ) -> None:
        if self.refusals:
            self.refusals -= 1
            raise StoreUnavailable("the database does not answer")
        self.said.append((chat, message_id, text))
        self.more.append((agent, tuple(files)))
        self.heard.set()

    async def press(
        self,
        chat: str,
        press_id: str,
        *,
        receipt: str,
        data: str,
        agent: AgentName | None = None,
    ) -> None:
        self.pressed.append((chat, press_id, receipt, data))
        self.more.append((agent, ()))

    def confirm(self, receipt: str) -> None:
        self.confirmed.append(receipt)

    @property
    def texts(self) -> list[str]:
        return [text for _, _, text in self.said]


class FakeUploads:
    """Counts the bytes of an upload; ``guests`` are those who sent one."""

    max_files, max_bytes = 3, 100

    def __init__(self) -> None:
        self.guests: list[str] = []

    async def upload(self, name: str, body: AsyncIterator[bytes], *, guest: str = "") -> Attachment:
        self.guests.append(guest)
        content = b"".join([chunk async for chunk in body])
        if not content:
            raise BadUpload("the file is empty")
        return Attachment(FileKind.DOCUMENT, f"{len(content)}", name)
