"""Parameters of lists, and long lists page by page (SPEC OPS-2).

The response is the list; ``Link`` has the address of the next page, except on the last one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import fields
from inspect import Parameter, Signature
from operator import attrgetter
from typing import Annotated, Any, Final, TypeVar, cast, get_type_hints
from urllib.parse import parse_qsl, urlencode

from fastapi import Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import AfterValidator

from goclaw_py.core.outcomes import Trigger
from goclaw_py.core.pagination import MAX_CURSOR_CHARS, Cursor
from goclaw_py.web.api.wire import MAX_LIMIT, MAX_ROW_ID, Instant

T = TypeVar("T")

Limit = Annotated[
    int, Query(ge=1, le=MAX_LIMIT, description="The maximum number of rows on a page.")
]

_ABOUT: Final = "Continue after this position; the `Link` header of the previous page contains it."
_Text = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=MAX_CURSOR_CHARS,
        pattern="^[A-Za-z0-9_-]+$",
        description=_ABOUT,
        examples=["WyIyMDI2LTAxLTAyVDAzOjA0OjA1KzAwOjAwIiwiMDE5MC1hYWFhIl0"],
    ),
]
RowBefore = Annotated[
    int | None,
    Query(ge=0, le=MAX_ROW_ID, description="Continue after the row with this id.", examples=[120]),
]


def _reader(keys: int) -> Callable[..., Awaitable[Cursor | None]]:
    async def read(before: _Text = None) -> Cursor | None:
        return parsed("before", before, keys)

    return read


Before = Annotated[Cursor | None, Depends(_reader(1))]
"""For lists of rows with an id."""

ChatBefore = Annotated[Cursor | None, Depends(_reader(3))]
HeardBefore = Annotated[Cursor | None, Depends(_reader(6))]


async def _after(after: _Text = None) -> Cursor | None:
    return parsed("after", after, 1)


After = Annotated[Cursor | None, Depends(_after)]
"""For lists with the oldest row first."""


def parsed(name: str, text: str | None, keys: int) -> Cursor | None:
    """Parse a cursor. Raises ``RequestValidationError``."""
    try:
        return None if text is None else Cursor.parse(text, keys=keys)
    except ValueError as error:
        wrong = {"type": "value_error", "loc": ("query", name), "msg": str(error)}
        raise RequestValidationError([wrong]) from None


Time = Annotated[Instant, Query(examples=["2026-01-02T03:00:00Z"])]


def _known(trigger: Trigger | None) -> Trigger | None:
    if trigger is not None and trigger not in {*Trigger}:
        raise ValueError(f"one of {', '.join(Trigger)}")
    return trigger


KnownTrigger = Annotated[Trigger | None, AfterValidator(_known)]
"""Other releases may have stored other triggers; nobody can ask for them."""


def parameters(kind: type[object], **annotations: object) -> Any:
    """Return the dependency that makes a filter: each field of the record is a query parameter.

    ``annotations`` are those of fields of which the description says more than their type.
    """
    hints = get_type_hints(kind) | annotations

    async def read(**given: object) -> object:
        return kind(**given)

    keyword, known = Parameter.KEYWORD_ONLY, fields(cast("Any", kind))
    read.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(one.name, keyword, default=one.default, annotation=hints[one.name])
            for one in known
        ]
    )
    return Depends(read)


LINK: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "headers": {
            "Link": {
                "description": "The next page, as a reference relative to this one: "
                '`<?limit=50&before=…>; rel="next"`. Absent on the last page.',
                "schema": {"type": "string"},
            }
        }
    }
}
"""The description of a list's response."""


class Pager:
    """Creates pages of lists, with the address of the next one in the response."""

    def __init__(self, request: Request, response: Response) -> None:
        self._asked = parse_qsl(request.url.query, keep_blank_values=True)
        self._response = response

    def of(
        self,
        rows: Sequence[T],
        limit: int,
        place: Callable[[T], object] = attrgetter("cursor"),
        *,
        name: str = "before",
    ) -> list[T]:
        """Return a page of a list that was read with one row more than the page may have.

        ``place`` returns the position of the next page, ``name`` is its parameter.
        """
        if len(rows) > limit:
            kept = [(key, value) for key, value in self._asked if key != name]
            query = urlencode([*kept, (name, str(place(rows[limit - 1])))])
            self._response.headers["Link"] = f'<?{query}>; rel="next"'
        return list(rows[:limit])


async def _pager(request: Request, response: Response) -> Pager:
    return Pager(request, response)


Page = Annotated[Pager, Depends(_pager)]
