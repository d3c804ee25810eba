"""Errors about heartbeats on their way over the wire: their class and what it carries survive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from goclaw_py.model.errors import (
    BadChecklist,
    BadHours,
    ChecklistChanged,
    HeartbeatError,
    TooManyEvents,
    UnknownAgent,
)

STATUS_OF: Final[tuple[tuple[type[HeartbeatError], int], ...]] = (
    (UnknownAgent, 404),
    (TooManyEvents, 409),
    (ChecklistChanged, 409),
    (HeartbeatError, 422),
)
"""The HTTP status of each; the first that fits."""

Kind = Literal[
    "HeartbeatError",
    "UnknownAgent",
    "TooManyEvents",
    "BadChecklist",
    "ChecklistChanged",
    "BadHours",
]

_KINDS: Final[Mapping[Kind, type[HeartbeatError]]] = {
    "HeartbeatError": HeartbeatError,
    "UnknownAgent": UnknownAgent,
    "TooManyEvents": TooManyEvents,
    "BadChecklist": BadChecklist,
    "ChecklistChanged": ChecklistChanged,
    "BadHours": BadHours,
}
_FACTS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "UnknownAgent": ("agent",),
    "TooManyEvents": ("agent", "most"),
    "BadHours": ("key", "value", "allowed"),
}
"""What each of them carries beside its sentence."""


@dataclass(frozen=True, slots=True)
class HeartbeatFault:
    """A ``HeartbeatError``: its sentence, the name of its class, and what this carries."""

    error: str
    kind: Kind
    facts: dict[str, str | int] = field(default_factory=dict)


def fault_of(error: HeartbeatError) -> HeartbeatFault:
    """The error as it goes over the wire; of a class that is not known here as its base."""
    named = (name for name, one in _KINDS.items() if type(error) is one)
    kind: Kind = next(named, "HeartbeatError")
    facts = {name: getattr(error, name) for name in _FACTS.get(kind, ())}
    return HeartbeatFault(str(error), kind, facts)


def error_of(fault: HeartbeatFault) -> HeartbeatError:
    """The error that was meant. Facts that are missing or not known are left out."""
    kind = _KINDS[fault.kind]
    error = kind.__new__(kind, fault.error)
    for name in _FACTS.get(fault.kind, ()):
        if name in fault.facts:
            setattr(error, name, fault.facts[name])
    return error
