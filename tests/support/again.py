"""The line below a message that may be in a chat twice (SPEC IO-5)."""

from __future__ import annotations

from goclaw_py.chat.outbound import texts

SENT_AGAIN = f"\n\n{texts.sent_again('telegram')}"
"""As it ends such a message in Telegram."""


def unmarked(text: str) -> str:
    """A text without that line."""
    return text.removesuffix(SENT_AGAIN)
