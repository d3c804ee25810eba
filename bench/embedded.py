"""A server of its own for each benchmark."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from goclaw_py.store.embedded import EmbeddedPostgres
from goclaw_py.store.postgres import Address


@contextmanager
def server() -> Iterator[Address]:
    """An embedded PostgreSQL in a temporary folder."""
    with (
        tempfile.TemporaryDirectory(prefix="goclaw-bench-") as folder,
        EmbeddedPostgres(Path(folder) / "postgres") as embedded,
    ):
        found = embedded.start()
        yield Address(host=str(found.host), user=found.user, database=found.database)
