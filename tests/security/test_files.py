"""Files that people send are stored, and nothing opens them (SPEC CHAN-6, SEC-4).

Promised: no name leaves the folder of received files, and no picture or archive is decoded. Tried:
names with paths, links, devices and signs that hide; a picture of 2,500 megapixels; an archive
that is a thousand times as large when it is unpacked.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace

import pytest

from channels.telegram.fields import clean_file_name
from goclaw_py.chat.inbound.attachments import FOLDER
from goclaw_py.core.messages import Attachment, FileKind
from goclaw_py.runs.agent_loop import FilePart
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import a_process, message

NAMES = [
    "../../../.ssh/authorized_keys",
    "/etc/passwd",
    "..\\..\\boot.ini",
    "C:\\windows\\system.ini",
    "a/../../b",
    "..",
    ".",
    "",
    ".bashrc",
    "AGENTS.md/../../AGENTS.md",
    "con",
    "name\x00.png",
    "name\n.png",
    "\u202egnp.exe",
    "~root/x",
    "$(reboot).png",
    "-rf",
    "a" * 5_000 + ".png",
    "\u00e9" * 5_000,
    "\ud83d.png",
]


def picture(side: int) -> bytes:
    """A valid head of a PNG with that many pixels in a row."""
    head = struct.pack(">IIBBBBB", side, side, 8, 6, 0, 0, 0)
    chunk = b"IHDR" + head
    body = struct.pack(">I", len(head)) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return b"\x89PNG\r\n\x1a\n" + body


BOMBS = {
    "a picture": (FileKind.PHOTO, "big.png", picture(50_000)),
    "an archive": (FileKind.DOCUMENT, "big.gz", zlib.compress(bytes(10**8), 1)),
}


async def received(attachment: Attachment, data: bytes) -> tuple[FilePart, bool]:
    """Return what the agent gets of a file, and whether it is in the folder of such files."""
    channel = RecordingChannel(files={attachment.ref: data})
    async with a_process(channels=(channel,)) as gateway:
        await gateway.gateway.accept([replace(message("look"), attachments=(attachment,))])
        await gateway.scripted.until_started(1)
        parts = gateway.scripted.requests[0].parts
        (part,) = (one for one in parts if isinstance(one, FilePart))
        folder = (gateway.workspace / FOLDER).resolve()
        assert part.path.read_bytes() == data
        return part, part.path.resolve().parent == folder


@pytest.mark.parametrize("cleaned", [True, False], ids=["through telegram", "as it is"])
@pytest.mark.parametrize("name", NAMES)
async def test_a_name_stays_in_the_folder_of_received_files(name: str, *, cleaned: bool) -> None:
    given = clean_file_name(name) if cleaned else name
    file = Attachment(FileKind.DOCUMENT, "ref", given, "application/octet-stream")
    part, is_in_folder = await received(file, b"data")
    assert is_in_folder
    assert len(part.path.name) < 255


@pytest.mark.parametrize(("kind", "name", "data"), BOMBS.values(), ids=list(BOMBS))
async def test_a_bomb_is_stored_as_it_came(kind: FileKind, name: str, data: bytes) -> None:
    """Whoever opens it does so with a tool of the agent, within its limits."""
    _, is_in_folder = await received(Attachment(kind, "ref", name), data)
    assert is_in_folder
    assert len(data) < 10**6
