"""What people in a chat read: no shell commands (SPEC CMD-5); only operators have a shell."""

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
