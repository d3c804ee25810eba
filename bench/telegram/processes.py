"""What processes have taken, as ``/proc`` of Linux and the database tell it."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from goclaw_py.store.embedded_cluster import DATABASE, USER
from goclaw_py.store.embedded_files import read_pid_file
from goclaw_py.store.postgres import Address, connection

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
TICK_MS = 1000 / _TICKS_PER_S
"""Less CPU time cannot be told from none."""


def own_cpu_s(process: int) -> float:
    """CPU seconds of a process in user and system mode, without its children."""
    text = Path(f"/proc/{process}/stat").read_text()
    fields = text[text.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def proportional_mb(process: int) -> float:
    """The memory of a process; of what it shares with others, its share (PSS)."""
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {process} is gone")


def proportional_mb_with_children(process: int) -> float:
    """The same for a process and those that it has started."""
    total = proportional_mb(process)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        # A process may end while we look.
        with suppress(OSError, RuntimeError):
            text = stat.read_text()
            if int(text[text.rindex(")") + 2 :].split()[1]) == process:
                total += proportional_mb(int(stat.parent.name))
    return total


def server_of(state: Path) -> int:
    """The process id of the embedded database of a gateway, by its folder of state."""
    files = list((state / "postgres").glob("data/postmaster.pid"))
    if not files:
        raise RuntimeError(f"no embedded database runs in {state}")
    return int(files[0].read_text().split()[0])


def address_of(state: Path) -> Address:
    """The address of the embedded database of a gateway, by its folder of state."""
    found = read_pid_file(state / "postgres" / "data")
    if found is None:
        raise RuntimeError(f"no embedded database runs in {state}")
    return Address(host=str(found.socket.parent), user=USER, database=DATABASE)


def wal_bytes(state: Path) -> int:
    """How much this database has written to its write-ahead log so far."""
    return asyncio.run(_wal_bytes(address_of(state)))


async def _wal_bytes(address: Address) -> int:
    async with connection(address) as one:
        found = await one.row("select (pg_current_wal_lsn() - '0/0')::bigint as written")
    assert found is not None
    written: int = found["written"]
    return written
