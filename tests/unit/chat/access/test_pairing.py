"""Who may talk (SPEC CHAN-5)."""

from __future__ import annotations

import asyncio
import re
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.chat.access import access_texts
from goclaw_py.chat.access.access_control import MAX_WAITING
from goclaw_py.chat.access.access_requests import MOST_KEPT
from goclaw_py.core.errors import NotFound, StoreUnavailable
from goclaw_py.core.messages import PeerKind
from goclaw_py.core.session_keys import DirectPolicy
from goclaw_py.records import Standing
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.store.rules import MESSAGES_KEPT
from goclaw_py.testing.agents import Block, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import GatewayProcess, Ways, a_process, message, until


def in_public(
    agent: ScriptedAgent | None = None, ways: Ways | None = None
) -> AbstractAsyncContextManager[GatewayProcess]:
    """A gateway whose channel anybody can reach."""
    return a_process(agent, ways, channels=(RecordingChannel(trusted=False),))


def code_in(text: str) -> str:
    found = re.search(r"^`([A-Z2-9]{8})`$", text, re.MULTILINE)
    assert found is not None
    return found[1]


async def test_an_unknown_sender_gets_one_code_and_nothing_else() -> None:
    """No model is called, nothing is stored as a message."""
    async with in_public() as gateway:
        await gateway.say("hello", "/help", "/stop", "", "hello?", apart_s=5)
        await asyncio.sleep(60)
        (text,) = gateway.channel.texts()
        assert len(code_in(text)) == 8
        assert "60 minutes" in text
        assert gateway.scripted.requests == []
        assert gateway.pending == []
        assert await gateway.store.sessions() == []
        (request,) = await gateway.store.pairing_requests(now=gateway.clock.now())
        assert code_in(text) not in request.code_hash


async def admit(gateway: GatewayProcess, chat: str = "ann") -> None:
    """Approve somebody; they are told, and what they wrote is answered."""
    known = len(gateway.channel.texts(chat))
    code = code_in(await gateway.ask("hi", chat))
    await gateway.control.people.approve(code, guest=False)
    await until(lambda: len(gateway.channel.texts(chat)) == known + 3)


async def test_an_approved_sender_is_told_and_what_they_wrote_is_answered() -> None:
    """The first one approved is owner; what comes right after the approval is answered too."""
    async with in_public() as gateway:
        code = code_in(await gateway.ask("hello"))
        gateway.store.broken = {"people"}
        person = await gateway.control.people.approve(f" {code.lower()} ", guest=False)
        assert (person.sender.id, person.standing) == ("ann", Standing.OWNER)
        await asyncio.sleep(1)  # the gateway has not heard of it yet
        await gateway.say("still there?")
        prompts = ["hello", "still there?"]
        await until(lambda: gateway.scripted.prompts == prompts)
        answers = [f"re: {text}" for text in prompts]
        assert gateway.channel.texts()[1:] == [access_texts.WELCOME, *answers]
        gateway.store.broken = set()
        assert await gateway.ask("hello again") == "re: hello again"


async def test_the_newest_of_what_a_stranger_wrote_is_answered_in_one_turn() -> None:
    """Commands are carried out, an edit counts, an address of another bot does not."""
    async with in_public() as gateway:
        code = code_in(await gateway.ask("/start"))
        await gateway.say("/help@other_bot", *map(str, range(4)), apart_s=60)
        last = message("fuor")
        await gateway.gateway.accept([last])
        edit = replace(last, external_id=f"{last.external_id}:1", edits=last.external_id)
        await gateway.gateway.accept([replace(edit, text="four")])
        await gateway.control.people.approve(code, guest=False)
        await until(lambda: len(gateway.scripted.prompts) == 1)
        assert gateway.scripted.prompts == ["1\n2\n3\nfour"]
        await asyncio.sleep(60)
        assert gateway.channel.texts()[1:] == [access_texts.WELCOME, "re: 1\n2\n3\nfour"]
        assert gateway.pending == []


async def test_what_a_stranger_wrote_survives_a_restart_and_goes_with_the_request() -> None:
    """It is nobody's once the request has expired."""
    async with in_public() as first:
        code = code_in(await first.ask("hello"))
        await first.ask("hello", "bob")
    database, channel = first.database, RecordingChannel(trusted=False)
    async with a_process(channels=(channel,), database=database) as later:
        await later.control.people.approve(code, guest=False)
        await until(lambda: "re: hello" in later.channel.texts("ann"))
        await later.store.sweep_requests(now=later.clock.now() + timedelta(days=2))
        assert not database.requests
        assert not database.kept


async def test_a_code_lasts_an_hour_and_then_there_is_another() -> None:
    """A second message while it is live brings no second greeting."""
    async with in_public() as gateway:
        first = code_in(await gateway.ask("hello"))
        await asyncio.sleep(59 * 60)
        await gateway.say("hello")
        await asyncio.sleep(50)
        assert len(gateway.channel.texts()) == 1
        await asyncio.sleep(11)
        assert code_in(await gateway.ask("hello")) != first
        with pytest.raises(NotFound):
            await gateway.control.people.approve(first, guest=False)


async def test_a_stranger_can_stop_nothing_even_in_anothers_name() -> None:
    """SPEC CMD-5: only those who may talk to the agent may use commands."""
    agent = ScriptedAgent(Block())
    async with in_public(agent, Ways(QueuePolicy())) as gateway:
        await gateway.control.people.approve(code_in(await gateway.ask("work")), guest=False)
        await agent.until_active(1)
        await gateway.gateway.accept([message("/stopall", chat="ann", sender="mallory")])
        await asyncio.sleep(60)
        assert len(agent.active) == 1


async def test_somebody_who_was_revoked_is_a_stranger_again() -> None:
    async with in_public() as gateway:
        await gateway.control.people.approve(code_in(await gateway.ask("hi")), guest=False)
        await gateway.control.people.revoke("telegram", "default", "ann")
        await asyncio.sleep(0.1)
        assert code_in(await gateway.ask("hello"))


async def test_a_batch_of_known_and_unknown_people_serves_both() -> None:
    async with in_public() as gateway:
        await admit(gateway)
        await gateway.gateway.accept([message("hello"), message("hello", chat="bob")])
        await until(lambda: gateway.scripted.prompts == ["hi", "hello"])
        assert code_in(gateway.channel.texts("bob")[0])


async def test_until_the_people_are_loaded_nobody_gets_in() -> None:
    """A policy store failure denies."""
    async with in_public() as gateway:
        gateway.store.away = True
        with pytest.raises(StoreUnavailable):
            await gateway.say("hello")
        await asyncio.sleep(60)
        assert gateway.scripted.requests == []


@pytest.mark.parametrize(
    ("policy", "peer"),
    [
        (DirectPolicy.DISABLED, PeerKind.DIRECT),
        (DirectPolicy.ALLOWLIST, PeerKind.DIRECT),
        (DirectPolicy.OPEN, PeerKind.GROUP),
    ],
)
async def test_who_is_not_meant_gets_silence(policy: DirectPolicy, peer: PeerKind) -> None:
    async with in_public(ways=Ways(access=policy)) as gateway:
        await gateway.gateway.accept([message("hello", peer=peer)])
        await asyncio.sleep(60)
        assert gateway.scripted.requests == []
        assert gateway.channel.attempts == []
        assert gateway.store.calls["accept"] == 0


async def test_a_flood_of_one_stranger_costs_some_transactions_and_one_greeting() -> None:
    """Of a long text only the beginning is kept."""
    async with in_public() as gateway:
        for _ in range(500):
            await gateway.say("x" * 10_000, apart_s=0.5)
        assert gateway.store.calls["accept"] == MOST_KEPT
        ((*kept,),) = gateway.database.kept.values()
        assert [len(row.message.text) for row in kept] == [4096] * MESSAGES_KEPT
        await asyncio.sleep(60)
        assert len(gateway.channel.texts()) == 1


async def test_several_messages_of_a_stranger_in_one_batch_get_one_code() -> None:
    """And strangers use up nothing that another one needs: three must not lock pairing."""
    async with in_public() as gateway:
        await gateway.gateway.accept([message("one"), message("two"), message("three")])
        await asyncio.sleep(60)
        assert len(gateway.channel.texts()) == 1
        assert len(await gateway.store.pairing_requests(now=gateway.clock.now())) == 1
        for number in range(50):
            await gateway.say("hello", chat=f"s{number}")
        assert code_in(await gateway.ask("hello", chat="eve"))


async def test_strangers_are_bounded_and_known_people_notice_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Unless they have expired: a bound on what is kept of strangers."""
    async with in_public() as gateway:
        await admit(gateway)
        later = gateway.clock.now() + timedelta(hours=1)
        asked = {f"s{number}": later for number in range(MAX_WAITING)}
        gateway.access_control._asked["telegram", "default"] = asked
        await gateway.gateway.accept([message("hello", chat="late"), message("work")])
        await gateway.channel.until_sent(4)
        assert gateway.channel.texts()[3:] == ["re: work"]
        assert "pairing_limit_reached" in caplog.messages
        asked.update(dict.fromkeys(asked, gateway.clock.now() - timedelta(seconds=1)))
        assert code_in(await gateway.ask("hello", chat="late"))
        assert len(asked) == 1


async def test_a_commit_that_failed_does_not_use_up_the_code() -> None:
    """SPEC CHAN-5, DB-4."""
    async with in_public() as gateway:
        gateway.store.broken = {"accept"}
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await gateway.say("hello")
        gateway.store.broken = set()
        assert code_in(await gateway.ask("hello"))


async def test_people_who_are_known_stay_so_while_the_policy_store_is_away() -> None:
    """SPEC CHAN-5, DB-4: what was loaded holds; nobody new gets in."""
    async with in_public() as gateway:
        await admit(gateway)
        gateway.store.broken = {"people", "chats"}
        await asyncio.sleep(60)
        assert await gateway.ask("hello") == "re: hello"
        await gateway.say("hello", chat="bob")
        await asyncio.sleep(60)
        assert gateway.scripted.prompts == ["hi", "hello"]
