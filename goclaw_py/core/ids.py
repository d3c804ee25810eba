"""Identifiers.

One ``NewType`` for each kind, so that a run id is never taken for a session key.
"""

from __future__ import annotations

from typing import NewType

RunId = NewType("RunId", str)
"""One execution of the agent loop: a UUIDv7 in text form, so that ids sort by time."""

SessionKey = NewType("SessionKey", str)
"""Names a conversation; its forms are listed in SPEC IO-7."""

LaneName = NewType("LaneName", str)
AgentName = NewType("AgentName", str)

NodeId = NewType("NodeId", str)
"""One process from its start to its end: a restarted process is another node."""

JobId = NewType("JobId", str)
"""One job: a UUIDv7 in text form."""

OccurrenceId = NewType("OccurrenceId", str)
"""One time that a job was due, or was run by hand: a UUIDv7 in text form."""

HeartbeatRunId = NewType("HeartbeatRunId", str)
"""One heartbeat run of an agent's heartbeat: a UUIDv7 in text form."""

ApprovalId = NewType("ApprovalId", str)
"""A question to a person about a tool call: 16 hexadecimal digits."""

Owner = NewType("Owner", str)
"""Whose a job is: a chat, or whoever operates the gateway (``schedule.jobs.models.OPERATOR``)."""

MAIN_LANE = LaneName("main")
CRON_LANE = LaneName("cron")
MAIN_AGENT = AgentName("main")

_VERSION_7 = 0x7 << 76
_VARIANT = 0x2 << 62


def uuid7(unix_ms: int, entropy: int) -> str:
    """Build a UUIDv7 (RFC 9562) from a time in milliseconds and at least 74 random bits.

    Pure: whoever calls it brings the clock and the randomness.
    """
    high = entropy >> 62 & 0xFFF
    low = entropy & 0x3FFF_FFFF_FFFF_FFFF
    value = (unix_ms & 0xFFFF_FFFF_FFFF) << 80 | _VERSION_7 | high << 64 | _VARIANT | low
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
