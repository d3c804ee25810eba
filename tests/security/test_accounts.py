"""Two bots of one gateway, and very many strangers (SPEC CHAN-5, AGENT-11, CMD-6).

Promised: owners decide for their own bot only, and strangers cannot use up the room of others.
Tried: each button of one bot, pressed by the owner of the other one; a thousand strangers at one
bot, a stranger who writes a thousand times, a code at the wrong bot.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count

import pytest

from goclaw_py.chat.access.access_control import MAX_WAITING
from goclaw_py.core.chat_commands import AccessAction, JobAction, stop_data
from goclaw_py.core.errors import NotFound
from goclaw_py.core.messages import Target
from goclaw_py.records import Standing
from goclaw_py.testing.channel import RecordingChannel
from tests.security.test_people import Bank
from tests.support.harness import GatewayProcess, Ways, a_process, message
from tests.support.jobs import Wanted, at, log_of, make

OURS, OTHER = "default", "other"
_numbers = count(1)


@dataclass(slots=True)
class Bots:
    """A gateway with two bots: Ann is the owner of ours, Zoe of the other one."""

    gateway: GatewayProcess
    bank: Bank

    async def says(self, who: str, text: str, account: str, *, press: str | None = None) -> None:
        target = Target("telegram", account, who)
        spoken = replace(message(text, chat=who), target=target, press=press, reply_to="5")
        if press is not None:
            spoken = replace(spoken, external_id=f"press {next(_numbers)}")
        await self.gateway.gateway.accept([spoken])
        await asyncio.sleep(5)

    def texts(self, who: str, account: str) -> list[str]:
        return self.gateway.channels["telegram", account].texts(who)

    def button(self, who: str, account: str) -> str:
        """The data of the first button of the newest message that has some."""
        sent = self.gateway.channels["telegram", account].sent
        return (
            next(one for one in reversed(sent) if one.target.chat == who and one.buttons)
            .buttons[0][0]
            .data
        )

    async def admit(self, who: str, account: str, *, guest: bool) -> None:
        await self.says(who, "hello", account)
        now = self.gateway.clock.now()
        (asked,) = await self.gateway.store.pairing_requests(now=now)
        assert await self.gateway.store.approve(asked.code_hash, guest=guest, now=now)
        await asyncio.sleep(20)


@asynccontextmanager
async def bots() -> AsyncIterator[Bots]:
    bank = Bank()
    channels = tuple(RecordingChannel(account=name, trusted=False) for name in (OURS, OTHER))
    async with a_process(bank.agent(), Ways(main_lane=9), channels=channels) as gateway:
        made = Bots(gateway, bank)
        await made.admit("ann", OURS, guest=False)
        await made.admit("zoe", OTHER, guest=False)
        await made.admit("bob", OURS, guest=True)
        yield made


async def test_the_owner_of_another_bot_decides_nothing() -> None:
    """Happened: nothing was decided, paid, stopped, sent or told; then Ann's press counted."""
    async with bots() as both:
        gateway = both.gateway
        reminder = Wanted(
            at(200), "secret tea", message=True, target=Target("telegram", OURS, "ann")
        )
        job = await make(gateway, reminder)
        await asyncio.sleep(200)
        job_button = both.button("ann", OURS)
        await both.says("ann", "work", OURS)
        (running,) = [run.id for run in gateway.dispatcher.runs()]
        await both.says("eve", "let me in", OURS)
        access = both.button("ann", OURS)
        await both.says("bob", "pay", OURS)
        approval = both.button("ann", OURS)
        before = await gateway.store.people()
        for data in (
            stop_data(running),
            *(access.replace("guest", action) for action in AccessAction),
            *(approval.replace("once", step) for step in ("once", "always", "sure", "deny")),
            *(job_button.replace("done", action) for action in JobAction),
        ):
            await both.says("zoe", "x", OTHER, press=data)
        for typed in ("/stopall", "/approve", "/deny", "/jobs"):
            await both.says("zoe", typed, OTHER)
        (question,) = await gateway.store.approvals()
        assert question.decision is None
        assert [run.id for run in gateway.dispatcher.runs()] == [running]
        assert await gateway.store.people() == before
        assert len(await log_of(gateway, job)) == 1
        assert not any("secret" in text for text in both.texts("zoe", OTHER))
        await both.says("ann", "x", OURS, press=approval)
        assert both.bank.paid == 1


@pytest.mark.slow
async def test_a_thousand_strangers_keep_nobody_of_another_bot_out() -> None:
    """Happened: the next one at that bot waits an hour; people, and strangers elsewhere, do not."""
    async with bots() as both:
        gateway = both.gateway
        place = Target("telegram", OURS, "")
        await gateway.gateway.accept(
            [
                replace(message("hi", chat=f"s{number}"), target=replace(place, chat=f"s{number}"))
                for number in range(MAX_WAITING)
            ]
        )
        await asyncio.sleep(60)
        assert len(await gateway.control.people.requests()) == MAX_WAITING
        await both.says("late", "hi", OURS)
        assert both.texts("late", OURS) == []
        await both.says("late", "hi", OTHER)
        assert len(both.texts("late", OTHER)) == 1
        await both.says("bob", "hi", OURS)
        assert both.texts("bob", OURS)[-1] == "re: hi"
        assert len(both.texts("ann", OURS)) < 20, "the owner is not asked a thousand times"
        await asyncio.sleep(3_700)
        await both.says("late", "hi", OURS)
        assert len(both.texts("late", OURS)) == 1


async def test_one_stranger_has_one_code_however_often_they_write() -> None:
    """Happened: one code, one question, twenty messages kept; it opens no other bot."""
    async with bots() as both:
        control, asked = both.gateway.control, len(both.texts("ann", OURS))
        for number in range(1_000):
            spoken = message(f"let me in {number}", chat="eve")
            await both.gateway.gateway.accept([spoken])
        await asyncio.sleep(60)
        (text,) = both.texts("eve", OURS)
        assert len(await control.people.requests()) == 1
        assert len(both.texts("ann", OURS)) == asked + 1
        code = text.split("`")[1]
        for who, account in (("eve", OTHER), ("zoe", OTHER), ("eve", OURS)):
            await both.says(who, code, account)
        people = {(one.account, one.sender.id) for one in await both.gateway.store.people()}
        assert people == {(OURS, "ann"), (OURS, "bob"), (OTHER, "zoe")}
        person = await control.people.approve(code, guest=True)
        assert (person.account, person.standing) == (OURS, Standing.GUEST)
        with pytest.raises(NotFound):
            await control.people.approve(code, guest=False)
