"""The line that people see while a reply does not go on (SPEC CHAN-14)."""

from __future__ import annotations

from collections.abc import Sequence


def tools(names: Sequence[str]) -> str:
    """Return the line below a streamed reply while its agent uses tools."""
    return f"⚙ {', '.join(dict.fromkeys(names))} …" if names else ""


def wait_line(names: Sequence[str], *, is_silent: bool, is_resumed: bool) -> str:
    """Return the one line about a run.

    Args:
        names: The tools in use, and what the run waits for.
        is_silent: The model has sent nothing for a while.
        is_resumed: People are to know that the run was interrupted.
    """
    silence = "still waiting for the model"
    if is_resumed:
        busy = ", ".join(dict.fromkeys(names)) or (silence if is_silent else "")
        return f"↻ Continuing after a restart{f': {busy}' if busy else ''} …"
    if is_silent and not names:
        return f"⏳ {silence.capitalize()} …"
    return tools(names)
