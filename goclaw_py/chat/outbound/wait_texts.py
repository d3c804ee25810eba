"""The line that people see while a reply does not go on (SPEC CHAN-14).

The rules of SPEC CHAN-14:

One line says what a person waits for while a reply does not go on; it stands below the text so
far, and is gone with the next text or the answer. It names the tools in use and the servers that a
continued run waits for (AGENT-10); only without these, after 30 s without text or a tool call,
each time: `⏳ Still waiting for the model …`. A run that continues or begins again after a crash, a
shutdown or a takeover says so in the same line, once, if it has nothing new to say within 5 s: `↻
Continuing after a restart …`, or `↻ Continuing after a restart: still waiting for the model …`.
Where replies have no draft, web chat and console show the line as a state (without tools, which
they show themselves), and Telegram's own drafts show it; there is no message of its own, which
would stay and ring. Runs without a chat show nothing.
"""

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
