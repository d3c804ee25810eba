"""Settings, for layers that must know of them before they load their routes, page or commands."""

from __future__ import annotations

from typing import Final

from goclaw_py.core.actors import Least
from goclaw_py.operations.declare import Noun
from goclaw_py.operations.settings.operations import SettingsService

SETTINGS: Final = Noun(
    "settings",
    SettingsService,
    pages={
        Least.OPERATOR: ("GET /api/config", "GET /settings", "GET /settings/found"),
        Least.ADMIN: ("GET /settings/edit", "POST /settings/edit", "POST /settings/chat"),
    },
    text={
        "EditableSetting": "path value file_value choices",
        "Setting": "path value origin about in_force",
        "SettingEdit": "path value before after source",
        "SettingsView": "unavailable",
    },
)
"""``GET /api/config`` is what ``GET /api/settings`` lists, of one section."""
