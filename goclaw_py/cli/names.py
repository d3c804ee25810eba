"""Shows sessions, people and chats by their display names (SPEC OPS-9)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from goclaw_py.cli.context import Question
from goclaw_py.cli.output import Printer, one_line
from goclaw_py.core.display_names import address
from goclaw_py.core.messages import Target

if TYPE_CHECKING:
    from goclaw_py.operations.control import Control

T = TypeVar("T")

_NAME: Final = 40
_BATCH: Final = 1000
"""How many names one request may ask for."""


@dataclass(frozen=True, slots=True)
class DisplayNames:
    """The display names of keys, on one line; people choose them, so they are not trusted."""

    known: Mapping[str, str] = field(default_factory=dict)

    def of(self, key: str) -> str:
        """Return the name, or the key if there is none."""
        name = self.known.get(key, key)
        # A key is never cut: people copy it.
        return one_line(name, sys.maxsize if name == key else _NAME)

    def with_key(self, key: str) -> str:
        """Return the name with the key, which identifies."""
        name, whole = self.of(key), one_line(key, sys.maxsize)
        return name if name == whole else f"{name} ({whole})"

    def chat(self, target: Target) -> str:
        """Return the name of a chat, with its topic."""
        name = self.of(address(target))
        return name if target.thread is None else f"{name} / topic {one_line(target.thread)}"


@dataclass(frozen=True, slots=True)
class Named(Generic[T]):
    """An answer, with the names of what it mentions."""

    found: T
    names: DisplayNames


def with_names(
    question: Question[T],
    keys: Callable[[T], Iterable[str]],
    kind: Any,
    show: Callable[[T, DisplayNames], None],
    as_json: bool,  # noqa: FBT001  (as in Printer)
    document: Callable[[T], object] | None = None,
) -> tuple[Question[Named[T]], Printer[Named[T]]]:
    """Return a question that also asks for the names of ``keys``, and the printer of its answer.

    ``keys`` are session keys, or ``channel/account/id`` of people and chats; they are the same in
    JSON, which has no names. The other arguments are those of ``Printer``.
    """

    async def ask(control: Control) -> Named[T]:
        found = await question(control)
        wanted = [] if as_json else sorted(set(keys(found)))
        known: dict[str, str] = {}
        for start in range(0, len(wanted), _BATCH):
            known |= await control.sessions.names(wanted[start : start + _BATCH])
        return Named(found, DisplayNames(known))

    def shown(one: Named[T]) -> None:
        show(one.found, one.names)

    def documented(one: Named[T]) -> object:
        return one.found if document is None else document(one.found)

    return ask, Printer(kind, shown, as_json, documented)
