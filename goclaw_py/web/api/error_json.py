"""Errors in responses: one table of their HTTP statuses, and their JSON in both directions.

Imports no web framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from goclaw_py.core import errors
from goclaw_py.core.errors import (
    AlreadyInvited,
    ApprovalClosed,
    BadUpload,
    BadUsageQuery,
    ChecklistChanged,
    GoclawError,
    HeartbeatError,
    JobChanged,
    JobError,
    NodeSilent,
    NoGateway,
    NotAccepted,
    NotAChat,
    NotFound,
    NotRewindable,
    NotYours,
    SessionBusy,
    SettingChanged,
    SettingError,
    SlugTaken,
    StoreUnavailable,
    TooManyConversations,
    TooManyEvents,
    TooManyJobs,
    UnknownAgent,
    UnknownJob,
    UploadTooLarge,
)
from goclaw_py.records.tokens import TokenExists
from goclaw_py.web.api.wire import ApiError, Unreadable, dump, read
from goclaw_py.web.roles import RoleTooLow

DISPATCH_FAILED: Final = "DISPATCH_FAILED"


class Refused(GoclawError):
    """The gateway rejected a request; the message is its reason."""


_STATUS_OF: Final[tuple[tuple[type[GoclawError], int], ...]] = (
    (NotFound, 404),
    (NotAccepted, 422),
    (SettingError, 422),
    (SettingChanged, 409),
    (BadUsageQuery, 422),
    (NoGateway, 409),
    (SessionBusy, 409),
    (NotAChat, 409),
    (ApprovalClosed, 409),
    (NotRewindable, 409),
    (AlreadyInvited, 409),
    (TooManyConversations, 409),
    (UploadTooLarge, 413),
    (BadUpload, 422),
    (NodeSilent, 504),
    (StoreUnavailable, 503),
    (UnknownJob, 404),
    (NotYours, 403),
    (RoleTooLow, 403),
    (TokenExists, 409),
    (JobChanged, 409),
    (SlugTaken, 409),
    (TooManyJobs, 409),
    (JobError, 422),
    (UnknownAgent, 404),
    (TooManyEvents, 409),
    (ChecklistChanged, 409),
    (HeartbeatError, 422),
)
"""The HTTP status of each error; the first match counts."""

_CODES: Final[Mapping[str, type[GoclawError]]] = {
    "SESSION_BUSY": SessionBusy,
    "NOT_A_CHAT": NotAChat,
    "APPROVAL_CLOSED": ApprovalClosed,
    "NOT_REWINDABLE": NotRewindable,
    "SETTING_CHANGED": SettingChanged,
    "ALREADY_INVITED": AlreadyInvited,
    "TOKEN_EXISTS": TokenExists,
    DISPATCH_FAILED: StoreUnavailable,
}
_KINDS: Final[Mapping[str, type[GoclawError]]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, JobError | HeartbeatError)
}
_OF_STATUS: Final[Mapping[int, type[GoclawError]]] = {
    400: NotAccepted,
    404: NotFound,
    409: NoGateway,
    413: NotAccepted,
    422: NotAccepted,
    503: StoreUnavailable,
    504: NodeSilent,
}
"""The error of a response that has only a sentence."""

Fact = str | bool | int | float


@dataclass(frozen=True, slots=True)
class CodedError:
    """An error with a code for programs."""

    error: str
    code: str


@dataclass(frozen=True, slots=True)
class DetailedError:
    """An error about a job or a heartbeat: its text, the name of its class, and its values."""

    error: str
    kind: str
    facts: dict[str, Fact] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _AnyError:
    """The fields of all three."""

    error: str
    code: str = ""
    kind: str = ""
    facts: dict[str, Fact] = field(default_factory=dict)


def status_of(error: GoclawError, otherwise: int = 500) -> int:
    """Return the HTTP status of an error."""
    return next((status for kind, status in _STATUS_OF if isinstance(error, kind)), otherwise)


def error_json(error: GoclawError) -> bytes:
    """Return the body of the response."""
    text = str(error)
    if isinstance(error, JobError | HeartbeatError):
        # A class that is not known here is written as its nearest known base.
        kind = next(one.__name__ for one in type(error).__mro__ if one in _KINDS.values())
        facts = {name: value for name, value in vars(error).items() if not name.startswith("_")}
        return dump(DetailedError, DetailedError(text, kind, facts))
    for code, known in _CODES.items():
        if isinstance(error, known) and code != DISPATCH_FAILED:
            return dump(CodedError, CodedError(text, code))
    return dump(ApiError, ApiError(text))


def error_of(status: int, body: bytes) -> GoclawError:
    """Return the error of a response."""
    try:
        found = read(_AnyError, body)
    except Unreadable:
        found = _AnyError(f"the gateway answered {status}")
    if known := _KINDS.get(found.kind):
        error = known.__new__(known, found.error)
        vars(error).update(
            {name: value for name, value in found.facts.items() if not name.startswith("_")}
        )
        return error
    return _CODES.get(found.code, _OF_STATUS.get(status, Refused))(found.error)
