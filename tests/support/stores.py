"""The implementations of the store, and short ways to say what tests put into them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Protocol

import pytest

from goclaw_py import MemoryStore as JobMemoryStore
from goclaw_py.core.chat_commands import access_buttons
from goclaw_py.core.ids import MAIN_LANE, AgentName, NodeId, RunId, SessionKey
from goclaw_py.core.messages import (
    HistoryEntry,
    InboundMessage,
    OutboundMessage,
    PeerKind,
    Role,
    Sender,
    Target,
)
from goclaw_py.core.outcomes import Outcome, Reason, Trigger
from goclaw_py.records import (
    DeadLetter,
    InboxKind,
    InboxRow,
    NewInbox,
    NewPairing,
    NewRun,
    Node,
    Notice,
    OutboxQuery,
    OutboxRow,
    PairingRequest,
    RunEnd,
    Session,
    Store,
)
from goclaw_py.records.people import about_request
from goclaw_py.schedule.jobs.embedded.job_scheduler import JobStorage
from tests.support.memory_store import MemoryDatabase, MemoryStore

T0 = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
LEASE_S = 15.0

A = NodeId("node-a")
B = NodeId("node-b")
AGENT = AgentName("default")
ANN = Target("telegram", "default", "100")
BOB = Target("telegram", "default", "200")
PLACES = [("telegram", "default")]
APOLOGY = "Sorry, I could not answer that."
PATIENCE_S = 10.0


def at(seconds: float) -> datetime:
    """So many seconds after the beginning of the test's time."""
    return T0 + timedelta(seconds=seconds)


def an_id(number: int) -> str:
    """An id as programs make them."""
    return f"00000000-0000-7000-8000-{number:012}"


def key_of(target: Target) -> SessionKey:
    return SessionKey(f"agent:default:telegram:direct:{target.chat}")


def message(
    number: int | str, target: Target = ANN, *, text: str = "hello", sender: str = "7"
) -> InboundMessage:
    return InboundMessage(
        external_id=f"{target.chat}:{number}",
        target=target,
        peer=PeerKind.DIRECT,
        sender=Sender(sender, "Ann", "ann"),
        text=text,
        sent_at=T0,
        message_id=str(number),
    )


def inbox(
    number: int | str,
    target: Target = ANN,
    *,
    text: str = "hello",
    kind: InboxKind = InboxKind.MESSAGE,
    outcome: Outcome | None = None,
    sender: str = "7",
) -> NewInbox:
    return NewInbox(
        message(number, target, text=text, sender=sender),
        key_of(target),
        AGENT,
        kind,
        outcome,
        None if outcome is None else Reason.STOPPED,
    )


def say(text: str, target: Target = ANN) -> OutboundMessage:
    return OutboundMessage(target, text)


def new_run(name: str, *rows: InboxRow, target: Target = ANN, started_at: datetime = T0) -> NewRun:
    return NewRun(
        id=RunId(name),
        session=key_of(target),
        agent=AGENT,
        trigger=Trigger.CHAT,
        lane=MAIN_LANE,
        inbox=tuple(row.id for row in rows),
        target=target,
        started_at=started_at,
    )


def end(name: str, outcome: Outcome = Outcome.COMPLETED, *texts: str) -> RunEnd:
    return RunEnd(RunId(name), outcome, at(9), say=tuple(say(text) for text in texts))


def entry(text: str, role: Role = Role.USER) -> HistoryEntry:
    return HistoryEntry(role, text)


def pairing(
    sender: str,
    code: str,
    *rows: NewInbox,
    now: datetime = T0,
    minutes: float = 60,
    owner: Target | None = None,
) -> NewPairing:
    """Somebody asks to talk; with ``owner`` that one is asked."""
    id_ = f"{code}-{sender}"
    say = [OutboundMessage(Target("telegram", "default", sender), f"your code: {code}")]
    if owner is not None:
        buttons = access_buttons(PeerKind.DIRECT, id_)
        say.append(OutboundMessage(owner, "?", buttons=buttons, alert=about_request(id_)))
    return NewPairing(
        PairingRequest(
            channel="telegram",
            account="default",
            sender=Sender(sender, f"name {sender}", None),
            code_hash=code,
            created_at=now,
            expires_at=now + timedelta(minutes=minutes),
            id=id_,
            chat=sender,
        ),
        tuple(say),
        rows,
    )


class Openable(Protocol):
    """A database that processes can open."""

    async def open(self) -> Store: ...


@dataclass(frozen=True, slots=True)
class InMemory:
    database: MemoryDatabase = field(default_factory=MemoryDatabase)

    async def open(self) -> Store:
        return MemoryStore(self.database)


@dataclass(slots=True)
class JobWorld:
    """Jobs in a database and two processes on it: ``a`` with node A, ``b`` with node B.

    The contract tests of a ``JobWorld`` run over the store of ``JobScheduler`` too.
    """

    a: JobStorage
    b: JobStorage

    async def stay_alive(self, now: datetime) -> None:
        """Let both nodes renew their leases."""
        until = now + timedelta(seconds=LEASE_S)
        await self.a.renew(A, until=until)
        await self.b.renew(B, until=until)

    async def kill(self, node: NodeId, store: JobStorage | None = None) -> datetime:
        """Let time pass until only the other node's lease is live; returns the new now."""
        other = B if node == A else A
        assert await (store or self.a).renew(other, until=at(1000))
        return at(LEASE_S + 1)


@dataclass(slots=True)
class World(JobWorld):
    """The same with all that gateways store."""

    a: Store
    b: Store
    _numbers: count[int] = field(default_factory=lambda: count(1))

    async def accept(self, *targets: Target, node: NodeId = A) -> list[InboxRow]:
        """One new message of each target, committed and claimed."""
        batch = [inbox(next(self._numbers), target) for target in targets]
        return list((await self.a.accept(batch, node=node, now=T0)).rows)

    async def put(self, *messages: OutboundMessage, now: datetime = T0) -> list[OutboxRow]:
        """Messages in the outbox; returns all its rows, the oldest first."""
        await self.a.settle((), Outcome.COMPLETED, now=now, say=messages)
        return (await self.a.outbox(OutboxQuery(limit=1000)))[::-1]

    async def claimed(self, *, target: Target = ANN, now: datetime = T0) -> OutboxRow:
        row = await self.a.claim_next(target, node=A, now=now)
        assert row is not None
        return row

    async def crash(self, name: str, *rows: InboxRow, max_attempts: int = 3) -> None:
        """Node A begins a run, dies, is recovered by B and comes back."""
        await self.a.begin_run(new_run(name, *rows), node=A)
        now = await self.kill(A)
        await self.b.recover(now=now, max_attempts=max_attempts, apology=APOLOGY)
        await self.a.join(a_node(A))


def a_node(node: NodeId, *, started_at: datetime = T0) -> Node:
    return Node(node, "host", 42, "0.1.0", started_at, at(LEASE_S))


@asynccontextmanager
async def world_on(database: Openable) -> AsyncIterator[World]:
    world = World(await database.open(), await database.open())
    try:
        await _join(world)
        yield world
    finally:
        await world.a.close()
        await world.b.close()


async def job_world() -> JobWorld:
    """Both processes have the same store of ``JobScheduler``."""
    store = JobMemoryStore()
    world = JobWorld(store, store)
    await _join(world)
    return world


async def _join(world: JobWorld) -> None:
    told = CollectedNotices(), CollectedNotices()
    world.a.on_notice(told[0].append)
    world.b.on_notice(told[1].append)
    await world.a.join(a_node(A))
    await world.b.join(a_node(B, started_at=at(1)))
    # So that no test takes these for what it waits for.
    await until(lambda: all(one.count(Notice.NODES) >= 2 for one in told))


@pytest.fixture(params=["memory", "postgres"])
def store_database(request: pytest.FixtureRequest) -> Openable:
    if request.param == "memory":
        return InMemory()
    opened: Openable = request.getfixturevalue("postgres_database")
    return opened


@pytest.fixture
async def world(store_database: Openable) -> AsyncIterator[World]:
    async with world_on(store_database) as opened:
        yield opened


async def until(true: Callable[[], bool]) -> None:
    """Wait in real time for another process. Fails after ``PATIENCE_S``."""
    async with asyncio.timeout(PATIENCE_S):
        while not true():
            await asyncio.sleep(0.005)


class CollectedNotices(list[Notice]):
    """Collects notices."""

    def expect(self, *notices: Notice) -> Callable[[], bool]:
        return lambda: set(notices) <= set(self)


def listen(store: JobStorage) -> CollectedNotices:
    """What a process is told from now on."""
    heard = CollectedNotices()
    store.on_notice(heard.append)
    return heard


async def recovered(world: JobWorld) -> datetime:
    """Node A dies and B takes back what it left; returns the new now."""
    now = await world.kill(A)
    await world.b.recover(now=now, max_attempts=3, apology=APOLOGY)
    return now


async def todo(world: World, node: NodeId = A, *, now: datetime = T0) -> list[InboxRow]:
    """What a node has to work on."""
    store = world.a if node == A else world.b
    return await store.claim_pending(node, now=now, places=PLACES)


async def ran(world: World, run: NewRun, last: RunEnd | None = None) -> None:
    """A run on node A from its begin to its end."""
    await world.a.begin_run(run, node=A)
    await world.a.finish_run(last or end(run.id), node=A)


async def session_of(store: Store, key: SessionKey) -> Session:
    found = await store.session(key)
    assert found is not None
    return found


async def letter_of(store: Store, row: int) -> DeadLetter:
    found = await store.dead_letter(row)
    assert found is not None
    return found


async def crash(world: World) -> None:
    """Node A dies, is recovered by B and comes back."""
    now = await world.kill(A)
    await world.b.recover(now=now, max_attempts=9, apology=APOLOGY)
    await world.a.join(a_node(A))
