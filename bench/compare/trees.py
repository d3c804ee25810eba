"""The two checkouts: this one, and another commit in a folder with an environment of its own."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.telegram.gateways import HERE, Tree, tree_of
from tests.support.process import ROOT

_NOT_FOR_OTHERS = (
    *("MAKEFLAGS", "GNUMAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "VENV"),
    *("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"),
)
"""Variables by which a make or an interpreter would use this checkout instead of its own."""


class CannotCompare(Exception):
    """There is no such commit, or it cannot be installed. The message is for people."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two that are compared."""

    name: str
    tree: Tree


def this_side(root: Path = ROOT) -> Side:
    """The checkout that runs this; a ``+`` behind its name says that it has changes."""
    changes = _git(root, "status", "--porcelain")
    return Side(_git(root, "rev-parse", "--short=8", "HEAD") + ("+" if changes else ""), HERE)


def other_side(commit: str, root: Path = ROOT) -> Side:
    """A commit in the cache folder of the user, installed by its own Makefile.

    The folder is used again by the next comparison with the same commit. Raises ``CannotCompare``.
    """
    named = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    sha = _git(root, *named, refusal=f"there is no commit {commit!r} in this repository")
    folder = cache_folder() / sha[:12]
    with _locked(folder.with_suffix(".lock")):
        if not folder.exists():
            _extract(root, sha, folder)
        made = subprocess.run(
            ["make", "-C", str(folder), ".venv/.ready-bench", f"PYTHON={sys.executable}"],
            env=environment(),
            stdout=sys.stderr,
            check=False,
        )
    if made.returncode:
        raise CannotCompare(f"the environment of {commit} could not be installed in {folder}")
    return Side(sha[:8], tree_of(str(folder)))


def cache_folder() -> Path:
    """Where other commits are."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "goclaw-compare"


def environment() -> dict[str, str]:
    """The environment for programs of another checkout."""
    return {name: value for name, value in os.environ.items() if name not in _NOT_FOR_OTHERS}


def _extract(root: Path, sha: str, folder: Path) -> None:
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    archive = part.with_suffix(".tar")
    _git(root, "archive", "--output", str(archive), sha, refusal=f"git cannot read {sha}")
    shutil.unpack_archive(archive, part)
    archive.unlink()
    # Only a whole checkout has the name of one.
    part.rename(folder)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Only one process at a time makes a checkout."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _git(root: Path, *arguments: str, refusal: str = "") -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise CannotCompare("git is not installed") from error
    if done.returncode:
        raise CannotCompare(refusal or done.stderr.strip().splitlines()[0])
    return done.stdout.strip()
