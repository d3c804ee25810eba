"""Targets as people write them in settings: ``telegram.work:-100123:7``."""

from __future__ import annotations

import re
from typing import Final

from goclaw_py.model.messages import Target
from goclaw_py.model.session_keys import DEFAULT_ACCOUNT

TARGET_FORM: Final = "channel[.account]:chat[:thread], such as telegram:12345"
"""The form in words, for errors."""

_NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
_ID = r"[^\s:\x00-\x1f\x7f]{1,128}"
_TARGET = re.compile(rf"({_NAME})(?:\.({_NAME}))?:({_ID})(?::({_ID}))?")


def parse_target(text: str) -> Target | None:
    """Parse a target; None if it has another form."""
    found = _TARGET.fullmatch(text)
    if found is None:
        return None
    channel, account, chat, thread = found.groups()
    return Target(channel, account or DEFAULT_ACCOUNT, chat, thread)


def target_text(target: Target) -> str:
    """Return a target as text. The account ``default`` is left out, as in session keys (IO-7)."""
    account = "" if target.account == DEFAULT_ACCOUNT else f".{target.account}"
    thread = "" if target.thread is None else f":{target.thread}"
    return f"{target.channel}{account}:{target.chat}{thread}"
