"""Invitations to the web chat, as operators see them (SPEC CHAN-13)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class WebGuest:
    """A person who is invited to the web chat (SPEC CHAN-13).

    Args:
        link_until: When the unused link expires, which may be past; None if there is none.
        browsers: The number of browsers that are signed in.
    """

    name: str
    invited_at: datetime
    link_until: datetime | None
    browsers: int


@dataclass(frozen=True, slots=True)
class WebInvitation:
    """A personal link to the web chat. ``path`` contains its secret, which is not stored."""

    name: str
    path: str = field(repr=False)
    expires_at: datetime
