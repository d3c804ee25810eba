"""Where a model is and how to reach it. Light: imports no library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from goclaw_py.agents.models.catalog import Provider
from goclaw_py.agents.spec import Thinking

SILENCE_S = 300.0
"""No byte for that long is a failure. Models that think before they answer are silent meanwhile."""

NO_ENTRY = "The model provider does not accept my key. The operator must set a valid one."
"""What people read where a key is wrong."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How one model request is tried again on transient errors (SPEC AGENT-8).

    No wait begins that would end later than ``within_s`` after the first try. Waits the server's
    ``Retry-After``, else ``first_wait_s`` doubled each time, with jitter. ``silence_s`` without a
    byte, before the answer or in its middle, is such an error; in its middle nothing is repeated.
    """

    tries: int = 3
    within_s: float = 60.0
    first_wait_s: float = 1.0
    silence_s: float = SILENCE_S


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What is asked of a model each time. None: what its provider does by itself."""

    temperature: float | None = None
    thinking: Thinking | None = None

    @property
    def thinks(self) -> bool:
        """Whether it is told to think, however little."""
        return self.thinking not in {None, Thinking.OFF}


@dataclass(frozen=True, slots=True)
class ModelConnection:
    """Where the model is. ``key`` may be empty if the provider can do without one.

    ``fallback`` are asked, in this order, where this one cannot answer; theirs are ignored.
    """

    provider: Provider
    model: str
    key: str = field(repr=False)
    base_url: str | None
    headers: Mapping[str, str] = field(repr=False)
    retry: RetryPolicy
    options: ModelOptions = ModelOptions()
    fallback: tuple[ModelConnection, ...] = ()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not appear in any text."""
        own = (self.key, *self.headers.values(), _password(self.base_url or ""))
        return (*own, *(secret for other in self.fallback for secret in other.secrets))


def _password(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:
        # Whoever uses it will say so.
        return ""


def find_key(provider: Provider, given: str | None, environ: Mapping[str, str]) -> str:
    """The key from the settings, else from the provider's variables; empty if there is none."""
    found = (given, *(environ.get(name) for name in provider.key_variables))
    # A line end from a file would make the header invalid, and the error would show the key.
    return next((key.strip() for key in found if key and key.strip()), "")


def find_url(provider: Provider, given: str | None, environ: Mapping[str, str]) -> str | None:
    """The address from the settings, else from the provider's variable; None: its own."""
    return given or environ.get(provider.url_variable, "").strip() or None


def lacks(provider: Provider, key: str, base_url: str | None) -> str | None:
    """The variable to set before anything can be asked; None if nothing is missing."""
    if provider.needs_url and not base_url:
        return provider.url_variable
    is_own_server = base_url is not None and not provider.needs_url
    if provider.needs_key and not key and not is_own_server:
        return provider.key_variable
    return None


def is_sendable(key: str) -> bool:
    """Whether a key can be sent at all. Errors about one that cannot would show parts of it."""
    return key.isascii() and key.isprintable()
