"""What a server means by refusing us, in one line that says what to do (SPEC DB-4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

OLDEST: Final = 14
"""Of PostgreSQL, whose major release it is."""
POOLED: Final = (
    "a pooler in transaction mode is between us and the database, and gives our session to others: "
    "connect to PostgreSQL itself, or let the pooler work in session mode (pool_mode = session)"
)
PRIMARY: Final = "let database.url lead to the primary (target_session_attrs=read-write)"
WRITABLE: Final = "switch default_transaction_read_only off for this user and database"
RIGHTS: Final = "SELECT, INSERT, UPDATE, DELETE"

_UNAVAILABLE_CLASSES: Final = ("08", "53", "57")
"""SQLSTATE classes: connection failed, out of resources (disk full), stopped by its operator."""
_UNAVAILABLE_STATES: Final = frozenset({"25P03", "40001", "40P01", "55P03"})
"""Transactions that lost against another one: all may work when repeated."""
_NO_STATEMENT: Final = frozenset({"26000", "42P05"})
"""A prepared statement is unknown, or known already: another session answers than the one asked."""

_CURES: Final = {
    "25006": ("the database takes no changes", PRIMARY),
    "28000": (
        "the database refused us",
        "allow it there (LOGIN, pg_hba.conf), or correct user and sslmode",
    ),
    "28P01": ("the database refused us", "correct user and password in database.url"),
    "3D000": ("the database refused us", "make it with CREATE DATABASE, or correct database.url"),
    "42501": (
        "the database refused us",
        f"GRANT {RIGHTS} ON ALL TABLES IN SCHEMA public TO the user of database.url",
    ),
    "53100": ("the disk of the database is full", "make room there"),
    "53300": (
        "the database has no connection left for us",
        "raise max_connections or the limit of the role, or end programs that hold connections",
    ),
}
_PARAMETER: Final = "take it out of database.url"


def too_old(major: int) -> str:
    """What is said of a server that knows too little."""
    return f"PostgreSQL {OLDEST} or newer is needed, this is {major}"


class RefusalKind(Enum):
    """What a refusal means for whoever asked."""

    AWAY = "away"
    """It may work when repeated."""
    REFUSED = "refused"
    """It works only after somebody has changed something."""
    SHARED = "shared"
    """A pooler is in between."""


@dataclass(frozen=True, slots=True)
class ServerRefusal:
    """A refusal, in a line for operators."""

    kind: RefusalKind
    words: str


def refusal(state: str, said: str) -> ServerRefusal | None:
    """What an answer means, by its SQLSTATE; None if the statement itself is wrong.

    ``said``: the server's own words, of which the first line counts.
    """
    said = said.partition("\n")[0]
    if state in _NO_STATEMENT:
        return ServerRefusal(RefusalKind.SHARED, POOLED)
    if state in _CURES:
        what, cure = _CURES[state]
        kind = RefusalKind.AWAY if state.startswith(("25", "53")) else RefusalKind.REFUSED
        return ServerRefusal(kind, f"{what}: {said}; {cure}")
    if state.startswith(("28", "3D")):
        return ServerRefusal(RefusalKind.REFUSED, f"the database refused us: {said}")
    if state.startswith(_UNAVAILABLE_CLASSES) or state in _UNAVAILABLE_STATES:
        return ServerRefusal(RefusalKind.AWAY, f"the database cannot work now: {said}")
    return None


def refusal_to_connect(state: str, said: str) -> ServerRefusal:
    """What an answer to a connection means. We have stated nothing yet, so nothing of it is wrong.

    ``said``: as for ``refusal``.
    """
    first = said.partition("\n")[0]
    if state == "42501":
        name = first.partition('"')[2].partition('"')[0] or "its name"
        cure = f"GRANT CONNECT ON DATABASE {name} TO the user of database.url"
        return ServerRefusal(RefusalKind.REFUSED, f"the database refused us: {first}; {cure}")
    # PgBouncer has one SQLSTATE for all that it refuses; its words are never translated.
    if state == "08P01" and "unsupported startup parameter" in first:
        cure = f"{_PARAMETER}, or add it to ignore_startup_parameters of the pooler"
        return ServerRefusal(RefusalKind.REFUSED, f"the database refused us: {first}; {cure}")
    if state in ("42704", "22023", "55P02"):
        return ServerRefusal(RefusalKind.REFUSED, f"the database refused us: {first}; {_PARAMETER}")
    return refusal(state, said) or ServerRefusal(
        RefusalKind.REFUSED, f"the database refused us: {first}"
    )
