"""Commands on a real embedded database, and a real gateway with a terminal (SPEC DB-1, DB-2)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Shell

pytestmark = pytest.mark.real_time

PATIENCE_S = 60


def test_commands_work_on_the_database_when_no_gateway_runs(goclaw: Shell) -> None:
    assert "pending 0001_initial" in goclaw("migrate", "--status").out
    assert goclaw("migrate").out.startswith("ran 0001_initial")
    assert goclaw("migrate", "--status").code == 0
    assert goclaw("sessions", "list").out == "no sessions yet\n"
    assert goclaw("outbox", "list").out == "no messages\n"
    assert goclaw("pairing", "list").out.startswith("nobody yet")
    assert goclaw("status").code == 3
    doctor = goclaw("doctor")
    assert (doctor.code, "WRONG" in doctor.out) == (0, False)


def test_a_chat_in_the_process_of_the_gateway_ends_it_with_its_input(home: Path) -> None:
    command = [sys.executable, "-m", "goclaw_py", "run", "--console"]
    got = subprocess.run(
        command, input=b"hello\n", capture_output=True, timeout=PATIENCE_S, check=True
    )
    assert b"hello" in got.stdout


def test_a_gateway_without_terminal_ends_on_sigterm(home: Path) -> None:
    command = [sys.executable, "-m", "goclaw_py", "run"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            assert any(b"ready" in line for line in process.stderr)
            os.kill(process.pid, signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
