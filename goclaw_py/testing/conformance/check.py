"""Registry of checks, by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from goclaw_py.testing.conformance.rig import Offer, Rig, Trouble
from goclaw_py.testing.conformance.scene import Scene

Need = Offer | Trouble


@dataclass(frozen=True, slots=True)
class Check:
    """One testable statement about a channel.

    Args:
        name: The statement.
        clause: Its clause in the specification, for example ``IO-1``.
        applies: Returns whether the check applies to a rig, or to every rig of a class.
        play: Runs the check. Raises ``ContractViolation``.
    """

    name: str
    clause: str
    applies: Callable[[Rig | type[Rig]], bool]
    play: Callable[[Scene], Awaitable[None]]

    def __str__(self) -> str:
        return self.name

    async def __call__(self, rig: Rig) -> None:
        """Run the check; use a new rig each time.

        Raise ``ContractViolation``, or an error that the channel was not allowed to raise.
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
    """Return a decorator that registers a check named after its function, with blanks.

    ``needs``: offers and troubles that a rig must have; ``without``: an offer that it must not
    have; ``limit``: whether the rig must have ``largest_file``.
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
    """Register a check. Raise ``ValueError`` if its name is taken."""
    if new.name in CHECKS:
        raise ValueError(f"there is a check of this name already: {new.name}")
    CHECKS[new.name] = new


def checks_for(rig: Rig | type[Rig]) -> list[Check]:
    """Return the checks that apply to a rig, or to every rig of a class."""
    return [check for check in CHECKS.values() if check.applies(rig)]
