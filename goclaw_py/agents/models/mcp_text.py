"""What a model reads of MCP servers: names of tools, results and failures (SPEC AGENT-6)."""

from __future__ import annotations

import re
from collections.abc import Collection

import orjson
from pydantic_ai.messages import BinaryContent

from goclaw_py.agents.models.scrub import hide

MOST_RESULT = 100_000
"""Characters of a result that a model gets to read."""

MOST_FAILURE = 2_000
"""Characters of what a tool says of its failure."""

LONGEST_NAME = 64
"""What every model provider takes."""

_SERVER_KEEPS = 20
"""Characters of a server's name that stay, however long the name of its tool is."""

_MIN_SECRET = 4
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


def name_of(server: str, tool: str, taken: Collection[str]) -> str:
    """The name under which a model calls a tool: one that is not taken.

    Where it would be too long, the server's part is cut before the tool's: that tells more.
    """
    server, tool = _NOT_IN_NAMES.sub("_", server), _NOT_IN_NAMES.sub("_", tool)
    server = server[: max(_SERVER_KEEPS, LONGEST_NAME - 1 - len(tool))]
    fit = f"{server}_{tool}"[:LONGEST_NAME]
    name, number = fit, 1
    while name in taken:
        number += 1
        suffix = f"_{number}"
        name = fit[: LONGEST_NAME - len(suffix)] + suffix
    return name


def failure_of(message: str, secrets: Collection[str]) -> str:
    """What a tool says of its failure, cut and without secrets.

    Servers like to repeat the key that was refused. Whole secrets go first, for the cut could leave
    a half of one; what looks like a key is only looked for in what is left.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _MIN_SECRET:
            message = message.replace(secret, "***")
    return hide(message[:MOST_FAILURE], secrets)[:MOST_FAILURE]


def text_of(given: object) -> str:
    """What a tool gave."""
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
            return orjson.dumps(given, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
