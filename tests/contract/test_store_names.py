"""What every store promises about names (SPEC OPS-9)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.ids import JobId
from goclaw_py.core.messages import Target
from goclaw_py.records import NameKind, Notice, SeenName
from tests.support.store_jobs import a_job, added, claimed_job, row_of
from tests.support.stores import T0, CollectedNotices, World, until

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

ANN = Target("telegram", "default", "7")
CREW = Target("telegram", "default", "-9")
PLANS = Target("telegram", "default", "-9", "5")


async def test_names_are_known_as_they_were_seen_last(world: World) -> None:
    await world.a.note_names([], now=T0)
    seen = [SeenName(ANN, "Ann"), SeenName(CREW, "Crew"), SeenName(ANN, "Anna\0", "ann")]
    await world.a.note_names(seen, now=T0)
    await world.a.note_topic(PLANS, name="Plans")
    (job,) = await added(world.a, a_job("tea"))
    stranger = Target("telegram", "default", "8\0")
    asked = {ANN, CREW, PLANS, stranger, Target("telegram", "default", "-9", "6")}
    expected = KnownNames({ANN: "Anna\ufffd", CREW: "Crew", PLANS: "Plans"}, {job.id: "tea"})
    assert await world.b.names(asked, {job.id, JobId("gone")}) == expected
    assert await world.b.names(()) == KnownNames()


async def test_a_deleted_job_has_the_name_of_its_last_execution(world: World) -> None:
    claimed = await claimed_job(world.a, a_job("tea"))
    job = (await row_of(world.a, claimed)).job
    assert await world.a.delete_job(job, forget=False)
    assert await world.b.names((), [job]) == KnownNames({}, {job: "tea"})


async def test_whoever_has_no_name_is_known_by_the_user_name(world: World) -> None:
    await world.a.note_names([SeenName(ANN, "", "ann")], now=T0)
    assert await world.a.names([ANN]) == KnownNames({ANN: "@ann"})
    await world.a.note_names([SeenName(ANN, "")], now=T0)
    assert await world.a.names([ANN]) == KnownNames()


async def test_a_name_is_forgotten_on_request_and_when_it_is_old(world: World) -> None:
    for days, target in ((0, ANN), (1, CREW)):
        await world.a.note_names([SeenName(target, "x")], now=T0 + timedelta(days=days))
    now = T0 + timedelta(days=90, seconds=1)
    for swept in (1, 0):
        assert await world.b.sweep_names(now=now) == swept
    assert await world.a.names([ANN, CREW]) == KnownNames({CREW: "x"})
    heard = CollectedNotices()
    world.b.on_notice(heard.append)
    for _ in range(2):
        await world.a.forget_name(CREW)
    assert await world.a.names([ANN, CREW]) == KnownNames()
    # Other processes may remember it.
    await until(heard.expect(Notice.PEOPLE))
    assert heard.count(Notice.PEOPLE) == 1


async def test_a_title_is_guessed_once_given_by_a_person_and_kept(world: World) -> None:
    chat = Target("console", "default", "x")
    for name, kind, expected in (
        ("first words", NameKind.GUESSED, "first words"),
        ("other words", NameKind.GUESSED, "first words"),
        ("Plans", NameKind.GIVEN, "Plans"),
        ("more words", NameKind.GUESSED, "Plans"),
    ):
        await world.a.note_names([SeenName(chat, name, kind=kind)], now=T0)
        assert await world.b.names([chat]) == KnownNames({chat: expected})
    assert await world.a.sweep_names(now=T0 + timedelta(days=400)) == 0
