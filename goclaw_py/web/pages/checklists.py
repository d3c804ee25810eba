"""The editor of HEARTBEAT.md (SPEC HB-3).

Whoever saves has seen the file in some state. If it is another one by now, nothing is changed, and
they see both.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.exceptions import HTTPException

from goclaw_py.core.checklist_marks import marks, without
from goclaw_py.core.errors import BadChecklist
from goclaw_py.core.ids import AgentName
from goclaw_py.web.pages.desk import Desk, Facts


class ChecklistChanged(BadChecklist):
    """The file is not what it was when it was shown."""

    def __init__(self) -> None:
        super().__init__("HEARTBEAT.md has changed meanwhile, so nothing was saved")


@dataclass(frozen=True, slots=True)
class Draft:
    """What was typed into the page of an agent. ``text``: the whole file; None: as it is."""

    text: str | None = None
    item: str = ""
    event: str = ""
    mute: str = ""


class Checklists:
    """Shows and changes the checklists of agents."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def facts(self, agent: AgentName, draft: Draft) -> Facts:
        """What the editor shows; with a ``draft`` of the text, beside it what the file says now."""
        try:
            text = (await self._desk.control.heartbeats.checklist(agent)).text
        except BadChecklist as error:
            return {"unreadable": str(error), "marks": (), "text": "", "seen": "", "now": None}
        now = text if draft.text is not None and _plain(draft.text) != _plain(text) else None
        return {
            "unreadable": "",
            "marks": marks(text),
            "text": text if draft.text is None else _plain(draft.text),
            "seen": seen(text),
            "now": now,
        }

    async def change(self, agent: AgentName, action: str, fields: Mapping[str, str]) -> None:
        """Do what a form says. Raises ``BadChecklist``, and ``HTTPException`` for no such form."""
        hearts = self._desk.control.heartbeats
        match action:
            case "add":
                await hearts.add_item(agent, fields.get("item", ""))
            case "done":
                await self._unchanged(agent, fields)
                await hearts.complete_item(agent, _number(fields))
            case "delete":
                text = await self._unchanged(agent, fields)
                await hearts.write_checklist(agent, without(text, _number(fields)))
            case "save":
                text = await self._unchanged(agent, fields)
                wanted = _plain(fields.get("text", ""))
                # Browsers end each line of a text with two characters, whatever the file has.
                lines = "\r\n" if "\r\n" in text else "\n"
                await hearts.write_checklist(agent, wanted.replace("\n", lines))
            case _:
                raise HTTPException(404)

    async def _unchanged(self, agent: AgentName, fields: Mapping[str, str]) -> str:
        """The file, if it is what was seen. Raises ``ChecklistChanged``."""
        text = (await self._desk.control.heartbeats.checklist(agent)).text
        if not hmac.compare_digest(seen(text).encode(), fields.get("seen", "").encode()):
            raise ChecklistChanged
        return text


def seen(text: str) -> str:
    """Names a state of a file."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n")


def _number(fields: Mapping[str, str]) -> int:
    text = fields.get("number", "")
    if not (text.isascii() and text.isdecimal() and len(text) <= 6):
        raise BadChecklist("say which item is meant")
    return int(text)
