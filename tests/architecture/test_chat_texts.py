"""What people in a chat read: no shell commands (SPEC CMD-5), one style of quotes and of times.

Only operators have a shell. Times are those of ``core.time.texts``: as people say them, in the zone
of the chat.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.architecture.sources import Module, modules

IN_CHATS = (
    "goclaw_py.agents",
    "goclaw_py.chat",
    "goclaw_py.core",
    "goclaw_py.runs",
    "goclaw_py.schedule",
    "channels",
)
"""The packages whose texts people in chats read."""

OF_OPERATORS = {
    "goclaw_py.chat.inbound.ingress_filter": 1,  # the hint of a log line
    "goclaw_py.schedule.heartbeat.module": 1,  # a warning on pages
    "goclaw_py.schedule.heartbeat.views": 5,  # the reader with a command line
    "goclaw_py.schedule.jobs.texts": 2,  # a warning on pages
}
"""Texts in these packages that only operators read, by module."""

OF_CHATS = re.compile(
    r"goclaw_py\.chat\..*|channels\..*|goclaw_py\.schedule\..*texts|goclaw_py\.runs\.replies\..*"
)
"""The modules of sentences that nobody but people in chats reads; errors pass ``text.curly``."""

NOT_SHOWN = {
    "channels.console",  # the error of a wrong name of a conversation, for programs
    "goclaw_py.chat.commands.heartbeat",  # a field of a log line
    "goclaw_py.chat.inbound.chained_turns",  # keys of incidents
    "goclaw_py.schedule.jobs.texts",  # a prompt for the agent
}
"""Modules among them with a text in another form that no person in a chat reads."""

STRAIGHT = re.compile(r"""(?<![\w=\\])(["'])\w[^"'\n]*\1""")

SHELL = re.compile(r"\bgoclaw [a-z]")


def texts(module: Module) -> Iterator[str]:
    """The text constants of a module without docstrings and attribute docs."""
    docs = {
        id(node.value)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def test_no_text_of_a_chat_has_a_shell_command() -> None:
    found = {
        module.name: number
        for module in modules()
        if module.is_in(*IN_CHATS)
        and (number := sum(bool(SHELL.search(text)) for text in texts(module)))
    }
    assert found == OF_OPERATORS


def test_a_text_of_a_chat_quotes_with_curly_marks_and_tells_times_as_people_say_them() -> None:
    found = set()
    for module in modules():
        if not OF_CHATS.fullmatch(module.name):
            continue
        found |= {text for text in texts(module) if " " in text and STRAIGHT.search(text)}
        if module.name in NOT_SHOWN:
            continue
        for node in ast.walk(module.tree):
            is_repr = isinstance(node, ast.FormattedValue) and node.conversion == ord("r")
            is_date = isinstance(node, ast.Attribute) and node.attr in ("isoformat", "strftime")
            has_form = isinstance(node, ast.Constant) and re.search("%[HY]", str(node.value))
            if is_repr or is_date or has_form:
                found.add(f"{module.name}:{getattr(node, 'lineno', 0)}")
    assert found == set()
