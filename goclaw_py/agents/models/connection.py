"""How to reach a model. Without heavy imports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from goclaw_py.agents.models.catalog import Provider, read_model
from goclaw_py.agents.spec import Thinking

SILENCE_S = 300.0
"""Seconds without a byte after which a request fails. Models are silent while they think."""

NO_ENTRY = "The model provider does not accept my key. My operator must set a valid one."
"""The text for people if a key is wrong."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How a model request is retried after transient errors (SPEC AGENT-8).

    No wait ends later than ``within_s`` after the first try. Waits the server's ``Retry-After``, or
    ``first_wait_s`` doubled each time, with jitter. ``silence_s`` without a byte is such an error;
    within a response nothing is retried.
    """

    tries: int = 3
    within_s: float = 60.0
    first_wait_s: float = 1.0
    silence_s: float = SILENCE_S


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options of each request. None: the provider's default."""

    temperature: float | None = None
    thinking: Thinking | None = None

    @property
    def thinks(self) -> bool:
        """Return whether it is asked to think."""
        return self.thinking not in {None, Thinking.OFF}


@dataclass(frozen=True, slots=True)
class ModelConnection:
    """The address and key of a model. ``key`` may be empty if the provider allows it.

    ``fallback`` are asked in order if this one fails; their own fallbacks are ignored.
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
        """Return the secrets that no text may contain."""
        own = (self.key, *self.headers.values(), _password(self.base_url or ""))
        return (*own, *(secret for other in self.fallback for secret in other.secrets))


def _password(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:
        # Its first use reports an invalid value.
        return ""


def find_key(provider: Provider, given: str | None, environ: Mapping[str, str]) -> str:
    """Return the key from the settings or the provider's variables; "" if there is none."""
    found = (given, *(environ.get(name) for name in provider.key_variables))
    # A line end from a file would make the header invalid, and the error would show the key.
    return next((key.strip() for key in found if key and key.strip()), "")


def find_url(provider: Provider, given: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the address from the settings or the provider's variable; None: the default."""
    return given or environ.get(provider.url_variable, "").strip() or None


def lacks(provider: Provider, key: str, base_url: str | None) -> str | None:
    """Return the variable that must be set first; None if nothing is missing."""
    if provider.needs_url and not base_url:
        return provider.url_variable
    is_own_server = base_url is not None and not provider.needs_url
    if provider.needs_key and not key and not is_own_server:
        return provider.key_variable
    return None


def is_sendable(key: str) -> bool:
    """Return whether a key can be sent. Errors about others would contain parts of it."""
    return key.isascii() and key.isprintable()


def unusable(
    model: str, given: tuple[str | None, str | None], environ: Mapping[str, str], place: str = ""
) -> tuple[str, str] | None:
    """Return why a model cannot be asked at all, and what to do; None if nothing is known.

    ``given`` are its API key and base URL in the settings at ``place``.
    """
    read = read_model(model)
    if read is None:
        return None
    provider, (key, base_url) = read[0], given
    if not provider.is_installed:
        return "its library is not installed", provider.install
    found = find_key(provider, key, environ)
    missing = lacks(provider, found, find_url(provider, base_url, environ))
    if missing is not None:
        is_key = missing in provider.key_variables
        what, setting = ("API key", "api_key_file") if is_key else ("base URL", "base_url")
        cure = f"set {missing}, or {place}.{setting}" if place else f"set {missing}"
        return f"no {what} is set", cure
    return None if is_sendable(found) else ("the API key is malformed", "fix the API key")
