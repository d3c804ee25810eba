"""What people in a chat read when they use the heartbeat, and how a checklist is shown (CMD-5)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from goclaw_py.common.text import cut_text
from goclaw_py.common.time_texts import left, named
from goclaw_py.heartbeat.checklist.checklist import Checklist, Item
from goclaw_py.heartbeat.views import HeartbeatView
from goclaw_py.model.errors import HeartbeatError

LISTED: Final = 20
"""How many items one answer shows."""

ITEM_CHARS: Final = 150
"""How much of each."""

_WORD_CHARS: Final = 40
_REASON_CHARS: Final = 300
_TEXT_CHARS: Final = 1000

NONE: Final = "There are no heartbeats here."
NOT_AN_OWNER: Final = "Only an owner may change or start the heartbeat."
HOW: Final = "Use it with /heartbeat on, off, now, why, show, add TEXT or done N."
HOW_ADD: Final = "Say what I am to look after: /heartbeat add Tell me if the backup is missing."
HOW_DONE: Final = "Say which one: /heartbeat done N, with its number in /heartbeat show."
HOW_MUTE: Final = "Write /mute 30m, /mute 2h, /mute 1d, /mute until 18:00 or /mute off."
ALREADY_RUNNING: Final = "A heartbeat is running already."
NOT_CARRIED_OUT: Final = "Nothing here runs heartbeats at the moment."
OFF_BY_SETTINGS: Final = "The settings switch the heartbeat off; only they can switch it on."
OFF: Final = "The heartbeat is off. /heartbeat on switches it on."
MUTE_IS_OVER: Final = "That time is over by now, so nothing was muted."
NOT_MUTED: Final = "The heartbeat is not muted."
UNMUTED: Final = "The heartbeat is not muted any more."

_HEARD: Final = "You hear from it if something needs attention."
_UNHEARD: Final = "What it has to say would not arrive anywhere; /heartbeat why tells more."

# ---------------------------------------------------------------------------- beats


def off(view: HeartbeatView) -> str:
    """Why there is no beat of a heartbeat that is off."""
    return OFF_BY_SETTINGS if view.heartbeat.interval is None else OFF


def begun(view: HeartbeatView) -> str:
    """The answer to ``/heartbeat now``."""
    arrives = view.route.target is not None and not view.route.problem
    return f"A heartbeat has begun. {_HEARD if arrives else _UNHEARD}"


def switched(view: HeartbeatView) -> str:
    """The answer to ``/heartbeat on`` and ``/heartbeat off``."""
    heartbeat, zone = view.heartbeat, view.policy.zone
    if not heartbeat.is_on:
        return off(view)
    due = heartbeat.next_at
    ahead = ""
    if due is not None and due > view.now:
        ahead = f" The next run is due {named(due, zone, view.now)}."
    return f"The heartbeat is on.{ahead}{_but_muted(view)}"


def _but_muted(view: HeartbeatView) -> str:
    until = muted_until(view)
    return (
        "" if until is None else f" It is muted until {named(until, view.policy.zone, view.now)}."
    )


# ---------------------------------------------------------------------------- mute


def muted_until(view: HeartbeatView) -> datetime | None:
    """Until when it is silent, None if it is not muted now."""
    until = view.heartbeat.muted_until
    return None if until is None or until <= view.now else until


def muted(view: HeartbeatView) -> str:
    """The answer to ``/mute``, and to ``/mute DURATION`` when it holds."""
    until = muted_until(view)
    if until is None:
        return f"{NOT_MUTED} {HOW_MUTE}"
    ahead, zone = left(until - view.now), view.policy.zone
    end = named(until, zone, view.now)
    return f"The heartbeat is muted until {end}, for {ahead}. /mute off ends that."


def unknown_duration(text: str) -> str:
    """The answer to what is no duration, in a chat, a shell and the dashboard."""
    return (
        f"I cannot read “{cut_text(text, _WORD_CHARS)}” as a duration. "
        "Write for example 30m, 2h, 1d, until 18:00 or off."
    )


def mute_too_long(most: timedelta) -> str:
    """The answer to a duration above the longest one."""
    return f"At most {most.days} days can be muted; for longer, switch the heartbeat off."


# ---------------------------------------------------------------------------- the checklist


def checklist(
    shown: Checklist, agent: str, *, most: int = LISTED, item_chars: int = ITEM_CHARS
) -> str:
    """The open items of a checklist, the first ``most`` of them, numbered from 1."""
    items = shown.items
    if not items:
        return _without_items(shown, agent)
    lines = [f"Open on the checklist of {agent}:"]
    lines += [f"{item.number}. {_item(item.text, item_chars)}" for item in items[:most]]
    if len(items) > most:
        lines.append(f"… and {len(items) - most} more.")
    return "\n".join([*lines, _when(items)])


def _without_items(shown: Checklist, agent: str) -> str:
    if shown.is_empty:
        return f"Nothing is open on the checklist of {agent}."
    text = cut_text(shown.text.strip(), _TEXT_CHARS)
    return f"The checklist of {agent} has no open items, but this text:\n{text}"


def _when(items: tuple[Item, ...]) -> str:
    """How many are due with each beat, and how many have an interval of their own."""
    own = sum(bool(item.every) for item in items)
    each = len(items) - own
    parts = [f"{each} {_are(each)} due with each heartbeat"] if each else []
    if own:
        parts.append(f"{own} {'has an interval' if own == 1 else 'have intervals'} of {_its(own)}")
    return f"{', '.join(parts)}."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _its(number: int) -> str:
    return "its own" if number == 1 else "their own"


def added(item: str) -> str:
    """The answer to a new item, also to one that was there already."""
    return f"On the checklist: “{_item(item)}”."


def done(item: str) -> str:
    """The answer to an item that is ticked off."""
    return f"Ticked off: “{_item(item)}”."


def not_open(item: str) -> str:
    """The answer to an item that somebody else has ticked off, changed or taken out."""
    return f"“{_item(item)}” is not open any more."


def unknown_number(number: str) -> str:
    """The answer to a number that is not in the list."""
    return f"There is no number {cut_text(number, 10)} in the list; see /heartbeat show."


def look_again(shown: str) -> str:
    """The answer to a number when it is not known which list it is from."""
    return f"The numbers may have changed; please choose once more.\n{shown}"


# ---------------------------------------------------------------------------- refusals


def unknown_action(word: str) -> str:
    """The answer to ``/heartbeat`` with a word that is none of its actions."""
    return f"I know no “/heartbeat {cut_text(word, _WORD_CHARS)}”. {HOW}"


def refused(error: HeartbeatError) -> str:
    """Why something was not done, as a sentence."""
    line = cut_text(" ".join(str(error).split()), _REASON_CHARS)
    end = "" if line.endswith((".", "!", "?", "…")) else "."
    return line[:1].upper() + line[1:] + end


def _item(text: str, most: int = ITEM_CHARS) -> str:
    return cut_text(" ".join(text.split()), most)
