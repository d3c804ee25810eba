"""Checks by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from goclaw_py.testing.conformance.rig import Offer, Rig, Trouble
from goclaw_py.testing.conformance.scene import Scene

Need = Offer | Trouble


@dataclass(frozen=True, slots=True)
class Check:
    """One sentence about a channel that can be false.

    Args:
        name: The sentence.
        clause: Where it stands in the specification, for example ``IO-1``.
        applies: Whether it can be tried with a rig, or with every rig of a class.
        play: Tries it. Raises ``NotKept``.
    """

    name: str
    clause: str
    applies: Callable[[Rig | type[Rig]], bool]
    play: Callable[[Scene], Awaitable[None]]

    def __str__(self) -> str:
        return self.name

    async def __call__(self, rig: Rig) -> None:
        """Try it, once for each rig.

        Raises ``NotKept``, or what the channel raised where it must not.
        """
        scene = Scene(rig)
        with scene.watching():
            await self.play(scene)


CHECKS: dict[str, Check] = {}
"""All checks by name."""

_Play = Callable[[Scene], Awaitable[None]]


def check(
    clause: str, *needs: Need, without: Offer | None = None, limit: bool = False
) -> Callable[[_Play], _Play]:
    """Make a check of a function; its name, with blanks, is the sentence.

    ``needs``: what a rig must offer or be able to cause; ``without``: what it must not offer;
    ``limit``: it needs a largest size of files.
    """

    def applies(rig: Rig | type[Rig]) -> bool:
        has = {*rig.offers, *rig.troubles}
        return (
            has.issuperset(needs)
            and without not in rig.offers
            and (rig.largest_file is not None or not limit)
        )

    def make(play: _Play) -> _Play:
        name = getattr(play, "__name__", "").replace("_", " ")
        add(Check(name, clause, applies, play))
        return play

    return make


def add(new: Check) -> None:
    """Register a check."""
    if new.name in CHECKS:
        raise ValueError(f"there is a check of this name already: {new.name}")
    CHECKS[new.name] = new


def checks_for(rig: Rig | type[Rig]) -> list[Check]:
    """The checks that can be tried with a rig, or with every rig of a class."""
    return [check for check in CHECKS.values() if check.applies(rig)]
