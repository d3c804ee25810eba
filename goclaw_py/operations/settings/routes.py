"""The settings, and edits of them, in the API (SPEC OPS-11)."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import Field

from goclaw_py.operations.control import Control
from goclaw_py.operations.settings.models import Setting, SettingChange, SettingsView
from goclaw_py.operations.settings.operations import SettingsService
from goclaw_py.records import SettingEdit
from goclaw_py.web.api.paging import LINK, Limit, Page, RowBefore
from goclaw_py.web.api.serve import serve
from goclaw_py.web.api.wire import MAX_LIMIT, Body, Key, RowId, Text

Below = Annotated[
    str | None, Query(min_length=1, max_length=512, examples=["lanes", "agents.main"])
]


SettingWord = Annotated[bool, Field(strict=True)] | int | float | Text
"""A value of a setting, or of an item of a list."""


class SettingBody(Body):
    """An edit of a setting; without ``version``, the last one wins."""

    path: Key
    value: SettingWord | Annotated[list[SettingWord], Field(max_length=MAX_LIMIT)] | None
    version: RowId | None = None


class SettingsBody(Body):
    """Edits of settings."""

    changes: Annotated[list[SettingBody], Field(min_length=1, max_length=MAX_LIMIT)]


def settings_routes(control: Control) -> APIRouter:
    """Return the routes."""
    api = APIRouter(tags=["settings"])

    @api.get("/api/config")
    async def config(below: Below = None) -> list[Setting]:
        """List the settings of the gateway with their origins, without secrets.

        With `below`, only those of a section.
        """
        found = (await control.settings.view()).settings
        return [one for one in found if below is None or is_below(one.path, below)]

    @serve(api, SettingsService.view)
    async def view() -> SettingsView:
        """Get all settings, those that can be edited, and edits that have no effect.

        `unavailable` says why nothing can be edited now.
        """
        return await control.settings.view()

    @serve(api, SettingsService.change)
    async def change(body: SettingsBody, request: Request) -> SettingsView:
        """Edit settings while the gateways run, all or none; runs in progress keep their values.

        A `value` of null: that of the settings file again. With `version`, the edit is refused
        (409) if there is a newer one.
        """
        changes = [SettingChange(one.path, _text(one.value), one.version) for one in body.changes]
        return await control.settings.change(changes, source=_source(request))

    @serve(api, SettingsService.history, responses=LINK)
    async def history(page: Page, limit: Limit = 50, before: RowBefore = None) -> list[SettingEdit]:
        """List the edits of settings, the newest first."""
        found = await control.settings.history(limit=limit + 1, before=before)
        return page.of(found, limit, lambda edit: edit.id)

    return api


def is_below(path: str, section: str) -> bool:
    """Return whether a setting has this path or is in the section of this name."""
    return path == section or path.startswith(f"{section}.")


def _text(value: SettingWord | list[SettingWord] | None) -> str | None:
    """Write a value as in an environment variable."""
    match value:
        case None | str():
            return value
        case bool():
            return str(value).lower()
        case float():
            return f"{Decimal(str(value)):f}"
        case list():
            return ", ".join(_text(one) or "" for one in value)
        case _:
            return str(value)


def _source(request: Request) -> str:
    """Return from where a request comes; on the local socket it has no address."""
    client = request.client
    return f"API ({client.host})" if client is not None and client.host else "command line"
