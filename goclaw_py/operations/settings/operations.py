"""What operators do with the settings of all nodes (SPEC OPS-11)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from goclaw_py.config import shown
from goclaw_py.config.edits import (
    choices,
    is_editable,
    normal_path,
    parse_path,
    refusal,
    value_refusal,
    value_text,
)
from goclaw_py.config.masking import Plain
from goclaw_py.config.origins import KeyPath
from goclaw_py.core.actors import Least
from goclaw_py.core.errors import SettingChanged, SettingError, SettingErrors, StoreUnavailable
from goclaw_py.core.time.clock import Clock
from goclaw_py.operations.declare import operation
from goclaw_py.operations.settings import changes as audited
from goclaw_py.operations.settings.live import LiveSettings, edit_origin
from goclaw_py.operations.settings.models import (
    EditableSetting,
    OriginKind,
    Setting,
    SettingChange,
    SettingsView,
)
from goclaw_py.records import NewSettingEdit, SettingEdit, SettingStore

_TRIES: Final = 5


class SettingsService:
    """Shows and edits settings. Every method may raise ``NoGateway`` from another process.

    Args:
        trouble: Why the database is unavailable, "" if it is not known to be.
    """

    def __init__(
        self,
        live: LiveSettings,
        store: SettingStore,
        clock: Clock,
        trouble: Callable[[], str] = str,
    ) -> None:
        self._live = live
        self._store = store
        self._clock = clock
        self._trouble = trouble
        self._found: tuple[EditableSetting, ...] = ()
        """The settings that can be edited, of ``_editable_of``: a new tuple after each edit."""
        self._editable_of: tuple[Setting, ...] = ()

    @operation("GET /api/settings", Least.OPERATOR)
    async def view(self) -> SettingsView:
        """Return the settings in effect; also while the database is unavailable."""
        live, unavailable = self._live, self._trouble()
        if not unavailable:
            try:
                await live.refresh()
            except StoreUnavailable as error:
                unavailable = str(error)
        # It takes long: with 20 agents there are 1,600 settings.
        if self._editable_of is not live.listed:
            unedited = _texts(shown(live.base))
            editable = (self._editable(one, unedited) for one in live.listed)
            self._found = tuple(one for one in editable if one is not None)
            self._editable_of = live.listed
        return SettingsView(live.listed, self._found, live.warnings(), unavailable)

    def _editable(self, setting: Setting, unedited: Mapping[str, str]) -> EditableSetting | None:
        path = parse_path(setting.path)
        if path is None or not is_editable(path) or refusal(self._live.base, path):
            return None
        edit = self._live.edits.get(setting.path)
        return EditableSetting(
            setting.path,
            value_text(setting.value),
            unedited.get(setting.path, ""),
            0 if edit is None else edit.id,
            setting.kind is OriginKind.EDIT,
            choices(path),
        )

    @operation("POST /api/settings", Least.ADMIN, audited.EDIT, unsent="source")
    async def change(self, changes: Sequence[SettingChange], *, source: str) -> SettingsView:
        """Edit settings, all or none; ``source`` says from where that comes, for the history.

        Runs in progress keep their values. Raises ``SettingError`` with all mistakes,
        ``SettingChanged`` if another edit was faster, and ``StoreUnavailable``.
        """
        live = self._live
        async with live.changing:
            for _ in range(_TRIES):
                edits = await self._store.setting_edits()
                live.apply(edits)
                now = self._clock.now()
                wished = self._wished(changes)
                before, after = _texts(live.listed), _texts(shown(live.changed(wished)))
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
            edit = self._live.edits.get(name)
            value = None if change.value is None else change.value.strip()
            if why := self._refusal(path, value, edit):
                # Without the value: if it was meant for another setting, it may be a secret.
                errors.append(SettingError(name, Plain(), why))
            elif name in wished:
                errors.append(SettingError(name, Plain(), "this is given twice"))
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
        base = self._live.base
        return refusal(base, path) or value_refusal(base, path, value or "")

    @operation("GET /api/settings/history", Least.ADMIN)
    async def history(self, *, limit: int = 50, before: int | None = None) -> list[SettingEdit]:
        """Return the edits, the newest first. Raises ``StoreUnavailable``."""
        return await self._store.setting_history(limit=limit, before=before)


def _texts(settings: Iterable[Setting]) -> dict[str, str]:
    return {one.path: value_text(one.value) for one in settings if not one.secret}


def _is_newer(edit: SettingEdit, version: int | None) -> bool:
    """Return whether an edit came after the version that its author has seen."""
    # After a reset the setting is as if it had never been edited.
    as_seen = (None, edit.id) if edit.value is not None else (None, edit.id, 0)
    return version not in as_seen


def _newer_words(edit: SettingEdit) -> str:
    value = "not set" if edit.after is None else edit.after
    return f"{edit.path} was changed meanwhile: it is now {value} ({edit_origin(edit)})"
