"""The store in memory, with which everything else is tested, does what PostgreSQL does."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pytest

from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import Outcome, Reason, Trigger
from goclaw_py.core.run_events import RunNote, Usage
from goclaw_py.records import (
    InboxKind,
    InboxRow,
    NewRun,
    OutboxQuery,
    RunEnd,
    RunQuery,
    SessionQuery,
    Stops,
    SubagentTask,
    Summary,
    ToolCall,
)
from goclaw_py.records.rewind import CommandAnswer
from goclaw_py.store import upkeep_rules
from tests.property.players import Player, both_do_the_same, seeds
from tests.support.postgres import Database
from tests.support.stores import (
    AGENT,
    PLACES,
    A,
    an_id,
    at,
    end,
    entry,
    inbox,
    key_of,
    new_run,
    say,
)

pytestmark = pytest.mark.real_time

CHATS = [Target("telegram", "default", chat) for chat in ("100", "200", "300")]
CONSOLE = Target("console", "default", "fork")
OUTCOMES = [Outcome.COMPLETED, Outcome.INTERRUPTED, Outcome.CANCELLED, Outcome.FAILED]


@dataclass(slots=True)
class Chats(Player):
    rows: dict[str, InboxRow] = field(default_factory=dict)
    """All messages, by external id."""
    began: dict[RunId, tuple[SessionKey, tuple[int, ...]]] = field(default_factory=dict)
    """All runs, with the places of the entries that they were told."""
    subagents: list[SessionKey] = field(default_factory=list)

    moves = (
        "accept accept stop begin begin draft draft finish finish settle retry crash "
        "leave look child pin reset count move sweep undo undo fork"
    )
    steps = 60

    async def accept(self) -> object:
        batch = [inbox(self.number(), self.chat()) for _ in range(self.chance.randint(1, 3))]
        accepted = await self.store.accept(batch, node=A, now=self.now)
        self.rows |= {row.message.external_id: row for row in accepted.rows}
        return [row.message.external_id for row in accepted.rows]

    async def stop(self) -> object:
        chat = self.chat()
        names = (name for name, row in self.rows.items() if row.message.target == chat)
        stops = Stops(tuple(self.some(names)), Reason.STOPPED_ALL)
        command = inbox(self.number(), chat, kind=InboxKind.COMMAND, outcome=Outcome.COMPLETED)
        batch = [replace(command, stops=stops)]
        accepted = await self.store.accept(batch, node=A, now=self.now)
        return [row.message.external_id for row in accepted.rows]

    async def begin(self) -> object:
        """Several runs at once, also of one chat."""
        busy = {row for _, rows in self.runs.values() for row in rows}
        calls = []
        for _ in range(self.chance.randint(1, 4)):
            chat = self.chat()
            free = [
                row
                for row in self.rows.values()
                if row.message.target == chat and row.id not in busy
            ]
            mine = free[: self.chance.randint(0, 2)]
            run = new_run(f"run {self.number():04}", *mine, target=chat, started_at=self.now)
            busy |= set(run.inbox)
            self.runs[run.id] = (chat, frozenset(run.inbox))
            calls.append(self._begin(run))
        return await _all(calls)

    async def child(self) -> object:
        """A subagent of a run, which may be lost, and may continue."""
        if not self.runs:
            return None
        if not self.subagents or self.chance.random() < 0.5:
            own = SessionKey(f"agent:default:subagent:{an_id(self.numbers)}")
            self.subagents.append(own)
        parent = self.chance.choice(list(self.runs))
        chat = self.runs[parent][0]
        name = f"run {self.number():04}"
        run = replace(
            new_run(name, target=chat, started_at=self.now),
            session=self.chance.choice(self.subagents),
            trigger=Trigger.SUBAGENT,
            parent=parent,
            payer=key_of(chat),
            submitted_at=at(self.second - 1),
            task=SubagentTask("work", name),
        )
        self.runs[run.id] = (chat, frozenset())
        return await self._begin(run)

    async def _begin(self, run: NewRun) -> object:
        """What it was told, without the places: those differ."""
        begun = await self.store.begin_run(run, node=A)
        self.began[run.id] = (run.session, begun.places)
        assert sorted(set(begun.places)) == list(begun.places)
        return replace(begun, places=()), len(begun.places)

    async def draft(self) -> object:
        if not self.runs:
            return None
        run_id = self.chance.choice(list(self.runs))
        await self.store.open_draft(run_id, self.runs[run_id][0], now=self.now)
        known = self.chance.random() < 0.8
        return known and await self.store.draft_posted(run_id, f"draft {self.number()}")

    async def finish(self) -> object:
        """Several at once; they may take in what no run works on."""
        busy = {row for _, rows in self.runs.values() for row in rows}
        ends: list[RunEnd] = []
        for run_id in self.some(list(self.runs)):
            chat, _ = self.runs.pop(run_id)
            free = (
                row.id
                for row in self.rows.values()
                if row.message.target == chat and row.id not in busy
            )
            taken_in = tuple(self.some(free)) if self.chance.random() < 0.3 else ()
            busy |= set(taken_in)
            outcome = self.chance.choice(OUTCOMES)
            texts = [f"answer of {run_id}"] if outcome is Outcome.COMPLETED else []
            ended = replace(end(run_id, outcome, *texts), history=(entry(f"of {run_id}"),))
            ended = replace(ended, taken_in=taken_in, finished_at=self.now)
            ends.append(self.with_work(ended))
        return await _all([self.store.finish_run(one, node=A) for one in ends])

    def with_work(self, ended: RunEnd) -> RunEnd:
        """Also what the run has done: it may have summed up what it was told."""
        if self.chance.random() < 0.5:
            return ended
        _, places = self.began.get(ended.id, (None, ()))
        upto = self.chance.choice([*places, 10**9])
        summary = Summary(f"by {ended.id}", upto) if self.chance.random() < 0.8 else None
        known = self.chance.random() < 0.5
        cost = Decimal(self.chance.randint(0, 100)) / 8 if known else None
        calls = (ToolCall(f"tool {n}", "{}", at(n), ok=known) for n in range(3))
        return replace(
            ended,
            usage=Usage(self.chance.randint(1, 9), self.chance.randint(0, 9), cost_usd=cost),
            tools=tuple(self.some(calls)),
            first_text_at=self.now,
            model=self.chance.choice(["", "another"]),
            notes=tuple(self.some(tuple(RunNote))),
            summary=summary,
        )

    async def pin(self) -> object:
        """By any run, also one that has ended, or that began before a reset."""
        at_work = self.began.keys() & self.runs.keys()
        runs = at_work if self.chance.random() < 0.7 else self.began.keys()
        if not runs:
            return None
        run_id = self.chance.choice(sorted(runs))
        facts = self.some([f"fact {n} of {run_id}" for n in range(4)])
        return await self.store.pin(self.began[run_id][0], facts, run=run_id)

    async def reset(self) -> object:
        if self.chance.random() < 0.7:
            return None
        await self.store.reset_session(key_of(self.chat()), now=self.now)
        return None

    async def undo(self) -> object:
        """The last turn of a chat, by a command that waits, or has ended."""
        key = key_of(self.chat())
        turn = await self.store.last_turn(key)
        if turn is None or not self.rows:
            return turn
        row = self.rows[self.chance.choice(list(self.rows))].id
        undone = await self.store.undo_turn(
            key,
            turn.run,
            answer=CommandAnswer(row, (say(f"undone {turn.run}"),)),
            now=self.now,
            node=A,
        )
        return turn, undone

    async def fork(self) -> object:
        key = key_of(self.chat())
        new = SessionKey(f"agent:default:console:direct:fork-{self.number()}")
        run = self.chance.choice([None, *self.began])
        if run is not None and self.began[run][0] != key:
            run = None
        count = await self.store.fork_session(key, new, CONSOLE, run=run, now=self.now)
        return count, await self.store.history(new), await self.store.last_turn(new)

    async def move(self) -> object:
        """A chat gets the id of another one, or a new one. Its old id is used again."""
        old = self.chat()
        new = replace(old, chat=self.chance.choice([*(one.chat for one in CHATS), "400"]))
        if old == new or self.chance.random() < 0.5:
            return None
        moved = await self.store.move_chat(
            "telegram", "default", old=old.chat, new=new.chat, now=self.now
        )
        for name, row in self.rows.items():
            if row.message.target == old:
                message = replace(row.message, target=new)
                self.rows[name] = replace(row, message=message, session=key_of(new))
        for run_id, (chat, rows) in self.runs.items():
            self.runs[run_id] = (new if chat == old else chat, rows)
        return moved

    async def count(self) -> object:
        payer = self.chance.choice([None, key_of(self.chat())])
        agent = self.chance.choice([None, AGENT, AgentName("nobody")])
        since = at(self.chance.choice([0, self.second // 2]))
        return await self.store.spent(since=since, payer=payer, agent=agent)

    async def settle(self) -> object:
        rows = [self.rows[name].id for name in self.some(list(self.rows))]
        outcome = self.chance.choice([Outcome.CANCELLED, Outcome.DROPPED])
        words = [say(f"settled at {self.second}")] if rows else []
        await self.store.settle(rows, outcome, now=self.now, say=words)
        return None

    async def retry(self) -> object:
        """An operator lets messages run again, which no run works on."""
        busy = {row for _, rows in self.runs.values() for row in rows}
        rows = [self.rows[name].id for name in self.some(list(self.rows))]
        free = [row for row in rows if row not in busy]
        return await self.store.retry_dead_letters(free, now=self.now)

    async def sweep(self) -> object:
        """What ended some time ago is as old as can be; what waits for an operator too, or not."""
        then = at(self.second - self.chance.randint(0, 20))
        long = self.chance.random() < 0.5
        kept = upkeep_rules.UNSEEN_KEPT if long else upkeep_rules.FINISHED_KEPT
        store = self.world.a
        return [
            (await store.sweep_inbox(now=then + kept)).rows,
            (await store.sweep_outbox(now=then + kept)).rows,
            await store.sweep_sessions(now=then + upkeep_rules.SESSIONS_KEPT),
            await store.sweep_runs(now=then + upkeep_rules.RUNS_KEPT),
        ]

    async def look(self) -> object:
        known = {self.rows[name].id for name in self.some(list(self.rows))}
        found = await self.store.claim_pending(A, now=self.now, places=PLACES, known=known)
        names = {row.id: name for name, row in self.rows.items()}
        ended = await self.store.ended([*names])
        return [row.message.external_id for row in found], sorted(names[row] for row in ended)

    async def left(self) -> dict[str, list[object]]:
        """All that is stored, without the ids that each database gives."""
        store = self.world.a
        outbox = await store.outbox(OutboxQuery(limit=1000))
        letters = [await store.dead_letter(row.id) for row in self.rows.values()]
        sessions = await store.sessions(SessionQuery(limit=1000))
        histories = {session.key: await store.history(session.key) for session in sessions}
        return {
            "runs": [*await store.runs(RunQuery(limit=1000))],
            "sessions": [*sessions],
            "lost": [*await store.interrupted_subagents(since=at(0))],
            "drafts": [*await store.drafts()],
            # What ends at once may be said in any order.
            "outbox": sorted(
                ((row.message, row.session, row.possible_duplicate) for row in outbox), key=repr
            ),
            "inbox": [
                letter and (replace(letter.row, id=0), letter.session, letter.attempts)
                for letter in letters
            ],
            "history": [
                (key, [(one.entry, one.run_id) for one in told]) for key, told in histories.items()
            ],
        }

    def refused(self, error: Exception) -> str:
        return type(error).__name__

    async def come_back(self) -> None:
        await Player.come_back(self)
        await self.store.claim_pending(A, now=self.now, places=PLACES)

    def chat(self) -> Target:
        return self.chance.choice(CHATS)


async def _all(calls: Sequence[Coroutine[Any, Any, object]]) -> object:
    answers = await asyncio.gather(*calls, return_exceptions=True)
    return [type(one).__name__ if isinstance(one, BaseException) else one for one in answers]


@pytest.mark.parametrize("seed", seeds(40))
async def test_both_stores_tell_and_keep_the_same(postgres_database: Database, seed: int) -> None:
    await both_do_the_same(Chats, postgres_database, seed)
