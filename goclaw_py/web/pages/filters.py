"""Filters of lists: the address has them, so that they stay, and go with a link (SPEC OPS-3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeVar, get_args, get_type_hints
from urllib.parse import parse_qsl, urlencode

from starlette.exceptions import HTTPException
from starlette.responses import Response

from goclaw_py.core.errors import NoGateway
from goclaw_py.core.session_keys import CONSOLE
from goclaw_py.operations.control import Control
from goclaw_py.schedule.jobs.models import NOT_IN_NAMES, SLUG
from goclaw_py.web.pages.parameters import wrong_field
from goclaw_py.web.pages.services import PageServices, Query, back_to

T = TypeVar("T")

MAX_SEARCH: Final = 200
"""The number of characters of a searched text."""

TODAY: Final = "today"
ANY_FAILURE: Final = "any_failure"
"""The tab of runs with any of the outcomes ``FAILURES``."""

RANGES: Final[Mapping[str, tuple[str, timedelta | None]]] = {
    TODAY: ("today (UTC)", timedelta(0)),
    "1h": ("in the last hour", timedelta(hours=1)),
    "24h": ("in the last 24 hours", timedelta(days=1)),
    "7d": ("in the last 7 days", timedelta(days=7)),
    "30d": ("in the last 30 days", timedelta(days=30)),
    "all": ("at any time", None),
}
"""How far back rows are listed, in words and as a time. Runs are kept for 90 days.

Today is the day of budgets and of the first page, in UTC.
"""


TAB: Final = "show"
ORDER: Final = "order"
"""The parameter of the order of the rows: the same rows are listed in each."""
PLACES: Final = ("before", "page", "in")
"""Where a page of a list begins: not a filter, and left when one changes."""


@dataclass(frozen=True, slots=True)
class Field:
    """A filter: one of some values, or a text.

    Args:
        name: Its parameter in the address.
        options: Its values, each with its words, or with a key of a display name; None: any text.
        default: The value that an address without it has; "" selects all.
        hidden: The form keeps it, and nobody sees it there.
        is_time: It is an instant: without a zone in UTC, on a page with scripts in that of the
            browser.
    """

    name: str
    label: str
    options: Mapping[str, str] | None = None
    default: str = ""
    placeholder: str = ""
    hidden: bool = False
    is_time: bool = False

    def read(self, query: Query) -> str:
        """Return its value in an address. Raises ``WrongField`` for an unknown one.

        An action for all rows that match would otherwise take all, where a link names a past agent.
        """
        value = query.get(self.name, "")
        if self.options is None:
            return NOT_IN_NAMES.sub("", value)[:MAX_SEARCH].strip()
        if value and value not in self.options:
            raise wrong_field(self.name, self.label, value, "a value of this filter")
        return value or self.default


def one_of(name: str, label: str, values: Iterable[str]) -> Field:
    """Return a filter by one of some values, whose words are the values."""
    return Field(name, label, {value: value.replace("_", " ") for value in values})


async def of_agent(control: Control, query: Query) -> Field:
    """Return the filter by agent: those of the settings, and the one an address names.

    What a former agent did is kept.
    """
    known = await control.heartbeats.agents()
    return one_of("agent", "Agent", [*known, *(_named("agent", query) - {*known})])


async def channels(service: PageServices, query: Query) -> list[str]:
    """Return the channels of the gateway and of stored messages, and the one an address names."""
    known = {*await service.control.deliveries.channels(), CONSOLE}
    with suppress(NoGateway):
        known |= {view.name for view in (await service.control.lanes.status()).channels}
    return sorted(known | _named("channel", query))


def _named(parameter: str, query: Query) -> set[str]:
    """Return the agent or channel that an address names, if it can be one."""
    named = query.get(parameter, "")
    return {named} if SLUG.fullmatch(named) else set()


def given(query: Query, name: str, label: str, named: str = "") -> tuple[Field, ...]:
    """Return a filter by a value that links set: it is there if the address has it.

    ``named`` is the key of its display name, if that is not the value.
    """
    value = query.get(name, "")
    return (Field(name, label, {value: named or value}),) if value else ()


def selected(kind: type[T], values: Mapping[str, str]) -> T:
    """Return a filter of records from the values of filters that are called as its fields.

    Raises ``WrongField`` for a text that its field does not accept, such as a bad number.
    """
    hints, given = get_type_hints(kind), dict[str, object]()
    for name, value in values.items():
        if value and name in hints:
            try:
                # ``AgentName | None`` makes a field of a text, and so does ``Outcome | None``.
                given[name] = get_args(hints[name])[0](value)
            except (ValueError, ArithmeticError) as error:
                label = name.replace("_", " ").capitalize()
                raise wrong_field(name, label, value, "a value of this filter") from error
    return kind(**given)


def time_range(label: str, default: str = "24h") -> Field:
    """Return a filter by one of ``RANGES``."""
    return Field("range", label, {name: words for name, (words, _) in RANGES.items()}, default)


@dataclass(frozen=True, slots=True)
class Tab:
    """A state of the rows. ``more``: there may be more than the ``count``."""

    value: str
    count: int | None = None
    more: bool = False


@dataclass(frozen=True, slots=True)
class ListFilters:
    """The filters of a page, and what of them an address selects.

    Args:
        path: The page.
        things: What it lists, for people.
        query: The parameters in the address.
        states: The values of the tabs; the first one is selected where the address names none.
        tab: The parameter of the tab.
        anchor: The place of the list in the page, such as ``#log``.
        tabs: The tabs in their order, with the numbers of rows, once these are known.
    """

    path: str
    things: str
    query: Query
    fields: tuple[Field, ...]
    states: tuple[str, ...] = ("",)
    tab: str = TAB
    anchor: str = ""
    tabs: tuple[Tab, ...] = field(default=())

    @property
    def values(self) -> dict[str, str]:
        """The value of each filter, "" where it selects all."""
        return {each.name: each.read(self.query) for each in self.fields}

    @property
    def show(self) -> str:
        """The selected tab. Raises ``WrongField`` for an unknown one."""
        wanted = self.query.get(self.tab, "") or self.states[0]
        if wanted not in self.states:
            raise wrong_field(self.tab, "Tab", wanted, "a tab of this list")
        return wanted

    @property
    def chosen(self) -> dict[str, str]:
        """The filters that differ from what an address without them has."""
        defaults = {each.name: each.default for each in self.fields}
        return {name: one for name, one in self.values.items() if one != defaults[name]}

    @property
    def same_rows(self) -> dict[str, str]:
        """All that an address needs for the same rows, without the place of a page of them."""
        tab = {} if self.show == self.states[0] else {self.tab: self.show}
        return self.chosen | tab

    @property
    def selecting(self) -> tuple[Field, ...]:
        """The chosen filters that the form shows, without the order of the rows."""
        shown = (each for each in self.fields if not each.hidden and each.name != ORDER)
        return tuple(each for each in shown if each.name in self.chosen)

    @property
    def ordered(self) -> str:
        """The chosen order of the rows in words; "" for the usual one."""
        each = next((each for each in self.fields if each.name == ORDER), None)
        return (each.options or {})[self.chosen[ORDER]] if each and ORDER in self.chosen else ""

    @property
    def unfiltered(self) -> str:
        """The address of the same tab without filters, in the same order."""
        return self.link({name: "" for name in self.chosen if name != ORDER})

    @property
    def back(self) -> str:
        """What a form sends as ``rows``: the way back to the same rows (``back_to_rows``)."""
        place = {name: self.query[name] for name in PLACES if name in self.query}
        return urlencode(self.same_rows | place)

    def since(self, now: datetime) -> datetime | None:
        """Return the start of the selected time."""
        name = self.values["range"]
        _, back = RANGES[name]
        if name == TODAY:
            now = now.replace(hour=0, minute=0, second=0)
        # Whole seconds: the same rows are one live part.
        return None if back is None else now.replace(microsecond=0) - back

    def link(self, changes: Mapping[str, object] | None = None, /, **more: object) -> str:
        """Return the address with changed filters, at its first page unless that is among them."""
        changed = {name: str(one) for name, one in {**(changes or {}), **more}.items()}
        query = {name: one for name, one in (self.same_rows | changed).items() if one}
        if query.get(self.tab) == self.states[0]:
            del query[self.tab]
        return self.path + (f"?{urlencode(query)}" if query else "") + self.anchor


def page_number(query: Query) -> int:
    """Return the number of the page of a list in an address, from 1; 1 for an unknown one."""
    text = query.get("page", "")
    return max(1, int(text)) if text.isascii() and text.isdecimal() and len(text) <= 6 else 1


def params_of(*names: str) -> tuple[str, ...]:
    """Return the parameters of a page with these filters."""
    return (TAB, *PLACES, *names)


def query_of(rows: str) -> dict[str, str]:
    """Parse ``ListFilters.back``, which a form has sent. Raises ``HTTPException`` (422)."""
    try:
        return dict(parse_qsl(rows, max_num_fields=20))
    except ValueError as error:
        raise HTTPException(422, "rows: the parameters of the list") from error


def back_to_rows(path: str, notice: str, rows: str, names: Iterable[str], **more: str) -> Response:
    """Redirect to a list after an action. ``names`` are its filters; others are left out."""
    known = {*params_of(*names)}
    query = {key: value for key, value in query_of(rows).items() if key in known}
    return back_to(path, notice, **{**query, **more})
