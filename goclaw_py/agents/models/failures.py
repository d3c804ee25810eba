"""Texts for people when a model does not answer (SPEC AGENT-8). Heavy imports."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    FallbackExceptionGroup,
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
    OutputTokenLimitExceeded,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
)

from goclaw_py.agents.models.connection import NO_ENTRY
from goclaw_py.agents.models.responses.limits import ResponseTooLong, too_long
from goclaw_py.agents.models.scrub import scrub
from goclaw_py.agents.models.transport import proxy_words
from goclaw_py.core.errors import AgentError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Told:
    kind: type[AgentRunError]
    friendly: str
    retryable: bool = False


_BUSY = "The model is overloaded. Please try again in a minute."
_TROUBLE = "The model provider has a problem. Please try again in a minute."
_SILENT = "The model did not answer in time. Please try again."
_BROKEN = "The connection to the model broke. Please try again in a minute."
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
    _Told(ModelAuthenticationError, NO_ENTRY),
    _Told(ModelNotFoundError, "The configured model does not exist at its provider."),
    _Told(ModelContextWindowExceededError, _TOO_LONG),
    _Told(ModelRequestRejectedError, _REJECTED),
    _Told(ModelHTTPError, _REJECTED),
    _Told(ModelAPIError, _CUT, retryable=True),
    _Told(
        OutputTokenLimitExceeded, "The model reached its limit of length before it had answered."
    ),
    _Told(ContentFilterError, "The model provider's content filter stopped the answer."),
    _Told(UsageLimitExceeded, "This took more model requests than one run may make, so I stopped."),
)
"""The first match counts, so subclasses precede their base."""

_STRANGE = _Told(AgentRunError, "The model gave an answer that I cannot use.")

_PASSES = _Told(ModelHTTPError, _TROUBLE, retryable=True)
_BY_STATUS = {
    HTTPStatus.REQUEST_TIMEOUT: _PASSES,
    HTTPStatus.CONFLICT: _PASSES,
    HTTPStatus.TOO_EARLY: _PASSES,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: _Told(ModelHTTPError, _TOO_LONG),
}
"""Statuses without a class in pydantic-ai."""


FAILURES = (AgentRunError, FallbackExceptionGroup)
"""The errors that ``explain`` translates."""

UNREADABLE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What the libraries raise where a response has not the shape that they expect."""


def explain(
    error: AgentRunError | FallbackExceptionGroup, secrets: Iterable[str], *, is_retried: bool
) -> AgentError:
    """Translate a failure. The cause has the provider's words, truncated and without secrets.

    ``is_retried``: no response has begun, so the request was repeated.

    If several models failed, a temporary failure is preferred to one that needs action, and the
    cause has them all.
    """
    errors = _flat(error)
    if (limit := next(filter(None, map(too_long, errors)), None)) is not None:
        return ResponseTooLong(str(limit))  # without the library's errors in its context
    told = [_told(each) for each in errors]
    first = next((entry for entry in told if entry.retryable), told[0])
    hidden = tuple(secrets)
    causes = [scrub(_words(each, alone=len(errors) == 1), hidden) for each in errors]
    return AgentError(
        first.friendly, "; ".join(causes), retryable=first.retryable, is_retried=is_retried
    )


def _flat(error: Exception) -> list[Exception]:
    if isinstance(error, ExceptionGroup):
        return [leaf for each in error.exceptions for leaf in _flat(each)]
    return [error]


def _told(error: Exception) -> _Told:
    if isinstance(error, ModelHTTPError) and error.status_code in _BY_STATUS:
        return _BY_STATUS[HTTPStatus(error.status_code)]
    return next((entry for entry in _TOLD if isinstance(error, entry.kind)), _STRANGE)


def _words(error: Exception, *, alone: bool) -> str:
    model = "" if alone else f"{getattr(error, 'model_name', 'a model')}: "
    via = proxy_words(error)
    return f"{model}{type(error).__name__}: {via}{': ' if via else ''}{error}"


def unreadable(error: Exception) -> UnexpectedModelBehavior:
    """Return the failure of a response that a library cannot read, and log where it gave up."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    at = f"{Path(frame.filename).name}:{frame.lineno}"
    _log.warning("model_response_unreadable", extra={"error": type(error).__name__, "at": at})
    return UnexpectedModelBehavior(f"the response cannot be read: {type(error).__name__}: {error}")


def cut_off(word: str = "") -> AgentError:
    """Return the error for a response without a finish reason, or with an unknown ``word``."""
    cause = f"with the unknown finish reason {word[:60]!r}" if word else "without a finish reason"
    return AgentError(_CUT, f"the model's stream ended {cause}", retryable=True)


def nothing_said() -> AgentError:
    """Return the error for an empty response."""
    return AgentError("The model gave an empty answer. Please try again.", "an empty answer")
