"""Gathering calls into transactions, in virtual time."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.errors import Fenced, StoreError, StoreUnavailable
from goclaw_py.store.postgres.group import Group

COMMIT_S = 1.0


@dataclass
class Recorder:
    """A database that takes a second for a transaction and remembers what was committed."""

    bad: set[str] = field(default_factory=set)
    """A transaction with one of these fails."""
    away: bool = False
    committed: list[list[str]] = field(default_factory=list)
    tried: list[list[str]] = field(default_factory=list)
    under_way: list[set[str]] = field(default_factory=list)
    met: bool = False
    """Whether two transactions with a session in common were ever under way at a time."""

    async def commit(self, items: Sequence[str]) -> list[str | StoreError]:
        self.tried.append(list(items))
        sessions = {item[0] for item in items}
        self.met = self.met or any(sessions & others for others in self.under_way)
        self.under_way.append(sessions)
        try:
            await asyncio.sleep(COMMIT_S)
        finally:
            self.under_way.remove(sessions)
        if self.away:
            raise StoreUnavailable("away")
        if self.bad & set(items):
            raise ValueError(f"bad: {items}")
        self.committed.append(list(items))
        return [Fenced(item) if item.endswith("fenced") else f"done {item}" for item in items]


def calls(group: Group[str, str], *items: str) -> list[asyncio.Task[str]]:
    return [asyncio.create_task(group(item)) for item in items]


async def ended(tasks: list[asyncio.Task[str]]) -> list[str | BaseException]:
    return await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_lonely_call_waits_for_nobody() -> None:
    group = Group(Recorder().commit)
    assert await group("a") == "done a"
    assert asyncio.get_running_loop().time() == COMMIT_S


async def test_what_comes_during_a_commit_shares_the_next_one() -> None:
    database = Recorder()
    group = Group(database.commit)
    first = calls(group, "a")
    await asyncio.sleep(0.5)
    rest = calls(group, "b", "c", "d")
    assert await ended(first + rest) == ["done a", "done b", "done c", "done d"]
    assert database.committed == [["a"], ["b", "c", "d"]]


@pytest.mark.parametrize(
    ("count", "after_s"), [(1, 0.05), (31, 0.05), (32, 0.0)], ids=["one", "few", "many"]
)
async def test_a_further_transaction_begins_for_many_calls_or_after_a_moment(
    count: int, after_s: float
) -> None:
    """A transaction that waits for a lock delays other calls by 50 ms at most."""
    database = Recorder()
    group = Group(database.commit, keys=lambda item: {item}, flights=2)
    first = calls(group, "first")
    await asyncio.sleep(0.5)
    rest = calls(group, *map(str, range(count)))
    await asyncio.sleep(0.04)
    assert len(database.tried) == (2 if after_s == 0 else 1)
    await asyncio.sleep(0.02)
    assert list(map(len, database.tried)) == [1, count]
    await ended(first + rest)
    assert asyncio.get_running_loop().time() == pytest.approx(0.5 + after_s + COMMIT_S)


async def test_a_transaction_takes_so_many_and_no_more() -> None:
    database = Recorder()
    await ended(calls(Group(database.commit, most=2), *"abcde"))
    assert database.committed == [["a", "b"], ["c", "d"], ["e"]]


async def test_items_of_different_kinds_share_no_transaction_and_keep_their_order() -> None:
    database = Recorder()
    group = Group(database.commit, kind=lambda item: item[-1])
    await ended(calls(group, "a1", "b1", "a2", "b1"))
    assert database.committed == [["a1", "b1"], ["a2"], ["b1"]]


async def test_a_bad_item_fails_its_own_call_only() -> None:
    group = Group(Recorder(bad={"b"}).commit)
    results = await ended(calls(group, *"abc"))
    assert [results[0], results[2]] == ["done a", "done c"]
    assert isinstance(results[1], ValueError)


async def test_an_error_of_one_item_is_told_to_its_caller_only() -> None:
    database = Recorder()
    results = await ended(calls(Group(database.commit), "a", "b fenced", "c"))
    assert [results[0], results[2]] == ["done a", "done c"]
    assert isinstance(results[1], Fenced)
    assert len(database.tried) == 1


async def test_everybody_in_a_transaction_hears_that_the_database_is_away() -> None:
    database = Recorder(away=True)
    group = Group(database.commit)
    results = await ended(calls(group, *"abc"))
    assert [type(result) for result in results] == [StoreUnavailable] * 3
    assert len({id(result) for result in results}) == 3
    assert len(database.tried) == 1
    database.away = False
    assert await group("d") == "done d"


async def test_when_the_database_goes_while_items_are_tried_apart_the_rest_is_not_tried() -> None:
    database = Recorder(bad={"a"})
    group = Group(database.commit)
    tasks = calls(group, *"abc")
    await asyncio.sleep(1.5 * COMMIT_S)
    database.away = True
    results = await ended(tasks)
    assert [type(result) for result in results] == [StoreUnavailable] * 3
    assert database.tried == [["a", "b", "c"], ["a"]]


async def test_a_call_that_is_cancelled_while_it_waits_is_left_out() -> None:
    database = Recorder()
    group = Group(database.commit)
    tasks = calls(group, "a")
    await asyncio.sleep(0.5)
    tasks += calls(group, "b", "c")
    await asyncio.sleep(0)
    tasks[1].cancel()
    results = await ended(tasks)
    assert [results[0], results[2]] == ["done a", "done c"]
    assert database.committed == [["a"], ["c"]]


async def test_a_call_that_is_cancelled_during_its_commit_takes_effect_and_harms_nobody() -> None:
    database = Recorder()
    tasks = calls(Group(database.commit), "a", "b")
    await asyncio.sleep(0.5)
    tasks[0].cancel()
    results = await ended(tasks)
    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1] == "done b"
    assert database.committed == [["a", "b"]]


async def test_a_call_that_is_cancelled_is_not_tried_apart() -> None:
    database = Recorder(bad={"c"})
    tasks = calls(Group(database.commit), "a", "b", "c")
    await asyncio.sleep(0.5)
    tasks[0].cancel()
    await ended(tasks)
    assert database.tried == [["a", "b", "c"], ["b"], ["c"]]


async def test_closing_waits_for_what_was_asked_for_and_takes_nothing_more() -> None:
    group = Group(Recorder().commit, most=1)
    tasks = calls(group, "a", "b")
    await asyncio.sleep(0)
    await group.close(10)
    assert await ended(tasks) == ["done a", "done b"]
    with pytest.raises(StoreUnavailable):
        await group("c")


async def test_closing_waits_no_longer_than_it_is_told() -> None:
    group = Group(Recorder().commit, most=1)
    tasks = calls(group, *"abcd")
    await asyncio.sleep(0)
    await group.close(1.5)
    assert asyncio.get_running_loop().time() == 1.5
    await ended(tasks)


async def test_closing_an_idle_group_takes_no_time() -> None:
    await Group(Recorder().commit).close(10)
    assert asyncio.get_running_loop().time() == 0


async def test_when_its_worker_is_ended_nobody_waits_for_ever() -> None:
    group = Group(Recorder().commit, most=1)
    tasks = calls(group, "a", "b")
    await asyncio.sleep(0.5)
    (worker,) = (task for task in asyncio.all_tasks() if task.get_name() == "store-group")
    worker.cancel()
    results = await ended(tasks)
    assert [type(result) for result in results] == [StoreUnavailable] * 2
    assert await group("c") == "done c"


async def test_two_transactions_at_a_time_have_no_key_in_common() -> None:
    database = Recorder()
    group = Group(database.commit, keys=lambda item: item[0], flights=2, most=2)
    await ended(calls(group, "a1", "a2", "a3", "b1", "b2"))
    assert database.committed == [["a1", "a2"], ["b1", "b2"], ["a3"]]
    assert asyncio.get_running_loop().time() == pytest.approx(0.05 + 2 * COMMIT_S)


async def test_nobody_overtakes_who_waits_for_the_same_key() -> None:
    database = Recorder()
    group = Group(database.commit, keys=set, flights=2)
    first = calls(group, "a")
    await asyncio.sleep(0.5)
    await ended(first + calls(group, "ab", "b", "c"))
    assert database.committed == [["a"], ["c"], ["ab", "b"]]


@dataclass(frozen=True)
class Asked:
    after_s: float
    session: str
    cancelled_after_s: float | None


asked = st.builds(
    Asked,
    st.integers(0, 6).map(lambda halves: halves / 2),
    st.sampled_from("abcd"),
    st.none() | st.integers(0, 3).map(lambda halves: halves / 2),
)


@given(
    asked=st.lists(asked, max_size=25),
    most=st.integers(1, 5),
    flights=st.integers(1, 3),
    bad=st.frozensets(st.integers(0, 24), max_size=3),
)
async def test_each_call_has_its_own_answer_and_those_of_a_session_keep_their_order(
    asked: list[Asked], most: int, flights: int, bad: frozenset[int]
) -> None:
    names = [f"{one.session}{place}" for place, one in enumerate(asked)]
    database = Recorder(bad={name for place, name in enumerate(names) if place in bad})
    group = Group(database.commit, keys=lambda item: item[0], kind=len, flights=flights, most=most)
    arrived: defaultdict[str, list[str]] = defaultdict(list)

    async def call(one: Asked, name: str) -> str:
        await asyncio.sleep(one.after_s)
        arrived[one.session].append(name)
        async with asyncio.timeout(one.cancelled_after_s):
            return await group(name)

    results = await ended(
        [asyncio.create_task(call(*pair)) for pair in zip(asked, names, strict=True)]
    )
    committed = [item for items in database.committed for item in items]
    assert len(committed) == len(set(committed))
    assert not database.met
    for one, name, result in zip(asked, names, results, strict=True):
        if isinstance(result, TimeoutError):
            assert one.cancelled_after_s is not None
        elif name in database.bad:
            assert isinstance(result, ValueError)
        else:
            assert result == f"done {name}"
            assert name in committed
    for session, names_of in arrived.items():
        mine = [item for item in committed if item[0] == session]
        assert mine == [name for name in names_of if name in mine]
    await group.close(0)
