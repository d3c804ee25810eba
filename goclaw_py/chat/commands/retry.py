"""The button “Try again” below a failure (CMD-5)."""

from __future__ import annotations

from typing import Final

from goclaw_py.chat.commands.command import CommandServices
from goclaw_py.core.chat_commands import Pressed, RetryPressed
from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import InboxRow

NOT_STORED: Final = "This message is no longer stored. Please send it again."
RETRIED: Final = "This message has been retried already."


async def retry(row: InboxRow, button: RetryPressed, services: CommandServices) -> Pressed:
    """Retry failed messages of this chat; the data of a press can be forged."""
    store = services.store
    letters = [await store.dead_letter(id_) for id_ in button.rows]
    mine = [
        letter.row.id
        for letter in letters
        if letter is not None
        and letter.session == row.session
        and letter.row.outcome in (Outcome.FAILED, Outcome.TIMED_OUT, Outcome.LOST)
    ]
    tried = await store.retry_dead_letters(mine, now=services.clock.now()) if mine else 0
    if tried:
        return Pressed("", is_used=True)
    # Of another chat it says nothing.
    is_stored = any(one is not None and one.session == row.session for one in letters)
    return Pressed(RETRIED if is_stored else NOT_STORED, is_used=True)
