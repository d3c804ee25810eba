"""Folders for embedded servers; what runs in them is ended after each test."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from goclaw_py.store.embedded import EmbeddedPostgres
from tests.support.embedded import LIMIT_S, Users, end_servers


@pytest.fixture
def users() -> Iterator[Users]:
    """Other processes."""
    started = Users()
    yield started
    started.end()


@pytest.fixture
def root() -> Iterator[Path]:
    """A short, empty folder, closed to others; servers in it are ended. Not below ``tmp_path``.

    (A test's ``tmp_path`` may be too long for a socket, and lies in a folder that other users
    cannot enter.)
    """
    made = Path(tempfile.mkdtemp(prefix="gc-"))
    yield made
    end_servers(made)
    shutil.rmtree(made)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose server was started and stopped once; to be copied."""
    folder = tmp_path_factory.mktemp("model") / "pg"
    with EmbeddedPostgres(folder) as pg:
        pg.start()
    return folder


@pytest.fixture
def made(root: Path, model: Path) -> Path:
    """A folder that was used before."""
    subprocess.run(["cp", "-a", str(model), str(root / "pg")], check=True, timeout=LIMIT_S)
    return root / "pg"
