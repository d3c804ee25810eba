"""The editor of HEARTBEAT.md (SPEC HB-3).

Whoever saves has seen some version of the file. If it is another one by now, nothing is changed,
and they see both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.exceptions import HTTPException

from goclaw_py.heartbeat.checklist.marks import marks, without
from goclaw_py.model.errors import BadChecklist, ChecklistChanged
from goclaw_py.model.ids import AgentName
from goclaw_py.web.pages.services import Facts, PageServices


@dataclass(frozen=True, slots=True)
class ChecklistDraft:
    """What was typed into the page of an agent. ``text``: the whole file; None: as it is."""

    text: str | None = None
    item: str = ""
    event: str = ""
    mute: str = ""


class ChecklistPages:
    """Shows and changes the checklists of agents."""

    def __init__(self, service: PageServices) -> None:
        self._desk = service

    async def facts(self, agent: AgentName, draft: ChecklistDraft) -> Facts:
        """What the editor shows; with a ``draft`` of the text, beside it what the file says now."""
        try:
            found = await self._desk.control.heartbeats.checklist(agent)
        except BadChecklist as error:
            mine = _plain(draft.text or "")
            return {"unreadable": str(error), "marks": (), "text": mine, "seen": "", "now": None}
        text = found.text
        now = text if draft.text is not None and _plain(draft.text) != _plain(text) else None
        return {
            "unreadable": "",
            "marks": marks(text),
            "text": text if draft.text is None else _plain(draft.text),
            "seen": found.version,
            "now": now,
        }

    async def change(self, agent: AgentName, action: str, fields: Mapping[str, str]) -> None:
        """Do what a form says. Raises ``BadChecklist``, and ``HTTPException`` for no such form."""
        hearts, seen = self._desk.control.heartbeats, fields.get("seen", "")
        match action:
            case "add":
                await hearts.add_item(agent, fields.get("item", ""))
            case "done":
                await hearts.complete_item(agent, _number(fields), expected=seen)
            case "delete":
                left = without(await self._seen(agent, seen), _number(fields))
                await hearts.write_checklist(agent, left, expected=seen)
            case "save":
                wanted = _plain(fields.get("text", ""))
                # Browsers end each line of a text with two characters, whatever the file has.
                lines = "\r\n" if "\r\n" in await self._seen(agent, seen) else "\n"
                await hearts.write_checklist(agent, wanted.replace("\n", lines), expected=seen)
            case _:
                raise HTTPException(404)

    async def _seen(self, agent: AgentName, version: str) -> str:
        """The file, if it is what was seen. Raises ``ChecklistChanged``."""
        found = await self._desk.control.heartbeats.checklist(agent)
        if found.version != version:
            raise ChecklistChanged
        return found.text


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n")


def _number(fields: Mapping[str, str]) -> int:
    text = fields.get("number", "")
    if not (text.isascii() and text.isdecimal() and len(text) <= 6):
        raise BadChecklist("number: is required")
    return int(text)
