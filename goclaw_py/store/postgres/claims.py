"""How claims of jobs and heartbeats end, alone or within the transactions of others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Generic, Protocol, Self, TypeVar

from goclaw_py.model.errors import Fenced, StoreError
from goclaw_py.model.ids import NodeId
from goclaw_py.model.messages import OutboundMessage
from goclaw_py.store.postgres.part import enqueue_each
from goclaw_py.store.postgres.pool import Connection, Pool, Row
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("claims")


class EndOfClaim(Protocol):
    """How something that was claimed ends."""

    @property
    def id(self) -> str:
        """The id of its row of the log."""

    @property
    def finished_at(self) -> datetime:
        """When it ended."""


EndT = TypeVar("EndT", bound=EndOfClaim)


@dataclass(frozen=True, slots=True)
class ClaimEnding(Generic[EndT]):
    """An end with what is said of it; ``node`` has claimed it, None: no node has."""

    end: EndT
    say: Sequence[OutboundMessage]
    node: NodeId | None


class LockedClaims(ABC, Generic[EndT]):
    """Claims that are about to end, locked until the transaction does."""

    what: ClassVar[str]

    def __init__(self, rows: Mapping[str, Row]) -> None:
        self._rows = rows

    @classmethod
    @abstractmethod
    async def of(cls, connection: Connection, ends: Iterable[EndT]) -> Self:
        """Lock them, after the sessions of their runs."""

    @abstractmethod
    async def store(self, connection: Connection, ends: Mapping[str, EndT]) -> None:
        """End them."""

    def is_open(self, end: EndT) -> bool:
        """Whether it has not ended, and is kept."""
        row = self._rows.get(storable(end.id))
        return row is not None and row["finished_at"] is None

    def refusal(self, end: EndT | None, node: NodeId | None) -> Fenced | None:
        """Why a node cannot end it; None if it can, or if nothing is to be ended any more."""
        if end is None or not self.is_open(end):
            return None
        if self._rows[storable(end.id)]["node"] == node:
            return None
        return not_yours(self.what, end.id)

    async def end(self, connection: Connection, ends: Iterable[EndT]) -> None:
        """End those of them that are open, each once."""
        ending: dict[str, EndT] = {}
        for end in ends:
            if self.is_open(end):
                ending.setdefault(storable(end.id), storable(end))
        if ending:
            await self.store(connection, ending)


async def end_claims(
    pool: Pool,
    locking: type[LockedClaims[EndT]],
    endings: Sequence[ClaimEnding[EndT]],
    said_by: Callable[[ClaimEnding[EndT]], Iterable[OutboundMessage]],
) -> list[StoreError | None]:
    """End claims in one transaction, each with what is said of it; tell which were refused."""
    async with pool.transaction() as connection:
        locked = await locking.of(connection, [one.end for one in endings])
        refused = [locked.refusal(one.end, one.node) for one in endings]
        first: dict[str, ClaimEnding[EndT]] = {}
        for one, error in zip(endings, refused, strict=True):
            if error is None and locked.is_open(one.end):
                first.setdefault(storable(one.end.id), one)
        await locked.end(connection, [one.end for one in first.values()])
        said = [
            (one.end.finished_at, message) for one in first.values() for message in said_by(one)
        ]
        await enqueue_each(connection, said)
    return [*refused]


async def check_alive(connection: Connection, node: NodeId) -> None:
    """Keep a node from being recovered. Raises ``Fenced`` if it was declared dead."""
    if await connection.row(_SQL["lock_node"], node) is None:
        raise Fenced(f"node {node} is not alive")


def not_yours(what: str, claim: str) -> Fenced:
    """Why another node cannot end or change a claim."""
    return Fenced(f"{what} {claim} is not this node's any more")
