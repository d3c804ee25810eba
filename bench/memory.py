"""How much memory a process has."""

from __future__ import annotations

from pathlib import Path


def resident_mb(process: int | str = "self") -> float:
    """The resident memory of a process, as ``/proc`` of Linux tells it."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {process} is gone")
