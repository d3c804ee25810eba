"""Commands on a real embedded database, and a real gateway with a terminal (SPEC DB-1, DB-2)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Shell

PATIENCE_S = 60


READING = (
    "backup",
    "cron export",
    "cron import no-such-file",
    "cron list",
    "cron rm x",
    "groups list",
    "heartbeat status",
    "heartbeat why",
    "inbox list",
    "lanes",
    "migrate --status",
    "nodes list",
    "outbox list",
    "pairing list",
    "queue x",
    "runs list",
    "runs show x",
    "sessions list",
    "simulate --days 1",
    "status",
    "stop x",
    "usage",
)


@pytest.mark.parametrize("command", READING)
def test_a_command_that_reads_creates_nothing(goclaw: Shell, command: str) -> None:
    home = goclaw.home / "mistyped"
    os.environ["GOCLAW_HOME"] = str(home)
    got = goclaw(*command.split())
    assert not home.exists()
    assert got.code in (1, 3)
    assert got.code == 1 or f"no database in {home / 'state'} yet" in got.err


def test_the_doctor_creates_nothing(goclaw: Shell) -> None:
    os.environ["GOCLAW_HOME"] = str(goclaw.home / "mistyped")
    got = goclaw("doctor")
    assert (got.code, "database: embedded, not created yet" in got.out) == (0, True)
    assert not (goclaw.home / "mistyped").exists()


def test_a_job_can_be_added_before_the_first_start(goclaw: Shell) -> None:
    assert goclaw("jobs", "add", "tea", "--every", "1d", "--message", "Tea!").code == 0
    assert "tea" in goclaw("jobs", "list").out


def test_commands_work_on_the_database_when_no_gateway_runs(goclaw: Shell) -> None:
    assert goclaw("migrate").out.startswith("applied 0001_initial")
    assert goclaw("migrate", "--status").code == 0
    assert goclaw("sessions", "list").out == "no sessions yet\n"
    assert goclaw("deliveries", "list").out == "no messages\n"
    assert goclaw("people", "list").out.startswith("nobody yet")
    assert goclaw("status").code == 3
    doctor = goclaw("doctor")
    assert (doctor.code, "WRONG" in doctor.out) == (0, False)


@pytest.mark.slow
def test_a_chat_in_the_process_of_the_gateway_ends_it_with_its_input(home: Path) -> None:
    command = [sys.executable, "-m", "goclaw_py", "run", "--console"]
    got = subprocess.run(
        command, input=b"hello\n", capture_output=True, timeout=PATIENCE_S, check=True
    )
    assert b"hello" in got.stdout


@pytest.mark.slow
def test_a_gateway_without_terminal_ends_on_sigterm(home: Path) -> None:
    command = [sys.executable, "-m", "goclaw_py", "run"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            assert any(b"gateway_ready" in line for line in process.stderr)
            os.kill(process.pid, signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
