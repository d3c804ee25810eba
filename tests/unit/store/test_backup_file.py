"""The file of a backup: what is written comes back, and nothing else is believed (SEC-4)."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goclaw_py.core.errors import BackupError
from goclaw_py.store.backup import writing
from goclaw_py.store.backup.manifest import HEADER, MANIFEST, Applied, Manifest, read_manifest
from goclaw_py.store.backup.reading import ArchiveReader, MemberKind, open_archive
from goclaw_py.store.backup.writing import ArchiveWriter

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
Entries = list[tuple[tarfile.TarInfo, bytes]]


def write(rows: bytes = b"1\ta\n2\tb\n", pieces: int = 3, folder: Path | None = None) -> bytes:
    """A small backup."""
    out = io.BytesIO()
    writer = ArchiveWriter(out, release="1.2", made_at=NOW)
    writer.add_settings("[lanes]\nmain = 1\n")
    for name in ("people", "sessions"):
        table = writer.table(name, ["id", "text"])
        for start in range(0, len(rows), pieces):
            table.feed(rows[start : start + pieces])
            if table.is_full:
                table.flush()
        table.end()
    if folder is not None:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            with path.open("rb") as file:
                writer.add_file("main", str(path.relative_to(folder)), file)
    schema = [Applied(1, "initial", "abc")]
    writer.finish(server=160004, schema=schema, sequences={"people.id": 3})
    return out.getvalue()


def read(archive: bytes) -> tuple[Manifest, dict[str, bytes]]:
    """All that is in a backup."""
    reader = ArchiveReader(io.BytesIO(archive))
    found: dict[str, bytes] = {}
    for member in reader:
        key = f"{member.kind.value} {member.name} {member.path}".strip()
        found.setdefault(key, b"")
        while data := member.read(7):
            found[key] += data
    return reader.manifest, found


def entries(data: bytes) -> Entries:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
        found = []
        for info in tar:
            content = tar.extractfile(info)
            found.append((info, content.read() if content else b""))
        return found


def packed(members: Entries) -> bytes:
    """The archive of these; its manifest is not adapted."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def named(name: str, content: bytes = b"x", kind: bytes = tarfile.REGTYPE) -> Entries:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(content) if kind == tarfile.REGTYPE else 0
    info.linkname = "/etc/passwd"
    return [(info, content)]


def refusal(data: bytes) -> str:
    with pytest.raises(BackupError) as refused:
        read(data)
    text = str(refused.value)
    assert "\n" not in text
    return text


# ---------------------------------------------------------------------------- there and back


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "empty").touch()
    (tmp_path / "deep" / "ünï code 😀").write_bytes(b"\0\1\2" * 1000)
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "run.sh").chmod(0o755)
    manifest, found = read(write(folder=tmp_path))
    assert found == {
        "settings": b"[lanes]\nmain = 1\n",
        "rows people": b"1\ta\n2\tb\n",
        "rows sessions": b"1\ta\n2\tb\n",
        "file main deep/empty": b"",
        "file main deep/ünï code 😀": b"\0\1\2" * 1000,
        "file main run.sh": b"#!/bin/sh\n",
    }
    assert (manifest.release, manifest.made_at, manifest.version) == ("1.2", NOW, 1)
    assert manifest.tables["people"].count == 2
    assert manifest.files["main"].count == 3
    assert manifest.sequences == {"people.id": 3}
    assert read_manifest(manifest.to_json()) == manifest


def test_modes_come_back_without_those_that_lend_rights(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    (tmp_path / "f").chmod(0o4750)
    reader = ArchiveReader(io.BytesIO(write(folder=tmp_path)))
    assert [m.mode for m in reader if m.kind is MemberKind.FILE] == [0o750]


def test_a_member_that_nobody_reads_is_checked_all_the_same() -> None:
    reader = ArchiveReader(io.BytesIO(write()))
    assert len(list(reader)) == 3
    assert reader.manifest.tables["people"].count == 2


@given(
    rows=st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), max_size=20),
    pieces=st.integers(1, 50),
    part=st.integers(1, 60),
)
def test_parts_end_with_a_row_however_the_rows_come(
    rows: list[bytes], pieces: int, part: int
) -> None:
    data = b"".join(row + b"\n" for row in rows)
    before, writing.PART_BYTES = writing.PART_BYTES, part  # type: ignore[misc]
    try:
        archive = write(data, pieces)
    finally:
        writing.PART_BYTES = before  # type: ignore[misc]
    parts = [content for info, content in entries(archive) if info.name.startswith("tables/people")]
    assert all(content.endswith(b"\n") for content in parts)
    assert b"".join(parts) == data
    assert read(archive)[0].tables["people"].count == len(rows)


def test_a_file_that_changes_while_it_is_read_is_noted(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("0123456789")
    out = io.BytesIO()
    writer = ArchiveWriter(out, release="1", made_at=NOW)
    with (tmp_path / "log").open("rb") as file:
        (tmp_path / "log").write_text("012")
        shrunk = _Shrinking(file)
        writer.add_file("main", "log", shrunk)  # type: ignore[arg-type]
    manifest = writer.finish(server=1, schema=[Applied(1, "a", "b")], sequences={})
    assert manifest.notes == ("log of main was changed during the backup",)
    assert read(out.getvalue())[1]["file main log"] == b"01\0"


class _Shrinking:
    """A file that ends earlier than it says."""

    def __init__(self, file: io.BufferedReader) -> None:
        self.fileno = file.fileno
        self._rest = [b"01"]

    def read(self, _size: int) -> bytes:
        return self._rest.pop() if self._rest else b""


# ---------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        b"PK\x03\x04" + bytes(100),
        gzip.compress(b"", mtime=0),
        gzip.compress(b"no tar" * 1000, mtime=0),
        gzip.compress(bytes(10240), mtime=0),
        packed(named("other.txt")),
        packed(named(HEADER, b"[]")),
        packed(named(HEADER, b'{"kind": "other", "format": 1, "release": "1"}')),
        packed(named(HEADER, b"", tarfile.SYMTYPE)),
    ],
    ids=range(10),
)
def test_what_is_no_backup_is_called_so(data: bytes) -> None:
    assert refusal(data) == "this is not a goclaw backup"


def test_another_format_names_the_release_that_wrote_it() -> None:
    header = json.dumps({"kind": "goclaw-backup", "format": 2, "release": "9.1"}).encode()
    said = "the backup was written by release 9.1 in format 2; this release reads format 1"
    assert refusal(packed(named(HEADER, header))) == said


def test_a_backup_that_ends_too_early_is_damaged_wherever_it_ends() -> None:
    whole = write(b"1\tsome text\n" * 200)
    # Less is not recognised as compressed.
    for end in range(2, len(whole)):
        assert refusal(whole[:end]).startswith("the backup is damaged")


def rewritten(change: Callable[[bytes], bytes]) -> bytes:
    """A whole backup whose manifest somebody has changed."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for info, content in entries(write(b"1\tsome text\n")):
            data = change(content) if info.name == "manifest.json" else content
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


@pytest.mark.parametrize(
    "change",
    [
        lambda _: b"[" * 100_000,
        lambda data: re.sub(rb'"server": \d+', b'"server": 1e999', data),
        lambda data: re.sub(rb'"made_at": "[^"]+', b'"made_at": "0001-01-01T00:00:00+14:00', data),
        lambda data: re.sub(rb'"made_at": "[^"]+', b'"made_at": "9999-12-31T23:59:59-14:00', data),
    ],
    ids=["deep", "infinite", "before all time", "after all time"],
)
def test_a_manifest_that_makes_no_sense_is_told_as_that(change: Callable[[bytes], bytes]) -> None:
    assert read(rewritten(lambda data: data)) == read(write(b"1\tsome text\n"))
    assert refusal(rewritten(change)) == "the backup is damaged: its manifest is invalid"


def test_what_follows_the_end_of_the_archive_is_noticed() -> None:
    whole = write(b"1\tsome text\n")
    assert read(whole + gzip.compress(bytes(100_000))) == read(whole)
    said = "the backup is damaged: there is data after its manifest"
    assert refusal(whole + gzip.compress(bytes(100_000) + b"hello")) == said


WHOLE = write(b"1\tsome text\n" * 50)
CONTENT = read(WHOLE)


@settings(max_examples=500)
@given(at=st.integers(0, len(WHOLE) * 8 - 1))
def test_a_flipped_bit_is_noticed_or_changes_nothing(at: int) -> None:
    data = bytearray(WHOLE)
    data[at // 8] ^= 1 << at % 8
    try:
        found = read(bytes(data))
    except BackupError:
        return
    assert found == CONTENT  # it was in the header of gzip, in its time for example


TAR = gzip.decompress(WHOLE)


@pytest.mark.slow
@settings(max_examples=500)
@given(at=st.integers(0, len(TAR) - 1), byte=st.integers(0, 255), more=st.binary(max_size=40))
def test_what_somebody_made_of_it_is_refused_in_one_line_or_changes_nothing(
    at: int, byte: int, more: bytes
) -> None:
    """With a good checksum of gzip, so that tar and manifest have to find it."""
    data = bytearray(TAR)
    data[at] = byte
    data[at + 1 : at + 1 + len(more)] = more
    archive = gzip.compress(bytes(data), 1)
    try:
        found = read(archive)
    except BackupError:
        refusal(archive)
    else:
        assert found[1] == CONTENT[1]


EVIL = [
    *("files/main/../../etc/cron.d/x", "files/main//etc/passwd", "/files/main/x", "../x", "x"),
    *("files/main/", "files/main", "files/../main/x", "files/UP/x", "files/main/a/./b", "tables/x"),
    *("files/main/a\x1b[2J", "files/main/" + "a/" * 40 + "b", "files/main/" + "n" * 256),
    *("tables/people/../x", "tables/PEOPLE/1", "tables/a b/1", "settings/other.toml"),
]


@pytest.mark.parametrize("name", EVIL)
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    members = entries(WHOLE)
    text = refusal(packed([*members[:-1], *named(name), members[-1]]))
    assert text.startswith("the backup contains '")
    assert text.isprintable()


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.DIRTYPE,
        tarfile.FIFOTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.CONTTYPE,
    ],
)
def test_links_folders_and_devices_are_refused(kind: bytes) -> None:
    members = entries(WHOLE)
    text = refusal(packed([*members[:-1], *named("files/main/x", b"", kind), members[-1]]))
    assert text == "the backup contains 'files/main/x', which is not a regular file"


def without(name: str) -> Callable[[Entries], Entries]:
    return lambda members: [each for each in members if not each[0].name.startswith(name)]


def changed(members: Entries) -> Entries:
    return [
        (info, content.replace(b"some", b"none") if info.name.startswith("tables") else content)
        for info, content in members
    ]


def renamed(members: Entries) -> Entries:
    for info, _ in members:
        info.name = info.name.replace("tables/people", "tables/chats")
    return members


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without("tables/people"), "the checksum of the rows of people is wrong"),
        (changed, "the checksum of the rows of people is wrong"),
        (renamed, "the checksum of the rows of people is wrong"),
        (without("settings"), "the checksum of its settings is wrong"),
        (without(MANIFEST), "the file is incomplete"),
        (lambda members: [*members[:-1], *named("files/main/x"), members[-1]],
         "its manifest does not list all contents"),
        (lambda members: [*members, *named("files/main/x")], "there is data after its manifest"),
        (lambda members: [*members[:-1], *named(MANIFEST, b"{}")], "its manifest is invalid"),
        (lambda members: [*members[:-1], *named(MANIFEST, b"\xff")], "its manifest is invalid"),
        (lambda members: [*members[:-1], *named(MANIFEST, bytes(5_000_000))],
         "'manifest.json' is too large"),
        (lambda members: [members[0], *named("settings/goclaw.toml", bytes(5_000_000))],
         "its settings are too large"),
    ],
)  # fmt: skip
def test_what_was_taken_out_put_in_or_changed_is_found(
    change: Callable[[Entries], Entries], said: str
) -> None:
    assert refusal(packed(change(entries(WHOLE)))) == f"the backup is damaged: {said}"


@pytest.mark.parametrize(
    "wrong",
    [
        {"schema": []},
        {"schema": [{"version": 2, "name": "a", "checksum": "b"}]},
        {"made_at": "2026-01-02T03:04:05"},
        {"made_at": "soon"},
        {"tables": {"a; drop table b": {"count": 1, "bytes": 1, "sha256": "", "columns": []}}},
        {"files": {"../x": {"count": 1, "bytes": 1, "sha256": ""}}},
        {"sequences": {"a.b": "x"}},
        {"tables": []},
        {"release": ...},
    ],
)
def test_a_manifest_that_makes_no_sense_is_damaged(wrong: dict[str, object]) -> None:
    found = json.loads(CONTENT[0].to_json()) | wrong
    found = {key: value for key, value in found.items() if value is not ...}
    with pytest.raises(BackupError, match="its manifest is invalid"):
        read_manifest(json.dumps(found).encode())


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "x", "there is no such file"), (tmp_path, "Is a directory")):
        with pytest.raises(BackupError, match=f"{path}: {why}"), open_archive(path):
            pass
