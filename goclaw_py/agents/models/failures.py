"""Texts for people when a model does not answer (SPEC AGENT-8). Heavy imports.

The rules of SPEC AGENT-8:

One model request is retried on transient errors (429, 5xx, connection; `tenacity`, `Retry-After`,
3 tries, 5 in runs of jobs and heartbeats, ≤ 60 s); authentication and invalid requests are not. If
a run has failed with such an error, its message is kept (one sentence once) and tried again, 5 s
to 60 s apart, for `outage_hold` (30 min), then failed; later messages of its session wait behind
it. Some providers always answer such an error to one message: if a run of another session that
began after its first failure has succeeded, its next failure is its end, with a retry button.
Provider down: runs of two sessions have failed and none has succeeded since; runs of jobs,
heartbeats and subagents with the agent's own model count. Meanwhile one message at a time tries,
each conversation in turn, those that have not failed yet first and 5 s apart; the others wait
outside of the queue, without a lane, in their order and as many as the queue's capacity allows,
and `/stop` takes the oldest one back and quotes it. A run that has used a tool with side effects
is tried again only if it can be continued (AGENT-10). The user reads one friendly sentence, the
log the cause; no secret in either. An answer that ends because the model reached its limit of
length, or because the provider's content filter stopped it, ends with a note that says so, and is
no silence of a heartbeat. Words for the end that only nearly compatible servers use (`eos`,
`end_turn`, `max_tokens`, in any case) are read; with any other word, as without one, the answer is
incomplete. An error that a server sends with status 200, as a body or as the first event of its
stream, is an error of the status that it names, else 502. The words of a refusal are the answer.
Arguments of tool calls that are JSON instead of text are read. A paused answer (`pause_turn`) goes
on. Whatever `Retry-After` says that is no time to come is ignored. A response of any other shape
than its protocol's is a failure of the model, which is not tried again; it is never part of the
history, and the next message is answered.
"""

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
class _Explanation:
    kind: type[AgentRunError]
    friendly: str
    retryable: bool = False


_BUSY = "The model is overloaded. Please try again in a minute."
_TROUBLE = "The model provider has a problem. Please try again in a minute."
_SILENT = "The model did not answer in time. Please try again."
_BROKEN = "The connection to the model broke. Please try again in a minute."
_TOO_LONG = "This conversation is too long for the model by now. Say /new, and I begin afresh."
_CUT = "The model's answer was cut off. Please try again."
_REJECTED = (
    "The model provider did not accept the request. Please say it in other words, or send /new, "
    "and I begin afresh."
)

_TOLD = (
    _Explanation(
        ModelQuotaExceededError,
        "My account at the model provider has used up its quota. My operator can raise it.",
    ),
    _Explanation(ModelRateLimitError, _BUSY, retryable=True),
    _Explanation(ModelUnavailableError, _BUSY, retryable=True),
    _Explanation(ModelServerError, _TROUBLE, retryable=True),
    _Explanation(ModelTimeoutError, _SILENT, retryable=True),
    _Explanation(ModelRequestTimeout, _SILENT, retryable=True),
    _Explanation(ModelConnectionError, _BROKEN, retryable=True),
    _Explanation(ModelAuthenticationError, NO_ENTRY),
    _Explanation(
        ModelNotFoundError,
        "My model does not exist at its provider. My operator must choose another one.",
    ),
    _Explanation(ModelContextWindowExceededError, _TOO_LONG),
    _Explanation(ModelRequestRejectedError, _REJECTED),
    _Explanation(ModelHTTPError, _REJECTED),
    _Explanation(ModelAPIError, _CUT, retryable=True),
    _Explanation(
        OutputTokenLimitExceeded,
        "The model reached its limit of length before it had answered. Please ask for less.",
    ),
    _Explanation(
        ContentFilterError,
        "The model provider's content filter stopped the answer. Please say it in other words.",
    ),
    _Explanation(
        UsageLimitExceeded, "This took more model requests than one run may make, so I stopped."
    ),
)
"""The first match counts, so subclasses precede their base."""

_STRANGE = _Explanation(
    AgentRunError, "The model gave an answer that I cannot use. Please try again."
)

_PASSES = _Explanation(ModelHTTPError, _TROUBLE, retryable=True)
_BY_STATUS = {
    HTTPStatus.REQUEST_TIMEOUT: _PASSES,
    HTTPStatus.CONFLICT: _PASSES,
    HTTPStatus.TOO_EARLY: _PASSES,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: _Explanation(ModelHTTPError, _TOO_LONG),
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
    told = [_explanation(each) for each in errors]
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


def _explanation(error: Exception) -> _Explanation:
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


def unfinished(word: str = "") -> AgentError:
    """Return the error for a response without a finish reason, or with an unknown ``word``."""
    cause = f"with the unknown finish reason {word[:60]!r}" if word else "without a finish reason"
    return AgentError(_CUT, f"the model's stream ended {cause}", retryable=True)


def empty_response() -> AgentError:
    """Return the error for an empty response."""
    return AgentError("The model gave an empty answer. Please try again.", "an empty answer")
