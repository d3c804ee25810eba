"""The wheel of a release, installed as by people who have no checkout."""

from __future__ import annotations

import os
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deploy.places import ROOT, run

Command = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, and with the dependencies of this one behind it."""
    folder = tmp_path_factory.mktemp("wheel")
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist")
    code, output = run(*build)
    assert code == 0, output
    (wheel,) = (folder / "dist").glob("*.whl")
    venv.create(folder / "env", symlinks=True)
    pip = (sys.executable, "-m", "pip", "--python", folder / "env" / "bin" / "python")
    code, output = run(*pip, "install", "--no-deps", "--no-index", wheel)
    assert code == 0, output
    (own,) = (folder / "env" / "lib").glob("python*/site-packages")
    # A line of a .pth file does not read those of that folder, so the checkout stays out of it.
    (own / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    return folder


@pytest.fixture
def command(place: Path, tmp_path: Path) -> Command:
    """What runs a program of that environment, for a person whose home is empty."""
    env = {"HOME": str(tmp_path), "PYTHONPATH": "", "GOCLAW_HOME": str(tmp_path / ".goclaw")}

    def execute(program: str, *words: str) -> tuple[int, str]:
        return run(place / "env" / "bin" / program, *words, cwd=tmp_path, env=env)

    return execute


def test_the_wheel_has_the_version_of_the_project(command: Command) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert command("goclaw", "--version") == (0, f"goclaw_py {project['version']}\n")


def test_it_runs_itself_and_not_the_checkout(command: Command, place: Path) -> None:
    code, output = command("python", "-c", "import goclaw_py; print(goclaw_py.__file__)")
    assert (code, output.startswith(os.fspath(place))) == (0, True), output


def test_it_writes_settings_and_a_checklist(command: Command, tmp_path: Path) -> None:
    code, output = command("goclaw", "init")
    assert code == 0, output
    checklist = tmp_path / ".goclaw" / "workspace" / "HEARTBEAT.md"
    assert checklist.read_bytes() == (ROOT / "HEARTBEAT.md.example").read_bytes()
    assert command("goclaw", "config", "check")[0] == 0
