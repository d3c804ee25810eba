"""Where a model is and how to reach it. Light: imports no library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Provider(StrEnum):
    """Whose protocol a model speaks; the prefix of the ``model`` setting."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"

    @property
    def key_variable(self) -> str:
        """The environment variable that holds the key."""
        return f"{self.name}_API_KEY"

    @property
    def url_variable(self) -> str:
        """The environment variable that holds the address of another server."""
        return f"{self.name}_BASE_URL"


@dataclass(frozen=True, slots=True)
class Retry:
    """How one model request is tried again on transient errors (SPEC AGENT-8).

    No wait begins that would end later than ``within_s`` after the first try. Waits the server's
    ``Retry-After``, else ``first_wait_s`` doubled each time, with jitter.
    """

    tries: int = 3
    within_s: float = 60.0
    first_wait_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the model is. ``key`` may be empty if there is a ``base_url``."""

    provider: Provider
    model: str
    key: str = field(repr=False)
    base_url: str | None
    headers: Mapping[str, str] = field(repr=False)
    retry: Retry

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not appear in any text."""
        return (self.key, *self.headers.values())
