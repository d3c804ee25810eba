"""Inline keyboards as the server checks them."""

from __future__ import annotations

from tests.botapi.rules import Json, Parameters, bad_request, is_object, utf8

DATA_BYTES = 64


def keyboard(call: Parameters) -> Json:
    """The inline keyboard to keep with a message; empty if there is none. Raises ``Refusal``."""
    value = call.json("reply_markup")
    if value is None or value == "":
        return {}
    if not is_object(value):
        raise bad_request("object expected as reply markup")
    rows = value.get("inline_keyboard")
    if rows is None:
        return {}
    if not isinstance(rows, list):
        raise bad_request('field "inline_keyboard" of the InlineKeyboardMarkup must be an Array')
    shown = [[_button(button) for button in _row(row)] for row in rows]
    return {"inline_keyboard": shown} if any(shown) else {}


def _row(row: object) -> list[object]:
    if not isinstance(row, list):
        raise bad_request(
            'field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays'
        )
    return row


def _button(button: object) -> Json:
    if not is_object(button):
        raise _unreadable("InlineKeyboardButton must be an Object")
    text = button.get("text")
    if text is None:
        raise _unreadable('Can\'t find field "text"')
    if not isinstance(text, str):
        raise _unreadable('Field "text" must be of type String')
    if not utf8(text).strip():
        raise bad_request("BUTTON_TEXT_INVALID")
    if "callback_data" not in button:
        raise _unreadable("Text buttons are unallowed in the inline keyboard")
    data = button["callback_data"]
    if not isinstance(data, str):
        raise _unreadable('Field "callback_data" must be of type String')
    if not 1 <= len(utf8(data).encode()) <= DATA_BYTES:
        raise bad_request("BUTTON_DATA_INVALID")
    return button


def _unreadable(words: str) -> Exception:
    return bad_request(f"can't parse inline keyboard button: {words}")
