"""Answers to ``/heartbeat`` and ``/mute`` in chats, and the checklist as text (CMD-5)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from goclaw_py.core.errors import HeartbeatError
from goclaw_py.core.text import curly, sentence, truncate
from goclaw_py.core.time.texts import ChatZone, rough
from goclaw_py.schedule.heartbeat.checklist.checklist import Checklist, Item, parse, with_item
from goclaw_py.schedule.heartbeat.checklist.intervals import FORMS
from goclaw_py.schedule.heartbeat.decisions import NoTarget
from goclaw_py.schedule.heartbeat.status_texts import route_words
from goclaw_py.schedule.heartbeat.views import GUEST, OWNER, HeartbeatView, Reader

LISTED: Final = 20
"""The number of items in an answer."""

ITEM_CHARS: Final = 150
"""The length of each."""

_WORD_CHARS: Final = 40
_REASON_CHARS: Final = 300
_TEXT_CHARS: Final = 1000

NONE: Final = "Heartbeats are not available here."
NOT_AN_OWNER: Final = "Only an owner can change or start the heartbeat, or see its checklist."
HOW: Final = "Commands: /heartbeat on, off, now, why, show, add TEXT or done N."
HOW_ADD: Final = "Say what I should check: /heartbeat add Tell me if the backup is missing."
HOW_DONE: Final = "Say which item: /heartbeat done N. /heartbeat show lists the numbers."
HOW_MUTE: Final = "Write /mute 30m, /mute 2h, /mute 1d, /mute until 18:00 or /mute off."
ALREADY_RUNNING: Final = "A heartbeat run is already in progress."
NOT_CARRIED_OUT: Final = "No heartbeats are run at the moment. Please try again later."
OFF: Final = "The heartbeat is off. Turn it on with /heartbeat on."
MUTE_IS_OVER: Final = "That time has already passed, so nothing was muted."
NOT_MUTED: Final = "The heartbeat is not muted."
UNMUTED: Final = "The heartbeat is no longer muted."

_HEARD: Final = "You get a message if something needs attention."
_UNHEARD: Final = "But its alerts cannot be delivered; /heartbeat why explains it."

# ---------------------------------------------------------------------------- heartbeat runs


def off(view: HeartbeatView) -> str:
    """Return why a heartbeat is off and how to turn it on."""
    return OWNER.off_by_settings if view.heartbeat.interval is None else OFF


def begun(view: HeartbeatView, *, waits: bool) -> str:
    """Return the answer to ``/heartbeat now``; ``waits``: the agent is busy."""
    arrives = view.route.target is not None and not view.route.problem
    begin = "starts when nobody is talking to the agent" if waits else "has started"
    return f"A heartbeat run {begin}. {_HEARD if arrives else _UNHEARD}"


def switched(view: HeartbeatView, zone: ChatZone) -> str:
    """Return the answer to ``/heartbeat on`` and ``/heartbeat off``."""
    heartbeat = view.heartbeat
    if not heartbeat.is_on:
        return off(view)
    due = heartbeat.next_at
    ahead = ""
    if due is not None and due > view.now:
        ahead = f" The next run is due {zone.when(due, view.now)}."
    until = muted_until(view)
    mute = "" if until is None else f" It is muted until {zone.when(until, view.now)}."
    return f"The heartbeat is on.{ahead}{mute}"


def alerts(view: HeartbeatView, reader: Reader) -> str:
    """Return the chat to which alerts go, "" if to none."""
    if view.policy.target is NoTarget.NONE or view.route.target is None or view.route.problem:
        return ""
    return f"Alerts go {route_words(view.route, view.policy, reader)}."


# ---------------------------------------------------------------------------- mute


def muted_until(view: HeartbeatView) -> datetime | None:
    """Return the end of the mute, None if the heartbeat is not muted now."""
    until = view.heartbeat.muted_until
    return None if until is None or until <= view.now else until


def muted(view: HeartbeatView, zone: ChatZone, *, owner: bool = True) -> str:
    """Return the answer to ``/mute`` and ``/mute DURATION``."""
    until = muted_until(view)
    if until is None:
        return f"{NOT_MUTED} {HOW_MUTE}" if owner else NOT_MUTED
    ahead, end = rough((until - view.now).total_seconds()), zone.when(until, view.now)
    unmute = (OWNER if owner else GUEST).unmute
    return f"The heartbeat is muted until {end}, for another {ahead}. {unmute}"


def unknown_duration(text: str) -> str:
    """Return the error for an invalid duration, in a chat, a shell and the dashboard."""
    return (
        f"I cannot read “{truncate(text, _WORD_CHARS)}” as a duration. "
        "Write for example 30m, 2h, 1d, until 18:00 or off."
    )


def mute_too_long(most: timedelta) -> str:
    """Return the answer to a duration above the longest one."""
    return f"The longest mute is {most.days} days. For longer, turn the heartbeat off."


# ---------------------------------------------------------------------------- the checklist


def checklist(
    shown: Checklist, agent: str, *, most: int = LISTED, item_chars: int = ITEM_CHARS
) -> str:
    """Return the first ``most`` open items of a checklist, numbered from 1."""
    items = shown.items
    if not items:
        return _without_items(shown, agent)
    lines = [f"Open items on the checklist of {agent}:"]
    lines += [f"{item.number}. {_item(item.text, item_chars)}" for item in items[:most]]
    if len(items) > most:
        lines.append(f"… and {len(items) - most} more.")
    return "\n".join([*lines, _when(items)])


def _without_items(shown: Checklist, agent: str) -> str:
    if shown.is_empty:
        return f"The checklist of {agent} has no open items."
    text = truncate(shown.text.strip(), _TEXT_CHARS)
    return f"The checklist of {agent} has no open items, but this text:\n{text}"


def _when(items: tuple[Item, ...]) -> str:
    """Return how many items are due with each heartbeat run, and how many have own intervals."""
    own = sum(bool(item.every) for item in items)
    if len(items) == 1:
        return "It has its own interval." if own else "It is checked in each heartbeat run."
    each = len(items) - own
    parts = [f"{each} {_are(each)} checked in each heartbeat run"] if each else []
    if own:
        parts.append(f"{own} {'has its own interval' if own == 1 else 'have their own intervals'}")
    return f"{', '.join(parts)}."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def added(item: str) -> str:
    """Return the answer to a new item, or to one that was already on the list."""
    on_list = f"On the checklist: “{_item(item)}”."
    if not parse(with_item("", item)).items[-1].is_misread:
        return on_list
    return f"{on_list} I do not understand its interval, so each run checks it. Forms: {FORMS}."


def done(item: str) -> str:
    """Return the answer to an item that was checked off."""
    return f"Ticked off: “{_item(item)}”."


def not_open(item: str) -> str:
    """Return the answer about an item that was checked off, changed or removed since."""
    return f"“{_item(item)}” is no longer open."


def list_again(shown: str) -> str:
    """Return the answer to a number that names no item of the list that was shown last."""
    return f"The numbers may have changed. Please choose from this list:\n{shown}"


# ---------------------------------------------------------------------------- refusals


def unknown_action(word: str) -> str:
    """Return the answer to ``/heartbeat`` with an unknown action."""
    return f"There is no command “/heartbeat {truncate(word, _WORD_CHARS)}”. {HOW}"


def refused(error: HeartbeatError) -> str:
    """Return the reason of a refusal, as a sentence."""
    return sentence(truncate(" ".join(curly(str(error)).split()), _REASON_CHARS))


def _item(text: str, most: int = ITEM_CHARS) -> str:
    return truncate(" ".join(text.split()), most)
