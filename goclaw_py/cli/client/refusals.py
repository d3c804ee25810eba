"""What a gateway answers to a request that it does not accept."""

from __future__ import annotations

from goclaw_py.model.errors import GoclawError


class Refused(GoclawError):
    """The gateway did not accept a request, and says why."""


class NotTaken(Refused):
    """What was sent has a wrong shape or is too long; the sentence begins with what it is about."""
