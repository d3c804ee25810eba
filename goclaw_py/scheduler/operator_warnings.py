"""Warnings for operators: the same on pages, in ``goclaw status`` and in the API (SPEC OPS-4)."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from goclaw_py.core.text import count

NAMED: Final = 3
"""The number of people or chats that a warning names."""


@dataclass(frozen=True, slots=True)
class OperatorWarning:
    """Something that needs a person: a sentence that begins with what it is about.

    Args:
        code: Its kind, such as ``gateway.lane_full``; stable over releases.
        subject: The beginning of the sentence, such as ``Lane main``.
        text: The rest of it, without a full stop.
        link: The path of the page that shows it, or cures it.
        command: A command that shows it, or cures it; "" if there is none.
    """

    code: str
    subject: str
    text: str
    link: str = "/why"
    command: str = ""

    def __str__(self) -> str:
        return f"{self.subject} {self.text}"


def shell_command(*words: str) -> str:
    """Return a command of ``goclaw`` to copy; words are quoted where a shell needs it."""
    return shlex.join(("goclaw", *words))


def names_text(names: Sequence[str]) -> str:
    """Return names in words: ``Ann``, ``Ann and Bob``, ``Ann, Bob, Eve and 4 others``."""
    shown = list(names[:NAMED])
    if len(names) > NAMED:
        shown.append(count(len(names) - NAMED, "other"))
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


_REFUSALS: Final = (
    ("blocked by the user", "{} had blocked the bot"),
    ("user is deactivated", "{} had deleted the account"),
    ("kicked", "{} had removed the bot"),
    ("not a member", "the bot was not a member of {}"),
    ("chat not found", "{} could not be found"),
)
"""Parts of what servers answer, and the same for people: how it was then, and may be no longer."""

_FORMS: Final = frozenset(form for _, form in _REFUSALS)


def refusals_text(refusals: Iterable[tuple[str, str]]) -> str:
    """Return why chats could not be reached, grouped: ``Ann and Bob had blocked the bot``.

    Args:
        refusals: Names of chats, "" for none, each with what its server answered.
    """
    groups: dict[str, list[str]] = {}
    for name, error in refusals:
        forms = (form for mark, form in _REFUSALS if name and mark in error.lower())
        known = next(forms, error)
        names = groups.setdefault(known, [])
        if name and name not in names:
            names.append(name)
    return "; ".join(_refusal(form, names) for form, names in groups.items())


def undelivered_text(place: str, error: str) -> str:
    """Return that a message could not be delivered, and why, in words if they are known.

    Args:
        place: The name of the chat, "" if it had none to go to.
        error: What its server answered, on one line without a full stop.
    """
    if place and any(mark in error.lower() for mark, _ in _REFUSALS):
        return f"could not be delivered: {refusals_text([(place, error)])}"
    return f"could not be delivered{f' to {place}' if place else ''} ({error})"


def _refusal(form: str, names: Sequence[str]) -> str:
    if not names:
        return form
    if form not in _FORMS:
        return f"{names_text(names)}: {form}"
    return form.format(names_text(names))
