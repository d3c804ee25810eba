"""What people name by a part of its id or name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from goclaw_py.core.errors import NotFound
from goclaw_py.core.pagination import FOUND

T = TypeVar("T")


def only(
    candidates: list[T],
    part: str,
    name: Callable[[T], str],
    wanted: str,
    see: str,
    *,
    most: int = FOUND - 1,
) -> T:
    """Return the candidate whose name is ``part``, else the only one with this part in its name.

    ``wanted`` says what was asked for, ``see`` is the command that lists all candidates. Raises
    ``NotFound`` if none or several match, then with the names of these.
    """
    exact = [candidate for candidate in candidates if name(candidate) == part]
    found = exact or [candidate for candidate in candidates if part in name(candidate)]
    if not found:
        raise NotFound(f"there is no {wanted}", hint=f"; see: goclaw {see}")
    if len(found) > 1:
        names = [name(candidate) for candidate in found[:most]]
        more = ", …" if len(found) > most else ""
        raise NotFound(f"{wanted} is not unique: {', '.join(names)}{more}", names=names)
    return found[0]
