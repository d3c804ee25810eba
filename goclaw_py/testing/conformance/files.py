"""Checks of files: they are sent and received whole, or not at all (SPEC CHAN-6)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from goclaw_py.core.errors import Undeliverable
from goclaw_py.core.messages import Attachment, FileKind, OutboundMessage, OutFile
from goclaw_py.testing.conformance.check import check
from goclaw_py.testing.conformance.rig import Offer, Trouble
from goclaw_py.testing.conformance.scene import HOLD_S, Scene, messages, require
from goclaw_py.testing.conformance.sending import arrives, shown

CONTENT = bytes(range(256)) * 400


@contextmanager
def _folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="conformance-") as folder:
        yield Path(folder)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _written(folder: Path, name: str, content: bytes) -> OutFile:
    path = folder / name
    path.write_bytes(content)
    return OutFile(FileKind.DOCUMENT, str(path), name, "text/plain")


async def _attached(scene: Scene, content: bytes) -> Attachment:
    """Let a person send a file and return the attachment that was received."""
    rig = scene.rig
    async with scene.receiving():
        rig.say_file(rig.ann, content)
        await scene.until(
            lambda: any(message.attachments for message in messages(scene.inbox.accepted)),
            "a file comes as the attachment of a message",
        )
    (attachment, *more) = next(
        m.attachments for m in messages(scene.inbox.accepted) if m.attachments
    )
    require(not more, "one file is one attachment")
    require(attachment.size in (None, len(content)), f"its size, not {attachment.size}")
    return attachment


# ---------------------------------------------------------------------------- going out


@check("CHAN-6", Offer.SENDS_FILES)
async def a_file_arrives_byte_for_byte_with_its_text(scene: Scene) -> None:
    """Check that a file arrives byte for byte with its text, also a second time.

    The file is read when it is sent and is not removed.
    """
    rig = scene.rig
    with _folder() as folder:
        message = OutboundMessage(rig.ann, "the report", file=_written(folder, "r.txt", CONTENT))
        for _ in range(2):
            seen = await shown(scene, rig.ann, await scene.call(rig.channel.send(message)))
            require(seen.file == CONTENT, "the content arrives byte for byte")
            require("the report" in seen.text, f"with its text, not {seen.text!r}")
        require(_names(folder) == ["r.txt"], "the file stays")


@check("CHAN-6", Offer.SENDS_FILES)
async def a_file_of_any_kind_and_name_arrives(scene: Scene) -> None:
    """Check that a file of any kind and name arrives.

    An agent chooses both, and they may be wrong.
    """
    rig = scene.rig
    with _folder() as folder:
        file = _written(folder, "made", CONTENT)
        for kind in FileKind:
            for name, mime in (
                ("plot.png", ""),
                ("", "no mime"),
                ('a"b\n\ud83d/../c', "x/y\r\nz: 1"),
            ):
                odd = replace(file, kind=kind, name=name, mime=mime)
                message = OutboundMessage(rig.ann, "", file=odd)
                seen = await shown(scene, rig.ann, await scene.call(rig.channel.send(message)))
                require(seen.file == CONTENT, f"{kind} {name!r} arrives byte for byte")


@check("CHAN-6", Offer.SENDS_FILES)
async def a_file_that_is_missing_is_undeliverable(scene: Scene) -> None:
    """Check that sending a missing file raises ``Undeliverable``.

    The agent may have deleted the file; a retry would not help.
    """
    rig = scene.rig
    with _folder() as folder:
        for path in (folder / "missing", folder, folder / "no" / "folder", Path("/dev/null")):
            file = OutFile(FileKind.DOCUMENT, str(path), "x.txt")
            error = await scene.fails(rig.channel.send(OutboundMessage(rig.ann, "x", file=file)))
            require(isinstance(error, Undeliverable), f"it is Undeliverable, not {error!r}")
    await arrives(scene, "next")
    require(len(rig.seen(rig.ann)) == 1, "nothing of it was sent")


@check("CHAN-6", Offer.SENDS_FILES)
async def an_album_arrives_whole_or_not_at_all(scene: Scene) -> None:
    """Check that an album arrives whole, with an id for each file, or not at all.

    The check passes for a channel without albums, which never gets one to send.
    """
    rig = scene.rig
    with _folder() as folder:
        files = [_written(folder, name, CONTENT + name.encode()) for name in "abc"]
        if not rig.channel.album(files[0]):
            return
        album = [OutboundMessage(rig.ann, "", file=file) for file in files]
        album[0] = replace(album[0], text="the reports")
        numbers = await scene.call(rig.channel.send_album(album))
        require(len(numbers) == len(files), f"an id for each file, not {numbers}")
        for name, number in zip("abc", numbers, strict=True):
            seen = await shown(scene, rig.ann, number)
            require(seen.file == CONTENT + name.encode(), f"{name} arrives byte for byte")
        first = await shown(scene, rig.ann, numbers[0])
        require("the reports" in first.text, f"with its text, not {first.text!r}")
        (folder / "b").unlink()
        error = await scene.fails(rig.channel.send_album(album))
        require(isinstance(error, Undeliverable), f"it is Undeliverable, not {error!r}")
        require(len(rig.seen(rig.ann)) == len(files), "nothing of it was sent")


@check("CHAN-6", without=Offer.SENDS_FILES)
async def a_file_that_cannot_be_sent_is_not_lost_in_silence(scene: Scene) -> None:
    """Check that an unsupported file is refused permanently or that its name is shown."""
    rig = scene.rig
    with _folder() as folder:
        message = OutboundMessage(rig.ann, "", file=_written(folder, "report.txt", CONTENT))
        send = scene.begin(rig.channel.send(message))
        await scene.ended(send, "a file comes back in time")
        error = send.exception()
        if error is None:
            seen = await shown(scene, rig.ann, send.result())
            require("report.txt" in seen.text, f"people read its name, not {seen.text!r}")
        else:
            require(isinstance(error, Undeliverable), f"it is Undeliverable, not {error!r}")


# ---------------------------------------------------------------------------- coming in


@check("CHAN-6", Offer.RECEIVES_FILES)
async def a_file_that_came_in_is_fetched_byte_for_byte(scene: Scene) -> None:
    """Check that an attachment can be fetched repeatedly, also by another process."""
    attachment = await _attached(scene, CONTENT)
    with _folder() as folder:
        await scene.call(scene.rig.channel.fetch(attachment, folder / "one"))
        await scene.rig.restart()
        await scene.call(scene.rig.channel.fetch(attachment, folder / "two"))
        require(_names(folder) == ["one", "two"], f"two files, and no more: {_names(folder)}")
        whole = (folder / "one").read_bytes() == (folder / "two").read_bytes() == CONTENT
        require(whole, "the content comes byte for byte")


@check("CHAN-6", Offer.RECEIVES_FILES)
async def a_file_that_is_unknown_never_comes(scene: Scene) -> None:
    """Check that fetching an unknown file raises ``Undeliverable`` and leaves no file.

    The server may have deleted the file, or the reference may be invalid.
    """
    with _folder() as folder:
        for ref in ("nowhere", "", "\ud83d", "../../etc/hosts"):
            attachment = Attachment(FileKind.DOCUMENT, ref)
            error = await scene.fails(scene.rig.channel.fetch(attachment, folder / "file"))
            require(isinstance(error, Undeliverable), f"it is Undeliverable, not {error!r}")
        require(_names(folder) == [], "nothing is left")


@check("SEC-3", Offer.RECEIVES_FILES, limit=True)
async def a_file_over_the_limit_is_not_fetched(scene: Scene) -> None:
    """Check that a file over the limit is not fetched. A file of exactly the limit is allowed."""
    most = scene.rig.largest_file
    if most is None:
        return
    too_large = await _attached(scene, bytes(most + 1))
    with _folder() as folder:
        error = await scene.fails(scene.rig.channel.fetch(too_large, folder / "file"))
        require(isinstance(error, Undeliverable), f"it is Undeliverable, not {error!r}")
        require(_names(folder) == [], "nothing is left")


@check("CHAN-6", Offer.RECEIVES_FILES, Trouble.HANGS)
async def a_download_that_is_cancelled_leaves_nothing(scene: Scene) -> None:
    """Check that a hanging download delays no message and leaves no file if cancelled."""
    rig = scene.rig
    attachment = await _attached(scene, CONTENT)
    with _folder() as folder:
        await rig.cause(Trouble.HANGS)
        fetch = scene.begin(rig.channel.fetch(attachment, folder / "file"))
        await asyncio.sleep(HOLD_S)
        require(not fetch.done(), "the rig lets downloads hang")
        await arrives(scene, "meanwhile", rig.ben)
        await scene.cancelled(fetch)
        require(fetch.cancelled(), "a cancellation is not swallowed")
        require(_names(folder) == [], f"nothing is left, but {_names(folder)}")
        await rig.calm()
        await scene.call(rig.channel.fetch(attachment, folder / "file"))


@check("CHAN-6", Offer.RECEIVES_FILES, Trouble.AWAY)
async def a_download_that_fails_can_be_repeated(scene: Scene) -> None:
    """Check that a failed download raises a retryable error, leaves no file and can be retried."""
    rig = scene.rig
    attachment = await _attached(scene, CONTENT)
    with _folder() as folder:
        await rig.cause(Trouble.AWAY)
        error = await scene.fails(rig.channel.fetch(attachment, folder / "file"))
        require(error.retryable, f"it may work later: {error!r}")
        require(_names(folder) == [], f"nothing is left, but {_names(folder)}")
        await rig.calm()
        await scene.call(rig.channel.fetch(attachment, folder / "file"))
        require((folder / "file").read_bytes() == CONTENT, "the content comes byte for byte")
