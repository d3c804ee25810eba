"""The channel of the guide, in ``examples``, goes through the whole suite."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from goclaw_py.testing.conformance import CHECKS

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "guide" / "channels.md"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

FENCES: list[tuple[str, str]] = _FENCE.findall(GUIDE.read_text(encoding="utf-8"))
FILES = [ROOT / "examples" / name for name in ("folder_channel.py", "test_folder_channel.py")]
CHANNEL, TESTS = (file.read_text(encoding="utf-8") for file in FILES)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """What a reader has typed in."""
    (tmp_path / "folder_channel.py").write_text(CHANNEL, encoding="utf-8")
    (tmp_path / "test_folder_channel.py").write_text(TESTS, encoding="utf-8")
    return tmp_path


def run(package: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=package,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.real_time
def test_the_channel_of_the_guide_passes_the_suite(package: Path) -> None:
    done = run(package, "pytest", "-q", "-p", "no:cacheprovider", "test_folder_channel.py")
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert len(CHECKS) > int(passed[1]) >= 45


@pytest.mark.slow
@pytest.mark.real_time
def test_the_guide_satisfies_a_strict_type_checker(package: Path) -> None:
    options = ["--strict", "--config-file", "", "--cache-dir", str(package / "cache")]
    done = run(package, "mypy", *options, "folder_channel.py", "test_folder_channel.py")
    assert done.returncode == 0, done.stdout


def test_the_channel_of_the_guide_can_be_read_in_one_sitting() -> None:
    assert len([line for line in CHANNEL.splitlines() if line.strip()]) <= 80
    assert len([line for line in TESTS.splitlines() if line.strip()]) <= 60


def test_the_settings_of_the_guide_are_what_the_channel_takes(package: Path) -> None:
    entry, section = (tomllib.loads(code) for kind, code in FENCES if kind == "toml")
    assert entry["project"]["entry-points"]["goclaw_py.channels"] == {
        "folder": "folder_channel:factory"
    }
    (options,) = section["channels"].values()
    namespace: dict[str, object] = {"__name__": "folder_channel"}
    exec(compile(CHANNEL, GUIDE.name, "exec"), namespace)
    kind = namespace["factory"]
    assert kind.build("default", options).name in section["channels"]  # type: ignore[attr-defined]  # just compiled
