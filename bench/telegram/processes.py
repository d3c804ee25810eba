"""What processes have taken, as ``/proc`` of Linux tells it."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


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


def server_of(state: Path) -> int:
    """The process id of the embedded database of a gateway, by its folder of state."""
    files = list((state / "postgres").glob("data/postmaster.pid"))
    if not files:
        raise RuntimeError(f"no embedded database runs in {state}")
    return int(files[0].read_text().split()[0])
