"""A channel that uses a folder.

People put files into ``in/``, named ``CHAT.ANYTHING``, and find answers in ``out/``.
"""

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from goclaw_py.chat.channel import Channel, InboundHandler, PlainChannel
from goclaw_py.core.errors import NotSent, SettingError, StoreUnavailable, Undeliverable
from goclaw_py.core.messages import InboundMessage, OutboundMessage, PeerKind, Sender, Target
from goclaw_py.core.run_events import RunSignal
from goclaw_py.core.text import split_text, well_formed


class FolderChannel(PlainChannel):
    name, account, lease, trusted, handle = "folder", "default", "folder:default", False, None

    def __init__(self, folder: Path) -> None:
        self._in, self._out = folder / "in", folder / "out"
        self._closed = False

    def reaches(self, chat: str) -> bool:
        return True

    def parts(self, text: str) -> list[str]:
        return split_text(well_formed(text), 60_000)

    async def receive(self, intake: InboundHandler) -> None:
        while True:
            if files := sorted(self._in.glob("*")):
                try:
                    await intake.accept([self._message(file) for file in files])
                except StoreUnavailable:
                    pass  # the files stay where they are
                else:
                    for file in files:  # committed: only now they may go
                        file.unlink()
            await asyncio.sleep(0.5)

    async def send(self, message: OutboundMessage) -> str:
        if self._closed:
            raise NotSent("the channel is closed")
        if message.file is not None or not message.target.chat.isalnum():
            raise Undeliverable("only texts, and only to chats that are a word")
        number = f"{message.target.chat}.{time.time_ns()}"
        try:
            (self._out / number).write_bytes(well_formed(message.text).encode())
        except OSError as error:
            raise NotSent(f"the folder takes nothing: {error.strerror}") from error
        return number

    def signal(self, signal: RunSignal) -> None:
        """A folder shows nothing of a run."""

    async def close(self) -> None:
        self._closed = True

    def _message(self, file: Path) -> InboundMessage:
        chat, said_at = file.name.partition(".")[0], file.stat().st_mtime
        return InboundMessage(
            external_id=file.name,
            target=Target(self.name, self.account, chat),
            peer=PeerKind.DIRECT,
            sender=Sender(chat),
            text=file.read_text("utf-8", "replace"),
            sent_at=datetime.fromtimestamp(said_at, UTC),
            message_id=file.name,
        )


class FolderKind:
    name = "folder"

    def build(self, account: str, options: Mapping[str, object]) -> Channel:
        for key, value in options.items():
            if key != "path":
                raise SettingError(key, value, "unknown key; there is only path")
        return FolderChannel(Path(str(options.get("path", "."))))


factory = FolderKind()
