"""In which groups the agent listens, and to what (SPEC CHAN-5 to CHAN-7, AGENT-3)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.chat.outbound import texts
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import (
    ChatMigrated,
    ChatReached,
    InboundMessage,
    OutboundMessage,
    PeerKind,
    Sender,
    Target,
)
from goclaw_py.core.session_keys import AccessRules, DirectPolicy, GroupPolicy
from goclaw_py.records import Chat, NewPairing, PairingRequest
from goclaw_py.runs.context_usage import ContextUsage
from goclaw_py.runs.session_settings import ChatRules, OperatorDecidedAccounts, SessionSettings
from goclaw_py.scheduler.models import Mode, QueuePolicy
from goclaw_py.testing.agents import ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import GatewayProcess, Ways, a_process, message, session_of, until

AT_ONCE = Ways(QueuePolicy(), QueuePolicy(), access=DirectPolicy.OPEN)
OPEN = replace(AT_ONCE, groups=GroupPolicy.OPEN)
BURSTS = replace(OPEN, group=QueuePolicy(debounce_s=0.8))
GROUP = "-100"
PLACE = Target("telegram", "default", GROUP)


def in_public(ways: Ways = AT_ONCE) -> AbstractAsyncContextManager[GatewayProcess]:
    """A gateway whose channel anybody can reach."""
    return a_process(ways=ways, channels=(RecordingChannel(trusted=False),))


async def decide(gateway: GatewayProcess, chat: str = GROUP, *, allowed: bool) -> None:
    """What the operator says about a chat; it holds at once."""
    now = gateway.clock.now()
    await gateway.store.allow_chat("telegram", "default", chat, allowed=allowed, now=now)
    await asyncio.sleep(0.1)


def said(text: str, *, addressed: bool = True, chat: str = GROUP) -> InboundMessage:
    """Somebody says something in a group."""
    spoken = message(text, chat=chat, sender="ann", peer=PeerKind.GROUP)
    return replace(spoken, addressed=addressed, place_name="Family")


async def hears(gateway: GatewayProcess, *batch: InboundMessage) -> list[str]:
    """Let a batch arrive and tell what the agent was asked."""
    await gateway.gateway.accept(batch)
    await asyncio.sleep(5)
    return gateway.scripted.texts


async def the_chat(gateway: GatewayProcess) -> Chat:
    (chat,) = await gateway.store.chats()
    return chat


async def test_an_unknown_group_is_silence_and_listed_for_the_operator() -> None:
    async with in_public() as gateway:
        assert await hears(gateway, said("hello"), said("/help")) == []
        assert gateway.channel.attempts == []
        assert await gateway.store.sessions() == []
        chat = await the_chat(gateway)
        assert (chat.chat, chat.name, chat.allowed) == (GROUP, "Family", None)


async def test_an_unknown_group_is_noted_once_an_hour() -> None:
    """Its chatter costs nothing."""
    async with in_public() as gateway:
        for number in range(59):
            await gateway.gateway.accept([said(f"{number}", addressed=False)])
            await asyncio.sleep(60)
        assert gateway.store.calls["note_chats"] == 1
        await asyncio.sleep(60)
        await gateway.gateway.accept([replace(said("more"), place_name="Friends")])
        assert gateway.store.calls["note_chats"] == 2
        assert (await the_chat(gateway)).name == "Friends"


async def test_a_group_that_could_not_be_noted_is_noted_with_the_next_message() -> None:
    """SPEC DB-4."""
    async with in_public() as gateway:
        gateway.store.away = True
        with pytest.raises(StoreUnavailable):
            await gateway.gateway.accept([said("hello")])
        gateway.store.away = False
        await gateway.gateway.accept([said("hello")])
        assert (await the_chat(gateway)).chat == GROUP


@pytest.mark.parametrize("ways", [AT_ONCE, OPEN])
async def test_the_operator_allows_a_group_and_denies_it_again(ways: Ways) -> None:
    """At once, without a restart; a denied group is silence though all are open."""
    async with in_public(ways) as gateway:
        steps = (("1", True, ["1"]), ("2", False, ["1"]), ("3", True, ["1", "3"]))
        for text, allowed, prompts in steps:
            await decide(gateway, allowed=allowed)
            assert await hears(gateway, said(text)) == prompts


@pytest.mark.parametrize("peer", PeerKind)
async def test_who_talks_under_open_policies_is_listed_and_can_be_denied(peer: PeerKind) -> None:
    async with in_public(OPEN) as gateway:
        in_group = peer is PeerKind.GROUP
        chat, name = ("-100", "Family") if in_group else ("ann", "Ann (@ann_7)")

        def spoken(text: str) -> InboundMessage:
            who = Sender("ann", "Ann", "ann_7")
            place = {"addressed": True, "place_name": "Family", "sender": who}
            return replace(message(text, chat=chat, peer=peer), **place)  # type: ignore[arg-type]

        assert await hears(gateway, spoken("1"), spoken("2")) == ["1", "2"]
        seen = await the_chat(gateway)
        assert (seen.chat, seen.peer, seen.name, seen.allowed) == (chat, peer, name, None)
        assert len(await gateway.store.activity()) == 1
        assert gateway.store.calls["note_chats"] == 1
        for allowed, prompts in ((False, ["1", "2"]), (True, ["1", "2", "3"])):
            await decide(gateway, chat, allowed=allowed)
            assert await hears(gateway, spoken("3")) == prompts
            assert len(await gateway.store.activity()) == allowed, "no alert goes to a denied chat"


async def test_an_approved_person_is_not_listed_again() -> None:
    async with in_public() as gateway:
        now, place = gateway.clock.now(), ("telegram", "default")
        later = now.replace(year=2100)
        request = PairingRequest(*place, Sender("ann"), "hash", now, later, "1", "ann")
        pairing = NewPairing(request, (OutboundMessage(Target(*place, "ann"), "your code"),))
        await gateway.store.accept([], node=gateway.node(), now=now, pairings=[pairing])
        await gateway.store.approve("hash", guest=True, now=now)
        await gateway.access_control.refresh()
        assert await hears(gateway, message("1", chat="ann", sender="ann")) == ["1"]
        assert await gateway.store.chats() == []


async def test_in_a_group_only_what_is_addressed_is_answered_unless_mention_is_off() -> None:
    batch = said("among us", addressed=False), said("you there")
    async with in_public(OPEN) as gateway:
        assert await hears(gateway, *batch) == ["you there"]
        assert gateway.channel.sent[0].reply_to == batch[1].message_id
    async with in_public(replace(OPEN, mention=False)) as gateway:
        assert await hears(gateway, *batch) == ["among us", "you there"]


async def test_pieces_of_an_album_are_addressed_if_one_of_them_is() -> None:
    """SPEC CHAN-6: albums are one message; the caption may stand at any piece."""
    async with in_public(BURSTS) as gateway:
        pieces = [replace(said(text, addressed=bool(text)), album="7") for text in ("", "look", "")]
        other = replace(said("", addressed=False), album="8")
        await gateway.gateway.accept([*pieces, other])
        assert len(gateway.database.inbox) == 3
        await gateway.gateway.accept([replace(said("", addressed=False), album="7")])
        assert len(gateway.database.inbox) == 4


@pytest.mark.parametrize("fails", [0, 2])
async def test_the_rest_of_a_cut_text_is_addressed_as_its_beginning(fails: int) -> None:
    """SPEC QUEUE-6, IO-1, DB-4: also after a commit that failed; the channel offers it again."""
    async with in_public(BURSTS) as gateway:
        await gateway.gateway.accept([replace(said("@bot a long "), cut=True)])
        rest = [replace(said("text and ", addressed=False), cut=True)]
        rest += [said(text, addressed=False) for text in ("its end", "chatter")]
        for piece in rest:
            gateway.store.away = True
            for _ in range(fails):
                with pytest.raises(StoreUnavailable):
                    await gateway.gateway.accept([piece])
            gateway.store.away = False
            await gateway.gateway.accept([piece])
        await asyncio.sleep(10)
        assert gateway.scripted.texts == ["@bot a long text and its end"]


@pytest.mark.parametrize("stranger", ["sender", "late", "chat"])
async def test_what_somebody_else_or_later_says_is_not_the_rest(stranger: str) -> None:
    async with in_public(BURSTS) as gateway:
        await gateway.gateway.accept([replace(said("@bot a long "), cut=True)])
        other = said("chatter", addressed=False, chat="-200" if stranger == "chat" else GROUP)
        if stranger == "sender":
            other = replace(other, sender=replace(other.sender, id="bob"))
        if stranger == "late":
            other = replace(other, sent_at=other.sent_at + timedelta(seconds=6))
        assert await hears(gateway, other) == ["@bot a long "]


async def test_an_unsupported_kind_gets_the_polite_line_only_if_the_agent_was_meant() -> None:
    """SPEC CHAN-6: with mention off a group is not told about each of its stickers."""
    async with in_public(replace(OPEN, mention=False)) as gateway:
        for addressed in (False, True):
            sticker = replace(said("", addressed=addressed), unsupported="stickers")
            assert await hears(gateway, sticker) == []
            assert gateway.channel.texts() == [texts.unsupported("stickers")] * addressed
            assert gateway.pending == []


MOVED = ChatMigrated("telegram", "default", GROUP, "-1002")


async def test_a_migrated_group_is_answered_at_once_in_its_session() -> None:
    """SPEC CHAN-7: what comes behind the event in its batch is of the new chat already."""
    async with in_public() as gateway:
        await decide(gateway, allowed=True)
        await hears(gateway, said("before"))
        await gateway.gateway.accept([MOVED, said("after", chat="-1002")])
        await gateway.channel.until_sent(2)
        assert gateway.channel.sent[1].target.chat == "-1002"
        history = [entry.text for entry in gateway.scripted.requests[1].history]
        assert history == ["Ann (id ann): before", "re: Ann (id ann): before"]
        await asyncio.sleep(30)
        assert await hears(gateway, said("later", chat="-1002")) == ["before", "after", "later"]
        assert [chat.chat for chat in await gateway.store.chats()] == ["-1002"]


def narrow(gateway: GatewayProcess, chat: str, **changes: object) -> None:
    """Other settings for one chat."""
    place = ("telegram", "default")
    account = gateway.gateway._policies._rules[place]
    own = replace(account, **changes)  # type: ignore[arg-type]  # fields of the class
    gateway.gateway._policies._rules = {place: replace(account, narrower={chat: own})}


async def test_a_group_that_the_settings_allow_stays_allowed_when_it_migrates() -> None:
    """SPEC CHAN-7: permissions move, also those that stand in a file under the old id."""
    async with in_public() as gateway:
        narrow(gateway, GROUP, access=AccessRules(DirectPolicy.OPEN, listed=True))
        assert await hears(gateway, said("before")) == ["before"]
        await gateway.gateway.accept([MOVED, said("after", chat="-1002")])
        await asyncio.sleep(30)
        assert await hears(gateway, said("later", chat="-1002")) == ["before", "after", "later"]


async def test_a_migration_that_is_told_again_changes_nothing() -> None:
    """SPEC CHAN-7: Telegram tells it in both chats."""
    async with in_public(OPEN) as gateway:
        await hears(gateway, said("before"))
        for _ in range(3):
            await gateway.gateway.accept([MOVED])
        sessions = await gateway.store.sessions()
        assert [s.key for s in sessions] == [session_of("-1002", peer=PeerKind.GROUP)]


async def test_a_chat_that_cannot_be_written_to_is_marked_until_it_can() -> None:
    """SPEC CHAN-7, HB-8: or until somebody writes there."""
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.ask("hello")
        place = Target("telegram", "default", "ann")
        blocked = ChatReached(place, PeerKind.DIRECT, "blocked", "Ann")
        await gateway.gateway.accept([blocked])
        chat = await the_chat(gateway)
        assert (chat.gone, chat.name) == ("blocked", "Ann")
        assert await gateway.store.activity() == []
        await gateway.gateway.accept([ChatReached(place, PeerKind.DIRECT)])
        assert (await the_chat(gateway)).gone == ""
        assert [heard.target for heard in await gateway.store.activity()] == [place]
        await gateway.gateway.accept([blocked])
        await asyncio.sleep(0.1)
        await gateway.ask("I am back")
        assert (await the_chat(gateway)).gone == ""
        calls = gateway.store.calls["mark_chat"]
        await asyncio.sleep(0.1)
        await gateway.ask("again")
        assert gateway.store.calls["mark_chat"] == calls


async def test_an_event_that_was_not_stored_is_not_confirmed() -> None:
    """SPEC IO-1."""
    async with a_process(ways=AT_ONCE) as gateway:
        event = ChatReached(PLACE, PeerKind.GROUP, "kicked", "Family")
        gateway.store.broken = {"mark_chat"}
        with pytest.raises(StoreUnavailable):
            await gateway.gateway.accept([event, said("/stop")])
        assert gateway.database.inbox == {}
        gateway.store.broken = set()
        await gateway.gateway.accept([event])
        assert (await the_chat(gateway)).gone == "kicked"


def rules(agent: str, **narrower: ChatRules) -> ChatRules:
    mode = Mode.COLLECT if agent == "inner" else Mode.QUEUE
    policy = QueuePolicy(mode=mode)
    return ChatRules(AgentName(agent), AccessRules(), policy, policy, narrower=narrower)


@pytest.mark.parametrize(
    ("chat", "thread", "agent"),
    [
        ("other", None, "account"),
        ("other", "7", "account"),
        ("chat", None, "chat"),
        ("chat", "1", "chat"),
        ("chat", "7", "inner"),
    ],
)
def test_the_narrowest_rules_hold(chat: str, thread: str | None, agent: str) -> None:
    tree = rules("account", chat=rules("chat", **{"7": rules("inner")}))
    policies = SessionSettings({("telegram", "default"): tree}, ContextUsage({}))
    place = Target("telegram", "default", chat, thread)
    assert policies.rules(place).agent == agent
    spoken = replace(message("x"), target=place)
    expected = Mode.COLLECT if agent == "inner" else Mode.QUEUE
    assert policies.policy(session_of(chat), spoken).mode is expected


async def test_a_chat_is_answered_by_its_own_agent_in_a_session_of_its_own() -> None:
    """SPEC AGENT-3, IO-7."""
    name, other = AgentName("other"), ScriptedAgent()
    async with a_process(ways=AT_ONCE, others={name: other}) as gateway:
        narrow(gateway, "bob", agent=name)
        workspaces = {name: gateway.workspace}
        gateway.runner._received._workspaces = gateway.runner._replies._workspaces = workspaces
        await gateway.say("hello", chat="bob")
        await until(lambda: bool(other.requests))
        assert other.requests[0].session == "agent:other:telegram:direct:bob"


async def test_a_bug_that_one_message_meets_costs_only_that_message(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes again and again with the whole batch would make the channel deaf."""
    async with in_public(OPEN) as gateway:
        known = gateway.access_control.decided

        def decided(target: Target) -> bool | None:
            if target.chat == "-666":
                raise RuntimeError("a bug")
            return known(target)

        monkeypatch.setattr(gateway.access_control, "decided", decided)
        assert await hears(gateway, said("cursed", chat="-666"), said("hello")) == ["hello"]
        assert "inbound_event_skipped" in caplog.messages


ASKS = AccessRules(group=GroupPolicy.ALLOWLIST)


def chat_rules(access: AccessRules, **narrower: AccessRules) -> ChatRules:
    within = {chat: chat_rules(own) for chat, own in narrower.items()}
    policy = QueuePolicy()
    return ChatRules(AgentName("main"), access, policy, policy, narrower=within)


def asking(accounts: Mapping[str, ChatRules]) -> OperatorDecidedAccounts:
    rules = {("telegram", name): own for name, own in accounts.items()}
    return SessionSettings(rules, ContextUsage({})).asking()


def test_groups_of_accounts_that_take_all_or_none_wait_for_nobody() -> None:
    found = asking(
        {
            "asks": chat_rules(ASKS),
            "all": chat_rules(AccessRules(group=GroupPolicy.OPEN)),
            "none": chat_rules(AccessRules(group=GroupPolicy.DISABLED)),
            "mine": chat_rules(replace(ASKS, trusted=True)),
        }
    )
    assert (list(found.places), list(found.settled)) == ([("telegram", "asks")], [])


def test_chats_about_which_the_settings_say_something_are_settled() -> None:
    listed, denied = replace(ASKS, listed=True), replace(ASKS, listed=False)
    found = asking({"asks": chat_rules(ASKS, yes=listed, no=denied, other=ASKS)})
    assert list(found.settled) == [Target("telegram", "asks", chat) for chat in ("yes", "no")]
