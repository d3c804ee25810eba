"""Items of a checklist by what they say: what is there is not written again."""

from __future__ import annotations

from goclaw_py.heartbeat.checklist.checklist import Checklist, Item, parse, with_item


def as_item(text: str) -> str:
    """What an item says that is made of a text. Raises ``BadChecklist`` if none can be."""
    return parse(with_item("", text)).items[-1].text


def open_item(checklist: Checklist, says: str) -> Item | None:
    """The first open item that says exactly this."""
    return next((item for item in checklist.items if item.text == says), None)
