"""What viewers without text get: records whose texts are blanked, in one place (SPEC SEC-8).

``WithoutText`` stands between the services and all that answers over HTTP. A string of a record
goes through only if its type says that it is an id or one of a few words, or if ``PLAIN`` names its
field; everything else is blanked, so a new field cannot be forgotten. Nor do searches and messages
of errors say what the text is.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Any, Final, cast, get_args, get_type_hints

from goclaw_py.core.actors import AccessRole, Least, acting
from goclaw_py.core.display_names import KnownNames, display_name
from goclaw_py.core.errors import BadUsageQuery, GoclawError, NoGateway, NotFound, StoreUnavailable
from goclaw_py.operations.control import Control
from goclaw_py.operations.nouns import NOUNS
from goclaw_py.records import JobQuery, MessageFilter, SessionQuery
from goclaw_py.schedule.jobs.models import Program
from goclaw_py.web.roles import RoleTooLow, level_of

HIDDEN: Final = "(hidden)"
"""What stands in the place of a text."""

PLAIN: Final[Mapping[str, str]] = {
    "Attachment": "ref mime",
    "ChannelView": "name account detail warning proxy",
    "Explanation": "code",
    "ExplanationStep": "code",
    "InboundMessage": "external_id message_id reply_to album edits",
    "LastChat": "channel account",
    "LiveRequested": "id",
    "LiveEnded": "id",
    "LiveJoined": "id",
    "LiveNow": "id",
    "LiveStarted": "id",
    "LiveText": "id",
    "LiveTool": "id name call_id",
    "LiveUsage": "id model",
    "LostDraft": "after id",
    "OutFile": "mime",
    "OutboundMessage": "reply_to draft album",
    "RunProgress": "tools model",
    "Sender": "id name username",
    "Subject": "id",
    "Target": "channel account chat thread",
    "UnservedPlace": "channel account",
    **{kind: names for noun in NOUNS for kind, names in noun.plain.items()},
}
"""The strings that say nothing of what people and agents have written."""

TEXT: Final[Mapping[str, str]] = {
    "Actor": "name via",
    "Attachment": "name",
    "Button": "text data",
    "Cure": "words command link",
    "Explanation": "answer",
    "ExplanationStep": "words",
    "InboundMessage": ("text quote press unsupported place_name topic_name source asker formatted"),
    "LiveText": "text",
    "OutFile": "path name",
    "OutboundMessage": "text alert",
    "RunProgress": "prompt",
    "Subject": "name",
    **{kind: names for noun in NOUNS for kind, names in noun.text.items()},
}
"""Those that may: blanked, as whatever stands in neither table. A test compares all types."""

PLAIN_RESULTS: Final = frozenset({"counts", "zone", "agents", "channels"})
"""Methods and properties whose bare strings are plain."""

_SERVICES: Final = frozenset(one.name for one in NOUNS)
_SEARCHES: Final[Mapping[type, str]] = {
    MessageFilter: "text",
    JobQuery: "name",
    SessionQuery: "search",
}
_SAID_TO_ALL: Final = (StoreUnavailable, NoGateway, BadUsageQuery, RoleTooLow)
"""Errors whose words quote nothing that is stored."""

_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SCALARS: Final = (type(None), bool, int, float, Decimal, date, datetime, timedelta, Enum)


def without_text(control: Control) -> Control:
    """Return the same operations; their answers depend on who acts."""
    return cast("Control", WithoutText(control))


def sees_text() -> bool:
    """Return whether who acts may read the text of messages."""
    actor = acting()
    return actor is None or actor.role is None or level_of(actor) >= Least.TEXT


class WithoutText:
    """A service as whoever acts may see it: without text, and without programs, or the whole."""

    def __init__(self, service: object) -> None:
        self._service = service

    def __getattr__(self, name: str) -> Any:
        """Return an operation or a property of the service."""
        found = getattr(self._service, name)
        if name in _SERVICES:
            return WithoutText(found)
        actor = acting()
        if actor is None or actor.role in (None, AccessRole.ADMIN):
            return found
        if not sees_text():
            if name == "names":
                # Names are titles, too, and those of jobs are their first words.
                return _names_of_ids
            is_plain = name in PLAIN_RESULTS
            return (
                _blanked(found, is_plain=is_plain)
                if callable(found)
                else blank(found, is_plain=is_plain)
            )
        return _without_programs(found) if name in ("create", "edit") else found


def _without_programs(found: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse jobs that run programs: with one, an operator could read and change the settings."""

    def call(*given: object, **named: object) -> Any:
        for one in (*given, *named.values()):
            if isinstance(getattr(one, "payload", None), Program):
                raise RoleTooLow(f"a job that runs a program needs the role {Least.ADMIN}")
        return found(*given, **named)

    return call


def _blanked(found: Callable[..., Any], *, is_plain: bool) -> Callable[..., Any]:
    """Return an operation whose result has no text, and which cannot search in it."""

    def call(*given: object, **named: object) -> Any:
        arguments = inspect.signature(found).bind(*given, **named).arguments
        _refuse_search(arguments)
        result = found(*given, **named)
        if inspect.isasyncgen(result):
            raise RoleTooLow(f"this needs the role {Least.TEXT}")
        return (
            _awaited(result, arguments.get("key"), is_plain=is_plain)
            if inspect.isawaitable(result)
            else blank(result, is_plain=is_plain)
        )

    return call


async def _names_of_ids(keys: Collection[str]) -> dict[str, str]:
    return {key: display_name(key, KnownNames()) for key in keys}


async def _awaited(result: Awaitable[object], key: object, *, is_plain: bool) -> object:
    nothing = "there is nothing with this id or key"
    try:
        value = await result
    except _SAID_TO_ALL:
        raise
    except GoclawError:
        # Its words could be a name, or the candidates for one.
        raise NotFound(nothing) from None
    # Sessions are found by parts of titles and names as well, so a part would be a search.
    if key is not None and getattr(value, "key", getattr(value, "session", key)) != key:
        raise NotFound(nothing)
    return blank(value, is_plain=is_plain)


def _refuse_search(arguments: Mapping[str, object]) -> None:
    """Refuse what would find out by trying whether a word is in a text or name."""
    job = arguments.get("job")
    if job is not None and not _ID.fullmatch(str(job)):
        raise RoleTooLow(f"without its whole id a job needs the role {Least.TEXT}")
    if arguments.get("search") or any(map(_searches, arguments.values())):
        raise RoleTooLow(f"to search in texts and names needs the role {Least.TEXT}")


def _searches(query: Any) -> bool:
    """Return whether a query or filter has a text to search for."""
    only = getattr(query, "only", None)
    text = getattr(query, _SEARCHES.get(type(query), "search"), "")
    return bool(text) or (only is not None and _searches(only))


def blank(value: Any, *, is_plain: bool = False) -> Any:
    """Return a value without text. Raises ``TypeError`` for a type that it does not know."""
    match value:
        case str() if isinstance(value, Enum) or is_plain or not value:
            return value
        case str():
            return HIDDEN
        case bytes():
            return value if is_plain else b""
        case _ if isinstance(value, _SCALARS):
            return value
        case list() | tuple() | frozenset() | set():
            return type(value)(blank(one, is_plain=is_plain) for one in value)
        case Mapping():
            if not is_plain and any(type(key) is str for key in value):
                return {}
            return {key: blank(one, is_plain=is_plain) for key, one in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            return _blank_record(value)
        case _:
            raise TypeError(f"whether a {type(value).__name__} has text is not known")


def _blank_record(value: Any) -> Any:
    kind: type = type(value)
    plain = plain_fields(kind)
    changes = {}
    for field in fields(value):
        before = getattr(value, field.name)
        after = blank(before, is_plain=field.name in plain)
        if after is not before and after != before:
            changes[field.name] = after
    return replace(value, **changes) if changes else value


@cache
def plain_fields(kind: type) -> frozenset[str]:
    """Return the fields of a record that have no text."""
    named = PLAIN.get(kind.__name__, "").split()
    typed = (name for name, hint in hints_of(kind).items() if not may_be_text(hint))
    return frozenset((*named, *typed))


def hints_of(kind: type) -> dict[str, Any]:
    """Return the types of the fields of a record."""
    found = get_type_hints(kind)
    return {field.name: found[field.name] for field in fields(kind)}


def may_be_text(hint: object) -> bool:
    """Return whether a value of this type may be a text: a bare string, or anything."""
    return any(part in (str, bytes, object, Any) for part in _parts(hint))


def _parts(hint: object) -> Iterator[object]:
    yield hint
    for part in get_args(hint):
        yield from _parts(part)
