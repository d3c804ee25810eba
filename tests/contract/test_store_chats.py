"""What every store promises about chats (SPEC CHAN-5, CHAN-7, HB-8)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from goclaw_py.core.approvals import about_approval
from goclaw_py.core.ids import AgentName, ApprovalId, RunId, SessionKey
from goclaw_py.core.messages import (
    Attachment,
    FileKind,
    OutboundMessage,
    PeerKind,
    Role,
    Sender,
    Target,
    TopicState,
)
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.session_keys import chat_session
from goclaw_py.records import (
    ALL_ACTIVITY,
    ActivityQuery,
    Aside,
    Chat,
    InboxKind,
    NewInbox,
    Notice,
    SeenChat,
    Store,
    Topic,
    Unmentioned,
)
from goclaw_py.records import LastActivity as HeardThere
from goclaw_py.records.people import about_request
from goclaw_py.records.rewind import CommandAnswer
from tests.support.stores import (
    AGENT,
    ANN,
    BOB,
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
    message,
    new_run,
    say,
    todo,
    until,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

CREW = Target("telegram", "default", "-100")


def seen(name: str, target: Target = CREW, peer: PeerKind = PeerKind.GROUP) -> SeenChat:
    return SeenChat(target, peer, name)


def chat(name: str = "", *, first: datetime = T0, last: datetime = T0) -> Chat:
    return Chat("telegram", "default", "-100", PeerKind.GROUP, name, None, "", first, last)


async def speak(
    world: World,
    number: int,
    target: Target,
    *,
    now: datetime,
    agent: str = "default",
    peer: PeerKind = PeerKind.DIRECT,
    sender: str = "7",
    outcome: Outcome | None = None,
) -> None:
    said = replace(message(number, target, sender=sender), peer=peer)
    key = chat_session(AgentName(agent), target, peer)
    kind = InboxKind.MESSAGE if outcome is None else InboxKind.COMMAND
    row = NewInbox(said, key, AgentName(agent), kind, outcome)
    await world.a.accept([row], node=A, now=now)


# -------------------------------------------------------------------------------- what is known


async def test_a_chat_that_was_seen_is_known(world: World) -> None:
    """CHAN-5: unknown groups are listed for the operator. A thread of a chat is the chat."""
    topic = replace(CREW, thread="4")
    await world.a.note_chats([seen("Crew"), seen("Crew", topic)], now=T0)
    await world.a.note_chats([seen("Bob", BOB, PeerKind.DIRECT)], now=T0)
    bob, crew = await world.b.chats()
    assert crew == chat("Crew")
    assert (bob.chat, bob.peer, bob.name) == ("200", PeerKind.DIRECT, "Bob")
    assert await world.b.chat(topic) == chat("Crew")
    assert await world.b.chat(replace(CREW, chat="-1\0")) is None


async def test_a_chat_has_its_last_name_and_was_seen_first_and_last(world: World) -> None:
    """A name that was not told stays."""
    await world.a.note_chats([seen("Crew")], now=at(5))
    await world.a.note_chats([seen("Old"), seen("New crew")], now=at(9))
    await world.a.note_chats([], now=at(20))
    assert await world.a.chats() == [chat("New crew", first=at(5), last=at(9))]
    await world.a.note_chats([seen("")], now=at(10))
    assert await world.a.chats() == [chat("New crew", first=at(5), last=at(10))]


async def test_chats_are_listed_the_last_seen_first(world: World) -> None:
    for number in range(5):
        target = replace(CREW, chat=f"-{number}")
        await world.a.note_chats([seen("x", target)], now=at(number % 3))
    assert [known.chat for known in await world.a.chats()] == ["-2", "-4", "-1", "-3", "-0"]
    assert [known.chat for known in await world.a.chats(limit=2)] == ["-2", "-4"]


async def test_when_a_group_was_heard_without_a_mention_is_kept(world: World) -> None:
    """OPS-4: nothing else of such a message is."""
    unmentioned = replace(seen("Crew"), unmentioned=True)
    await world.a.note_chats([unmentioned, seen("Crew")], now=at(1))
    await world.a.note_chats([seen("Crew")], now=at(2))
    heard = replace(chat("Crew", first=at(1), last=at(2)), unmentioned_at=at(1))
    assert await world.b.chats() == [heard]
    await world.a.note_chats([unmentioned], now=at(3))
    moved = replace(CREW, chat="-200")
    await world.a.move_chat("telegram", "default", old=CREW.chat, new=moved.chat, now=at(4))
    found = await world.b.chat(moved)
    assert found is not None
    assert found.unmentioned_at == at(3)


# -------------------------------------------------------------------------------- what is decided


async def test_a_decision_about_a_group_is_kept_and_told(world: World) -> None:
    """CHAN-5: also before it is seen."""
    heard, known = listen(world.b), chat(first=at(3), last=at(3))
    for allowed in (True, False):
        heard.clear()
        await world.a.allow_chat("telegram", "default", "-100", allowed=allowed, now=at(3))
        await until(heard.expect(Notice.PEOPLE))
        assert await world.b.chats() == [replace(known, allowed=allowed)]
    await world.a.note_chats([seen("Crew")], now=at(4))
    known = chat("Crew", first=at(3), last=at(4))
    assert await world.b.chats() == [replace(known, allowed=False)]


async def test_a_chat_that_cannot_be_written_to_is_marked_until_it_can(world: World) -> None:
    """CHAN-7: what is so already is not told again."""
    heard = listen(world.b)
    await world.a.mark_chat(CREW, PeerKind.GROUP, gone="", now=T0)
    assert await world.a.chats() == []
    await world.a.mark_chat(replace(CREW, thread="4"), PeerKind.GROUP, gone="kicked", now=T0)
    await world.a.mark_chat(CREW, PeerKind.GROUP, gone="kicked", now=at(5))
    assert await world.b.chats() == [replace(chat(), gone="kicked")]
    # Notices come in order: had there been others before this one, they would be here too.
    await world.a.settle((), Outcome.COMPLETED, now=T0, say=[say("x")])
    await until(heard.expect(Notice.OUTBOX))
    assert heard == [Notice.PEOPLE, Notice.OUTBOX]
    await world.a.mark_chat(CREW, PeerKind.GROUP, gone="", now=at(5))
    assert await world.b.chats() == [chat()]


async def test_marked_chats_are_those_with_a_decision_and_those_that_are_gone(world: World) -> None:
    """CHAN-5, CHAN-7: however many others were seen after them."""
    await world.a.mark_chat(BOB, PeerKind.DIRECT, gone="blocked", now=T0)
    await world.a.allow_chat("telegram", "default", "-100", allowed=False, now=at(1))
    await world.a.note_chats([seen("Ann", ANN, PeerKind.DIRECT)], now=at(2))
    assert [marked.chat for marked in await world.b.marked_chats()] == ["-100", "200"]
    await world.a.mark_chat(BOB, PeerKind.DIRECT, gone="", now=at(3))
    assert [marked.chat for marked in await world.b.marked_chats()] == ["-100"]


# -------------------------------------------------------------------------------- who spoke last


async def places(world: World, query: ActivityQuery = ALL_ACTIVITY) -> list[Target]:
    return [there.target for there in await world.b.activity(query)]


async def test_where_somebody_spoke_last_comes_first(world: World) -> None:
    """HB-8: the last chat and thread, of accepted messages and commands, once each."""
    topic = replace(CREW, thread="4")
    await speak(world, 1, ANN, now=at(1))
    await speak(world, 2, topic, now=at(2), agent="work", peer=PeerKind.GROUP, sender="8")
    await speak(world, 3, BOB, now=at(3), outcome=Outcome.COMPLETED)
    batch = [inbox(4, sender="8"), inbox(5, sender="9")]
    await world.a.accept(batch, node=A, now=at(4))
    await speak(world, 3, BOB, now=at(5))
    assert await world.b.activity() == [
        HeardThere(ANN, PeerKind.DIRECT, AGENT, "9", at(4)),
        HeardThere(BOB, PeerKind.DIRECT, AGENT, "7", at(3)),
        HeardThere(topic, PeerKind.GROUP, AgentName("work"), "8", at(2)),
    ]
    assert await places(world, ActivityQuery(limit=1)) == [ANN]


async def test_it_can_be_asked_for_one_agent_and_for_direct_chats(world: World) -> None:
    """HB-8: ``last_scope``."""
    await speak(world, 1, ANN, now=at(1))
    await speak(world, 2, BOB, now=at(2), agent="work")
    await speak(world, 3, CREW, now=at(3), peer=PeerKind.GROUP)
    assert await places(world, ActivityQuery(direct=True)) == [BOB, ANN]
    assert await places(world, ActivityQuery(agent=AGENT)) == [CREW, ANN]
    assert await places(world, ActivityQuery(agent=AGENT, direct=True)) == [ANN]


async def test_denied_chats_and_those_that_are_gone_do_not_count_as_spoken_in(world: World) -> None:
    """HB-8: no alert goes to somebody whom the operator has denied, nor to nobody."""

    async def spoke(limit: int = 9) -> list[Target]:
        return await places(world, ActivityQuery(limit=limit))

    await speak(world, 1, ANN, now=at(1))
    await speak(world, 2, BOB, now=at(2))
    await world.a.mark_chat(BOB, PeerKind.DIRECT, gone="blocked", now=at(3))
    assert await spoke(limit=1) == [ANN]
    assert await places(world, ActivityQuery(gone=True)) == [BOB]
    for allowed, left in ((False, []), (True, [ANN])):
        await world.a.allow_chat(ANN.channel, ANN.account, ANN.chat, allowed=allowed, now=at(3))
        assert await spoke() == left
    await world.a.mark_chat(BOB, PeerKind.DIRECT, gone="", now=at(4))
    assert await spoke() == [BOB, ANN]


async def test_a_run_is_nobody_who_speaks(world: World) -> None:
    """HB-8: a job that runs in a chat is not its user."""
    await world.a.begin_run(new_run("r", started_at=at(9)), node=A)
    assert await world.a.activity() == []
    await speak(world, 1, BOB, now=at(1))
    await world.a.begin_run(new_run("r2", target=BOB, started_at=at(9)), node=A)
    assert [there.at for there in await world.a.activity()] == [at(1)]


async def test_groups_that_nobody_has_decided_about_are_counted(world: World) -> None:
    """Those of other accounts, those that are gone, and people do not count (SPEC CHAN-7)."""
    groups = [Target("telegram", "default", f"-{n}") for n in range(1, 7)]
    others = [Target("telegram", "other", "-1"), Target("web", "default", "-1")]
    await world.a.note_chats([seen("", group) for group in (*groups, *others)], now=T0)
    await world.a.note_chats([seen("", ANN, PeerKind.DIRECT)], now=T0)
    for chat, allowed in (("-1", True), ("-2", False)):
        await world.a.allow_chat("telegram", "default", chat, allowed=allowed, now=T0)
    await world.a.mark_chat(groups[2], PeerKind.GROUP, gone="kicked", now=T0)
    here = ("telegram", "default")
    assert await world.b.undecided([here]) == 3
    assert await world.b.undecided([here, ("telegram", "other"), here]) == 4
    strange = [Target("telegram", "other", "-5"), Target(*here, "\0\ud800")]
    assert await world.b.undecided([here], besides=[groups[3], groups[0], *strange]) == 2
    assert await world.b.undecided([]) == 0
    await world.a.mark_chat(groups[2], PeerKind.GROUP, gone="", now=T0)
    assert await world.b.undecided([here]) == 4


# -------------------------------------------------------------------------------- topics

PLANS = replace(CREW, thread="5")


async def test_a_topic_has_its_first_name_until_it_is_renamed(world: World) -> None:
    """CHAN-6: messages tell what a topic was called when it was made."""
    assert await world.a.topic(PLANS) == Topic(PLANS)
    await world.a.note_topic(PLANS)
    await world.a.note_topic(PLANS, name="Plans")
    await world.a.note_topic(PLANS, name="Later")
    assert (await world.b.topic(PLANS)).name == "Plans"
    await world.a.note_topic(PLANS, name="New plans", renamed=True)
    await world.a.note_topic(PLANS, name="Plans")
    await world.a.note_topic(PLANS, renamed=True)
    assert await world.b.topic(PLANS) == Topic(PLANS, "New plans")
    assert await world.b.topic(CREW) == Topic(CREW)
    assert await world.b.gone_topics() == []


async def test_a_topic_that_is_gone_is_known_until_it_is_open_again(world: World) -> None:
    """CHAN-6: the general topic of its chat is one like any other."""
    heard = listen(world.b)
    await world.a.note_topic(PLANS, state=TopicState.OPEN)
    assert not heard
    await world.a.note_topic(PLANS, state=TopicState.CLOSED)
    await until(heard.expect(Notice.PEOPLE))
    await world.a.note_topic(PLANS, name="Plans", state=TopicState.DELETED)
    await world.a.note_topic(CREW, state=TopicState.CLOSED)
    assert await world.b.gone_topics() == [
        Topic(CREW, state=TopicState.CLOSED),
        Topic(PLANS, "Plans", TopicState.DELETED),
    ]
    heard.clear()
    await world.a.note_topic(PLANS, name="Plans", state=TopicState.OPEN)
    await until(heard.expect(Notice.PEOPLE))
    assert await world.b.gone_topics() == [Topic(CREW, state=TopicState.CLOSED)]


async def test_what_is_for_a_topic_that_is_gone_is_told_once(world: World) -> None:
    """CHAN-6: until it is open and gone once more."""
    told = [say("closed", CREW)]
    assert not await world.a.notify_topic_gone(PLANS, told, now=T0), "it is open"
    await world.a.note_topic(PLANS, state=TopicState.CLOSED)
    assert await world.a.notify_topic_gone(PLANS, told, now=T0)
    assert not await world.b.notify_topic_gone(PLANS, told, now=T0)
    await world.a.note_topic(PLANS, state=TopicState.DELETED)
    assert (await world.b.topic(PLANS)).told
    assert not await world.b.notify_topic_gone(PLANS, told, now=T0)
    assert [row.message.text for row in await world.a.outbox()] == ["closed"]
    await world.a.note_topic(PLANS, state=TopicState.OPEN)
    await world.a.note_topic(PLANS, state=TopicState.CLOSED)
    assert await world.a.notify_topic_gone(PLANS, [], now=T0)


async def test_a_name_of_a_chat_or_topic_may_hold_anything(world: World) -> None:
    await world.a.note_chats([seen("a\0b\ud800")], now=T0)
    assert await world.a.chats() == [chat("a\ufffdb\ufffd")]
    await world.a.note_topic(replace(PLANS, thread="a\0"), name="P\0\ud800")
    assert (await world.b.topic(replace(PLANS, thread="a\ufffd"))).name == "P\ufffd\ufffd"


async def test_the_topics_of_a_chat_move_with_it(world: World) -> None:
    """CHAN-7."""
    moved = replace(PLANS, chat="-1009")
    await world.a.note_topic(PLANS, name="Plans", state=TopicState.CLOSED)
    await world.a.note_topic(CREW, name="Old", state=TopicState.CLOSED)
    await world.a.note_topic(replace(moved, thread=None), name="General")
    assert await world.a.move_chat("telegram", "default", old="-100", new="-1009", now=T0)
    assert await world.b.gone_topics() == [Topic(moved, "Plans", TopicState.CLOSED)]
    assert (await world.b.topic(replace(moved, thread=None))).name == "General"


# -------------------------------------------------- group messages without a mention (SPEC CHAN-12)


GROUP = chat_session(AGENT, ANN, PeerKind.GROUP)
LATER = at(1000)


def said(number: int, target: Target = ANN, *, keep: int = 50, sent: float = 0) -> Unmentioned:
    text = f"text {number}"
    spoken = replace(
        message(number, target, text=text), peer=PeerKind.GROUP, sent_at=at(sent), addressed=False
    )
    return Unmentioned(spoken, chat_session(AGENT, target, PeerKind.GROUP), keep)


async def begun(world: World, name: str) -> RunId:
    """A run of the group that node A works on."""
    asked = inbox(name)
    (row,) = (await world.a.accept([replace(asked, session=GROUP)], node=A, now=T0)).rows
    await world.a.begin_run(replace(new_run(name, row), session=GROUP), node=A)
    return RunId(name)


async def taken(
    store: Store, run: str, *, until: datetime = LATER, now: datetime = T0
) -> list[str]:
    found = await store.claim_unmentioned(GROUP, RunId(run), until=until, now=now)
    return [one.text for one in found]


async def kept(store: Store, session: SessionKey = GROUP) -> list[str]:
    """The oldest first."""
    return [row.message.text for row in await store.unmentioned(session)][::-1]


async def test_what_was_said_is_given_once_in_order_with_all_that_is_known(world: World) -> None:
    full = replace(
        said(1).message,
        attachments=(Attachment(FileKind.PHOTO, "ref", "a\x00"),),
        quote="q",
        quoted_from=Sender("8", "Bob", "bob"),
        forwarded_from=Sender("", "Hidden"),
    )
    await world.a.note_unmentioned([replace(said(1), message=full), said(2)], now=T0)
    await world.b.note_unmentioned([said(3), said(4, BOB)], now=at(1))
    run = await begun(world, "r1")
    found = await world.a.claim_unmentioned(GROUP, run, until=LATER, now=at(2))
    clean = replace(full, attachments=(replace(full.attachments[0], name="a\ufffd"),))
    assert found == [clean, said(2).message, said(3).message]
    assert await taken(world.b, "r1") == ["text 1", "text 2", "text 3"], "the same run, again"
    await begun(world, "r2")
    assert await taken(world.b, "r2") == []


async def test_only_the_newest_of_each_session_are_kept_once_each(world: World) -> None:
    for store in (world.a, world.b):
        await store.note_unmentioned([said(1), said(1), said(2)], now=T0)
    assert await kept(world.a) == ["text 1", "text 2"]
    batch = [said(number, keep=3) for number in range(-2, 4)]
    await world.a.note_unmentioned([*batch, said(9, BOB, keep=1)], now=T0)
    assert await kept(world.a) == ["text 1", "text 2", "text 3"]
    await world.a.note_unmentioned([said(2, keep=3), said(3, keep=3), said(4, keep=3)], now=T0)
    assert await kept(world.a) == ["text 2", "text 3", "text 4"]
    assert await kept(world.a, said(1, BOB).session) == ["text 9"]


async def test_what_was_sent_later_or_came_a_day_before_is_not_given(world: World) -> None:
    """It is forgotten (SPEC DB-5)."""
    await world.a.note_unmentioned([said(1)], now=at(-1))
    await world.a.note_unmentioned([said(2, sent=5), said(3, sent=6)], now=T0)
    await begun(world, "r1")
    day = T0 + timedelta(days=1)
    assert await taken(world.a, "r1", until=at(5), now=day) == ["text 2"]
    assert await taken(world.a, "r1", until=at(5), now=day + timedelta(seconds=1)) == []
    for swept in (1, 0):
        assert await world.b.sweep_unmentioned(now=day) == swept
    assert await kept(world.a) == ["text 2", "text 3"]


@pytest.mark.parametrize("outcome", [*Outcome, None])
async def test_a_run_that_was_interrupted_leaves_what_it_was_given_to_the_next(
    world: World, outcome: Outcome | None
) -> None:
    """SPEC IO-2: nothing is lost to a crash, and no two runs are given the same."""
    await world.a.note_unmentioned([said(1)], now=T0)
    await begun(world, "r1")
    assert await taken(world.a, "r1") == ["text 1"]
    if outcome is Outcome.LOST:
        await world.b.recover(now=await world.kill(A), max_attempts=3, apology="")
    elif outcome is not None:
        await world.a.finish_run(end("r1", outcome), node=A)
    was_cut = outcome in (Outcome.LOST, Outcome.INTERRUPTED)
    assert await taken(world.b, "r2") == (["text 1"] if was_cut else [])


async def test_an_edit_changes_what_was_said_and_is_kept_nowhere_else(world: World) -> None:
    await world.a.note_unmentioned([said(1)], now=T0)

    def edit(number: int, text: str) -> Unmentioned:
        original = said(number).message
        name = f"{original.external_id}:{len(text)}"
        changed = replace(original, external_id=name, text=text, edits=original.external_id)
        return replace(said(number), message=changed)

    batch = [said(2), edit(2, "new"), edit(1, "first"), edit(1, "second\x00"), edit(3, "unknown")]
    await world.b.note_unmentioned(batch, now=T0)
    assert await kept(world.a) == ["second\ufffd", "new"]


async def test_one_is_found_by_its_external_id_with_the_run_that_has_it(world: World) -> None:
    await world.a.note_unmentioned([said(1)], now=T0)
    await begun(world, "r1")
    place = ("telegram", "default")
    for run in (None, "r1"):
        found = await world.b.find_unmentioned(*place, "100:1")
        assert found is not None
        assert (found.session, found.received_at, found.run_id) == (GROUP, T0, run)
        await taken(world.a, "r1")
    assert await world.b.find_unmentioned(*place, "100:2") is None


async def test_what_was_said_moves_with_its_chat_and_goes_with_a_reset(world: World) -> None:
    """SPEC CHAN-7, CMD-5. None of it is work or makes a conversation."""
    await world.a.note_unmentioned([said(1), said(2, BOB)], now=T0)
    assert await todo(world, B) == []
    assert (await world.a.sessions(), await world.a.activity()) == ([], [])
    await begun(world, "r1")
    await world.a.move_chat("telegram", "default", old=ANN.chat, new="-1", now=T0)
    moved = chat_session(AGENT, replace(ANN, chat="-1"), PeerKind.GROUP)
    assert (await kept(world.a), await kept(world.a, moved)) == ([], ["text 1"])
    await world.a.reset_session(moved, now=T0)
    assert await kept(world.a, moved) == []
    assert await kept(world.a, said(2, BOB).session) == ["text 2"]


# ---------------------------------------------------------------------------- asides


async def show(world: World, sent_at: datetime) -> None:
    """Send everything that waits for Ann."""
    while (row := await world.a.claim_next(ANN, node=A, now=sent_at)) is not None:
        await world.a.mark_sent(row, f"m{row.id}", now=sent_at)


async def do_command(world: World, number: int, text: str, *answers: OutboundMessage) -> None:
    """Accept a command at that second, and answer it."""
    typed = inbox(number, text=text, kind=InboxKind.COMMAND)
    (row,) = (await world.a.accept([typed], node=A, now=at(number))).rows
    await world.a.settle([row.id], Outcome.COMPLETED, now=at(number), say=answers)
    await show(world, at(number))


async def said_aside(world: World, *, limit: int = 50) -> list[tuple[Role, str]]:
    return [(one.role, one.text) for one in await world.b.asides(key_of(ANN), limit=limit)]


async def test_commands_and_their_answers_stand_beside_the_history(world: World) -> None:
    """SPEC CHAN-9."""
    assert await world.b.asides(key_of(ANN)) == []
    await do_command(world, 1, "/status", say("Nothing runs."))
    (row,) = (await world.a.accept([inbox(2)], node=A, now=at(2))).rows
    await world.a.begin_run(new_run("good", row), node=A)
    answer = replace(say("good answer"), run_id=RunId("good"))
    await world.a.finish_run(replace(end("good"), say=(answer,)), node=A)
    edited = replace(say("Mode: steer"), draft="m1")
    question = replace(say("May I?"), alert="approval:1")
    await do_command(world, 10, "/queue", edited, question)
    status, nothing, queue, mode = await world.b.asides(key_of(ANN))
    assert status == Aside(at(1), Role.USER, "/status", inbox(1).message.external_id)
    assert (nothing.text, nothing.at, nothing.replaces) == ("Nothing runs.", at(1), None)
    assert queue.text == "/queue"
    assert (mode.text, mode.replaces, mode.role) == ("Mode: steer", "m1", Role.ASSISTANT)
    assert [one.text for one in await world.b.asides(key_of(ANN), limit=1)] == [
        "/queue",
        "Mode: steer",
    ]
    assert await world.b.asides(key_of(BOB)) == []


async def test_requests_for_access_and_problems_stand_beside_the_history(world: World) -> None:
    """Of alerts only questions about tools are shown elsewhere, as cards."""
    alerts = (about_request("9f86"), "telegram/default", about_approval(ApprovalId("q1")))
    said = [replace(say(f"about {one}"), alert=one) for one in alerts]
    await do_command(world, 1, "/status", *said)
    assert [text for _, text in await said_aside(world)] == [
        "/status",
        "about access:9f86",
        "about telegram/default",
    ]


async def test_an_undone_turn_begins_no_new_conversation(world: World) -> None:
    """Found by use: commands above a turn vanished when it was answered again."""
    await do_command(world, 1, "/status", say("Nothing runs."))
    (dropped,) = (await world.a.accept([inbox(2)], node=A, now=at(2))).rows
    await world.a.settle([dropped.id], Outcome.CANCELLED, now=at(2))
    (row,) = (await world.a.accept([inbox(3)], node=A, now=at(3))).rows
    await world.a.begin_run(new_run("r1", row), node=A)
    last = replace(end("r1"), history=(entry("hello"),), finished_at=at(4), asked_at=at(3))
    await world.a.finish_run(last, node=A)
    typed = inbox(5, text="/undo", kind=InboxKind.COMMAND)
    (command,) = (await world.a.accept([typed], node=A, now=at(5))).rows
    assert await world.a.undo_turn(
        key_of(ANN), RunId("r1"), answer=CommandAnswer(command.id, ()), now=at(5), node=A
    )
    said = [text for _, text in await said_aside(world)]
    assert said == ["/status", "Nothing runs.", "/undo"]
    (ended,) = await world.a.unanswered(key_of(ANN), ended=True)
    assert ended.id == dropped.id
    (row,) = (await world.a.accept([inbox(6)], node=A, now=at(6))).rows
    await world.a.begin_run(new_run("r2", row), node=A)
    await world.a.finish_run(replace(last, id=RunId("r2"), asked_at=at(6)), node=A)
    await world.a.reset_session(key_of(ANN), now=at(9))
    assert [text for _, text in await said_aside(world)] == said, "people read them"
    assert await world.a.unanswered(key_of(ANN), ended=True) == [ended]


async def test_what_failed_runs_said_stands_beside_the_history(world: World) -> None:
    for name, outcome in (("good", Outcome.COMPLETED), ("bad", Outcome.FAILED)):
        (row,) = (await world.a.accept([inbox(name)], node=A, now=T0)).rows
        await world.a.begin_run(new_run(name, row), node=A)
        told = replace(say(f"it was {name}"), run_id=RunId(name))
        await world.a.finish_run(replace(end(name, outcome), say=(told,)), node=A)
    await show(world, at(9))
    (only,) = await world.b.asides(key_of(ANN))
    assert (only.text, only.run_id) == ("it was bad", "bad")


async def test_presses_and_unsent_messages_are_no_asides(world: World) -> None:
    pressed = inbox(1, text="queue:steer", kind=InboxKind.COMMAND)
    pressed = replace(pressed, message=replace(pressed.message, press="queue:steer"))
    (row,) = (await world.a.accept([pressed], node=A, now=T0)).rows
    await world.a.settle([row.id], Outcome.COMPLETED, now=T0, say=[say("never sent")])
    assert await said_aside(world) == []
    await do_command(world, 2, "/status", say("before"))
    (row,) = (await world.a.accept([inbox(3)], node=A, now=at(3))).rows
    run = new_run("r1", row, started_at=at(3))
    await world.a.begin_run(run, node=A)
    last = replace(end("r1"), history=(entry("hello"),), finished_at=at(4))
    await world.a.finish_run(last, node=A)
    await world.a.reset_session(key_of(ANN), now=at(5))
    await do_command(world, 6, "/usage", say("after"))
    said = [text for _, text in await said_aside(world)]
    assert said == ["never sent", "/status", "before", "/usage", "after"], "none of a press"
