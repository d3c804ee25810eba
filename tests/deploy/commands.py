"""Whether what a text tells people to type is a command of ours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

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
    return given <= known | {"--help"}


def mistake_of(words: Sequence[str]) -> str:
    """What the command line has to say against ``goclaw`` with these words; "" if nothing.

    Names, options, the number of arguments and their types are looked at, as they are before a
    command begins; nothing is carried out.
    """
    command, name, rest = _all(), "goclaw", list(words)
    while isinstance(command, TyperGroup) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if name not in command.commands:
            return f"no command {name}"
        command = command.commands[name]
    if _CARRIED_OUT_AT_ONCE.intersection(rest):
        return "" if is_command(words) else "no such option"
    # What goclaw does itself with this option, which others cannot do without a value.
    rest = ["--watch=1" if word == "--watch" else word for word in rest]
    try:
        command.make_context(name, rest)
    except TyperException as error:
        return str(getattr(error, "format_message", error.__str__)())
    return ""


_CARRIED_OUT_AT_ONCE = frozenset({"--help", "--install-completion", "--show-completion"})


@cache
def _all() -> Any:
    return typer.main.get_command(app)


def commands_in(text: str) -> list[list[str]]:
    """The words behind each ``goclaw`` in backticks, without what stands for something else.

    ``a|b`` are two commands, with a backslash in tables; what is in brackets may be there.
    """
    found = re.findall(r"`goclaw ([a-z][^`]*)`", re.sub(r"\s+", " ", text))
    return [
        list(words)
        for command in found
        for words in product(
            *(
                word.strip("[]").replace("\\|", "|").split("|")
                for word in command.split()
                if not word.strip("[]").isupper()
            )
        )
    ]
