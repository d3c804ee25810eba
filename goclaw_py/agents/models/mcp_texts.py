"""Names of MCP servers' tools, and what they say, for models. Heavy imports."""

from __future__ import annotations

import re
from collections.abc import Collection

from pydantic_ai.messages import BinaryContent

from goclaw_py.agents.models.scrub import hide
from goclaw_py.core.redaction import HIDDEN
from goclaw_py.core.storable import storable_json

MOST_RESULT = 100_000
"""The length of a result for a model in characters."""

MOST_FAILURE = 2_000
"""The length of a failure in characters."""

LONGEST_NAME = 64
"""The limit of every model provider."""

SERVER_KEEPS = 20
"""The shortest part of a server's name that is kept for a tool with a long name."""

_MIN_SECRET = 4
NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


def name_of(server: str, tool: str, used: Collection[str]) -> str:
    """Return an unused name for a tool.

    If it would be too long, the server's part is truncated first, because the tool's part says
    more.
    """
    server, tool = NOT_IN_NAMES.sub("_", server), NOT_IN_NAMES.sub("_", tool)
    server = server[: max(SERVER_KEEPS, LONGEST_NAME - 1 - len(tool))]
    fit = f"{server}_{tool}"[:LONGEST_NAME]
    name, number = fit, 1
    while name in used:
        number += 1
        suffix = f"_{number}"
        name = fit[: LONGEST_NAME - len(suffix)] + suffix
    return name


def failure_of(message: str, secrets: Collection[str]) -> str:
    """Return the text of a tool's failure, truncated and without secrets.

    Servers often repeat a refused key. Known secrets are removed first, because truncation could
    leave a part of one; texts that look like a key are searched in the rest.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _MIN_SECRET:
            message = message.replace(secret, HIDDEN)
    return hide(message[:MOST_FAILURE], secrets)[:MOST_FAILURE]


def text_of(given: object) -> str:
    """Return the result of a tool as text."""
    text = _words(given)
    if len(text) <= MOST_RESULT:
        return text
    return f"{text[:MOST_RESULT]}\n[{len(text) - MOST_RESULT} more characters left out]"


def _words(given: object) -> str:
    match given:
        case str():
            return given
        case None:
            return ""
        case BinaryContent():
            return f"[{given.media_type} of {len(given.data)} bytes, which cannot be shown here]"
        case list() if any(isinstance(item, BinaryContent) for item in given):
            return "\n".join(_words(item) for item in given)
        case _:
            return storable_json(given).decode()
