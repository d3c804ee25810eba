"""The settings in effect: those of file and environment, with the edits of all operators.

Every node reads the same edits from the database, at its start, after each notice, and every few
seconds (SPEC OPS-11).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol
from urllib.parse import quote

from goclaw_py.config import shown
from goclaw_py.config.edits import parse_path, refusal, with_values
from goclaw_py.config.models import Settings
from goclaw_py.core.concurrency import WakeEvent
from goclaw_py.core.errors import SettingError, StoreUnavailable
from goclaw_py.records import SettingEdit, SettingStore
from goclaw_py.scheduler.operator_warnings import OperatorWarning, shell_command

log = logging.getLogger(__name__)

_LOOK_S: Final = 5.0


class Applier(Protocol):
    """Applies settings; see ``apply_settings.SettingsApplier``."""

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Return what applies them. Raises ``SettingError``."""

    async def finish(self) -> None:
        """Complete what applying has begun. Raises ``StoreUnavailable``."""


class LiveSettings:
    """The settings in effect, which follow the edits in the database."""

    def __init__(self, base: Settings, store: SettingStore, applier: Applier) -> None:
        self.base = base
        """The settings without edits."""
        self._store = store
        self._applier = applier
        self.current = base
        """The settings in effect."""
        self.listed = shown(base)
        """All of them, with values and origins."""
        self.edits: Mapping[str, SettingEdit] = {}
        """The newest stored edit of each setting."""
        self.ignored: Mapping[str, str] = {}
        """Why some of them have no effect, by path."""
        self.changing = asyncio.Lock()
        """Held while stored edits are read and applied, or new ones are added."""
        self.wake = WakeEvent()

    def warnings(self) -> tuple[OperatorWarning, ...]:
        """Return a warning for each stored edit that has no effect."""
        return tuple(
            OperatorWarning(
                "gateway.setting_edit",
                f"The edit of {path}",
                f"has no effect: {why}",
                f"/settings?q={quote(path)}",
                shell_command("config", "reset", path),
            )
            for path, why in self.ignored.items()
        )

    # ------------------------------------------------------------------ following the database

    async def run(self) -> None:
        """Apply the edits of other nodes. Runs until cancelled."""
        while True:
            self.wake.clear()
            try:
                await self.refresh()
                await self._applier.finish()
            except StoreUnavailable as error:
                log.debug("store_unavailable", extra={"error": str(error), "part": "settings"})
            await self.wake.wait(_LOOK_S)

    async def refresh(self) -> None:
        """Apply the stored edits. Raises ``StoreUnavailable``."""
        async with self.changing:
            self.apply(await self._store.setting_edits())

    def apply(self, edits: Sequence[SettingEdit]) -> None:
        """Apply the newest edit of each setting."""
        found = {edit.path: edit for edit in edits}
        if found == self.edits:
            return
        settings, apply, ignored = self._accepted(edits)
        apply()
        for path, why in ignored.items():
            if self.ignored.get(path) != why:
                log.warning("setting_edit_ignored", extra={"setting": path, "reason": why})
        changed = [path for path, edit in found.items() if self.edits.get(path) != edit]
        log.info("settings_edited", extra={"settings": changed})
        self.edits, self.ignored = found, ignored
        self.current, self.listed = settings, shown(settings)
        self.wake.call()

    def _accepted(
        self, edits: Sequence[SettingEdit]
    ) -> tuple[Settings, Callable[[], None], dict[str, str]]:
        """Return the settings with all edits that they accept, and why they refuse the others.

        File and environment may have changed since an edit was made: that must not stop a start.
        """
        ignored: dict[str, str] = {}
        kept: list[SettingEdit] = []
        for edit in edits:
            if edit.value is None:
                continue
            path = parse_path(edit.path)
            why = "there is no such setting" if path is None else refusal(self.base, path)
            if why:
                ignored[edit.path] = why
            else:
                kept.append(edit)
        while True:
            try:
                settings = with_values(self.base, map(_value, kept))
                return settings, self._applier.prepare(settings), ignored
            except SettingError as error:
                if not kept:
                    raise
                wrong = {
                    edit.path: one.allowed
                    for one in error.errors
                    for edit in kept
                    if _concerns(one, edit.path)
                }
                # An error elsewhere, which one of them has caused: without the newest it may go.
                wrong = wrong or {kept[-1].path: str(error)}
                ignored |= wrong
                kept = [edit for edit in kept if edit.path not in wrong]

    def changed(self, values: Sequence[tuple[str, str | None]]) -> Settings:
        """Return the settings as they would be with some edits more. Raises ``SettingError``."""
        replaced = {path for path, _ in values}
        others = [
            _value(edit)
            for edit in self.edits.values()
            if edit.value is not None
            and edit.path not in replaced
            and edit.path not in self.ignored
        ]
        new = [(path, value, "") for path, value in values if value is not None]
        settings = with_values(self.base, [*others, *new])
        self._applier.prepare(settings)
        return settings


def _value(edit: SettingEdit) -> tuple[str, str, str]:
    return edit.path, edit.value or "", edit_origin(edit)


def edit_origin(edit: SettingEdit) -> str:
    """Return the source of an edited value, for people."""
    return f"edited on {edit.at:%Y-%m-%d %H:%M} UTC, {edit.source}"


def _concerns(error: SettingError, path: str) -> bool:
    """Return whether an error is about a setting, or about a table around or below it."""
    keys = parse_path(path)
    mine = path if keys is None else ".".join(keys)
    return f"{mine}.".startswith(f"{error.key}.") or f"{error.key}.".startswith(f"{mine}.")
