"""Files that people send: downloaded when their run starts, into the agent's workspace.

Not earlier, because a download takes time and must not delay the receiving of messages. As part of
the run it can be stopped.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from goclaw_py.chat.channel import Channel
from goclaw_py.chat.outbound import texts
from goclaw_py.core.errors import ChannelError
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import Attachment, FileKind
from goclaw_py.records import InboxRow, Place
from goclaw_py.runs.agent_loop import FilePart, MessagePart, TextPart
from goclaw_py.runs.turn import follows_on

log = logging.getLogger(__name__)

FOLDER = "received"
_TRIES = 3
_APART_S = 1.0
_LONGEST_NAME = 50
"""In characters; with four bytes each it still fits the limit of file systems."""
_UNSAFE = re.compile(r"[^\w.-]+")
_ENDINGS: Mapping[FileKind, str] = {
    FileKind.PHOTO: ".jpg",
    FileKind.VOICE: ".ogg",
    FileKind.AUDIO: ".mp3",
    FileKind.VIDEO: ".mp4",
    FileKind.DOCUMENT: "",
}


class AttachmentDownloader:
    """Downloads the attachments of messages.

    Args:
        workspaces: The folder of each agent.
    """

    def __init__(
        self, channels: Mapping[Place, Channel], workspaces: Mapping[AgentName, Path]
    ) -> None:
        self._channels = channels
        self._workspaces = workspaces
        self._made: set[AgentName] = set()

    def workspace(self, agent: AgentName) -> Path:
        """Return the folder of an agent, which exists. Raises ``OSError``."""
        folder = self._workspaces[agent].absolute()
        if agent not in self._made:
            # Not in a thread: it takes no time, and another run must not find it half done.
            folder.mkdir(parents=True, exist_ok=True)
            self._made.add(agent)
        return folder

    async def fetch(self, rows: Sequence[InboxRow]) -> dict[int, list[MessagePart]]:
        """Return the files of rows, by row; a text in place of a file that is missing.

        Files of the message that a row replies to come first.
        """
        found: dict[int, list[MessagePart]] = defaultdict(list)
        before: InboxRow | None = None
        for row in rows:
            # Each part of an album replies to the same message.
            if before is None or not follows_on(before.message, row.message):
                for number, attachment in enumerate(row.message.quoted_files, 1):
                    found[row.id].append(await self._fetch(row, number, attachment, quoted=True))
            for number, attachment in enumerate(row.message.attachments, 1):
                found[row.id].append(await self._fetch(row, number, attachment))
            before = row
        return found

    async def _fetch(
        self, row: InboxRow, number: int, attachment: Attachment, *, quoted: bool = False
    ) -> MessagePart:
        place = row.message.target.channel, row.message.target.account
        name = attachment.name or f"{attachment.kind.value}{_ENDINGS[attachment.kind]}"
        folder = self._workspaces[row.agent] / FOLDER
        # The same row gets the same name, so that after a crash nothing is downloaded twice.
        place_in_row = f"quoted-{number}" if quoted else str(number)
        path = folder / f"{row.id}-{place_in_row}-{_safe(name)}"
        try:
            await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
            if not await asyncio.to_thread(path.exists):
                await _patiently(self._channels[place], attachment, path)
        except (ChannelError, OSError) as error:
            log.warning(
                "file_download_failed",
                extra={"inbox": row.id, "session": row.session, "error": str(error)},
            )
            return TextPart(texts.file_missing(attachment, str(error), quoted=quoted))
        return FilePart(attachment.kind, path.absolute(), name, attachment.mime, quoted)


async def _patiently(channel: Channel, attachment: Attachment, path: Path) -> None:
    for attempt in range(1, _TRIES + 1):
        try:
            await channel.fetch(attachment, path)
        except ChannelError as error:
            if attempt == _TRIES or not error.retryable:
                raise
            await asyncio.sleep(error.retry_after_s or _APART_S)
        else:
            return


def _safe(name: str) -> str:
    """Return a safe file name that keeps its extension."""
    clean = _UNSAFE.sub("_", name).lstrip(".") or "file"
    return clean[-_LONGEST_NAME:].lstrip(".")
