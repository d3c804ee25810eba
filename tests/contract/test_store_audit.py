"""What every store promises about the audit log (SPEC SEC-9, DB-5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.records import AuditEntry, AuditFilter
from goclaw_py.store import upkeep_rules
from tests.support.stores import T0, World

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

DAY = timedelta(days=1)
EDIT = AuditEntry(
    0, T0, "token", "Grafana", "operator", "192.0.2.1", "n1", "job.edit", "job News",
    {"name": "news", "lines": [1, None]}, {"name": "News"}, "ok",
)  # fmt: skip
STOP = replace(
    EDIT, at=T0 + DAY, kind="person", actor="Ann", role="", via="telegram/default/100",
    action="session.stop", subject="agent:main:telegram:direct:100", before=None, after=None,
    result="no such session",
)  # fmt: skip


async def stored(world: World, *entries: AuditEntry) -> list[AuditEntry]:
    for entry in entries:
        await world.a.add_audit_entry(entry)
    return await world.b.audit_entries()


def without_ids(found: list[AuditEntry]) -> list[AuditEntry]:
    return [replace(one, id=0) for one in found]


async def test_entries_come_back_as_they_were_the_newest_first(world: World) -> None:
    found = await stored(world, EDIT, STOP)
    assert without_ids(found) == [STOP, EDIT]
    assert found[0].id > found[1].id > 0


async def test_pages_follow_each_other_without_gap_or_overlap(world: World) -> None:
    await stored(world, *[replace(EDIT, subject=f"job {n}") for n in range(5)])
    first = await world.b.audit_entries(limit=2)
    rest = await world.b.audit_entries(limit=9, before=first[-1].id)
    assert [one.subject for one in (*first, *rest)] == [f"job {n}" for n in (4, 3, 2, 1, 0)]


async def test_order_and_pages_are_by_time_whenever_entries_are_stored(world: World) -> None:
    """A node may store one later than another node's that was done after it."""
    last, first = replace(EDIT, at=T0 + DAY, subject="last"), replace(EDIT, subject="first")
    await stored(world, last, first, replace(first, subject="second"))
    seen: list[str] = []
    before: int | None = None
    while found := await world.b.audit_entries(limit=1, before=before):
        seen, before = [*seen, found[0].subject], found[0].id
    assert seen == ["last", "second", "first"]


async def test_before_an_entry_that_retention_has_deleted_is_none(world: World) -> None:
    old = (await stored(world, EDIT))[0].id
    await stored(world, STOP)
    await world.a.sweep_audit(before=T0 + DAY)
    assert await world.b.audit_entries(before=old) == []


@pytest.mark.parametrize(
    ("only", "matches"),
    [
        ({}, (STOP, EDIT)),
        ({"who": "GRAF"}, (EDIT,)),
        ({"who": "telegram/"}, (STOP,)),
        ({"who": "%"}, ()),
        ({"action": "job"}, (EDIT,)),
        ({"action": "job.edit"}, (EDIT,)),
        ({"action": "jo"}, ()),
        ({"action": "session.stop.all"}, ()),
        ({"subject": "NEWS"}, (EDIT,)),
        ({"subject": "\0"}, ()),
        ({"since": T0 + DAY}, (STOP,)),
        ({"until": T0 + DAY}, (EDIT,)),
        ({"who": "ann", "action": "job"}, ()),
    ],
)
async def test_a_filter_selects_by_who_what_and_when(
    world: World, only: Mapping[str, object], matches: tuple[AuditEntry, ...]
) -> None:
    await stored(world, EDIT, STOP)
    found = await world.b.audit_entries(only=AuditFilter(**only))  # type: ignore[arg-type]
    assert without_ids(found) == list(matches)


async def test_hostile_texts_are_stored_as_far_as_that_is_possible(world: World) -> None:
    hostile = replace(
        EDIT, actor="\ud800\0", via="\0", subject="\ud83d\ude00", after={"\ud800": ["\0", "\udc00"]}
    )
    (found,) = without_ids(await stored(world, hostile))
    assert (found.actor, found.via, found.subject) == ("\ufffd\ufffd", "\ufffd", "😀")
    assert found.after == {"\ufffd": ["\ufffd", "\ufffd"]}


async def test_retention_deletes_old_entries_only(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_rules, "MOST_SWEPT", 2)
    await stored(world, EDIT, EDIT, EDIT, STOP)
    assert await world.a.sweep_audit(before=T0) == 0
    swept = [await world.a.sweep_audit(before=T0 + DAY) for _ in range(3)]
    assert swept == [2, 1, 0]
    assert without_ids(await world.b.audit_entries()) == [STOP]


async def test_numbers_are_never_given_twice(world: World) -> None:
    """Who has read up to a number misses nothing, also after all entries were deleted."""
    (first,) = await stored(world, EDIT)
    await world.a.sweep_audit(before=T0 + DAY)
    (second,) = await stored(world, EDIT)
    assert second.id > first.id
