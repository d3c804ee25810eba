"""Digests of the settings that must be the same on all nodes of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

from goclaw_py.operations.settings.models import Setting

_OWN: Final = frozenset({"database", "log", "shutdown", "state", "web"})
"""Sections that may differ between nodes."""

_DIGITS: Final = 12


def settings_digest(settings: Iterable[Setting]) -> Mapping[str, str]:
    """Return a digest of each section, by name; secrets are not included (SPEC NODE-1)."""
    sections: dict[str, list[str]] = {}
    for one in settings:
        section = one.path.partition(".")[0]
        if section not in _OWN:
            sections.setdefault(section, []).append(f"{one.path}={one.value!r}")
    return {
        name: sha256("\n".join(sorted(lines)).encode()).hexdigest()[:_DIGITS]
        for name, lines in sorted(sections.items())
    }
