"""Draws a chat of the Bot API emulator as a page: what a person would see in Telegram."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

from tests.botapi.views import Seen

PAPER: Final = "#d5e0d2"
_STYLE: Final = """
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.4 Arial, "Liberation Sans", sans-serif; background: #d5e0d2; color: #111; }
header { background: #fff; padding: 10px 14px; border-bottom: 1px solid #c7cfc5; }
header b { display: block; font-size: 16px; }
header span { color: #5d6b76; font-size: 12px; }
main { display: flex; flex-direction: column; gap: 6px; padding: 12px 10px; }
.m { max-width: 84%; align-self: flex-start; }
.note { align-self: center; background: #8fa98b; color: #fff; border-radius: 10px; padding: 2px 10px; font-size: 13px; }
.m.you { align-self: flex-end; }
.t { background: #fff; border-radius: 12px; padding: 7px 11px; white-space: pre-wrap; overflow-wrap: anywhere; }
.you .t { background: #e2fbc8; }
.t code, .t pre { font: 13px/1.35 ui-monospace, Consolas, "DejaVu Sans Mono", monospace; background: #eef1f3; border-radius: 4px; }
.t code { padding: 0 3px; } .t pre { margin: 4px 0 0; padding: 6px 8px; white-space: pre-wrap; } .t pre code { padding: 0; }
.t blockquote { margin: 4px 0 0; padding-left: 8px; border-left: 3px solid #3a8ad8; }
.m:has(.b) { min-width: 330px; }
.b { display: flex; gap: 4px; margin-top: 4px; }
.b span { flex: 1; text-align: center; background: #7c9c78; color: #fff; border-radius: 8px; padding: 6px 4px; font-size: 14px; }
"""  # noqa: E501


def page(
    messages: Sequence[Seen],
    title: str,
    *,
    notes: Mapping[int, str] | None = None,
    height: int | None = None,
) -> str:
    """Return the HTML of a chat, oldest message first. It is labelled as a rendering.

    ``notes`` stand below the messages of these numbers. With a ``height`` in px it shows the end.
    """
    shown = "".join(part for message in messages for part in _message(message, notes or {}))
    fixed = f"body{{display:flex;flex-direction:column;overflow:hidden;height:{height}px}}"
    fixed += "main{flex:1;min-height:0;justify-content:flex-end}header{z-index:1}.m{flex:none}"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}{fixed if height else ''}</style><header><b>{escape(title)}</b>"
        "<span>rendering of the messages that goclaw sent to a Bot API emulator</span></header>"
        f"<main>{shown}</main></html>"
    )


def _message(message: Seen, notes: Mapping[int, str]) -> Iterator[str]:
    # The bot's text is the HTML that it sent, which has only tags that Telegram knows.
    text = message.html if message.html is not None else escape(message.text)
    yield f'<div class="m{"" if message.mine else " you"}"><div class="t">{text}</div>'
    for row in message.buttons:
        buttons = "".join(f"<span>{escape(button.text)}</span>" for button in row)
        yield f'<div class="b">{buttons}</div>'
    yield "</div>"
    if message.message_id in notes:
        yield f'<div class="note">{escape(notes[message.message_id])}</div>'
