"""Texts for positions, contacts and polls (SPEC CHAN-6)."""

from __future__ import annotations

from channels.telegram.fields import Fields, clean_name, list_or_empty, object_or_empty

_OPTIONS = 20


def shared_text(message: Fields) -> str:
    """Return what was shared in square brackets; "" for other messages."""
    # A venue comes with a location too.
    words = (
        _venue(object_or_empty(message.get("venue")))
        or _position(object_or_empty(message.get("location")))
        or _contact(object_or_empty(message.get("contact")))
        or _poll(object_or_empty(message.get("poll")))
    )
    return f"[{words}]" if words else ""


def _venue(venue: Fields) -> str:
    name, address = clean_name(venue.get("title")), clean_name(venue.get("address"))
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
    question = clean_name(poll.get("question"))
    options = map(object_or_empty, list_or_empty(poll.get("options")))
    named = [name for option in options if (name := clean_name(option.get("text")))]
    if not question:
        return ""
    listed = f" Options: {'; '.join(named[:_OPTIONS])}" if named else ""
    return f"poll: {question}{listed}"
