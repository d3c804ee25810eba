"""The systemd unit, judged by systemd itself (SPEC OPS-7)."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from tests.deploy.commands import is_command
from tests.deploy.places import UNIT, program, run, unit


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The unit as it is, but for the program, which is not installed here."""
    (command,) = unit("ExecStart")
    there = shutil.which("true")
    assert there is not None
    copy = tmp_path / "goclaw.service"
    copy.write_text(UNIT.read_text("utf-8").replace(f"ExecStart={command}", f"ExecStart={there}"))
    return copy


def test_systemd_has_nothing_to_say_about_the_unit(installed: Path) -> None:
    # Of a key that it does not know it only warns.
    assert run(program("systemd-analyze"), "verify", "--man=no", installed) == (0, "")


def test_systemd_finds_a_mistake_in_a_unit(installed: Path) -> None:
    installed.write_text(installed.read_text().replace("KillMode=", "KillMod="))
    _, output = run(program("systemd-analyze"), "verify", "--man=no", installed)
    assert "KillMod" in output


def test_the_service_can_reach_little(installed: Path) -> None:
    options = ("security", "--offline=true", "--threshold=30")
    code, output = run(program("systemd-analyze"), *options, installed)
    assert code == 0, output


def test_the_unit_starts_a_gateway() -> None:
    (command,) = unit("ExecStart")
    path, *words = shlex.split(command)
    assert path == "/opt/goclaw/bin/goclaw"
    assert is_command(words)
    # With a wrong setting a start ends with 2: trying again changes nothing.
    assert unit("RestartPreventExitStatus") == ["2"]
    # The embedded database is in the same group of processes, and is stopped by the gateway.
    assert unit("KillMode") == ["mixed"]
