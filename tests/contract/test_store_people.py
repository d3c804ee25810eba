"""What every store promises about who may talk, about texts, and about the whole."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from goclaw_py.core.ids import SessionKey
from goclaw_py.core.messages import Sender
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.status import Backlog
from goclaw_py.ports.store import Notice, Person, Standing
from tests.support.stores import (
    ANN,
    PLACES,
    T0,
    A,
    Heard,
    World,
    at,
    end,
    entry,
    inbox,
    key_of,
    new_run,
    pairing,
    say,
    until,
)

pytestmark = pytest.mark.real_time

UGLY = "a\x00b\ud83dc\udc00d"
CLEAN = "a\ufffdb\ufffdc\ufffdd"


async def ask(world: World, *senders: str) -> None:
    pairings = [pairing(sender, f"code {sender}", now=at(n)) for n, sender in enumerate(senders)]
    await world.a.accept([], node=A, now=T0, pairings=pairings)


async def test_the_first_person_becomes_owner_even_as_guest(world: World) -> None:
    """CHAN-5."""
    await ask(world, "1")
    person = await world.a.approve("code 1", guest=True, now=at(5))
    assert person == Person("telegram", "default", Sender("1", "name 1"), Standing.OWNER, at(5))
    assert await world.b.people() == [person]


async def test_a_later_person_is_guest_only_if_asked(world: World) -> None:
    await ask(world, "1", "2", "3")
    standings = [
        await world.a.approve(f"code {n}", guest=guest, now=at(int(n)))
        for n, guest in (("1", False), ("2", True), ("3", False))
    ]
    assert [person and person.standing for person in standings] == [
        Standing.OWNER,
        Standing.GUEST,
        Standing.OWNER,
    ]
    assert [person.sender.id for person in await world.a.people()] == ["3", "2", "1"]


async def test_each_account_has_its_own_first_person(world: World) -> None:
    await ask(world, "1")
    await world.a.approve("code 1", guest=False, now=T0)
    other = pairing("2", "code 2")
    other = replace(other, request=replace(other.request, account="second"))
    await world.a.accept([], node=A, now=T0, pairings=[other])
    person = await world.a.approve("code 2", guest=True, now=T0)
    assert person is not None
    assert person.standing is Standing.OWNER


async def test_only_one_of_two_guests_approved_at_once_becomes_owner(world: World) -> None:
    await ask(world, "1", "2")
    await asyncio.gather(
        world.a.approve("code 1", guest=True, now=T0),
        world.b.approve("code 2", guest=True, now=T0),
    )
    standings = [person.standing for person in await world.a.people()]
    assert sorted(standings) == [Standing.GUEST, Standing.OWNER]


async def test_a_code_works_once(world: World) -> None:
    await ask(world, "1")
    assert await world.a.approve("code 1", guest=False, now=T0) is not None
    assert await world.a.approve("code 1", guest=False, now=T0) is None
    assert await world.a.pairing_requests(now=T0) == []


async def test_an_unknown_or_expired_code_approves_nobody(world: World) -> None:
    await ask(world, "1")
    assert await world.a.approve("wrong", guest=False, now=T0) is None
    assert await world.a.approve("code 1", guest=False, now=at(3600)) is None
    assert await world.a.pairing_requests(now=at(3600)) == []
    assert await world.a.people() == []


async def test_requests_are_listed_oldest_first(world: World) -> None:
    await ask(world, "9", "5")
    requests = await world.a.pairing_requests(now=T0)
    assert [request.sender.id for request in requests] == ["9", "5"]


async def test_of_two_requests_with_one_code_the_older_is_approved(world: World) -> None:
    twins = [pairing("2", "same", now=at(1)), pairing("1", "same", now=at(2))]
    await world.a.accept([], node=A, now=at(2), pairings=twins)
    person = await world.a.approve("same", guest=False, now=at(3))
    assert person is not None
    assert person.sender.id == "2"
    assert len(await world.a.pairing_requests(now=at(3))) == 1


async def test_a_person_who_is_approved_again_gets_the_new_standing(world: World) -> None:
    await ask(world, "1", "2")
    await world.a.approve("code 1", guest=False, now=T0)
    await world.a.approve("code 2", guest=True, now=T0)
    await ask(world, "2")
    person = await world.a.approve("code 2", guest=False, now=at(5))
    assert person is not None
    assert (person.standing, person.approved_at) == (Standing.OWNER, at(5))
    assert len(await world.a.people()) == 2


async def test_a_revoked_person_is_forgotten(world: World) -> None:
    await ask(world, "1")
    await world.a.approve("code 1", guest=False, now=T0)
    assert not await world.a.revoke("telegram", "other", "1")
    assert await world.a.revoke("telegram", "default", "1")
    assert not await world.a.revoke("telegram", "default", "1")
    assert await world.b.people() == []


async def test_changes_of_people_are_noticed(world: World) -> None:
    heard = Heard()
    world.b.on_notice(heard.append)
    await ask(world, "1")
    await until(lambda: heard.count(Notice.PEOPLE) == 1)
    await world.a.approve("code 1", guest=False, now=T0)
    await until(lambda: heard.count(Notice.PEOPLE) == 2)
    await world.a.revoke("telegram", "default", "1")
    await until(lambda: heard.count(Notice.PEOPLE) == 3)


# ---------------------------------------------------------------------------- texts


async def test_characters_that_cannot_be_stored_are_replaced_everywhere(world: World) -> None:
    new = inbox(UGLY, text=UGLY, sender=UGLY)
    (row,) = (await world.a.accept([new], node=A, now=T0)).rows
    assert row.message.text == CLEAN
    assert await world.a.claim_pending(A, now=T0, places=PLACES) == [row]
    await world.a.begin_run(new_run(UGLY, row), node=A)
    finished = replace(end(UGLY, Outcome.FAILED, UGLY), error=UGLY, history=(entry(UGLY),))
    await world.a.finish_run(finished, node=A)
    (run,) = await world.a.runs()
    assert (run.id, run.error) == (CLEAN, CLEAN)
    assert (await world.a.history(key_of(ANN)))[0].entry.text == CLEAN
    claimed = await world.claimed(now=at(9))
    assert claimed.message.text == CLEAN
    await world.a.mark_failed(claimed, UGLY, retry_at=T0, maybe_sent=False)
    assert (await world.a.outbox())[0].error == CLEAN


async def test_a_message_with_such_an_id_is_known_when_it_comes_again(world: World) -> None:
    await world.a.accept([inbox(UGLY)], node=A, now=T0)
    accepted = await world.a.accept([inbox(UGLY)], node=A, now=T0)
    assert accepted.rows == ()
    assert accepted.duplicates == {inbox(UGLY).message.external_id}


async def test_a_session_with_such_a_key_is_found_by_it(world: World) -> None:
    key = SessionKey(f"agent:default:api:{UGLY}")
    await world.a.begin_run(replace(new_run("r"), session=key), node=A)
    assert await world.a.session(key) is not None
    assert len(await world.a.runs(session=key)) == 1
    assert await world.a.runs(session=key, active=True) != []
    await world.a.release_sessions(A, [key])
    await world.a.reset_session(key, now=T0)
    assert await world.a.history(key) == []


async def test_a_text_of_a_million_characters_is_stored_whole(world: World) -> None:
    text = "\u00e9\U0001f600" * 500_000
    await world.a.accept([inbox(1, text=text)], node=A, now=T0)
    (row,) = await world.a.claim_pending(A, now=T0, places=PLACES)
    await world.a.begin_run(new_run("r", row), node=A)
    await world.a.finish_run(
        replace(end("r", Outcome.COMPLETED, text), history=(entry(text),)), node=A
    )
    assert row.message.text == text
    assert (await world.a.history(key_of(ANN)))[0].entry.text == text
    assert (await world.claimed(now=at(9))).message.text == text


# ---------------------------------------------------------------------------- the whole


async def test_the_backlog_counts_what_is_not_finished(world: World) -> None:
    assert await world.a.backlog() == Backlog(inbox=0, outbox=0, dead=0)
    rows = await world.accept(ANN, ANN, ANN)
    await world.a.settle([rows[0].id], Outcome.DROPPED, now=T0)
    for text in ("sent", "dead", "sending", "pending"):
        await world.put(say(text))
    await world.a.mark_sent(await world.claimed(), "m", now=T0)
    await world.a.mark_dead(await world.claimed(), "x", now=T0)
    await world.claimed()
    assert await world.b.backlog() == Backlog(inbox=2, outbox=2, dead=1)


async def test_the_database_answers(world: World) -> None:
    await world.a.ping()


async def test_a_closed_store_hears_nothing_more(world: World) -> None:
    heard = Heard()
    other = Heard()
    world.a.on_notice(heard.append)
    world.b.on_notice(other.append)
    await world.a.close()
    await world.b.settle([], Outcome.COMPLETED, now=T0, say=[say("x")])
    await until(other.expect(Notice.OUTBOX))
    assert heard == []
