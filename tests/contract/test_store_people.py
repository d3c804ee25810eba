"""What every store promises about who may talk, about texts, and about the whole."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from goclaw_py.chat.access import access_texts
from goclaw_py.core.ids import SessionKey
from goclaw_py.core.messages import OutboundMessage, PeerKind, Sender, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import (
    Incident,
    Notice,
    OutboxQuery,
    OutboxState,
    PairingRequest,
    Person,
    RunQuery,
    Standing,
)
from goclaw_py.records.people import AccessVerdict
from goclaw_py.scheduler.views import Backlog, UnservedPlace
from tests.support.stores import (
    ANN,
    BOB,
    PLACES,
    T0,
    A,
    B,
    World,
    at,
    end,
    entry,
    inbox,
    key_of,
    listen,
    new_run,
    pairing,
    ran,
    say,
    todo,
    until,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

UGLY = "a\x00b\ud83dc\udc00d"
CLEAN = "a\ufffdb\ufffdc\ufffdd"


async def ask(world: World, *senders: str) -> None:
    pairings = [pairing(sender, f"code {sender}", now=at(n)) for n, sender in enumerate(senders)]
    await world.a.accept([], node=A, now=T0, pairings=pairings)


@pytest.mark.parametrize("before", [None, Standing.GUEST, Standing.OWNER])
async def test_a_guest_is_never_an_owner(world: World, before: Standing | None) -> None:
    """CHAN-5: not even the first person of an account. A code works once."""
    await ask(world, "1", "2")
    if before is not None:
        assert await world.a.approve("code 1", guest=before is Standing.GUEST, now=T0)
    person = await world.a.approve("code 2", guest=True, now=at(1))
    assert person == Person("telegram", "default", Sender("2", "name 2"), Standing.GUEST, at(1))
    assert person in await world.b.people()
    assert await world.a.approve("code 2", guest=False, now=at(1)) is None
    standings = [person.standing for person in await world.a.people()]
    assert standings == [Standing.GUEST, *filter(None, [before])]


async def test_people_approved_at_once_get_the_roles_that_were_chosen(world: World) -> None:
    await ask(world, "1", "2", "3")
    chosen = (("1", world.a, True), ("2", world.b, True), ("3", world.a, False))
    await asyncio.gather(
        *(one.approve(f"code {n}", guest=guest, now=T0) for n, one, guest in chosen)
    )
    standings = {person.sender.id: person.standing for person in await world.a.people()}
    assert standings == {"1": Standing.GUEST, "2": Standing.GUEST, "3": Standing.OWNER}


async def test_an_unknown_or_expired_code_approves_nobody(world: World) -> None:
    await ask(world, "1")
    assert await world.a.approve("wrong", guest=False, now=T0) is None
    assert await world.a.approve("code 1", guest=False, now=at(3600)) is None
    assert await world.a.pairing_requests(now=at(3600)) == []
    assert await world.a.people() == []


async def test_of_two_requests_with_one_code_the_older_is_approved(world: World) -> None:
    """They are listed the oldest first."""
    twins = [pairing("2", "same", now=at(1)), pairing("1", "same", now=at(2))]
    await world.a.accept([], node=A, now=at(2), pairings=twins)
    requests = await world.a.pairing_requests(now=T0)
    assert [request.sender.id for request in requests] == ["2", "1"]
    person = await world.a.approve("same", guest=False, now=at(3))
    assert person is not None
    assert person.sender.id == "2"
    assert len(await world.a.pairing_requests(now=at(3))) == 1


async def test_a_revoked_person_is_forgotten_and_may_be_approved_again(world: World) -> None:
    await ask(world, "1", "2")
    await world.a.approve("code 1", guest=False, now=T0)
    await world.a.approve("code 2", guest=True, now=T0)
    assert not await world.a.revoke("telegram", "other", "2")
    assert await world.a.revoke("telegram", "default", "2")
    assert not await world.a.revoke("telegram", "default", "2")
    assert [person.sender.id for person in await world.b.people()] == ["1"]
    await ask(world, "2")
    person = await world.a.approve("code 2", guest=False, now=at(5))
    assert person is not None
    assert (person.standing, person.approved_at) == (Standing.OWNER, at(5))
    assert len(await world.a.people()) == 2


async def test_what_an_approved_person_wrote_is_in_the_inbox(world: World) -> None:
    """CHAN-5: the newest five, in their order, as one turn; they are told before it."""
    place = Target("telegram", "default", "1")
    wrote = [inbox(n, place, text=f"text {n}", sender="1") for n in range(9)]
    heard = listen(world.b)
    await world.a.accept([], node=A, now=T0, pairings=[pairing("1", "code", *wrote[:2])])
    later = [pairing("1", "other", row) for row in wrote[2:]]
    await world.b.accept([], node=B, now=at(1), pairings=later[:3])
    for one in later[3:]:
        await world.a.accept([], node=A, now=at(1), pairings=[one])
    assert await todo(world, now=at(2)) == []
    await world.b.approve("code", guest=False, now=at(3))
    said = [row.message for row in await todo(world, now=at(4))]
    assert [(one.text, one.external_id) for one in said] == [
        (f"text {n}", f"1:{n}") for n in range(4, 9)
    ]
    assert len({one.album for one in said[:-1]}) == 1
    assert said[-1].album is None
    texts = [row.message.text for row in await world.a.outbox()]
    assert texts == [access_texts.WELCOME, "your code: code"]
    await until(heard.expect(Notice.INBOX))


async def test_a_new_request_keeps_nothing_of_the_one_that_has_expired(world: World) -> None:
    """CHAN-5, IO-1: a channel offers again what it does not know to be committed."""
    place = Target("telegram", "default", "1")
    old, new = (inbox(n, place, sender="1") for n in (1, 2))
    await world.a.accept([], node=A, now=T0, pairings=[pairing("1", "old", old)])
    for _ in range(2):
        late = pairing("1", "new", new, now=at(3600))
        await world.a.accept([], node=A, now=at(3600), pairings=[late])
    await world.a.approve("new", guest=False, now=at(3601))
    assert [row.message.external_id for row in await todo(world)] == ["1:2"]


async def test_who_writes_while_being_let_in_is_not_asked_for_a_code(world: World) -> None:
    """CHAN-5: a node may not have heard of the approval yet."""
    await ask(world, "1", "2")
    await world.a.approve("code 1", guest=False, now=at(1))
    await world.a.allow_chat("telegram", "default", "2", allowed=False, now=at(1))
    late = [
        pairing(who, "late", inbox(9, Target("telegram", "default", who), sender=who), now=at(2))
        for who in ("1", "2")
    ]
    await world.b.accept([], node=B, now=at(2), pairings=late)
    rows = await todo(world, B, now=at(3))
    assert [row.message.external_id for row in rows] == ["1:9"]
    assert await world.a.pairing_requests(now=at(3)) == []
    assert not any("late" in row.message.text for row in await world.a.outbox())


async def test_who_is_denied_was_last_seen_when_they_asked(world: World) -> None:
    await ask(world, "1")
    await world.a.allow_chat("telegram", "default", "1", allowed=False, now=at(90))
    (chat,) = await world.a.chats()
    assert (chat.name, chat.allowed, chat.first_seen_at, chat.last_seen_at) == (
        "name 1", False, T0, T0,
    )  # fmt: skip


async def test_of_two_decisions_at_once_one_counts(world: World) -> None:
    """CHAN-5: whichever node carries it out."""
    await ask(world, "1")
    decided = await asyncio.gather(
        decide(world, "code 1-1", AccessVerdict.GUEST),
        world.b.decide("code 1-1", AccessVerdict.DENY, place=PLACES[0], by="Bob", now=at(5)),
        world.b.approve("code 1", guest=True, now=at(5)),
    )
    assert sum(one is not None for one in decided) == 1
    assert await world.a.pairing_requests(now=at(5)) == []


async def decide(world: World, request: str, verdict: AccessVerdict) -> PairingRequest | None:
    return await world.a.decide(request, verdict, place=PLACES[0], by="Ann", now=at(5))


async def test_a_guest_by_a_decision_is_no_owner_though_nobody_else_is_there(world: World) -> None:
    """CHAN-5: the settings may name owners. A denied person is told nothing and kept as denied."""
    row = inbox(1, Target("telegram", "default", "1"), sender="1")
    await world.a.accept([], node=A, now=T0, pairings=[pairing("1", "code", row)])
    assert await decide(world, "code-1", AccessVerdict.DENY) is not None
    (chat,) = await world.a.chats()
    assert (chat.chat, chat.peer, chat.allowed) == ("1", PeerKind.DIRECT, False)
    assert len(await world.a.outbox()) == 1
    assert await todo(world, now=at(9)) == []
    await ask(world, "2")
    request = await decide(world, "code 2-2", AccessVerdict.GUEST)
    assert request is not None
    assert request.sender.id == "2"
    assert [person.standing for person in await world.a.people()] == [Standing.GUEST]


@pytest.mark.parametrize("allowed", [True, False])
async def test_only_a_denial_of_a_direct_chat_ends_its_request(
    world: World, *, allowed: bool
) -> None:
    """CHAN-5: to allow it undoes a denial and lets nobody in."""
    await ask(world, "1")
    await world.a.allow_chat("telegram", "default", "1", allowed=allowed, now=at(5))
    assert len(await world.a.pairing_requests(now=at(5))) == allowed


@pytest.mark.parametrize("in_chat", [True, False])
@pytest.mark.parametrize("allowed", [True, False])
async def test_a_group_is_told_when_it_is_allowed_and_nothing_when_it_is_denied(
    world: World, *, allowed: bool, in_chat: bool
) -> None:
    """CHAN-5. Found by use: people in the group did not know that they could talk."""
    one = pairing("-7", "")
    group = replace(one.request, peer=PeerKind.GROUP, code_hash="", chat="-7")
    await world.a.accept([], node=A, now=T0, pairings=[replace(one, request=group, say=())])
    if in_chat:
        await decide(world, group.id, AccessVerdict.APPROVE if allowed else AccessVerdict.DENY)
    else:
        await world.a.allow_chat("telegram", "default", "-7", allowed=allowed, now=at(5))
    told = [(row.message.target.chat, row.message.text) for row in await world.a.outbox()]
    assert told == ([("-7", access_texts.GROUP_WELCOME)] if allowed else [])


async def test_nothing_is_decided_about_what_is_over_or_of_another_account(world: World) -> None:
    """CHAN-5."""
    await ask(world, "1")

    async def decided(
        request: str, place: tuple[str, str] = PLACES[0], second: float = 5
    ) -> PairingRequest | None:
        return await world.a.decide(
            request, AccessVerdict.APPROVE, place=place, by="", now=at(second)
        )

    assert await decided("code 1-1", ("telegram", "second")) is None
    assert await decided("code 1") is None
    late = await decided("code 1-1", second=3600)
    assert late is not None
    assert late.expires_at == at(3600)
    assert await world.a.people() == []


async def test_owners_who_were_asked_see_what_was_decided(world: World) -> None:
    """CHAN-5: a message that still waits is not sent any more."""
    asks = [pairing("1", "code", owner=owner).say[1] for owner in (ANN, BOB)]
    request = replace(pairing("1", "code"), say=tuple(asks))
    await world.a.accept([], node=A, now=T0, pairings=[request])
    await world.a.mark_sent(await world.claimed(target=ANN), "m2", now=T0)
    assert await decide(world, "code-1", AccessVerdict.GUEST) is not None
    closed, welcome, *_ = await world.a.outbox()
    assert closed.message.target == ANN
    assert (closed.message.draft, closed.message.buttons) == ("m2", ())
    assert closed.message.text.endswith("Approved as guest by Ann.")
    assert welcome.message.text == access_texts.WELCOME
    (dropped,) = await world.a.outbox(OutboxQuery(state=OutboxState.DROPPED))
    assert (dropped.message.target, dropped.error) == (BOB, "decided")


async def test_changes_of_people_are_noticed(world: World) -> None:
    heard = listen(world.b)
    for number, change in enumerate(
        (
            ask(world, "1"),
            world.a.approve("code 1", guest=False, now=T0),
            world.a.revoke("telegram", "default", "1"),
        )
    ):
        await change
        await until(lambda told=number + 1: heard.count(Notice.PEOPLE) == told)  # type: ignore[misc]


# ---------------------------------------------------------------------------- texts


async def test_characters_that_cannot_be_stored_are_replaced_everywhere(world: World) -> None:
    new = inbox(UGLY, text=UGLY, sender=UGLY)
    (row,) = (await world.a.accept([new], node=A, now=T0)).rows
    assert row.message.text == CLEAN
    assert await todo(world) == [row]
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


async def test_what_has_such_an_id_is_found_by_it(world: World) -> None:
    """A message that comes again, and a session."""
    await world.a.accept([inbox(UGLY)], node=A, now=T0)
    accepted = await world.a.accept([inbox(UGLY)], node=A, now=T0)
    assert accepted.rows == ()
    assert accepted.duplicates == {inbox(UGLY).message.external_id}
    key = SessionKey(f"agent:default:api:{UGLY}")
    await world.a.begin_run(replace(new_run("r"), session=key), node=A)
    assert await world.a.session(key) is not None
    for active in (False, True):
        assert len(await world.a.runs(RunQuery(session=key, active=active))) == 1
    await world.a.release_sessions(A, [key])
    await world.a.reset_session(key, now=T0)
    assert await world.a.history(key) == []


async def test_a_text_of_a_million_characters_is_stored_whole(world: World) -> None:
    text = "\u00e9\U0001f600" * 500_000
    await world.a.accept([inbox(1, text=text)], node=A, now=T0)
    (row,) = await todo(world)
    last = replace(end("r", Outcome.COMPLETED, text), history=(entry(text),))
    await ran(world, new_run("r", row), last)
    assert row.message.text == text
    assert (await world.a.history(key_of(ANN)))[0].entry.text == text
    assert (await world.claimed(now=at(9))).message.text == text


# ---------------------------------------------------------------------------- the whole


async def test_the_backlog_counts_what_is_not_finished(world: World) -> None:
    assert await world.a.backlog() == Backlog(inbox=0, outbox=0, failed=0)
    rows = await world.accept(ANN, ANN, ANN)
    await world.a.settle([rows[0].id], Outcome.DROPPED, now=T0)
    for text in ("sent", "dead", "sending", "pending"):
        await world.put(say(text))
    await world.a.mark_sent(await world.claimed(), "m", now=T0)
    await world.a.mark_dead(await world.claimed(), "x", now=T0)
    await world.claimed()
    assert await world.b.backlog() == Backlog(inbox=2, outbox=2, failed=1)


async def test_a_closed_store_hears_nothing_more(world: World) -> None:
    await world.a.ping()
    heard, other = listen(world.a), listen(world.b)
    await world.a.close()
    await world.b.settle([], Outcome.COMPLETED, now=T0, say=[say("x")])
    await until(other.expect(Notice.OUTBOX))
    assert heard == []


# --------------------------------- troubles that operators are told about, once each (SPEC CHAN-10)


TOLD = OutboundMessage(ANN, "My channel has a problem.")


async def test_an_incident_is_told_once_over_all_nodes_until_it_comes_again(world: World) -> None:
    """Also after a restart: a second store over the same database is one."""
    one, two = world.a, world.b
    assert await one.open_incident("channel:x", "no network", say=[TOLD], now=at(0))
    assert not await one.open_incident("channel:x", "no network", say=[TOLD], now=at(1))
    assert not await two.open_incident("channel:x", "still none", say=[TOLD], now=at(2))
    assert [row.message.text for row in await one.outbox()] == [TOLD.text]
    assert await two.incidents() == [Incident("channel:x", "still none", at(0))]
    assert await two.close_incident("channel:x")
    assert not await one.close_incident("channel:x")
    assert await one.incidents() == []
    assert await one.open_incident("channel:x", "no network", say=[TOLD], now=at(9))
    assert len(await one.outbox()) == 2


async def test_incidents_are_listed_the_oldest_first(world: World) -> None:
    store = world.a
    await store.open_incident("b", "second", say=[], now=at(2))
    await store.open_incident("a", "third", say=[], now=at(2))
    await store.open_incident("c", "first", say=[], now=at(1))
    assert [incident.key for incident in await store.incidents()] == ["c", "a", "b"]


async def test_unfinished_messages_are_counted_by_their_place(world: World) -> None:
    """Those of places that no node has wait until one has: an operator is warned."""
    mail, other = Target("mail", "default", "m"), Target("telegram", "other", "o")
    assert (await world.a.backlog([])).unserved == ()
    rows = await world.accept(ANN, mail, mail, other)
    of_mail = [row.id for row in rows if row.message.target == mail]
    await world.a.settle(of_mail[:1], Outcome.DROPPED, now=T0)
    for target in (mail, mail, BOB):
        await world.put(say("x", target))
    await world.a.mark_sent(await world.claimed(target=mail), "m", now=T0)
    mail_left = UnservedPlace("mail", "default", 1, 1)
    other_left = UnservedPlace("telegram", "other", 1, 0)
    served = UnservedPlace("telegram", "default", 1, 1)
    here, all_of_them = ("telegram", "default"), (mail_left, served, other_left)
    assert (await world.b.backlog([])).unserved == all_of_them
    counted = Backlog(3, 2, 0, unserved=(mail_left, other_left))
    assert await world.b.backlog([here, ("none", "x")]) == counted
    places = [(one.channel, one.account) for one in all_of_them]
    assert (await world.b.backlog(places)).unserved == ()
    assert (await world.b.backlog()).unserved == ()
