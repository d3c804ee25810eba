"""Options of a command as one dataclass, for commands with many options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar, get_type_hints

import typer

T = TypeVar("T")


def with_options(kind: type[T]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add each field of a dataclass to a command as an option.

    The fields are annotated like parameters of a typer command, and have defaults. The command
    gets the dataclass as its second argument.
    """
    hints = get_type_hints(kind, include_extras=True)
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # it is a dataclass
    defaults = kind()

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        def called(ctx: typer.Context, **given: Any) -> None:
            command(ctx, kind(**{name: given.pop(name) for name in names}), **given)

        first, _, *others = inspect.signature(command, eval_str=True).parameters.values()
        options = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=getattr(defaults, name),
                annotation=hints[name],
            )
            for name in names
        ]
        # typer reads the options from the signature.
        by_kind = sorted([*options, *others], key=lambda parameter: parameter.kind)
        signature = inspect.Signature([first, *by_kind])
        called.__signature__ = signature  # type: ignore[attr-defined]
        called.__name__, called.__doc__ = command.__name__, command.__doc__
        return called

    return decorated
