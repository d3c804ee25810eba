"""What is sampled of processes and of their database, from outside."""

from __future__ import annotations

import re
import urllib.request
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import asyncpg

_LINE: Final = re.compile(r"(goclaw_\w+)(?:\{.*\})? (\S+)")
_MB: Final = 1024 * 1024

_TABLES: Final = """
select relname as name, pg_total_relation_size(relid) as all_bytes,
  pg_indexes_size(relid) as index_bytes, n_dead_tup as dead, n_live_tup as live
from pg_stat_user_tables order by relname
"""
_CONNECTIONS: Final = """
select count(*) from pg_stat_activity
where datname = current_database() and application_name = 'goclaw'
"""


@dataclass(frozen=True, slots=True)
class Table:
    """One table. ``all_mb`` holds its indexes, and what is too long for a row."""

    name: str
    all_mb: float
    index_mb: float
    dead: int
    live: int


async def tables(database: asyncpg.Connection) -> list[Table]:
    """All of them; dead and live rows as the server's statistics say."""
    return [
        Table(
            row["name"], row["all_bytes"] / _MB, row["index_bytes"] / _MB, row["dead"], row["live"]
        )
        for row in await database.fetch(_TABLES)
    ]


async def connections(database: asyncpg.Connection) -> int:
    """How many the gateways have."""
    return int(await database.fetchval(_CONNECTIONS))


@dataclass(frozen=True, slots=True)
class Descriptors:
    """How many descriptors a process has open: connections to a port, and all others."""

    to_port: int
    others: int


def descriptors(process: int, port: int) -> Descriptors:
    """Those that a process has open now. ``port`` is of TCP, over IPv4."""
    place = Path(f"/proc/{process}")
    opened: list[str] = []
    for name in (place / "fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            opened.append(str(name.readlink()))
    there = f"{port:04X}"
    lines = [line.split() for line in (place / "net" / "tcp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{line[9]}]" for line in lines if line[2].endswith(":" + there)}
    to_port = sum(name in sockets for name in opened)
    return Descriptors(to_port, len(opened) - to_port)


def scraped(url: str) -> Counter[str]:
    """The figures that a gateway shows to Prometheus, all labels of one together."""
    with urllib.request.urlopen(f"{url.rstrip('/')}/metrics", timeout=30) as answer:
        return figures(answer.read().decode())


def figures(text: str) -> Counter[str]:
    """The same of a text."""
    found: Counter[str] = Counter()
    for line in text.splitlines():
        if (match := _LINE.fullmatch(line.strip())) is not None:
            # A counter takes any number.
            found[match[1]] += float(match[2])  # type: ignore[assignment]
    return found
