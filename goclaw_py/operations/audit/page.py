"""The page of the audit log: who has changed what (SPEC SEC-9)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Final
from urllib.parse import quote

from starlette.routing import Route

from goclaw_py.records import AuditEntry, AuditFilter
from goclaw_py.records.audit import OK
from goclaw_py.web.pages.filters import Field, ListFilters, params_of, time_range
from goclaw_py.web.pages.parameters import row_place
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query

SHOWN: Final = 50
_FIELDS: Final = ("who", "action", "subject")
_KINDS: Final[Mapping[str, str]] = {
    "settings_token": "token of the settings",
    "token": "token",
    "person": "person",
    "command_line": "command line",
    "node": "gateway",
}
_PAGES: Final[Mapping[str, str]] = {
    "agent": "/heartbeats/",
    "approval": "/approvals#approval-",
    "chat": "/people?search=",
    "job": "/jobs/",
    "person": "/people?search=",
    "session": "/sessions/view?key=",
}
"""The pages of subjects, by the word that they begin with."""

_NAMED: Final = ("chat ", "person ", "session ")

_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:[\d.]+)?(Z|[+-]\d\d:\d\d)")
_Value = str | datetime | None


def routes(service: PageServices) -> list[Route]:
    """Return the page."""

    async def load(query: Query) -> Facts:
        fields = (
            time_range("Done", "7d"),
            Field("who", "Who", placeholder="name, id, address, chat or command"),
            Field("action", "Action", placeholder="job, or job.edit"),
            Field("subject", "Subject"),
        )
        filters = ListFilters("/audit", "entries", query, fields)
        values = filters.values
        who, action, subject = (values[name] or None for name in _FIELDS)
        only = AuditFilter(who, action, subject, filters.since(service.now()))
        before = row_place(query)
        found = await service.control.audit.list(limit=SHOWN + 1, only=only, before=before)
        shown = found[:SHOWN]
        subjects = {one.subject: _link(one.subject) for one in shown}
        return {
            "entries": [(one, _kind(one), _changes(one), one.result == OK) for one in shown],
            "links": subjects,
            "named": [
                link[1]
                for subject, link in subjects.items()
                if link is not None and str(subject).startswith(_NAMED)
            ],
            "next": shown[-1].id if len(found) > SHOWN else None,
            "filters": filters,
        }

    params = params_of("range", *_FIELDS)
    part, frame = "audit/page.html", "filtered.html"
    page = Page("/audit", "audit", "Audit log", load, params, 5.0, part=part, frame=frame)
    return service.routes(page)


def _link(subject: str | None) -> tuple[str, str] | None:
    """Return the page of a subject and the key of its name; None if it has no page."""
    kind, _, name = (subject or "").partition(" ")
    page = _PAGES.get(kind)
    if page is None or not name:
        return None
    # The page of people finds them by their ids.
    found_by = name.rpartition("/")[2] if page == _PAGES["person"] else name
    return page + quote(found_by, safe=""), name


def _kind(one: AuditEntry) -> str:
    return _KINDS.get(one.kind, one.kind)


def _changes(one: AuditEntry) -> list[tuple[str, _Value, _Value]]:
    """Return what changed: its name, what it was and what it is; None where there is none."""
    before, after = one.before or {}, one.after or {}
    return [(name, _text(before, name), _text(after, name)) for name in {**before, **after}]


def _text(facts: Mapping[str, object], name: str) -> _Value:
    value = facts.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if _INSTANT.fullmatch(value):
        with suppress(ValueError):
            return datetime.fromisoformat(value)
    return value
