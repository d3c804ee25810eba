"""Nothing of the machine on which it was written, and no secret, is in a committed file."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

MACHINE_PATHS = re.compile(r"(?<![\w.$}])/(?:root|work|Users/\w+|home/(?!you\b)\w+)/")
REGISTRIES = re.compile(
    r"--(?:extra-)?index-url[ =]|--find-links[ =]|--trusted-host[ =]"
    r"|https?://\S+/simple\b|\bresolved\W+https?://"
)
SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\bsk-(?:ant-|proj-)?[A-Za-z0-9]{24,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\bxox[abp]-[0-9A-Za-z-]{20,}"
    r"|\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}\b"
)
LEFT_OVERS = re.compile(r"(?:^|/)(?:__pycache__|\.hypothesis|\.venv|\.coverage[^/]*|\.env)(?:/|$)")
MAX_BYTES = 1_000_000


@cache
def files() -> tuple[Path, ...]:
    """What is committed, or would be by ``git add -A``."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if listed.returncode:
        pytest.skip(f"git does not list this checkout: {listed.stderr.strip()}")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return tuple(path for path in paths if path.is_file())


def hits(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in files():
        text = path.read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}")
    return found


def test_no_file_names_a_folder_of_somebodys_machine() -> None:
    assert hits(MACHINE_PATHS) == []


def test_no_file_names_a_package_registry() -> None:
    assert hits(REGISTRIES) == []


def test_no_file_holds_a_secret() -> None:
    """SPEC SEC-2."""
    assert hits(SECRETS) == []


def test_no_left_over_of_a_run_is_committed() -> None:
    names = [str(path.relative_to(ROOT)) for path in files()]
    assert [name for name in names if LEFT_OVERS.search(name)] == []
    assert [str(path) for path in files() if path.stat().st_size > MAX_BYTES] == []


@pytest.mark.parametrize(
    ("pattern", "line", "word"),
    [
        (MACHINE_PATHS, "cd /{}/project", "work"),
        (MACHINE_PATHS, "open('/home/{}/x')", "ann"),
        (MACHINE_PATHS, "/Users/{}/x", "ann"),
        (REGISTRIES, "--index-{}=https://pypi.example", "url"),
        (REGISTRIES, "see {}://pypi.example/simple for it", "https"),
        (SECRETS, "-----BEGIN RSA {} KEY-----", "PRIVATE"),
        (SECRETS, "token = '123456789:AA{}'", "x" * 33),
    ],
)
def test_the_patterns_find_what_they_look_for(
    pattern: re.Pattern[str], line: str, word: str
) -> None:
    # The examples are completed here, so that this file does not hold what it forbids.
    assert pattern.search(line.format(word))
    assert not pattern.search(line)
