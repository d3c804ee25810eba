"""Errors with which a gateway rejects a request."""

from __future__ import annotations

from goclaw_py.model.errors import GoclawError


class Refused(GoclawError):
    """The gateway rejected a request; the message is its reason."""


class NotAccepted(Refused):
    """A field of a request is malformed or too long; the message begins with its name."""
