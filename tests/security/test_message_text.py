"""Whoever may not read the text of messages gets none of it, by no way (SPEC SEC-8).

Promised: a viewer without text gets records whose texts are blanked, and cannot find one by trying.
Tried: every type that an operation can return, with a secret in each string; every page and GET
route of a gateway in which a secret stands in messages, answers, titles, jobs, failures,
approvals, checklists, events and alerts; searches and names with a part of it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, get_args, get_type_hints

import pytest

import goclaw_py.schedule.jobs.models  # noqa: F401  (types of the ports' annotations)
from goclaw_py.core.actors import AccessRole, Actor, ActorKind, acts
from goclaw_py.operations.control import Control
from goclaw_py.operations.nouns import NOUNS
from goclaw_py.records import DeadLetterQuery, JobQuery, MessageFilter, OutboxQuery
from goclaw_py.web.message_text import (
    HIDDEN,
    PLAIN,
    PLAIN_RESULTS,
    TEXT,
    WithoutText,
    blank,
    hints_of,
    may_be_text,
)
from goclaw_py.web.roles import RoleTooLow

SERVICES = (Control, *(one.service for one in NOUNS))
TEXT_RESULTS = {"names", "rename", "no_route", "choose_zone"}
"""Methods that return a bare string that is text, or that no viewer may call."""

BLIND = Actor(ActorKind.TOKEN, "grafana", AccessRole.VIEWER, reads_text=False)


def names() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("goclaw_py."):
            found |= {
                name: one
                for name, one in vars(module).items()
                if getattr(one, "__module__", "").startswith("goclaw_py.")
            }
    return found


NAMES = names()


def operations() -> Iterator[tuple[str, Any]]:
    """Name and type of the result of each operation and property."""
    for service in SERVICES:
        for name, found in inspect.getmembers(service):
            function = found.fget if isinstance(found, property) else found
            if not name.startswith("_") and inspect.isfunction(function):
                hints = get_type_hints(
                    function, localns={**NAMES, **vars(sys.modules[service.__module__])}
                )
                if name not in [one.name for one in NOUNS]:
                    yield name, hints["return"]


def records() -> dict[str, type]:
    """Every record that an operation can return, itself or in another one."""
    found: dict[str, type] = {}

    def visit(hint: Any) -> None:
        for part in (hint, *get_args(hint)):
            if part is not hint:
                visit(part)
            elif is_dataclass(part) and isinstance(part, type) and part.__name__ not in found:
                found[part.__name__] = part
                for inner in hints_of(part).values():
                    visit(inner)

    for _name, result in operations():
        visit(result)
    return found


RECORDS = records()


def test_every_string_of_every_record_is_declared_once() -> None:
    """A new field has to be put into one of the two tables."""
    strings = {
        (kind, field)
        for kind, record in RECORDS.items()
        for field, hint in hints_of(record).items()
        if may_be_text(hint)
    }
    assert len(strings) > 150
    plain = {(kind, field) for kind, listed in PLAIN.items() for field in listed.split()}
    text = {(kind, field) for kind, listed in TEXT.items() for field in listed.split()}
    assert plain & text == set()
    assert strings - plain - text == set()
    assert (plain | text) - strings == set()


def test_every_bare_string_that_an_operation_returns_is_declared() -> None:
    bare = {name for name, result in operations() if may_be_text(result)}
    assert bare <= PLAIN_RESULTS | TEXT_RESULTS


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Record:
    """Not in the tables: whatever may be text is."""

    words: str
    many: tuple[str, ...]
    anything: object
    by_word: Mapping[str, str]
    colour: Colour
    number: int
    inner: Record | None = None


def test_what_is_not_declared_is_text() -> None:
    before = Record("secret", ("secret", ""), b"secret", {"secret": "secret"}, Colour.RED, 7)
    after = blank(Record("", (), None, {}, Colour.RED, 8, before))
    hidden = Record(HIDDEN, (HIDDEN, ""), b"", {}, Colour.RED, 7)
    assert after == Record("", (), None, {}, Colour.RED, 8, hidden)


def test_a_value_of_an_unknown_type_is_not_let_through() -> None:
    with pytest.raises(TypeError, match="whether a generator has text"):
        blank(one for one in "ab")


class Service:
    """What an operation or property of a service may be."""

    agents = ("main",)
    secret = "secret"

    def now(self) -> datetime:
        return datetime(2026, 1, 2, tzinfo=UTC)

    async def say(self) -> str:
        return "secret"

    async def find(self, query: object) -> str:
        del query
        return "secret"


@dataclass(frozen=True)
class Search:
    """A query with a text of its own."""

    search: str


@pytest.mark.parametrize("query", [
    MessageFilter(text="sec"), OutboxQuery(only=MessageFilter(text="sec")),
    DeadLetterQuery(only=MessageFilter(text="sec")), JobQuery(name="sec"), Search("sec"),
])  # fmt: skip
async def test_a_search_in_texts_is_refused_wherever_its_words_stand(query: object) -> None:
    service = WithoutText(Service())
    assert await service.find(query) == "secret"
    with acts(BLIND):
        assert await service.find(OutboxQuery(limit=1)) == HIDDEN
        with pytest.raises(RoleTooLow, match="to search in texts and names"):
            service.find(query)


async def test_only_who_may_reads() -> None:
    service = WithoutText(Service())
    assert await service.say() == service.secret == "secret"
    for role, reads, seen in [
        (AccessRole.VIEWER, True, "secret"),
        (AccessRole.OPERATOR, False, "secret"),
        (AccessRole.ADMIN, False, "secret"),
        (AccessRole.VIEWER, False, HIDDEN),
    ]:
        with acts(Actor(ActorKind.TOKEN, "grafana", role, reads_text=reads)):
            assert await service.say() == service.secret == seen
            assert service.agents == ("main",)
            assert service.now().year == 2026
