"""Files that people attach in the dashboard, from the upload to the run (SPEC CHAN-9, SEC-3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from channels import uploads
from channels.uploads import KEPT_S, UploadFolder
from goclaw_py.core.errors import BadUpload, NotFound, Undeliverable, UploadTooLarge
from goclaw_py.core.messages import FileKind

NOW = datetime(2026, 1, 2, tzinfo=UTC)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
MAX = 1 << 20

pytestmark = pytest.mark.real_time


@pytest.fixture
def folder(tmp_path: Path) -> UploadFolder:
    return UploadFolder(tmp_path / "uploads", MAX)


async def sent(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def cut(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
    raise EOFError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def files(tmp_path: Path) -> list[str]:
    return names(tmp_path / "uploads")


@pytest.mark.parametrize(
    ("name", "content", "kind", "mime"),
    [
        ("a.png", PNG, FileKind.PHOTO, "image/png"),
        ("a", b"\xff\xd8\xff\xe0", FileKind.PHOTO, "image/jpeg"),
        ("a.txt", b"GIF89a", FileKind.PHOTO, "image/gif"),
        ("a.webp", b"RIFF1234WEBPVP8 ", FileKind.PHOTO, "image/webp"),
        ("a.png", b"<script>1</script>", FileKind.DOCUMENT, ""),
        ("a.svg", b"<svg onload='1'/>", FileKind.DOCUMENT, ""),
        ("a.html", b"<html>", FileKind.DOCUMENT, "text/html"),
        ("a.mp3", b"ID3", FileKind.AUDIO, "audio/mpeg"),
        ("a.mp4", b"....ftyp", FileKind.VIDEO, "video/mp4"),
        ("a.pdf", b"%PDF", FileKind.DOCUMENT, "application/pdf"),
    ],
)
async def test_the_content_of_a_file_says_whether_it_is_a_picture(
    folder: UploadFolder, name: str, content: bytes, kind: FileKind, mime: str
) -> None:
    made = await folder.save(name, sent(content), now=NOW)
    assert (made.kind, made.mime, made.name, made.size) == (kind, mime, name, len(content))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\x.txt", "x.txt"),
        ("", "file"),
        ("..", "file"),
        ("/", "file"),
        ("a\r\nb\0c\x1b[2J.txt", "a bc[2J.txt"),
        ("photo\u202egnp.exe", "photognp.exe"),
        ("👨\u200d👩\u200d👧.png", "👨\u200d👩\u200d👧.png"),
        ("x" * 4096 + ".tar.gz", "x" * 193 + ".tar.gz"),
        ("\ud800.txt", "\ufffd.txt"),
    ],
)
async def test_the_name_of_a_file_is_only_shown(
    folder: UploadFolder, tmp_path: Path, name: str, shown: str
) -> None:
    made = await folder.save(name, sent(b"x"), now=NOW)
    assert made.name == shown
    assert files(tmp_path) == [made.ref]


async def test_a_file_moves_into_the_workspace_once(folder: UploadFolder, tmp_path: Path) -> None:
    made = await folder.save("a", sent(b"ab", b"c"), now=NOW)
    assert await folder.attachment(made.ref, "b") == made.__class__(
        made.kind, made.ref, "b", "", size=3
    )
    await folder.move(made.ref, tmp_path / "there")
    assert (tmp_path / "there").read_bytes() == b"abc"
    assert names(tmp_path) == ["there", "uploads"]
    with pytest.raises(Undeliverable, match="no longer stored"):
        await folder.move(made.ref, tmp_path / "again")
    with pytest.raises(NotFound, match="attach it again"):
        await folder.attachment(made.ref, "a")


@pytest.mark.parametrize(
    "ref", ["", "../../secret", "0" * 31, "0" * 32, "0" * 33 + "\n", "\0" * 32]
)
async def test_a_reference_leaves_the_folder_nowhere(
    folder: UploadFolder, tmp_path: Path, ref: str
) -> None:
    (tmp_path / "secret").write_text("x")
    with pytest.raises(NotFound):
        await folder.attachment(ref, "a")
    with pytest.raises(Undeliverable):
        await folder.move(ref, tmp_path / "there")


async def test_nothing_is_left_of_a_file_that_is_refused_or_cut(
    folder: UploadFolder, tmp_path: Path
) -> None:
    with pytest.raises(BadUpload, match="the file is empty"):
        await folder.save("a", sent(b""), now=NOW)
    with pytest.raises(UploadTooLarge, match="larger than 1 MB"):
        await folder.save("a", sent(bytes(MAX), b"x"), now=NOW)
    with pytest.raises(EOFError):
        await folder.save("a", cut(b"half"), now=NOW)
    assert files(tmp_path) == []
    assert (await folder.save("a", sent(bytes(MAX)), now=NOW)).size == MAX


async def test_files_that_no_run_takes_are_few_and_go_away(
    folder: UploadFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "MOST_WAITING", 2)
    now = datetime.now(UTC)
    for _ in range(2):
        await folder.save("a", sent(b"x"), now=now)
    with pytest.raises(BadUpload, match="2 uploaded files wait already"):
        await folder.save("a", sent(b"x"), now=now)
    later = now + timedelta(seconds=KEPT_S + 60)
    made = await folder.save("a", sent(b"x"), now=later)
    assert files(tmp_path) == [made.ref]


async def test_a_guest_takes_no_room_of_others(
    folder: UploadFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "MOST_WAITING", 1)
    now = datetime.now(UTC)
    await folder.save("a", sent(b"x"), now=now, guest="ann")
    with pytest.raises(BadUpload, match="1 uploaded files wait already"):
        await folder.save("a", sent(b"x"), now=now, guest="ann")
    for other in ("", "anna", "bob", "Анна", "张伟"):
        made = await folder.save("a", sent(b"x"), now=now, guest=other)
        assert (await folder.attachment(made.ref, "a")).size == 1


async def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadUpload, match="the file cannot be stored"):
        await UploadFolder(tmp_path / "file", MAX).save("a", sent(b"x"), now=NOW)
