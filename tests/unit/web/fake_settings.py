"""Settings that pretend to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from goclaw_py.core.errors import GoclawError
from goclaw_py.operations.settings.models import (
    MASK,
    EditableSetting,
    OriginKind,
    Setting,
    SettingChange,
    SettingsView,
)
from goclaw_py.operations.settings.operations import SettingsService
from goclaw_py.records import SettingEdit
from tests.unit.web.fake_names import AT

EVIL = "<img src=x onerror='window.__hit=7'>\x1b[2J"
EDITED = "edited on 2026-01-02 03:04 UTC, dashboard (127.0.0.1)"
CHAT = 'channels.telegram.chats."-100".agent'

SETTINGS = (
    Setting("lanes.main.size", 4, OriginKind.EDIT, EDITED, about="the number of runs"),
    Setting("lanes.cron.size", 1, OriginKind.DEFAULT, "default"),
    Setting("lanes.cron.scope", "cluster", OriginKind.DEFAULT, "default"),
    Setting(
        "queue.mode",
        None,
        OriginKind.DEFAULT,
        "default",
        about="what happens meanwhile",
        in_force="steer, in force",
    ),
    Setting("queue.capacity", 7, OriginKind.ENVIRONMENT, "environment variable GOCLAW_QUEUE__X"),
    Setting("agents.main.model", EVIL, OriginKind.FILE, "/etc/goclaw.toml:2"),
    Setting("agents.main.fallback", ("a:1", "b:2"), OriginKind.FILE, "/etc/goclaw.toml:3"),
    Setting("agents.main.budget.day.usd", 5.0, OriginKind.FILE, "/etc/goclaw.toml:9"),
    Setting("channels.telegram.mention", value=True, kind=OriginKind.DEFAULT, origin="default"),
    Setting(CHAT, "helper", OriginKind.FILE, "/etc/goclaw.toml:20"),
    Setting("web.token", MASK, OriginKind.SECRET_FILE, "file /run/token", secret=True),
)
_MODES = ("queue", "steer")
EDITABLE = (
    EditableSetting("lanes.main.size", "4", "2", 7, edited=True),
    EditableSetting("lanes.cron.size", "1", "1", 0, edited=False),
    EditableSetting("queue.mode", "", "", 0, edited=False, choices=_MODES),
    EditableSetting("agents.main.model", EVIL, EVIL, 0, edited=False),
    EditableSetting("agents.main.fallback", "a:1, b:2", "a:1, b:2", 0, edited=False),
    EditableSetting("channels.telegram.mention", "true", "true", 0, False, ("true", "false")),
    EditableSetting(CHAT, "helper", "helper", 0, edited=False),
)
HISTORY = [
    SettingEdit(number, "lanes.main.size", str(number), None, EVIL, f"dashboard {EVIL}", AT)
    for number in range(25, 0, -1)
]


class FakeSettings(SettingsService):
    """Set ``failure`` to let a change raise it."""

    def __init__(self) -> None:
        self.seen = SettingsView(SETTINGS, EDITABLE)
        self.failure: GoclawError | None = None
        self.history_failure: GoclawError | None = None
        self.changes: list[tuple[list[SettingChange], str]] = []

    async def view(self) -> SettingsView:
        return self.seen

    async def change(self, changes: Sequence[SettingChange], *, source: str) -> SettingsView:
        if self.failure is not None:
            raise self.failure
        self.changes.append((list(changes), source))
        values = {change.path: change.value for change in changes}
        shown = tuple(
            replace(one, value=values[one.path], kind=OriginKind.EDIT, origin=EDITED)
            if one.path in values
            else one
            for one in self.seen.settings
        )
        self.seen = replace(self.seen, settings=shown)
        return self.seen

    async def history(self, *, limit: int = 50, before: int | None = None) -> list[SettingEdit]:
        if self.history_failure is not None:
            raise self.history_failure
        return [edit for edit in HISTORY if before is None or edit.id < before][:limit]
