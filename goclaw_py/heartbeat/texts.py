"""What an agent reads in a beat, and what people read that comes from one (SPEC HB-5, HB-7)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from goclaw_py.common.text import cut_text
from goclaw_py.common.time_texts import local, named
from goclaw_py.delivery.ok_token import HEARTBEAT_OK
from goclaw_py.heartbeat.models import Event

_REASON_CHARS = 300

IS_BUSY: Final = "somebody talks to the agent"
"""Why a beat is deferred (SPEC HB-4)."""


def beat_run(now: datetime, zone: str) -> str:
    """What the agent is told beside the user message: the time, and how to keep silent."""
    return (
        f"This is a heartbeat: nobody has written to you, and nobody watches. It is "
        f"{local(now, zone)} ({zone}). The message is the part of your checklist (HEARTBEAT.md) "
        "that is due now, with events that came in since the last time, if there are any. Look at "
        "each item with your tools. If nothing needs the attention of the people you work for, "
        f"answer only {HEARTBEAT_OK}. If something does, answer with what they should read, and "
        f"leave {HEARTBEAT_OK} out: it is sent to them as you wrote it."
    )


def beat_prompt(checklist: str, events: Sequence[Event], zone: str) -> str:
    """The user message of a beat: what is due of the checklist, then events (SPEC AGENT-7)."""
    parts = [checklist.strip()] if checklist.strip() else []
    if events:
        lines = [f"- {local(event.at, zone)}: {event.text}" for event in events]
        parts.append("\n".join(["Events:", *lines]))
    return "\n\n".join(parts)


def alerted_from(text: str) -> str:
    """What the history of a chat holds for an alert (SPEC AGENT-7)."""
    return f"[from the heartbeat]\n{text}"


def fell_back(gone: str) -> str:
    """A line below an alert that does not come where the agent was spoken to last (SPEC HB-8)."""
    return f"(This comes here because {gone} cannot be written to.)"


def undelivered(place: str, why: str, text: str) -> str:
    """An alert that its channel will never take, told somewhere else."""
    return f"⚠️ This could not be delivered to {place} ({_cut(why)}):\n\n{text}"


def failed_thrice(agent: str, when: datetime, why: str, zone: str) -> str:
    """For owners, about a heartbeat that fails again and again (SPEC HB-10)."""
    return (
        f"⚠️ The heartbeat of “{agent}” has failed three times in a row, last "
        f"{named(when, zone, when)}: {_cut(why)}"
    )


def _cut(reason: str) -> str:
    return cut_text(" ".join(reason.split()), _REASON_CHARS) or "nobody knows why"
