"""What the audit log has of edits of settings (SPEC SEC-9)."""

from __future__ import annotations

from typing import Any, Final

from goclaw_py.operations.declare import Arguments, Change
from goclaw_py.records.audit import Facts
from goclaw_py.schedule.jobs.job_json import plain


def _paths(arguments: Arguments) -> list[str]:
    return [change.path for change in arguments["changes"]]


async def _before(settings: Any, arguments: Arguments) -> Facts:
    return _values(arguments, await settings.view())


def _values(arguments: Arguments, view: Any) -> Facts:
    """Return the values in effect of the settings that are edited; secrets are masked in them."""
    shown = {one.path: one.value for one in view.settings}
    shown |= {one.path: one.value for one in view.editable if one.path not in shown}
    return {path: plain(shown.get(path)) for path in _paths(arguments)}


EDIT: Final = Change(
    "setting.edit", lambda arguments, _: ", ".join(_paths(arguments)), _before, _values
)
