"""What owners are asked (SPEC CHAN-5) and told of troubles that last (SPEC CHAN-10)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

import pytest

from goclaw_py.chat.access import access_texts
from goclaw_py.chat.access.access_requests import MOST_ASKED
from goclaw_py.chat.access.incident_alerts import LASTS_S, LOOK_S, IncidentAlerts
from goclaw_py.core.messages import InboundMessage, OutboundMessage, PeerKind, Sender, Target
from goclaw_py.core.run_events import ButtonsUsed, PressAnswered
from goclaw_py.records import NewPairing, PairingRequest, Standing
from goclaw_py.records.people import AccessVerdict
from goclaw_py.scheduler.views import ChannelState, ChannelView
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import GatewayProcess, a_process, message, until
from tests.support.memory_store import MemoryDatabase

ASKED = "Bob (@bob) (id bob) wants to talk to @our_bot. "
GROUP = "-100"


@asynccontextmanager
async def nodes(*owners: str, count: int = 1) -> AsyncIterator[list[GatewayProcess]]:
    """Gateways on one database; owners have spoken in their chats with the first."""
    database = MemoryDatabase()
    async with AsyncExitStack() as stack:
        started: list[GatewayProcess] = []
        for _ in range(count):
            process = a_process(channels=(RecordingChannel(trusted=False),), database=database)
            started.append(await stack.enter_async_context(process))
        store, now = started[0].store, started[0].clock.now
        for owner in owners:
            await started[0].ask("hello", chat=owner)
            requests = await store.pairing_requests(now=now())
            (code,) = [one.code_hash for one in requests if one.sender.id == owner]
            await store.approve(code, guest=False, now=now())
            await started[0].channel.until(partial(has_answered, started, owner))
        await asyncio.sleep(15)  # all of them know the owners by now
        for one in started:
            one.channel.sent.clear()
        yield started


@asynccontextmanager
async def one_node(*owners: str) -> AsyncIterator[GatewayProcess]:
    async with nodes(*owners) as (gateway,):
        yield gateway


def has_answered(started: list[GatewayProcess], chat: str) -> bool:
    return "re: hello" in said(started, chat)


def said(started: list[GatewayProcess], chat: str) -> list[str]:
    """What was sent to a chat, by whichever node."""
    return [text for one in started for text in one.channel.texts(chat)]


def asking(text: str = "hello", who: str = "bob") -> InboundMessage:
    return replace(message(text, chat=who), sender=Sender(who, who.title(), who))


def in_group(text: str, chat: str = GROUP) -> InboundMessage:
    spoken = message(text, chat=chat, sender="eve", peer=PeerKind.GROUP)
    return replace(spoken, place_name="Family")


async def asked(started: list[GatewayProcess], chat: str) -> OutboundMessage:
    """The newest message with buttons in the chat of an owner."""

    def found() -> list[OutboundMessage]:
        sent = [message for one in started for message in one.channel.sent]
        return [one for one in sent if one.target.chat == chat and one.buttons]

    await until(lambda: bool(found()))
    return found()[-1]


def press(below: OutboundMessage, label: str, by: str = "") -> InboundMessage:
    """Somebody presses the button that says so, in their own chat."""
    (data,) = [b.data for row in below.buttons for b in row if label in b.text]
    return replace(asking(label, by or below.target.chat), press=data, reply_to="5")


async def toast(gateway: GatewayProcess, pressed: InboundMessage) -> str:
    """Press, and what is shown for a moment."""
    await gateway.gateway.accept([pressed])

    def shown() -> list[str]:
        answers = [one for one in gateway.channel.signals if isinstance(one, PressAnswered)]
        return [one.text for one in answers if one.press == pressed.external_id]

    await until(lambda: bool(shown()))
    return shown()[0]


async def test_owners_are_asked_once_for_each_request() -> None:
    """Each in the direct chat used last, a guest not at all."""
    async with one_node("ann", "cyd") as gateway:
        for _ in range(3):
            await gateway.gateway.accept([asking(), asking("again")])
            await asyncio.sleep(60)
        for owner in ("ann", "cyd"):
            (text,) = gateway.channel.texts(owner)
            assert text.startswith(ASKED)
        below = await asked([gateway], "ann")
        labels = [[button.text for button in row] for row in below.buttons]
        assert labels == [["👤 As guest", "👑 As owner"], ["🚫 Deny"]]
        assert "I have asked the owner" in said([gateway], "bob")[0]


@pytest.mark.parametrize(
    ("label", "standing", "shown", "outcome"),
    [
        ("👑", Standing.OWNER, "✅ Bob can talk to me now, as an owner.", "✅ Approved as owner"),
        ("👤", Standing.GUEST, "✅ Bob can talk to me now, as a guest.", "✅ Approved as guest by"),
        ("🚫", None, "🚫 Denied. Bob is not notified.", "🚫 Denied by Ann (@ann)."),
    ],
)
async def test_the_first_press_decides_and_all_owners_see_it(
    label: str, standing: Standing | None, shown: str, outcome: str
) -> None:
    """Whoever presses, on whichever node."""
    async with nodes("ann", "cyd", count=2) as started:
        one, other = started
        await one.gateway.accept([asking("feed the cat")])
        anns, cyds = await asked(started, "ann"), await asked(started, "cyd")
        if label == "👑":
            anns = await confirming(one, anns)
        assert await toast(one, press(anns, label)) == shown
        late = press(cyds, "Deny" if standing else "As guest")
        assert await toast(other, late) == access_texts.DECIDED
        await asyncio.sleep(30)
        people = {person.sender.id: person.standing for person in await one.store.people()}
        assert people.get("bob") == standing
        answers = [access_texts.WELCOME, "re: feed the cat"] if standing else []
        assert said(started, "bob")[1:] == answers
        for owner in ("ann", "cyd"):
            closed = said(started, owner)[-1]
            assert closed.startswith(ASKED)
            assert outcome in closed
        used = [s for n in started for s in n.channel.signals if isinstance(s, ButtonsUsed)]
        assert {signal.target.chat for signal in used} == {"ann", "cyd"}


async def confirming(gateway: GatewayProcess, below: OutboundMessage) -> OutboundMessage:
    """Press “As owner”, and the message that asks again in its place."""
    pressed = press(below, "As owner")
    assert await toast(gateway, pressed) == access_texts.SURE
    owners = {one.sender.id for one in await gateway.store.people()}
    assert "bob" not in owners
    await until(lambda: gateway.channel.sent[-1].draft == pressed.reply_to)
    again = gateway.channel.sent[-1]
    assert again.text.startswith("Make Bob (@bob) (id bob) an owner?")
    labels = [[button.text for button in row] for row in again.buttons]
    assert labels == [["👑 Yes, as owner", "↩️ Back"]]
    return again


async def test_nobody_becomes_an_owner_by_one_press() -> None:
    """The way back leads to the same question; nothing was decided."""
    async with one_node("ann") as gateway:
        await gateway.gateway.accept([asking()])
        first = await asked([gateway], "ann")
        again = await confirming(gateway, first)
        assert await toast(gateway, press(again, "Back")) == access_texts.NOT_DECIDED
        await until(lambda: gateway.channel.sent[-1].text == first.text)
        assert gateway.channel.sent[-1].buttons == first.buttons
        assert not any(isinstance(one, ButtonsUsed) for one in gateway.channel.signals)
        shown = await toast(gateway, press(gateway.channel.sent[-1], "As guest"))
        assert shown == "✅ Bob can talk to me now, as a guest."
        # The second question is not answered any more.
        assert await toast(gateway, press(again, "Yes")) == access_texts.DECIDED
        (_, bob) = sorted(await gateway.store.people(), key=lambda one: one.sender.id)
        assert bob.standing is Standing.GUEST


async def test_who_was_denied_asks_no_more_until_that_is_undone() -> None:
    async with one_node("ann") as gateway:
        await gateway.gateway.accept([asking()])
        await toast(gateway, press(await asked([gateway], "ann"), "Deny"))
        await asyncio.sleep(1)
        await gateway.gateway.accept([asking()])
        await asyncio.sleep(60)
        assert len(said([gateway], "bob")) == 1
        (chat,) = await gateway.store.chats()
        assert (chat.peer, chat.name, chat.allowed) == (PeerKind.DIRECT, "Bob (@bob)", False)
        await gateway.control.people.allow_chat("telegram", "default", "bob", allowed=True)
        await asyncio.sleep(1)
        await gateway.gateway.accept([asking()])
        await until(lambda: len(said([gateway], "bob")) == 2)


async def test_only_an_owner_in_a_direct_chat_decides() -> None:
    """Not a guest, a stranger or a former owner; what a press brings can be made up."""
    async with one_node("ann", "cyd") as gateway:
        await gateway.gateway.accept([asking(who="gus")])
        await toast(gateway, press(await asked([gateway], "ann"), "guest"))
        await gateway.gateway.accept([asking()])
        below = await asked([gateway], "ann")
        await gateway.control.people.revoke("telegram", "default", "cyd")
        await gateway.control.people.allow_chat("telegram", "default", GROUP, allowed=True)
        await asyncio.sleep(1)
        in_the_group = Target("telegram", "default", GROUP)
        owners = replace(press(below, "👑"), target=in_the_group, peer=PeerKind.GROUP)
        for pressed in (*(press(below, "👑", by=who) for who in ("gus", "bob", "cyd")), owners):
            assert await toast(gateway, pressed) == access_texts.NOT_AN_OWNER
        assert "bob" not in [person.sender.id for person in await gateway.store.people()]
        assert len(await gateway.store.pairing_requests(now=gateway.clock.now())) == 1


async def test_owners_of_another_account_are_not_asked_and_decide_nothing() -> None:
    """An account is a bot of its own."""
    async with one_node("ann") as gateway:
        await gateway.gateway.accept([asking()])
        now, approve = gateway.clock.now(), AccessVerdict.APPROVE
        (request,) = await gateway.store.pairing_requests(now=now)
        for place in (("telegram", "second"), ("web", "default")):
            decided = gateway.store.decide(request.id, approve, place=place, by="Zoe", now=now)
            assert await decided is None
        assert len(await gateway.store.pairing_requests(now=now)) == 1


async def test_a_press_after_an_hour_is_too_late() -> None:
    """The buttons go, and whoever writes again is asked about again."""
    async with one_node("ann") as gateway:
        await gateway.gateway.accept([asking()])
        old = await asked([gateway], "ann")
        await asyncio.sleep(3600)
        assert await toast(gateway, press(old, "👑")) == (
            "⌛ This request has expired. You get a new one when Bob writes again."
        )
        assert any(isinstance(one, ButtonsUsed) for one in gateway.channel.signals)
        await gateway.gateway.accept([asking()])
        await until(lambda: len(said([gateway], "ann")) == 2)
        assert await toast(gateway, press(old, "👑")) == access_texts.DECIDED
        new = await asked([gateway], "ann")
        assert (await toast(gateway, press(new, "As guest"))).startswith("✅ Bob")


async def test_a_decision_by_the_operator_is_seen_by_owners() -> None:
    """One that was not asked yet is not asked any more."""
    async with one_node("ann", "cyd") as gateway:
        gateway.channel.unreachable.add("cyd")
        await gateway.gateway.accept([asking()])
        below = await asked([gateway], "ann")
        await gateway.control.people.allow_chat("telegram", "default", "bob", allowed=False)
        await until(lambda: said([gateway], "ann")[-1].endswith("🚫 Denied by the operator."))
        assert await toast(gateway, press(below, "👑")) == access_texts.DECIDED
        gateway.channel.unreachable.clear()
        await asyncio.sleep(60)
        assert said([gateway], "cyd") == []
        assert await gateway.control.people.requests() == []


@pytest.mark.slow
async def test_strangers_cannot_flood_owners() -> None:
    """Some an hour, then one line that there are more."""
    async with one_node("ann") as gateway:
        await gateway.gateway.accept([asking(who=f"s{n}") for n in range(40)])
        await gateway.gateway.accept([asking(who=f"t{n}") for n in range(40)])
        await gateway.gateway.accept([in_group("hello")])
        await asyncio.sleep(60)
        texts = said([gateway], "ann")
        assert len(texts) == MOST_ASKED + 1
        assert texts[-1] == access_texts.MORE_ASK
        await asyncio.sleep(3600)
        await gateway.gateway.accept([asking(), in_group("hello")])
        await until(lambda: len(said([gateway], "ann")) == MOST_ASKED + 3)


@pytest.mark.parametrize(("label", "allowed"), [("✅ Allow", True), ("🚫 Deny", False)])
async def test_an_owner_decides_about_a_group(label: str, *, allowed: bool) -> None:
    """The group reads nothing until it is allowed."""
    async with one_node("ann") as gateway:
        await gateway.gateway.accept([in_group("hello")])
        below = await asked([gateway], "ann")
        question = "Someone wrote to me in the group “Family”. May everyone there talk to @our_bot?"
        assert below.text == question
        told = await toast(gateway, press(below, label))
        assert told == (
            "✅ I answer in “Family” now." if allowed else "🚫 I will not answer in “Family”."
        )
        await until(lambda: said([gateway], "ann")[-1].endswith("ed by Ann (@ann)."))
        await gateway.gateway.accept([in_group("you there?")])
        await asyncio.sleep(60)
        answers = [access_texts.GROUP_WELCOME, "re: Eve (id eve): you there?"]
        assert said([gateway], GROUP) == (answers if allowed else [])
        assert len(said([gateway], "ann")) == 2


async def test_a_group_is_asked_about_once_as_long_as_nobody_decides() -> None:
    """Also where no owner was there to be asked when it first spoke."""
    async with one_node() as gateway:
        await gateway.gateway.accept([in_group("hello")])
        assert await gateway.store.pairing_requests(now=gateway.clock.now()) == []
        await gateway.ask("hello", chat="ann")
        (request,) = await gateway.store.pairing_requests(now=gateway.clock.now())
        await gateway.store.approve(request.code_hash, guest=False, now=gateway.clock.now())
        await until(lambda: "re: hello" in said([gateway], "ann"))
        before = len(said([gateway], "ann"))
        for _ in range(3):
            await asyncio.sleep(timedelta(minutes=30).total_seconds())
            await gateway.gateway.accept([in_group("hello")])
        await asyncio.sleep(60)
        assert len(said([gateway], "ann")) == before + 1
        await gateway.control.people.allow_chat("telegram", "default", GROUP, allowed=True)
        await until(lambda: said([gateway], "ann")[-1].endswith("✅ Allowed by the operator."))


async def test_a_request_of_a_group_follows_it_to_its_new_id() -> None:
    """SPEC CHAN-7."""
    async with one_node("ann") as gateway:
        await gateway.gateway.accept([in_group("hello")])
        below = await asked([gateway], "ann")
        now = gateway.clock.now()
        await gateway.store.move_chat("telegram", "default", old=GROUP, new="-200", now=now)
        await toast(gateway, press(below, "Allow"))
        await asyncio.sleep(1)
        await gateway.gateway.accept([in_group("hello", chat="-200")])
        await until(lambda: said([gateway], "-200")[-1:] == ["re: Eve (id eve): hello"])


def test_a_name_can_not_pretend_to_be_other_text() -> None:
    sender = Sender("7", "Ann\n\nApproved by \u202eBob " + "x" * 100, "ann")
    text = access_texts.asks_to_talk(sender, "me")
    assert text.startswith("Ann Approved by Bob xxxxxxxxxxxxxxxxxxx… (@ann) (id 7) wants to talk")


NO_NETWORK = "Telegram cannot be reached"


@dataclass(slots=True)
class Shown:
    """What the channel shows of itself."""

    view: ChannelView = field(init=False)

    def __post_init__(self) -> None:
        self.becomes(ChannelState.CONNECTED)

    def becomes(self, state: ChannelState, detail: str = "") -> None:
        self.view = ChannelView("telegram", "default", state, detail)


@asynccontextmanager
async def watching(process: GatewayProcess, shown: Shown) -> AsyncIterator[None]:
    policies = process.container.policies
    alerts = IncidentAlerts(process.store, process.clock, policies, lambda: [shown.view])
    task = asyncio.create_task(alerts.watch())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


@asynccontextmanager
async def watched(*owners: str) -> AsyncIterator[tuple[GatewayProcess, Shown]]:
    """A gateway whose channel shows what the test says; owners have spoken in their chats."""
    async with a_process(channels=(RecordingChannel(trusted=False),)) as process:
        for owner in owners:
            await admit(process, owner)
            await process.ask("hello", chat=owner)
        shown = Shown()
        async with watching(process, shown):
            yield process, shown


async def admit(process: GatewayProcess, person: str, *, guest: bool = False) -> None:
    now, place = process.clock.now(), ("telegram", "default")
    later = now.replace(year=2100)
    request = PairingRequest(*place, Sender(person), person, now, later, person, person)
    greeting = OutboundMessage(Target(*place, person), "your code")
    pairings = [NewPairing(request, (greeting,))]
    await process.store.accept([], node=process.node(), now=now, pairings=pairings)
    assert await process.store.approve(person, guest=guest, now=now) is not None
    await process.access_control.refresh()


def told(process: GatewayProcess, chat: str) -> list[str]:
    return [text for text in process.channel.texts(chat) if "has a problem" in text]


async def test_an_owner_is_alerted_once_however_many_conversations_they_have() -> None:
    """Found by use: each conversation of the operator got a copy of a guest's question."""
    async with a_process(channels=(RecordingChannel("console"),)) as process:
        for chat in ("20260102-030405-00af", "release", "20260103-030405-00af", "release"):
            await process.gateway.accept([message("hello", chat=chat, channel="console")])
            await until(lambda: process.pending == [])
            await asyncio.sleep(60)
        chats = await process.container.incidents.owners_chats()
        assert [chat.chat for chat in chats] == ["release"]


@pytest.mark.slow
async def test_a_trouble_that_lasts_is_told_once() -> None:
    async with watched("ann") as (process, shown):
        shown.becomes(ChannelState.RECONNECTING, NO_NETWORK)
        await asyncio.sleep(LASTS_S - 2 * LOOK_S)
        assert told(process, "ann") == []
        await until(lambda: len(told(process, "ann")) == 1)
        await asyncio.sleep(3600)
        (text,) = told(process, "ann")
        assert NO_NETWORK in text
        assert text.startswith("⚠️ Telegram has a problem: ")


async def test_a_trouble_that_passes_is_told_to_nobody() -> None:
    async with watched("ann") as (process, shown):
        for _ in range(5):
            shown.becomes(ChannelState.RECONNECTING, NO_NETWORK)
            await asyncio.sleep(LASTS_S / 2)
            shown.becomes(ChannelState.CONNECTED)
            await asyncio.sleep(LASTS_S / 2)
        assert told(process, "ann") == []


async def test_a_channel_that_stopped_is_told_at_once_to_every_owner_and_no_guest() -> None:
    """SPEC CHAN-8: 401."""
    async with watched("ann", "bob") as (process, shown):
        await admit(process, "gus", guest=True)
        await process.ask("hello", chat="gus")
        shown.becomes(ChannelState.STOPPED, "Telegram does not accept this bot token")
        await until(lambda: len(told(process, "ann")) == 1, within_s=2 * LOOK_S)
        await until(lambda: len(told(process, "bob")) == 1, within_s=LOOK_S)
        assert told(process, "gus") == []


async def test_a_trouble_that_comes_again_is_told_again() -> None:
    async with watched("ann") as (process, shown):
        for _ in range(2):
            shown.becomes(ChannelState.RECONNECTING, NO_NETWORK)
            await asyncio.sleep(LASTS_S + 2 * LOOK_S)
            shown.becomes(ChannelState.CONNECTED)
            await asyncio.sleep(2 * LOOK_S)
        assert len(told(process, "ann")) == 2
        assert await process.store.incidents() == []


async def test_after_a_restart_nobody_is_told_twice() -> None:
    async with watched("ann") as (process, shown):
        shown.becomes(ChannelState.STOPPED, "no token")
        await until(lambda: len(told(process, "ann")) == 1)
        async with watching(process, shown):
            await asyncio.sleep(600)
        assert len(told(process, "ann")) == 1


async def test_while_the_database_is_away_the_telling_waits() -> None:
    async with watched("ann") as (process, shown):
        process.store.broken.add("open_incident")
        shown.becomes(ChannelState.STOPPED, "no token")
        await asyncio.sleep(120)
        assert told(process, "ann") == []
        process.store.broken.clear()
        await until(lambda: len(told(process, "ann")) == 1)
