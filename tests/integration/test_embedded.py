"""The embedded server, with real processes: starting, sharing, surviving (SPEC DB-1)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from goclaw_py.store import embedded
from goclaw_py.store.embedded import EmbeddedError, EmbeddedPostgres
from goclaw_py.store.embedded_files import listener_pid
from tests.support.embedded import LIMIT_S, Users, kill, lives, psql, query, until

pytest_plugins = ["tests.support.embedded_fixtures"]

# ---------------------------------------------------------------------------- start and stop


@pytest.mark.smoke
def test_the_first_start_makes_a_database_and_the_second_one_finds_it(root: Path) -> None:
    """SPEC DB-1."""
    told: list[str] = []
    folder = root / "not" / "there" / "pg"
    with EmbeddedPostgres(folder, settings={"max_connections": "17"}, say=told.append) as pg:
        server = pg.start()
        assert query(pg, server, "select current_user, current_database()") == "goclaw|goclaw"
        assert query(pg, server, "show listen_addresses") == ""
        assert query(pg, server, "show max_connections") == "17"
        query(pg, server, "create table t as select 41 as x")
        assert server.data.is_dir()
        assert lives(server.pid)
        assert os.getsid(server.pid) != os.getsid(0), "Ctrl-C must not reach it"
    assert sum("creating" in sentence for sentence in told) == 1
    assert not lives(server.pid)
    assert not (folder / "data.new").exists()
    size = (1 << 20) + 1
    pg.log.write_bytes(b"x" * size)
    with EmbeddedPostgres(folder) as again:
        assert query(again, again.start(), "select x from t") == "41"
        assert again.log.stat().st_size < 10_000, "a log that has grown is put aside"
        assert again.log.with_name("postgres.log.1").stat().st_size == size


def test_threads_that_start_at_once_get_one_server(made: Path) -> None:
    pg = EmbeddedPostgres(made)
    assert pg.stop() is False
    with ThreadPoolExecutor(4) as pool:
        (server,) = {s.result() for s in [pool.submit(pg.start) for _ in range(4)]}
    with EmbeddedPostgres(made) as second:
        assert second.start() == server
    assert lives(server.pid)
    assert pg.stop()


def test_what_people_wrote_does_not_reach_the_log(made: Path) -> None:
    """SPEC SEC-2."""
    with EmbeddedPostgres(made) as pg:
        server = pg.start()
        query(pg, server, "create table t (x text check (x = 'no'))")
        insert = "insert into t select string_agg(c, '') from unnest('{a,b,c}'::text[]) c"
        with pytest.raises(AssertionError, match="violates check"):
            query(pg, server, insert)
        assert "violates check" in pg.log.read_text()
        assert "abc" not in pg.log.read_text()


# ---------------------------------------------------------------------------- sharing


def test_the_last_of_two_processes_stops_the_server(made: Path, users: Users) -> None:
    pg = EmbeddedPostgres(made)
    server = pg.start()
    other = users.start(made)
    assert other.answer()["pid"] == server.pid
    assert pg.stop() is False
    assert pg.stop() is False
    assert lives(server.pid)
    assert other.stop() is True
    until(lambda: not lives(server.pid), "the server is gone")


def test_six_processes_at_once_make_one_database_and_one_server(root: Path, users: Users) -> None:
    started = [users.start(root / "pg") for _ in range(6)]
    answers = [user.answer() for user in started]
    assert len({str(answer["pid"]) for answer in answers}) == 1
    assert sum("creating" in str(answer["told"]) for answer in answers) == 1
    assert [user.stop() for user in started] == [False] * 5 + [True]


def test_a_killed_user_keeps_nobody_from_stopping_the_server(made: Path, users: Users) -> None:
    killed = users.start(made)
    pid = killed.answer()["pid"]
    killed.kill()
    pg = EmbeddedPostgres(made)
    assert pg.start().pid == pid
    assert pg.stop() is True


def test_a_link_to_the_folder_leads_to_the_same_server(made: Path, users: Users) -> None:
    (made.parent / "link").symlink_to(made)
    with EmbeddedPostgres(made) as pg:
        assert users.start(made.parent / "link").answer()["pid"] == pg.start().pid


# ---------------------------------------------------------------------------- surviving


def test_start_brings_back_a_killed_server_with_its_data(made: Path) -> None:
    pg = EmbeddedPostgres(made)
    first = pg.start()
    query(pg, first, "create table t as select 42 as x")
    kill(first.pid)
    second = pg.start()
    assert second.pid != first.pid
    assert query(pg, second, "select x from t") == "42"
    assert pg.stop() is True


def test_a_server_killed_under_two_users_is_started_once(made: Path, users: Users) -> None:
    other = users.start(made)
    pid = other.answer()["pid"]
    assert isinstance(pid, int)
    with EmbeddedPostgres(made) as first, EmbeddedPostgres(made) as second:
        kill(pid)
        with ThreadPoolExecutor(2) as pool:
            a, b = pool.submit(first.start), pool.submit(second.start)
            assert a.result() == b.result()
        assert a.result().pid != pid
        other.kill()


def test_a_socket_that_only_a_child_of_a_dead_listener_holds_has_no_listener(root: Path) -> None:
    """As between a kill -9 of the server and the first step of a child that it had just forked."""
    listen = """
import os, socket, sys, time
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
if os.fork() == 0:
    sys.stdin.readline()
else:
    print(os.getpid(), flush=True)
    time.sleep(60)
"""
    command = [sys.executable, "-c", listen, str(root / "socket")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert listener_pid(root / "socket") == pid
        process.kill()
        process.wait()
        assert listener_pid(root / "socket") is None


def test_a_stale_pid_file_that_names_a_living_stranger_is_not_believed(
    made: Path, users: Users, root: Path
) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        pg = EmbeddedPostgres(made)
        kill(pg.start().pid)
        note = made / "data" / "postmaster.pid"
        _, rest = note.read_text().split("\n", 1)
        note.write_text(f"{stranger.pid}\n{rest}")
        (made / ".s.PGSQL.5432.lock").write_text(f"{stranger.pid}\n")
        assert pg.start().pid != stranger.pid
        assert pg.stop() is True
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.communicate()


@pytest.mark.parametrize("left", [b"", b"12", b"123\n/a\n", b"\xff\n\n\n\nx\n\n\nready"])
def test_a_pid_file_that_was_half_written_is_no_obstacle(made: Path, left: bytes) -> None:
    (made / "data" / "postmaster.pid").write_bytes(left)
    with EmbeddedPostgres(made) as pg:
        assert lives(pg.start().pid)


def test_a_user_killed_while_it_makes_the_database_leaves_no_half_one(
    root: Path, users: Users
) -> None:
    killed = users.start(root / "pg")
    until((root / "pg" / "data.new" / "base").exists, "initdb has begun")
    killed.kill()
    with EmbeddedPostgres(root / "pg") as pg:
        assert query(pg, pg.start(), "select current_database()") == "goclaw"
    assert not (root / "pg" / "data.new").exists()


def test_orphans_of_a_killed_server_are_cleared_away(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_CLEAR_AWAY", ((0.2, signal.SIGINT), (0.5, signal.SIGQUIT)))
    pg = EmbeddedPostgres(made)
    first = pg.start()
    forever = "do $$ begin raise log 'spinning'; loop begin loop end loop;"
    forever += " exception when query_canceled then null; end; end loop; end $$"
    busy = subprocess.Popen([*psql(pg, first), "-c", forever], stderr=subprocess.DEVNULL)
    try:
        until(lambda: "spinning" in pg.log.read_text(), "the query runs")
        kill(first.pid)
        second = pg.start()
        assert query(pg, second, "select 1") == "1"
    finally:
        busy.kill()
        busy.wait(LIMIT_S)
    assert pg.stop() is True


def test_a_server_that_lost_its_socket_is_replaced(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_CLEAR_AWAY", ((0.1, signal.SIGINT),))
    pg = EmbeddedPostgres(made)
    first = pg.start()
    (made / ".s.PGSQL.5432").unlink()
    second = pg.start()
    assert second.pid != first.pid
    assert query(pg, second, "select 1") == "1"
    assert pg.stop() is True


def test_a_server_that_was_told_to_wait_for_its_clients_is_replaced(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_CLEAR_AWAY", ((0.1, signal.SIGINT),))
    pg = EmbeddedPostgres(made)
    first = pg.start()
    client = subprocess.Popen(
        [*psql(pg, first), "-c", "select pg_sleep(1000)"], stderr=subprocess.DEVNULL
    )
    try:
        other = "select count(*) from pg_stat_activity where query like '%sleep(1000)'"
        until(lambda: query(pg, first, other) == "1", "the client is connected")
        os.kill(first.pid, signal.SIGTERM)
        until(lambda: "smart shutdown" in pg.log.read_text(), "the server is stopping")
        assert pg.start().pid != first.pid
    finally:
        client.kill()
        client.wait(LIMIT_S)
    assert pg.stop() is True


def test_a_server_that_does_not_end_is_named(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "_STOP", ((signal.SIGINT, 0.05), (signal.SIGQUIT, 0.05)))
    pg = EmbeddedPostgres(made)
    server = pg.start()
    os.kill(server.pid, signal.SIGSTOP)
    try:
        with pytest.raises(EmbeddedError, match=str(server.pid)):
            pg.stop()
    finally:
        os.kill(server.pid, signal.SIGCONT)
    until(lambda: not lives(server.pid), "it heard the signals")
