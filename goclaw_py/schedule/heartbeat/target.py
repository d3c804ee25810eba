"""The alert target of a heartbeat, as written in settings (SPEC HB-8)."""

from __future__ import annotations

import re
from typing import Final

from goclaw_py.core.messages import Target
from goclaw_py.core.targets import parse_target, target_text
from goclaw_py.schedule.heartbeat.decisions import HeartbeatTarget, LastChat, NoTarget

TARGET_MEANING: Final = (
    "last, none, a channel such as telegram or telegram.work, "
    "or a chat such as telegram:12345 or telegram:12345:7"
)

_LAST: Final = "last"
_NAME: Final = r"[a-z0-9][a-z0-9_-]{0,63}"
_ACCOUNT: Final = re.compile(rf"({_NAME})(?:\.({_NAME}))?")


def parse_heartbeat_target(text: str) -> HeartbeatTarget | None:
    """Parse a target in the form of ``TARGET_MEANING``; None if it has another form."""
    if text == _LAST:
        return LastChat()
    if text == NoTarget.NONE:
        return NoTarget.NONE
    if found := _ACCOUNT.fullmatch(text):
        return LastChat(found[1], found[2])
    return parse_target(text)


def heartbeat_target_text(target: HeartbeatTarget) -> str:
    """Return it as text for ``parse_heartbeat_target``."""
    match target:
        case Target():
            return target_text(target)
        case LastChat(None):
            return _LAST
        case LastChat(channel, None):
            return str(channel)
        case LastChat(channel, account):
            return f"{channel}.{account}"
        case NoTarget():
            return str(target)
