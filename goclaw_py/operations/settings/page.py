"""The pages that show and edit settings (SPEC OPS-11)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.core.errors import SettingChanged, SettingError, StoreUnavailable
from goclaw_py.operations.settings.models import (
    EditableSetting,
    Setting,
    SettingChange,
    SettingsView,
    value_text,
)
from goclaw_py.records import SettingEdit
from goclaw_py.web.pages.services import Facts, PageServices, back_to, form

_HISTORY: Final = 20
_HISTORY_NAME: Final = "history"
_CHAT_RULES: Final = "chat rules"
_MAX_SEARCH_CHARS: Final = 100
_FOUND: Final = 50
"""The number of settings that a search shows."""

_KEY: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[^.]+')

CHAT_KEYS: Final = ("agent", "mention", "context_messages", "enabled", "queue.mode")
"""What the form for a chat that has no settings yet can set."""


@dataclass(frozen=True, slots=True)
class SettingField:
    """A setting in a form, with what was typed.

    Args:
        editable: None if it cannot be edited.
        typed: The text in the field.
        problem: What is wrong with it.
    """

    setting: Setting
    editable: EditableSetting | None
    label: str
    typed: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SettingGroup:
    """Settings that are shown together, and edited in one form."""

    name: str
    fields: tuple[SettingField, ...]

    @property
    def can_edit(self) -> bool:
        """Return whether any of them can be edited."""
        return any(field.editable is not None for field in self.fields)


@dataclass(frozen=True, slots=True)
class SettingSection:
    """An entry in the list of sections.

    Args:
        name: What the address has.
        label: Its name below its ``parent``; that is "" at the top of the tree.
        title: Its whole name.
    """

    name: str
    label: str
    title: str
    parent: str = ""


def routes(service: PageServices) -> list[Route]:
    """Return the page of settings, that of one group, and their forms."""

    async def show(request: Request) -> Response:
        facts = await _overview(service, request)
        return service.answer(request, "settings/page.html", facts)

    async def found(request: Request) -> Response:
        facts = await _overview(service, request)
        return service.answer(request, "settings/found.html", facts)

    async def edit(request: Request) -> Response:
        name = request.query_params.get("group", "")
        group = _group(await service.control.settings.view(), name)
        return service.answer(request, "settings/edit.html", _of_form(group))

    async def save(request: Request) -> Response:
        name = request.query_params.get("group", "")
        given = await form(request)
        changes = _changes(given)
        try:
            view = (
                await service.control.settings.change(changes, source=_source(request))
                if changes
                else None
            )
        except (SettingError, SettingChanged, StoreUnavailable) as error:
            group = _typed(_group(await service.control.settings.view(), name), given, error)
            return service.answer(
                request, "settings/edit.html", _of_form(group, error), _status(error)
            )
        notice = "saved" if view is not None else "nothing"
        return back_to("/settings", notice, section=name)

    async def chat(request: Request) -> Response:
        given = await form(request)
        change = _chat_change(given)
        try:
            await service.control.settings.change([change], source=_source(request))
        except (SettingError, SettingChanged, StoreUnavailable) as error:
            facts = await _overview(service, request)
            facts |= {"chat": {**facts["chat"], **given}, "error": _sentence(error)}
            facts |= {"section": _CHAT_RULES, "groups": [], "more": 0}
            return service.answer(request, "settings/page.html", facts, _status(error))
        return back_to("/settings", "saved", section=_CHAT_RULES)

    return [
        Route("/settings", show),
        Route("/settings/found", found),
        Route("/settings/edit", edit, methods=["GET"]),
        Route("/settings/edit", save, methods=["POST"]),
        Route("/settings/chat", chat, methods=["POST"]),
    ]


async def _overview(service: PageServices, request: Request) -> dict[str, Any]:
    """Return the facts of the open section, or of what is searched.

    Raises ``HTTPException`` (404) if there is no such section.
    """
    settings = service.control.settings
    view = await settings.view()
    asked = request.query_params
    search = asked.get("q", "").strip()[:_MAX_SEARCH_CHARS]
    groups = _groups(view)
    channels = sorted({one.name.split(".")[1] for one in groups if _is_channel(one.name)})
    sections = [_section(one.name) for one in groups]
    if channels and not view.unavailable:
        sections.append(SettingSection(_CHAT_RULES, "Rules for a chat", "Rules for a chat"))
    sections.append(SettingSection(_HISTORY_NAME, "History of edits", "History of edits"))
    section = asked.get("section") or sections[0].name
    if not search and section not in {one.name for one in sections}:
        raise HTTPException(404, "there is no such section of the settings")
    history: Sequence[SettingEdit] | None = None
    if section == _HISTORY_NAME and not search and not view.unavailable:
        with suppress(StoreUnavailable):
            before = _row(asked.get("before"))
            history = await settings.history(limit=_HISTORY + 1, before=before)
    found = _matching(groups, search)
    matching = sum(len(one.fields) for one in found)
    shown = _first(found) if search else [one for one in groups if one.name == section]
    return {
        "title": "Settings",
        "path": "/settings",
        "view": view,
        "sections": sections,
        "section": section,
        "root": next((one.parent or one.name for one in sections if one.name == section), ""),
        "groups": shown,
        "more": matching - sum(len(one.fields) for one in shown) if search else 0,
        "search": search,
        "history": history if history is None else history[:_HISTORY],
        "older": history[_HISTORY - 1].id if history and len(history) > _HISTORY else None,
        "channels": channels,
        "chat_keys": CHAT_KEYS,
        "chat": dict.fromkeys(("channel", "id", "key", "value"), ""),
        "value_of": value_text,
    }


def _section(name: str) -> SettingSection:
    """Return the entry of a group: parts of an agent or a channel are below it."""
    keys = _keys(name)
    top = 2 if keys[0] in ("agents", "channels") else 1
    label = ".".join(keys[top:])
    return SettingSection(name, label or name, name, ".".join(keys[:top]) if label else "")


def _row(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


# ---------------------------------------------------------------------------- groups


def _groups(view: SettingsView) -> list[SettingGroup]:
    """Return all settings in groups, in the order of the settings."""
    editable = {one.path: one for one in view.editable}
    found: dict[str, list[SettingField]] = {}
    for one in view.settings:
        keys = _keys(one.path)
        size = _group_size(keys)
        can = editable.get(one.path)
        field = SettingField(one, can, ".".join(keys[size:]), "" if can is None else can.value)
        found.setdefault(".".join(keys[:size]), []).append(field)
    return [SettingGroup(name, tuple(fields)) for name, fields in found.items()]


def _group_size(keys: Sequence[str]) -> int:
    """Return how many keys of a path name its group."""
    match keys[0]:
        case "agents":
            return 3 if len(keys) > 3 else 2
        case "channels":
            # The queue of a place is edited together with its other rules.
            return len(keys) - (2 if keys[-2] == "queue" else 1)
        case "sources":
            return 2
        case _:
            return 1


def _keys(path: str) -> list[str]:
    """Split a path; keys with quotes keep these."""
    return _KEY.findall(path)


def _is_channel(group: str) -> bool:
    return group.startswith("channels.") and len(_keys(group)) == 2


def _matching(groups: Sequence[SettingGroup], search: str) -> list[SettingGroup]:
    """Return the settings in whose path all words occur, then those that have some elsewhere."""
    wanted = search.casefold().split()

    def is_named(one: Setting) -> bool:
        return all(word in one.path.casefold() for word in wanted)

    def is_described(one: Setting) -> bool:
        text = f"{one.path}\n{value_text(one)}\n{one.origin}\n{one.about}".casefold()
        return all(word in text for word in wanted) and not is_named(one)

    return [
        replace(group, fields=fields)
        for matches in (is_named, is_described)
        for group in groups
        if (fields := tuple(one for one in group.fields if matches(one.setting)))
    ]


def _first(groups: Iterable[SettingGroup]) -> list[SettingGroup]:
    """Return groups with as many settings as a search shows."""
    left, found = _FOUND, []
    for group in groups:
        if left > 0:
            found.append(replace(group, fields=group.fields[:left]))
            left -= len(group.fields)
    return found


# ---------------------------------------------------------------------------- forms


def _group(view: SettingsView, name: str) -> SettingGroup:
    """Return a group that can be edited. Raises ``HTTPException`` (404)."""
    for group in _groups(view):
        if group.name == name and group.can_edit:
            return group
    raise HTTPException(404, "there are no such settings, or they cannot be edited here")


def _of_form(group: SettingGroup, error: Exception | None = None) -> Facts:
    problems = any(field.problem for field in group.fields)
    text = "" if error is None else _sentence(error)
    if problems and isinstance(error, SettingError):
        text = "Nothing was saved: see below."
    return {
        "title": f"Edit {group.name}",
        "path": "/settings",
        "group": group,
        "error": text,
        "value_of": value_text,
    }


def _changes(given: Mapping[str, str]) -> list[SettingChange]:
    """Return what a form changes: each field that differs from what it showed at first."""
    if "reset" in given:
        number, _, path = given["reset"].partition(" ")
        return [SettingChange(path, None, _row(number))]
    changes = []
    for name, value in given.items():
        kind, _, path = name.partition(":")
        if kind != "value" or value.strip() == given.get(f"was:{path}", ""):
            continue
        text = value.strip()
        # An empty field: not set, as in the file, or an empty list in place of the file's.
        is_unset = not text and not given.get(f"file:{path}", "")
        version = _row(given.get(f"version:{path}"))
        changes.append(SettingChange(path, None if is_unset else text, version))
    return changes


def _chat_change(given: Mapping[str, str]) -> SettingChange:
    """Return what the form for a chat changes. Raises ``HTTPException`` (422)."""
    channel, chat, key = (given.get(name, "").strip() for name in ("channel", "id", "key"))
    if not channel or not chat or key not in CHAT_KEYS:
        raise HTTPException(422, "choose a channel, a chat and a setting")
    quoted = json.dumps(chat, ensure_ascii=False)
    path, value = f"channels.{channel}.chats.{quoted}.{key}", given.get("value", "").strip()
    # Not in place of an edit, which whoever fills this form does not see.
    return SettingChange(path, value, version=0)


def _typed(group: SettingGroup, given: Mapping[str, str], error: Exception) -> SettingGroup:
    """Return a group with what was typed, and what is wrong with it."""
    fields = []
    for field in group.fields:
        path = field.setting.path
        typed = given.get(f"value:{path}", field.typed)
        fields.append(replace(field, typed=typed, problem=_problem(field, error)))
    return replace(group, fields=tuple(fields))


def _problem(field: SettingField, error: Exception) -> str:
    path = field.setting.path
    if field.editable is None:
        return ""
    if isinstance(error, SettingChanged):
        if path not in error.paths:
            return ""
        return (
            f"It was changed meanwhile: it is now {field.editable.value or 'not set'} "
            f"({field.setting.origin}). Save again to replace that value."
        )
    if isinstance(error, SettingError):
        plain = ".".join(key.strip('"') for key in _keys(path))
        for one in error.errors:
            if one.key in (path, plain) or plain.startswith(f"{one.key}."):
                return one.allowed
    return ""


def _sentence(error: Exception) -> str:
    match error:
        case SettingChanged():
            return f"Nothing was saved: {error}"
        case SettingError():
            return "Nothing was saved: " + "; ".join(
                f"{one.key}: {one.allowed}" for one in error.errors
            )
        case _:
            return f"Nothing was saved, because the database is unavailable: {error}"


def _status(error: Exception) -> int:
    match error:
        case SettingChanged():
            return 409
        case SettingError():
            return 422
        case _:
            return 503


def _source(request: Request) -> str:
    client = request.client
    return "dashboard" if client is None else f"dashboard ({client.host})"
