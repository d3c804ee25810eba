"""Durations of a mute, as people write them in chats and in the shell."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from goclaw_py.core.errors import BadMoment, HeartbeatError
from goclaw_py.core.time.datetimes import parse_moment
from goclaw_py.core.time.texts import zone_or_utc
from goclaw_py.schedule.heartbeat import chat_texts as words

LONGEST_MUTE: Final = timedelta(days=365)


def mute_end(text: str, *, now: datetime, zone: str) -> datetime | None:
    """Return the end of a mute in UTC: ``2h``, ``for 1h 30m``, ``until 18:00``; None for ``off``.

    An unknown zone counts as UTC. Raises ``HeartbeatError``, with a text for people, for an invalid
    duration and for one above ``LONGEST_MUTE``.
    """
    plain = " ".join(text.lower().split())
    if plain == "off":
        return None
    moment = plain.removeprefix("until ")
    if moment == plain:
        moment = f"in {plain.removeprefix('for ').removeprefix('in ')}"
    try:
        until = parse_moment(moment, now=now, zone=zone_or_utc(zone)[1])
    except BadMoment as error:
        raise HeartbeatError(words.unknown_duration(plain)) from error
    if until - now > LONGEST_MUTE:
        raise HeartbeatError(words.mute_too_long(LONGEST_MUTE))
    return until
