"""Texts for positions, contacts, polls and checklists, and for what has none (SPEC CHAN-6)."""

from __future__ import annotations

from channels.telegram.fields import (
    Fields,
    clean_name,
    list_or_empty,
    object_or_empty,
    whole_number,
)

_OPTIONS = 20
_TASKS = 100
_LONGEST = 1024
"""Longer than the server allows for a line of these."""


def _line(value: object) -> str:
    return clean_name(value, _LONGEST)


def shared_text(message: Fields) -> str:
    """Return what was shared in square brackets; "" for other messages."""
    # A venue comes with a location too.
    words = (
        _venue(object_or_empty(message.get("venue")))
        or _position(object_or_empty(message.get("location")))
        or _contact(object_or_empty(message.get("contact")))
        or _poll(object_or_empty(message.get("poll")))
        or _checklist(object_or_empty(message.get("checklist")))
    )
    return f"[{words}]" if words else ""


def _venue(venue: Fields) -> str:
    name, address = _line(venue.get("title")), _line(venue.get("address"))
    where = _coordinates(object_or_empty(venue.get("location")))
    if not name and not where:
        return ""
    return f"place: {', '.join(filter(None, (name, address, where)))}"


def _position(location: Fields) -> str:
    where = _coordinates(location)
    live = (
        " (live; later positions are not reported)" if where and "live_period" in location else ""
    )
    return f"location: {where}{live}" if where else ""


def _coordinates(location: Fields) -> str:
    """Return latitude and longitude in degrees; "" if they are invalid."""
    degrees = location.get("latitude"), location.get("longitude")
    if any(isinstance(one, bool) or not isinstance(one, int | float) for one in degrees):
        return ""
    return ", ".join(f"{one:.6f}".rstrip("0").rstrip(".") for one in degrees)


def _contact(contact: Fields) -> str:
    name = " ".join(filter(None, (clean_name(contact.get(f"{key}_name")) for key in _NAMES)))
    phone = clean_name(contact.get("phone_number"))
    known = ", ".join(filter(None, (name, phone)))
    return f"contact: {known}" if known else ""


_NAMES = ("first", "last")


def _poll(poll: Fields) -> str:
    question = _line(poll.get("question"))
    options = map(object_or_empty, list_or_empty(poll.get("options")))
    named = [name for option in options if (name := _line(option.get("text")))]
    if not question:
        return ""
    listed = f" Options: {'; '.join(named[:_OPTIONS])}" if named else ""
    return f"poll: {question}{listed}"


def _checklist(checklist: Fields) -> str:
    title = _line(checklist.get("title"))
    tasks = [
        f"{'☑' if 'completion_date' in task else '☐'} {words}"
        for task in map(object_or_empty, list_or_empty(checklist.get("tasks")))
        if (words := _line(task.get("text")))
    ]
    if not (title or tasks):
        return ""
    return "checklist: " + ". ".join(filter(None, [title, "; ".join(tasks[:_TASKS])]))


def details(message: Fields) -> str:
    """Return what is known of a dice, a game or an invoice; "" for others."""
    dice = object_or_empty(message.get("dice"))
    emoji, number = clean_name(dice.get("emoji")), whole_number(dice.get("value"))
    if emoji and number is not None:
        return f"{emoji} {number}"
    named = object_or_empty(message.get("game", message.get("invoice")))
    return _line(named.get("title"))


def chosen(message: Fields, replied: Fields) -> str:
    """Return the task of a checklist or the option of a poll that a message replies to."""
    parts = (
        ("reply_to_checklist_task_id", "checklist", "tasks", "id", "task"),
        ("reply_to_poll_option_id", "poll", "options", "persistent_id", "option"),
    )
    for reference, kind, listed, key, word in parts:
        if reference in message:
            for part in list_or_empty(object_or_empty(replied.get(kind)).get(listed)):
                fields = object_or_empty(part)
                if fields.get(key) == message[reference] and (words := _line(fields.get("text"))):
                    return f"this {word}: {words}"
    return ""


def service_text(message: Fields, fields: frozenset[str]) -> str:
    """Return a service message as its name and its text, if it has one: ``new chat title: x``."""
    field = next((key for key in message if key in fields), None)
    if field is None:
        return ""
    return ": ".join(filter(None, [field.replace("_", " "), _line(message[field])]))
