"""Values in the addresses of pages, and errors for those that cannot be used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.exceptions import HTTPException

from goclaw_py.core.pagination import Cursor
from goclaw_py.core.text import truncate
from goclaw_py.web.api.wire import MAX_ROW_ID

A_PAGE: Final = "a page of this list; begin at its first page"
_SHOWN_CHARS: Final = 60


class WrongField(HTTPException):
    """A parameter of a page has a wrong value: the page says so, and is shown without it.

    An action for all rows that match is refused with this error, so that it does not take all.
    """

    def __init__(self, field: str, text: str, detail: str) -> None:
        super().__init__(422, detail)
        self.field = field
        self.text = text


def refused(label: str, value: str, wanted: str) -> HTTPException:
    """Return the error for a value in an address that cannot be used; ``label`` as on the page."""
    return HTTPException(422, f"{label}: “{truncate(value, _SHOWN_CHARS)}” is not {wanted}")


def wrong_field(field: str, label: str, value: str, wanted: str) -> WrongField:
    """Return the same as the error of a parameter of a page."""
    return WrongField(field, value, refused(label, value, wanted).detail)


def place(query: Mapping[str, str], field: str = "before", *, keys: int = 1) -> Cursor | None:
    """Parse the cursor of a list in an address. Raises ``WrongField``."""
    if (text := query.get(field)) is None:
        return None
    try:
        return Cursor.parse(text, keys=keys)
    except ValueError as error:
        raise wrong_field(field, "Page", text, A_PAGE) from error


def row_place(query: Mapping[str, str], field: str = "before") -> int | None:
    """Parse the number of the row before a page of a list. Raises ``WrongField``."""
    if (text := query.get(field)) is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text[:20]) <= MAX_ROW_ID):
        raise wrong_field(field, "Page", text, A_PAGE)
    return int(text)
