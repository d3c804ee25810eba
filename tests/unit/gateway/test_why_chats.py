"""Questions about who may talk, groups and channels, each provoked (SPEC OPS-4, CHAN-5)."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from goclaw_py.core.messages import ChatReached, InboundMessage, PeerKind, Target
from goclaw_py.core.session_keys import DirectPolicy, GroupPolicy
from goclaw_py.operations.explanation import Explanation
from goclaw_py.runs.session_settings import ChatRules
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.scheduler.views import ChannelHealth, ChannelState
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import GatewayProcess, Ways, a_process, message
from tests.support.why import Case, Cases, ask, check
from tests.unit.chat.access.test_pairing import code_in

AT_ONCE = Ways(QueuePolicy(), QueuePolicy())
GROUP = "-100200"
CASES = Cases()


@dataclass(slots=True)
class Troubled(RecordingChannel):
    """A channel that says how it is."""

    told: ChannelHealth = field(default_factory=ChannelHealth)

    @property
    def health(self) -> ChannelHealth:
        return self.told


def strangers() -> tuple[RecordingChannel, ...]:
    return (RecordingChannel(trusted=False),)


def said(text: str, *, addressed: bool = True) -> InboundMessage:
    spoken = message(text, chat=GROUP, sender="ann", peer=PeerKind.GROUP)
    return replace(spoken, addressed=addressed, place_name="Family")


def open_gateway(**ways: Any) -> AbstractAsyncContextManager[GatewayProcess]:
    """A gateway that strangers talk to."""
    return a_process(ways=replace(AT_ONCE, **ways), channels=strangers())


async def with_health(health: ChannelHealth) -> Explanation:
    async with a_process(ways=AT_ONCE, channels=(Troubled(told=health),)) as gateway:
        await asyncio.sleep(1)
        return await ask(gateway)


async def allow(gateway: GatewayProcess, *, allowed: bool = True, chat: str = GROUP) -> None:
    await gateway.control.people.allow_chat("telegram", "default", chat, allowed=allowed)


@CASES.question("The bot answers with a code and nothing else")
@CASES.answer("person.asks", "Ann is not approved yet: a pairing code was sent",
              "goclaw people approve CODE")  # fmt: skip
async def only_a_code() -> Explanation:
    async with open_gateway() as gateway:
        await gateway.ask("hello")
        return await ask(gateway, "ann")


@CASES.question("The code is refused, or nobody approved it in time")
@CASES.answer(
    "person.unknown", "or only one of a stranger whose pairing code has expired", "Ask them to"
)
async def code_too_old() -> Explanation:
    async with open_gateway() as gateway:
        await gateway.ask("hello")
        await asyncio.sleep(3700)
        return await ask(gateway, "telegram:ann")


@CASES.question("The bot never answers one person, not even with a code")
@CASES.answer("chat.not_listed", "only those listed in allow may write (direct = allowlist)",
              'Add "ann" to allow under [channels.telegram]')  # fmt: skip
async def not_listed() -> Explanation:
    async with open_gateway(access=DirectPolicy.ALLOWLIST) as gateway:
        await gateway.say("hello")
        await asyncio.sleep(5)
        return await ask(gateway, "telegram:ann")


@CASES.question("The bot answered somebody once and is silent now")
@CASES.answer("chat.denied", "an operator has denied this person", "goclaw people allow ann")
async def denied_person() -> Explanation:
    async with open_gateway(access=DirectPolicy.OPEN) as gateway:
        await gateway.ask("hello")
        await allow(gateway, allowed=False, chat="ann")
        await asyncio.sleep(1)
        await gateway.say("hello again")
        await asyncio.sleep(5)
        return await ask(gateway, "telegram:ann")


@CASES.question("The bot says that only an owner may do this")
@CASES.answer("person.guest", "Ann is a guest: they may talk, but owner commands",
              "goclaw people revoke ann")  # fmt: skip
async def guest() -> Explanation:
    async with open_gateway() as gateway:
        for chat, is_guest in (("bob", False), ("ann", True)):
            code = code_in(await gateway.ask("hello", chat))
            await gateway.control.people.approve(code, guest=is_guest)
        await asyncio.sleep(1)
        await gateway.ask("/queue collect")
        return await ask(gateway, "person:telegram/default/ann")


@CASES.question("The bot is deaf: its token was changed")
@CASES.answer("channel.stopped", "Channel telegram/default (stopped): the token is refused",
              "token_file")  # fmt: skip
async def token_refused() -> Explanation:
    told = "the token is refused (401 Unauthorized)"
    return await with_health(ChannelHealth(ChannelState.STOPPED, told))


@CASES.question("Only some of my messages are answered, and by turns")
@CASES.answer("channel.conflict", "another program takes this bot's updates",
              "Stop the other program that uses this bot's token")  # fmt: skip
async def another_program() -> Explanation:
    told = "another program takes this bot's updates"
    return await with_health(ChannelHealth(ChannelState.CONFLICT, told))


@CASES.question("The webhook is called and nothing comes in")
@CASES.answer("channel.warning", "had another secret", "goclaw doctor")
async def webhook_with_another_secret() -> Explanation:
    told = "3 calls of the webhook within the last hour had another secret"
    return await with_health(ChannelHealth(warning=told))


async def heard(gateway: GatewayProcess, *, addressed: bool = True) -> Explanation:
    await gateway.gateway.accept([said("hello", addressed=addressed)])
    await asyncio.sleep(180)
    return await ask(gateway, "Family")


@CASES.question("A new group gets no answer")
@CASES.answer("chat.undecided", "The group Family waits for a decision",
              f"goclaw people groups allow {GROUP}")  # fmt: skip
async def undecided_group() -> Explanation:
    async with open_gateway() as gateway:
        return await heard(gateway)


@CASES.question("A group was answered once and is not any more")
@CASES.answer("chat.denied", "The group Family is ignored: an operator has denied it",
              f"goclaw people groups allow {GROUP}")  # fmt: skip
async def denied_group() -> Explanation:
    async with open_gateway() as gateway:
        await heard(gateway)
        await allow(gateway, allowed=False)
        return await heard(gateway)


@CASES.question("A message in a group gets no answer")
@CASES.answer(
    "chat.unmentioned",
    "The group Family got a message 3 min ago: the message did not mention @our_bot",
    "mention = false",
)
async def not_mentioned() -> Explanation:
    async with open_gateway() as gateway:
        await heard(gateway)
        await allow(gateway)
        await heard(gateway)
        return await heard(gateway, addressed=False)


@CASES.question("No group gets an answer")
@CASES.answer("chat.groups_disabled", "groups = disabled in [channels.telegram]",
              'Set groups = "allowlist"')  # fmt: skip
async def groups_off() -> Explanation:
    async with open_gateway(groups=GroupPolicy.DISABLED) as gateway:
        await allow(gateway)
        return await ask(gateway, f"telegram:{GROUP}")


@dataclass(slots=True)
class Listing(GatewayProcess):
    """A gateway whose settings switch the group off."""

    def _rules(self, channel: RecordingChannel) -> ChatRules:
        rules = GatewayProcess._rules(self, channel)
        off = replace(rules, access=replace(rules.access, listed=False))
        return replace(rules, narrower={GROUP: off})


@CASES.question("I allowed the group, and it gets no answer")
@CASES.answer("chat.disabled_in_settings", f'enabled = false is set for it under chats."{GROUP}"',
              "Set enabled = true")  # fmt: skip
async def settings_go_before() -> Explanation:
    async with a_process(ways=AT_ONCE, channels=strangers(), kind=Listing) as gateway:
        await allow(gateway)
        return await ask(gateway, f"telegram:{GROUP}")


@CASES.question("Nothing is sent to a group any more")
@CASES.answer(
    "chat.gone",
    "cannot receive messages: Forbidden: bot was kicked from the supergroup chat",
    "goclaw deliveries list --state failed",
)
async def bot_removed() -> Explanation:
    async with open_gateway() as gateway:
        await allow(gateway)
        place = Target("telegram", "default", GROUP)
        gone = "Forbidden: bot was kicked from the supergroup chat"
        await gateway.gateway.accept([ChatReached(place, PeerKind.GROUP, gone, "Family")])
        return await ask(gateway, "Family")


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_question_about_a_chat_is_answered(case: Case) -> None:
    await check(case)
