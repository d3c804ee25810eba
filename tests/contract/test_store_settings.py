"""What every store promises about edits of settings (SPEC OPS-11, DB-5)."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from goclaw_py.records import NewSettingEdit, Notice, Store
from tests.support.stores import T0, World

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

LANE = NewSettingEdit("lanes.main.size", "4", "2", "4")
MODE = NewSettingEdit("queue.mode", "steer", None, "steer")


async def edit(store: Store, *edits: NewSettingEdit, expected: int, now: datetime = T0) -> bool:
    return await store.add_setting_edits(edits, source="API", expected=expected, now=now)


async def test_the_newest_edit_of_each_setting_counts(world: World) -> None:
    assert await world.a.setting_edits() == []
    assert await edit(world.a, LANE, MODE, expected=0)
    found = await world.b.setting_edits()
    assert [(one.path, one.value, one.before, one.after) for one in found] == [
        ("lanes.main.size", "4", "2", "4"),
        ("queue.mode", "steer", None, "steer"),
    ]
    assert [(one.source, one.at) for one in found] == [("API", T0)] * 2
    reset = NewSettingEdit("lanes.main.size", None, "4", "2")
    assert await edit(world.b, reset, expected=found[-1].id)
    newest = await world.a.setting_edits()
    assert [(one.path, one.value) for one in newest] == [
        ("queue.mode", "steer"),
        ("lanes.main.size", None),
    ]


async def test_an_edit_that_has_not_seen_the_newest_one_adds_nothing(world: World) -> None:
    assert await edit(world.a, LANE, expected=0)
    assert not await edit(world.b, MODE, expected=0)
    assert [one.path for one in await world.b.setting_history()] == ["lanes.main.size"]


async def test_of_edits_at_once_one_is_added(world: World) -> None:
    stores = [world.a, world.b] * 4
    added = await asyncio.gather(*(edit(store, LANE, expected=0) for store in stores))
    assert added.count(True) == 1
    assert len(await world.a.setting_history()) == 1


async def test_all_nodes_are_notified(world: World) -> None:
    heard = asyncio.Event()
    world.b.on_notice(lambda notice: heard.set() if notice is Notice.SETTINGS else None)
    await edit(world.a, LANE, expected=0)
    async with asyncio.timeout(5):
        await heard.wait()


async def test_the_history_has_pages_and_any_text(world: World) -> None:
    odd = NewSettingEdit("agents.main.model", "a\0<b>", None, "ä" * 4096)
    for number in range(3):
        seen = await world.a.setting_edits()
        last = max((one.id for one in seen), default=0)
        new = [LANE, MODE, odd][number]
        assert await edit(world.a, new, expected=last)
    newest, older = await world.b.setting_history(limit=2)
    assert (newest.value, newest.after) == ("a\ufffd<b>", "ä" * 4096)
    assert older.path == "queue.mode"
    rest = await world.b.setting_history(limit=2, before=older.id)
    assert [one.path for one in rest] == ["lanes.main.size"]


async def test_old_edits_are_deleted_unless_they_are_in_effect(world: World) -> None:
    reset = NewSettingEdit("queue.mode", None, "steer", None)
    await edit(world.a, LANE, MODE, expected=0)
    (_, mode) = await world.a.setting_edits()
    await edit(world.a, reset, expected=mode.id, now=T0 + timedelta(days=1))
    assert await world.b.sweep_setting_edits(now=T0 + timedelta(days=90)) == 0
    now = T0 + timedelta(days=90, seconds=1)
    assert [await world.b.sweep_setting_edits(now=now) for _ in range(2)] == [1, 0]
    assert [one.value for one in await world.a.setting_history()] == [None, "4"]
    late = now + timedelta(days=300)
    assert await world.a.sweep_setting_edits(now=late) == 1
    assert [one.path for one in await world.a.setting_edits()] == ["lanes.main.size"]
