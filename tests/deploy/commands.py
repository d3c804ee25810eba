"""Whether what a text tells people to type is a command of ours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import typer
from typer.core import TyperGroup

from goclaw_py.cli.entry import app


def is_command(words: Sequence[str]) -> bool:
    """Whether ``goclaw`` with these words is one: its names, and its options."""
    command = _all()
    rest = list(words)
    while isinstance(command, TyperGroup) and rest and not rest[0].startswith("-"):
        found = command.commands.get(rest.pop(0))
        if found is None:
            return False
        command = found
    known = {
        name
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    given = {word.partition("=")[0] for word in rest if word.startswith("-")}
    return given <= known


@cache
def _all() -> Any:
    return typer.main.get_command(app)


def commands_in(text: str) -> list[list[str]]:
    """The words behind each ``goclaw`` in backticks, without what stands for something else."""
    found = re.findall(r"`goclaw ([a-z][^`]*)`", re.sub(r"\s+", " ", text))
    return [[word for word in command.split() if not word.isupper()] for command in found]
