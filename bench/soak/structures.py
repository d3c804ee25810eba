"""How much the parts of a gateway hold: every container that can be reached from them.

Nothing is listed by hand, so a dict that somebody adds tomorrow is looked at, too.
"""

from __future__ import annotations

import functools
import gc
import types
import weakref
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

OURS: Final = ("goclaw_py.", "channels.", "tests.support.memory_store.")
_APART: Final = (
    "goclaw_py.store.",
    "goclaw_py.testing.",
    "goclaw_py.config.",
    "tests.support.memory_store.",
)
"""What is not a part of the runtime: it is looked into only if it is asked for."""
_MAPPINGS: Final = (dict, OrderedDict, types.MappingProxyType, weakref.WeakValueDictionary)
_LISTS: Final = (list, set, deque)
_FIXED: Final = (tuple, frozenset)
_Cache: Final = type(functools.lru_cache(int))
_Callables = (types.MethodType, functools.partial, types.FunctionType)


@dataclass(frozen=True, slots=True)
class Held:
    """How many items there are, and how many there can be where that is limited."""

    items: Counter[str] = field(default_factory=Counter)
    limits: dict[str, int] = field(default_factory=dict)


def sizes(*roots: object, apart: tuple[str, ...] = _APART) -> Held:
    """How much is held, by class and attribute: ``Gateway._sessions``.

    The items of all objects of a class count together, and so do those of containers within a
    container, as ``DropNotices._gathered[]``. Objects of the modules ``apart`` are not looked into.
    """
    return _Walk(apart).through(roots)


def caches() -> Held:
    """How many results the functions of ours remember that have a cache, by function."""
    found = Held()
    for one in gc.get_objects():
        if isinstance(one, _Cache):
            module, name = getattr(one, "__module__", ""), getattr(one, "__qualname__", "?")
            if str(module).startswith(OURS):
                called, state = f"{str(module).rpartition('.')[2]}.{name}()", one.cache_info()
                found.items[called] += state.currsize
                if state.maxsize is not None:
                    found.limits[called] = state.maxsize
    return found


class _Walk:
    def __init__(self, apart: tuple[str, ...]) -> None:
        self._apart = apart
        self._found = Held()
        # Objects are kept, or a new one could have the number of one that is gone.
        self._seen: dict[int, object] = {}
        self._left: list[tuple[object, str]] = []

    def through(self, roots: Iterable[object]) -> Held:
        self._left.extend((root, "") for root in roots)
        while self._left:
            one, name = self._left.pop()
            if id(one) in self._seen:
                continue
            self._seen[id(one)] = one
            self._look(one, name)
        return self._found

    def _look(self, one: object, name: str) -> None:
        """``name`` is that of the attribute that holds it, "" for none."""
        if isinstance(one, (*_MAPPINGS, *_LISTS, *_FIXED)):
            self._look_into(one, name)
        elif isinstance(one, _Callables):
            self._left.extend((part, "") for part in _parts(one))
        elif self._is_ours(type(one)):
            cls = type(one).__name__
            for attribute, value in _attributes(one):
                self._left.append((value, f"{cls}.{attribute}"))

    def _look_into(self, one: Any, name: str) -> None:
        if name and not isinstance(one, _FIXED):
            self._found.items[name] += len(one)
            if (limit := getattr(one, "maxlen", getattr(one, "_limit", None))) is not None:
                self._found.limits[name] = limit
        inner = f"{name}[]" if name and not name.endswith("[]") else name
        values = [*one, *one.values()] if isinstance(one, Mapping) else list(one)
        for value in values:
            if not isinstance(value, str | int | float | bytes | None):
                self._left.append((value, inner))

    def _is_ours(self, cls: type) -> bool:
        # A class of others may be derived from one of ours.
        modules = [f"{base.__module__}." for base in cls.__mro__]
        is_apart = any(module.startswith(self._apart) for module in modules)
        return not is_apart and any(module.startswith(OURS) for module in modules)


def _parts(one: Any) -> Iterator[object]:
    """What a callable holds."""
    if isinstance(one, functools.partial):
        yield from (one.func, *one.args, *one.keywords.values())
    elif isinstance(one, types.MethodType):
        yield one.__self__
    else:
        for cell in one.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # not filled yet
                continue


def _attributes(one: object) -> Iterator[tuple[str, object]]:
    yield from list(getattr(one, "__dict__", {}).items())
    for cls in type(one).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            name = f"_{cls.__name__}{slot}" if slot.startswith("__") else slot
            if not name.endswith("__") and hasattr(one, name):
                yield slot, getattr(one, name)
