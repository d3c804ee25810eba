"""What the offline agent does with its checklist: in a beat, and when it is told (AGENT-2d).

It cannot judge what an item asks for. An unchecked box needs attention until somebody ticks it off,
and so does every event; an item without a box needs none.
"""

from __future__ import annotations

import re

from goclaw_py.agents.offline.turn import OfflineTurn, phrase
from goclaw_py.common.text import cut_text, is_blank
from goclaw_py.delivery.ok_token import HEARTBEAT_OK, without_token
from goclaw_py.heartbeat.checklist.lines import unescaped

_MOST = 50
_CHARS = 300

_GAP = r"[^\S\n]"
_OPEN = re.compile(
    rf"^{_GAP}*(?:[-*+]|\d{{1,9}}[.)]){_GAP}+\[ \]{_GAP}+(?P<text>\S.*)$", re.MULTILINE
)
_CODE = re.compile(
    rf"^{_GAP}*(`{{3,}}|~{{3,}})[^\n]*\n.*?^{_GAP}*\1{_GAP}*$", re.MULTILINE | re.DOTALL
)
_AT = r"- (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d(?::\d\d)?: "
_EVENTS = re.compile(rf"^Events:\n(?={_AT})", re.MULTILINE | re.ASCII)
_EVENT = re.compile(rf"^(?={_AT})", re.MULTILINE | re.ASCII)


async def beat(turn: OfflineTurn) -> str:
    """Name what needs attention, or say that nothing does (SPEC HB-5)."""
    found = needs_attention(turn.request.prompt)
    if not found:
        return turn.reply(HEARTBEAT_OK)
    lines = [f"- {_line(text)}" for text in found[:_MOST]]
    if len(found) > _MOST:
        lines.append(f"- … and {len(found) - _MOST} more")
    return turn.reply("\n".join(["These need your attention:", *lines]))


def needs_attention(prompt: str) -> list[str]:
    """The open items and the events in the message of a beat, as they are written."""
    checklist, *events = _EVENTS.split(prompt, maxsplit=1)
    found = [match["text"] for match in _OPEN.finditer(_CODE.sub("", checklist))]
    for section in events:
        found += [event.removeprefix("- ") for event in _EVENT.split(section) if event]
    return [text for text in found if not is_blank(text)]


def _line(text: str) -> str:
    # An item that speaks of the token would say that all is well.
    said = " ".join(without_token(unescaped(text)).split())
    return cut_text(said, _CHARS) or "an item of the checklist"


async def _add(turn: OfflineTurn) -> str:
    return turn.reply(await turn.use("heartbeat", action="add", text=turn.said))


async def _show(turn: OfflineTurn) -> str:
    return turn.reply(await turn.use("heartbeat", action="show"))


async def _done(turn: OfflineTurn) -> str:
    number = int(turn.said)
    return turn.reply(await turn.use("heartbeat", action="done", number=number))


async def _status(turn: OfflineTurn) -> str:
    return turn.reply(await turn.use("heartbeat", action="status"))


BEATING = (
    phrase(
        "add to the checklist: TEXT",
        "adds an item to HEARTBEAT.md",
        r"add\s+to\s+(?:the\s+|my\s+|your\s+)?checklist\s*:?\s+(.+)",
        _add,
    ),
    phrase(
        "show the checklist",
        "lists its open items",
        r"(?:show\s+)?(?:the\s+|my\s+|your\s+)?checklist",
        _show,
    ),
    phrase("done N", "ticks off the item with that number", r"done\s+(\d{1,9})", _done),
    phrase("heartbeat", "shows the state of my heartbeat", r"heartbeat", _status),
)
"""Phrases in the order in which they are tried."""
