"""What a person reads when a model does not answer (SPEC AGENT-8). Imports heavy libraries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UsageLimitExceeded,
)

from goclaw_py.agents.models.scrub import scrub
from goclaw_py.core.errors import AgentError


@dataclass(frozen=True, slots=True)
class _Told:
    kind: type[AgentRunError]
    friendly: str
    retryable: bool = False


_BUSY = "The model is overloaded. Please try again in a minute."
_TROUBLE = "The model provider has a problem. Please try again in a minute."
_SILENT = "The model did not answer in time. Please try again."
_BROKEN = "The connection to the model broke. Please try again in a minute."
_NO_ENTRY = "The model provider does not accept my key. The operator must set a valid one."
_TOO_LONG = "This conversation is too long for the model by now. Say /new to begin a fresh one."
_CUT = "The model's answer was cut off. Please try again."
_REJECTED = "The model provider did not accept the request."

_TOLD = (
    _Told(ModelQuotaExceededError, "The account at the model provider has used up its quota."),
    _Told(ModelRateLimitError, _BUSY, retryable=True),
    _Told(ModelUnavailableError, _BUSY, retryable=True),
    _Told(ModelServerError, _TROUBLE, retryable=True),
    _Told(ModelTimeoutError, _SILENT, retryable=True),
    _Told(ModelRequestTimeout, _SILENT, retryable=True),
    _Told(ModelConnectionError, _BROKEN, retryable=True),
    _Told(ModelAuthenticationError, _NO_ENTRY),
    _Told(ModelNotFoundError, "The configured model does not exist at its provider."),
    _Told(ModelContextWindowExceededError, _TOO_LONG),
    _Told(ModelRequestRejectedError, _REJECTED),
    _Told(ModelHTTPError, _REJECTED),
    _Told(ModelAPIError, _CUT, retryable=True),
    _Told(ContentFilterError, "The model provider's content filter stopped the answer."),
    _Told(UsageLimitExceeded, "This took more model requests than one run may make, so I stopped."),
    _Told(AgentRunError, "The model gave an answer that I cannot use."),
)
"""The first that fits is told, so subclasses stand before their base."""


def explain(error: AgentRunError, secrets: Iterable[str]) -> AgentError:
    """Translate a failure. The cause keeps the provider's words, cut and without secrets."""
    told = next(entry for entry in _TOLD if isinstance(error, entry.kind))
    cause = scrub(f"{type(error).__name__}: {error}", secrets)
    return AgentError(told.friendly, cause, retryable=told.retryable)


def cut_off() -> AgentError:
    """An answer whose stream ended without a finish reason."""
    return AgentError(_CUT, "the model's stream ended without a finish reason", retryable=True)
