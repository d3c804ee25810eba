"""Prompts of heartbeat runs, and notices about their alerts (SPEC HB-5, HB-7)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from goclaw_py.chat.outbound.ok_token import HEARTBEAT_OK
from goclaw_py.core.text import truncate
from goclaw_py.core.time.texts import local, named
from goclaw_py.schedule.heartbeat.models import HeartbeatEvent
from goclaw_py.scheduler.operator_warnings import undelivered_text

_REASON_CHARS = 300

IS_BUSY: Final = "someone is talking to the agent"
"""Why a heartbeat run is deferred (SPEC HB-4)."""


def heartbeat_guide(now: datetime, zone: str) -> str:
    """Return the system text of a heartbeat run: the time, and how to send no alert."""
    return (
        "This is a heartbeat: a scheduled check. No person has written to you or is watching. "
        f"It is {local(now, zone)} ({zone}). "
        "The message is the part of your checklist (HEARTBEAT.md) that is due now, followed by "
        "events since the last heartbeat, if there are any. Check "
        "each item with your tools. If nothing needs the attention of the people you work for, "
        f"answer only {HEARTBEAT_OK}. If something does, answer with what they should read, "
        f"without {HEARTBEAT_OK}: your answer is sent to them as you wrote it."
    )


def heartbeat_prompt(checklist: str, events: Sequence[HeartbeatEvent], zone: str) -> str:
    """Return the user message of a run: the due checklist items, then events (SPEC AGENT-7)."""
    parts = [checklist.strip()] if checklist.strip() else []
    if events:
        lines = [f"- {local(event.at, zone)}: {event.text}" for event in events]
        parts.append("\n".join(["Events:", *lines]))
    return "\n\n".join(parts)


def alerted_from(text: str) -> str:
    """Return the history entry for an alert in a chat (SPEC AGENT-7)."""
    return f"[from the heartbeat]\n{text}"


def fell_back(gone: str) -> str:
    """Return the note below an alert that could not go to the last active chat (SPEC HB-8)."""
    return f"(Sent here, because messages to {gone} cannot be delivered.)"


def undelivered(place: str, why: str, text: str) -> str:
    """Return the notice in another chat about an alert that its channel refused for good."""
    return f"⚠️ This {undelivered_text(place, _truncated(why))}.\n\n{text}"


def failed_thrice(agent: str, when: datetime, why: str, zone: str) -> str:
    """Return the notice to owners about a heartbeat that fails repeatedly (SPEC HB-10)."""
    return (
        f"⚠️ The heartbeat of “{agent}” has failed three times in a row, last "
        f"{named(when, zone, when)}: {_truncated(why)}"
    )


def _truncated(reason: str) -> str:
    return truncate(" ".join(reason.split()), _REASON_CHARS) or "the reason is unknown"
