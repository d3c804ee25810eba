"""What tests of commands, of the API and of pages share: a noun has all three."""

from __future__ import annotations

from tests.unit.cli.conftest import cron, database, gateway, goclaw, home
from tests.unit.web.conftest import api, made, remote
from tests.unit.web.pages.conftest import browser, control, locked, world

__all__ = [
    "api",
    "browser",
    "control",
    "cron",
    "database",
    "gateway",
    "goclaw",
    "home",
    "locked",
    "made",
    "remote",
    "world",
]
