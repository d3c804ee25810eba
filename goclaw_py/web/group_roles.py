"""The role of a person, by the groups that a proxy or an OpenID provider names (SPEC SEC-10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from goclaw_py.core.actors import AccessRole, Actor, ActorKind

MOST_NAME: Final = 200
"""The longest name of a person, in characters."""


@dataclass(frozen=True, slots=True)
class GroupRoles:
    """Which groups have which role.

    Args:
        default: The role of people in none of these groups; None: they are refused.
        viewers_read_text: Whether viewers see the text of messages.
    """

    groups: Mapping[AccessRole, frozenset[str]] = field(default_factory=dict)
    default: AccessRole | None = None
    viewers_read_text: bool = False

    def person(self, name: str, groups: Iterable[str], via: str) -> Actor | None:
        """Return the person with the highest role of their groups; None: they have no role."""
        given = frozenset(groups)
        for role in reversed(AccessRole):
            if role is self.default or given & self.groups.get(role, frozenset()):
                reads = self.viewers_read_text or role is not AccessRole.VIEWER
                return Actor(ActorKind.PERSON, name, role, reads, via)
        return None


def is_name(text: str) -> bool:
    """Return whether a text can be shown, and told from others, as the name of a person."""
    return 0 < len(text) <= MOST_NAME and text.isprintable() and text == text.strip()
