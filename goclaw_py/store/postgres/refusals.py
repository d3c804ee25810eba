"""Translate errors of a server to one line that says what to do (SPEC DB-4).

The rules of SPEC DB-4:

While the database is unavailable: channels keep unconfirmed updates, work resumes, nothing is lost
or doubled, health says so, with the reason: also that commits wait for a standby that does not
answer. Whatever a lost connection raises, at any statement, counts as that. A connection over a
network whose packets are lost ends within 5 s, and condemns the idle ones and those that have been
silent for as long, so that no caller finds each of them dead by its own time-out. While a
statement is late, the connection for notices asks whether the server answers; when a new one does,
those that are older than the silence are condemned, so that answers go on within 3 s of the
network's return, and what waits for the database tries again at least every 1.5 s. A gateway
without other live nodes continues its runs; one with other nodes ends its runs within 10 s,
because those may have taken them over, and they start again when the database is back.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

OLDEST: Final = 14
"""The oldest supported major version of PostgreSQL."""
POOLED: Final = (
    "the connection uses a pooler in transaction mode, which shares sessions between clients: "
    "connect to PostgreSQL directly, or set the pooler to session mode (pool_mode = session)"
)
PRIMARY: Final = "set database.url to the primary (target_session_attrs=read-write)"
WRITABLE: Final = "turn default_transaction_read_only off for this user and database"
RIGHTS: Final = "SELECT, INSERT, UPDATE, DELETE"

_UNAVAILABLE_CLASSES: Final = ("08", "53", "57")
"""SQLSTATE classes: connection failed, out of resources (disk full), stopped by its operator."""
_UNAVAILABLE_STATES: Final = frozenset({"25P03", "40001", "40P01", "55P03"})
"""Transactions that conflicted with others; they may succeed when retried."""
_NO_STATEMENT: Final = frozenset({"26000", "42P05"})
"""A prepared statement is missing or duplicate: another session answered."""

_CURES: Final = {
    "25006": ("the database is read-only", PRIMARY),
    "28000": (
        "the database refused access",
        "allow it there (LOGIN, pg_hba.conf), or correct user and sslmode",
    ),
    "28P01": ("the database refused access", "correct user and password in database.url"),
    "3D000": (
        "the database refused access",
        "create it with CREATE DATABASE, or correct database.url",
    ),
    "42501": (
        "the database refused access",
        f"GRANT {RIGHTS} ON ALL TABLES IN SCHEMA public TO the user of database.url",
    ),
    "53100": ("the disk of the database is full", "free some space there"),
    "53300": (
        "the database has no free connections",
        "raise max_connections or the limit of the role, or end programs that hold connections",
    ),
    "57014": (
        "the database has cancelled a statement",
        "raise statement_timeout for the user of database.url, or find out why the server is slow",
    ),
    "57P03": ("the database accepts no connections now", "wait, or read in its log what it does"),
}
_PARAMETER: Final = "remove it from database.url"


def too_old(major: int) -> str:
    """Return the error text for a server that is too old."""
    return f"PostgreSQL {OLDEST} or newer is required, this server has {major}"


class RefusalKind(Enum):
    """The kinds of errors."""

    AWAY = "away"
    """A retry may succeed."""
    REFUSED = "refused"
    """A retry fails until the configuration is changed."""
    SHARED = "shared"
    """A pooler shares sessions between clients."""


@dataclass(frozen=True, slots=True)
class ServerRefusal:
    """An error of the server, in one line for operators."""

    kind: RefusalKind
    fact: str
    cure: str = ""


def refusal(state: str, message: str) -> ServerRefusal | None:
    """Translate an error by its SQLSTATE; None if the statement itself is wrong.

    ``message`` is the message of the server, of which the first line is used.
    """
    message = message.partition("\n")[0]
    if state in _NO_STATEMENT:
        return ServerRefusal(RefusalKind.SHARED, POOLED)
    if state in _CURES:
        what, cure = _CURES[state]
        is_away = state.startswith(("25", *_UNAVAILABLE_CLASSES))
        kind = RefusalKind.AWAY if is_away else RefusalKind.REFUSED
        return ServerRefusal(kind, f"{what}: {message}", cure)
    if state.startswith(("28", "3D")):
        return ServerRefusal(RefusalKind.REFUSED, f"the database refused access: {message}")
    if state.startswith(_UNAVAILABLE_CLASSES) or state in _UNAVAILABLE_STATES:
        return ServerRefusal(RefusalKind.AWAY, f"the database is not available: {message}")
    return None


def refusal_to_connect(state: str, message: str) -> ServerRefusal:
    """Translate an error of a connection attempt, before any statement was sent.

    ``message`` is as for ``refusal``.
    """
    first = message.partition("\n")[0]
    if state == "42501":
        name = first.partition('"')[2].partition('"')[0] or "its name"
        cure = f"GRANT CONNECT ON DATABASE {name} TO the user of database.url"
        return ServerRefusal(RefusalKind.REFUSED, f"the database refused access: {first}", cure)
    # PgBouncer has one SQLSTATE for all errors; its messages are never translated.
    if state == "08P01" and "unsupported startup parameter" in first:
        cure = f"{_PARAMETER}, or add it to ignore_startup_parameters of the pooler"
        return ServerRefusal(RefusalKind.REFUSED, f"the database refused access: {first}", cure)
    if state in ("42704", "22023", "55P02"):
        fact = f"the database refused access: {first}"
        return ServerRefusal(RefusalKind.REFUSED, fact, _PARAMETER)
    return refusal(state, message) or ServerRefusal(
        RefusalKind.REFUSED, f"the database refused access: {first}"
    )
