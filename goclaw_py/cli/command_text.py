"""The command line as the audit log shows it: who runs it, and what, without texts and secrets."""

from __future__ import annotations

import os
import shlex
from typing import Any, Final

from goclaw_py.core.actors import AccessRole, Actor, ActorKind

_SHOWN: Final = frozenset(
    (
        *("account", "agent", "approval", "channel", "group", "ids", "job", "node", "number"),
        *("outcome", "path", "row_id", "run", "session", "sign_in", "size", "slug", "tool"),
        *("when", "who"),
    )
)
"""Parameters whose values are shown: ids and names. Others may be texts, codes or secrets."""

_HIDDEN: Final = "…"


def command_actor(ctx: Any) -> Actor:
    """Return who runs a command, with the command line."""
    return Actor(ActorKind.COMMAND_LINE, _user(), AccessRole.ADMIN, via=command_text(ctx))


def command_text(ctx: Any) -> str:
    """Return a command with its arguments; ``ctx`` is the context of typer."""
    words, options = [], []
    for param in ctx.command.params:
        value = ctx.params.get(param.name)
        if value in (None, False, "", (), []) or value == param.default:
            continue
        shown = _value(value) if param.name in _SHOWN else _HIDDEN
        if param.param_type_name == "argument":
            words.append(shown)
        else:
            name = max(param.opts, key=len)
            options.append(name if value is True else f"{name} {shown}")
    return " ".join([ctx.command_path, *words, *options])


def _value(value: object) -> str:
    values = value if isinstance(value, list | tuple) else [value]
    return " ".join(shlex.quote(str(one)) for one in values)


def _user() -> str:
    """Return the user of the operating system; the gateway's socket is open to one only."""
    import pwd  # noqa: PLC0415 - there are systems without it, where goclaw only prints its help

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
