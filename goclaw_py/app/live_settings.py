"""The settings in effect: those of file and environment, with the edits of all operators.

Every node reads the same edits from the database, at its start, after each notice, and every few
seconds (SPEC OPS-11).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from goclaw_py.config import shown
from goclaw_py.config.edits import (
    choices,
    is_editable,
    normal_path,
    parse_path,
    refusal,
    value_refusal,
    value_text,
    with_values,
)
from goclaw_py.config.masking import Plain
from goclaw_py.config.models import Settings
from goclaw_py.config.origins import KeyPath
from goclaw_py.core.concurrency import WakeEvent
from goclaw_py.core.errors import SettingChanged, SettingError, SettingErrors, StoreUnavailable
from goclaw_py.core.time.clock import Clock
from goclaw_py.operations.settings import (
    EditableSetting,
    OriginKind,
    Setting,
    SettingChange,
    SettingsView,
)
from goclaw_py.records import NewSettingEdit, SettingEdit, SettingStore

log = logging.getLogger(__name__)

_LOOK_S: Final = 5.0
_TRIES: Final = 5


class Applier(Protocol):
    """Applies settings; see ``apply_settings.SettingsApplier``."""

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Return what applies them. Raises ``SettingError``."""

    async def finish(self) -> None:
        """Complete what applying has begun. Raises ``StoreUnavailable``."""


class LiveSettings:
    """Implements ``operations.settings.SettingsService``.

    Args:
        base: The settings without edits.
        trouble: Why the database is unavailable, "" if it is not known to be.
    """

    def __init__(
        self,
        base: Settings,
        store: SettingStore,
        clock: Clock,
        applier: Applier,
        trouble: Callable[[], str] = str,
    ) -> None:
        self._base = base
        self._store = store
        self._clock = clock
        self._applier = applier
        self._trouble = trouble
        self.current = base
        """The settings in effect."""
        self.listed = shown(base)
        """All of them, with values and origins."""
        self._base_texts = _texts(self.listed)
        self._edits: Mapping[str, SettingEdit] = {}
        self._ignored: Mapping[str, str] = {}
        self._changing = asyncio.Lock()
        self.wake = WakeEvent()

    # ------------------------------------------------------------------ looking

    async def view(self) -> SettingsView:
        unavailable = self._trouble()
        if not unavailable:
            try:
                await self.refresh()
            except StoreUnavailable as error:
                unavailable = str(error)
        editable = tuple(found for one in self.listed if (found := self._editable(one)) is not None)
        return SettingsView(self.listed, editable, self.warnings(), unavailable)

    def _editable(self, setting: Setting) -> EditableSetting | None:
        path = parse_path(setting.path)
        if path is None or not is_editable(path) or refusal(self._base, path):
            return None
        edit = self._edits.get(setting.path)
        return EditableSetting(
            setting.path,
            value_text(setting.value),
            self._base_texts.get(setting.path, ""),
            0 if edit is None else edit.id,
            setting.kind is OriginKind.EDIT,
            choices(path),
        )

    async def history(self, *, limit: int = 50, before: int | None = None) -> list[SettingEdit]:
        return await self._store.setting_history(limit=limit, before=before)

    def warnings(self) -> tuple[str, ...]:
        """Return a warning for each stored edit that has no effect."""
        return tuple(
            f"the edit of {path} has no effect: {why}; to remove it: goclaw config reset "
            f"'{path}'; see: goclaw config history"
            for path, why in self._ignored.items()
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
        async with self._changing:
            self._take(await self._store.setting_edits())

    def _take(self, edits: Sequence[SettingEdit]) -> None:
        found = {edit.path: edit for edit in edits}
        if found == self._edits:
            return
        settings, apply, ignored = self._accepted(edits)
        apply()
        for path, why in ignored.items():
            if self._ignored.get(path) != why:
                log.warning("setting_edit_ignored", extra={"setting": path, "reason": why})
        changed = [path for path, edit in found.items() if self._edits.get(path) != edit]
        log.info("settings_edited", extra={"settings": changed})
        self._edits, self._ignored = found, ignored
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
            why = "there is no such setting" if path is None else refusal(self._base, path)
            if why:
                ignored[edit.path] = why
            else:
                kept.append(edit)
        while True:
            try:
                settings = with_values(self._base, map(_value, kept))
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

    # ------------------------------------------------------------------ editing

    async def change(self, changes: Sequence[SettingChange], *, source: str) -> SettingsView:
        async with self._changing:
            for _ in range(_TRIES):
                edits = await self._store.setting_edits()
                self._take(edits)
                now = self._clock.now()
                wished = self._wished(changes)
                replaced = {path for path, _ in wished}
                kept = [
                    edit
                    for edit in edits
                    if edit.value is not None
                    and edit.path not in replaced
                    and edit.path not in self._ignored
                ]
                new = [(path, value, "") for path, value in wished if value is not None]
                settings = with_values(self._base, [*map(_value, kept), *new])
                self._applier.prepare(settings)
                before, after = _texts(self.listed), _texts(shown(settings))
                added = [
                    NewSettingEdit(path, value, before.get(path) or None, after.get(path) or None)
                    for path, value in wished
                ]
                last = max((edit.id for edit in edits), default=0)
                if not added or await self._store.add_setting_edits(
                    added, source=source, expected=last, now=now
                ):
                    break
            else:
                raise SettingChanged("other settings are being changed right now; try again")
        return await self.view()

    def _wished(self, changes: Sequence[SettingChange]) -> list[tuple[str, str | None]]:
        """Return the paths and values to store. Raises ``SettingError`` and ``SettingChanged``."""
        errors: list[SettingError] = []
        newer: list[SettingEdit] = []
        wished: dict[str, str | None] = {}
        for change in changes:
            path = parse_path(change.path)
            name = change.path[:100] if path is None else normal_path(path)
            edit = self._edits.get(name)
            value = None if change.value is None else change.value.strip()
            if why := self._refusal(path, value, edit):
                # Without the value: if it was meant for another setting, it may be a secret.
                errors.append(SettingError(name, Plain("(a value)"), why))
            elif name in wished:
                errors.append(SettingError(name, Plain("(a value)"), "this is given twice"))
            elif value == (None if edit is None else edit.value):
                continue
            elif edit is not None and _is_newer(edit, change.version):
                newer.append(edit)
            else:
                wished[name] = value
        if errors:
            raise errors[0] if len(errors) == 1 else SettingErrors(errors)
        if newer:
            raise SettingChanged("; ".join(map(_newer_words, newer)), [edit.path for edit in newer])
        return list(wished.items())

    def _refusal(self, path: KeyPath | None, value: str | None, edit: SettingEdit | None) -> str:
        if path is None:
            return "this is not the path of a setting"
        if value is None and edit is not None:
            # A stored edit that would not be allowed any more can be removed.
            return ""
        return refusal(self._base, path) or value_refusal(self._base, path, value or "")


def _value(edit: SettingEdit) -> tuple[str, str, str]:
    return edit.path, edit.value or "", _origin(edit)


def _origin(edit: SettingEdit) -> str:
    return f"edited on {edit.at:%Y-%m-%d %H:%M} UTC, {edit.source}"


def _texts(settings: Iterable[Setting]) -> dict[str, str]:
    return {one.path: value_text(one.value) for one in settings if not one.secret}


def _is_newer(edit: SettingEdit, version: int | None) -> bool:
    """Return whether an edit came after the version that its author has seen."""
    # After a reset the setting is as if it had never been edited.
    as_seen = (None, edit.id) if edit.value is not None else (None, edit.id, 0)
    return version not in as_seen


def _newer_words(edit: SettingEdit) -> str:
    value = "not set" if edit.after is None else edit.after
    return f"{edit.path} was changed meanwhile: it is now {value} ({_origin(edit)})"


def _concerns(error: SettingError, path: str) -> bool:
    """Return whether an error is about a setting, or about a table around or below it."""
    keys = parse_path(path)
    mine = path if keys is None else ".".join(keys)
    return f"{mine}.".startswith(f"{error.key}.") or f"{error.key}.".startswith(f"{mine}.")
