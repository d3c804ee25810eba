"""The command line of benchmarks that have sizes."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Protocol, TypeVar


class _Sizes(Protocol):
    """A frozen dataclass."""

    @property
    def rounds(self) -> int: ...


S = TypeVar("S", bound=_Sizes)


def asked(
    module: str,
    about: str | None,
    full: S,
    quick: S,
    parts: Collection[str] = (),
    counts: Mapping[str, str] | None = None,
) -> tuple[S, Collection[str]]:
    """Read the command line: how much is measured, and which ``parts`` (all, if none is named).

    ``counts`` are further fields of the sizes that may be given, with their help.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if parts:
        parser.add_argument("parts", nargs="*", choices=[*parts, []], help="all of them by default")
    often = f"how often each is measured ({full.rounds}, quick {quick.rounds})"
    parser.add_argument("--rounds", type=int, help=often)
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it works")
    counts = counts or {}
    for name, about_it in counts.items():
        parser.add_argument(f"--{name}", type=int, help=about_it)
    given = parser.parse_args()
    sizes = quick if given.quick else full
    if given.rounds is not None:
        if given.rounds < 1:
            parser.error("--rounds is at least 1")
        sizes = replace(sizes, rounds=given.rounds)  # type: ignore[type-var]  # see _Sizes
    for name in counts:
        if (count := getattr(given, name)) is not None:
            if count < 0:
                parser.error(f"--{name} is at least 0")
            sizes = replace(sizes, **{name: count})  # type: ignore[type-var]  # see _Sizes
    return sizes, getattr(given, "parts", None) or parts
