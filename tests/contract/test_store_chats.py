"""What every store promises about chats (SPEC CHAN-5, CHAN-7, HB-8)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from goclaw_py.model.ids import AgentName
from goclaw_py.model.messages import PeerKind, Target, TopicState
from goclaw_py.model.outcomes import Outcome
from goclaw_py.model.session_keys import chat_session
from goclaw_py.ports.store import Chat, InboxKind, NewInbox, Notice, SeenChat, Topic
from goclaw_py.ports.store import LastActivity as HeardThere
from tests.support.stores import (
    AGENT,
    ANN,
    BOB,
    T0,
    A,
    World,
    at,
    inbox,
    listen,
    message,
    new_run,
    say,
    until,
)

pytestmark = pytest.mark.real_time

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


async def test_where_somebody_spoke_last_comes_first(world: World) -> None:
    """HB-8: the last chat and thread, of accepted messages and commands, once each."""
    topic = replace(CREW, thread="4")
    await speak(world, 1, ANN, now=at(1))
    await speak(world, 2, topic, now=at(2), agent="work", peer=PeerKind.GROUP, sender="8")
    await speak(world, 3, BOB, now=at(3), outcome=Outcome.COMPLETED)
    batch = [inbox(4, sender="8"), inbox(5, sender="9")]
    await world.a.accept(batch, node=A, now=at(4))
    await speak(world, 3, BOB, now=at(5))
    assert await world.b.heard() == [
        HeardThere(ANN, PeerKind.DIRECT, AGENT, "9", at(4)),
        HeardThere(BOB, PeerKind.DIRECT, AGENT, "7", at(3)),
        HeardThere(topic, PeerKind.GROUP, AgentName("work"), "8", at(2)),
    ]
    assert [there.target for there in await world.b.heard(limit=1)] == [ANN]


async def test_it_can_be_asked_for_one_agent_and_for_direct_chats(world: World) -> None:
    """HB-8: ``last_scope``."""
    await speak(world, 1, ANN, now=at(1))
    await speak(world, 2, BOB, now=at(2), agent="work")
    await speak(world, 3, CREW, now=at(3), peer=PeerKind.GROUP)
    assert [there.target for there in await world.a.heard(direct=True)] == [BOB, ANN]
    assert [there.target for there in await world.a.heard(agent=AGENT)] == [CREW, ANN]
    assert [there.target for there in await world.a.heard(agent=AGENT, direct=True)] == [ANN]


async def test_a_denied_chat_and_one_that_is_gone_are_left_out_of_where_people_spoke(
    world: World,
) -> None:
    """HB-8: no alert goes to somebody whom the operator has denied, nor to nobody."""

    async def spoke(limit: int = 9) -> list[Target]:
        return [there.target for there in await world.b.heard(limit=limit)]

    await speak(world, 1, ANN, now=at(1))
    await speak(world, 2, BOB, now=at(2))
    await world.a.mark_chat(BOB, PeerKind.DIRECT, gone="blocked", now=at(3))
    assert await spoke(limit=1) == [ANN]
    for allowed, left in ((False, []), (True, [ANN])):
        await world.a.allow_chat(ANN.channel, ANN.account, ANN.chat, allowed=allowed, now=at(3))
        assert await spoke() == left
    await world.a.mark_chat(BOB, PeerKind.DIRECT, gone="", now=at(4))
    assert await spoke() == [BOB, ANN]


async def test_a_run_is_nobody_who_speaks(world: World) -> None:
    """HB-8: a job that runs in a chat is not its user."""
    await world.a.begin_run(new_run("r", started_at=at(9)), node=A)
    assert await world.a.heard() == []
    await speak(world, 1, BOB, now=at(1))
    await world.a.begin_run(new_run("r2", target=BOB, started_at=at(9)), node=A)
    assert [there.at for there in await world.a.heard()] == [at(1)]


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
    assert not await world.a.tell_topic_gone(PLANS, told, now=T0), "it is open"
    await world.a.note_topic(PLANS, state=TopicState.CLOSED)
    assert await world.a.tell_topic_gone(PLANS, told, now=T0)
    assert not await world.b.tell_topic_gone(PLANS, told, now=T0)
    await world.a.note_topic(PLANS, state=TopicState.DELETED)
    assert (await world.b.topic(PLANS)).told
    assert not await world.b.tell_topic_gone(PLANS, told, now=T0)
    assert [row.message.text for row in await world.a.outbox()] == ["closed"]
    await world.a.note_topic(PLANS, state=TopicState.OPEN)
    await world.a.note_topic(PLANS, state=TopicState.CLOSED)
    assert await world.a.tell_topic_gone(PLANS, [], now=T0)


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
