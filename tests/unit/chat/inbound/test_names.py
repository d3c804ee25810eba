"""Names of people and chats are stored when they are seen (SPEC OPS-9)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.chat.inbound import ingress_filter
from goclaw_py.core.errors import NotFound
from goclaw_py.core.messages import InboundMessage, PeerKind, Sender, Target
from goclaw_py.records import SeenName
from tests.support.harness import GatewayProcess, a_process, message
from tests.unit.chat.access.test_pairing import admit, in_public

GROUP, ANN = "agent:main:telegram:group:-9", "telegram/default/7"


def said(name: str, username: str | None = None) -> InboundMessage:
    told = message("hi", chat="-9", peer=PeerKind.GROUP)
    return replace(told, sender=Sender("7", name, username), place_name="Crew")


async def names(gateway: GatewayProcess, *keys: str) -> list[str]:
    found = await gateway.control.sessions.names(keys)
    return [found[key] for key in keys]


async def test_names_of_sender_and_group_are_stored_when_seen_when_changed_and_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ingress_filter, "_NAMED_AGAIN", timedelta(hours=1))
    async with a_process() as gateway:
        for told, writes, ann in (
            (said("Ann"), 1, "Ann"),
            (said("Ann"), 1, "Ann"),
            (said("", "anna"), 2, "@anna"),
            (said(""), 2, "@anna"),
        ):
            await gateway.gateway.accept([told])
            assert gateway.store.calls["note_names"] == writes
            assert await names(gateway, GROUP, ANN) == ["Crew", ann]
        await asyncio.sleep(3600)
        await gateway.gateway.accept([said("", "anna")])
        assert gateway.store.calls["note_names"] == 3


async def test_what_no_person_has_sent_names_nobody() -> None:
    async with a_process() as gateway:
        await gateway.gateway.accept([replace(said("Subagent"), source="subagent")])
        assert "note_names" not in gateway.store.calls


async def test_a_name_is_forgotten_with_the_approval_of_its_person() -> None:
    """SPEC CHAN-5."""
    async with in_public() as gateway:
        await admit(gateway)
        await gateway.ask("hello")
        who = "telegram/default/ann"
        assert await names(gateway, who) == ["Ann"]
        await gateway.control.people.revoke("telegram", "default", "ann", forget=True)
        assert await names(gateway, who) == ["telegram ann"]


async def test_a_session_is_found_by_the_name_of_its_chat() -> None:
    """SPEC OPS-1: a part of the key comes first; of several the candidates are listed."""
    async with a_process() as gateway:
        for chat, name in (
            ("7", "Anna"),
            ("8", "Annabel"),
            ("9", "Ben"),
            ("10", "Ben 2"),
            ("anna", "Zoe"),
        ):
            told = replace(message("hi", chat=chat), sender=Sender(chat, name))
            await gateway.gateway.accept([told])
        await asyncio.sleep(60)
        for part, chat in (("annabel", "8"), ("Ben", "9"), ("anna", "anna"), ("ZOE", "anna")):
            assert (
                await gateway.control.sessions.get(part)
            ).key == f"agent:main:telegram:direct:{chat}"
            assert (await gateway.control.sessions.queue(part)).session.endswith(f":{chat}")
        for part, problem in (("Ann", "'Ann' is not unique: agent:main:"), ("Bo", "is no session")):
            with pytest.raises(NotFound, match=problem):
                await gateway.control.sessions.get(part)


async def test_without_the_database_ids_are_shown() -> None:
    """SPEC OPS-9: a status and its page do not fail for want of names."""
    async with a_process() as gateway:
        await gateway.gateway.accept([said("Ann")])
        gateway.store.broken = {"names"}
        assert await names(gateway, GROUP, ANN) == ["telegram -9", "telegram 7"]
        gateway.store.calls.clear()
        assert await gateway.control.sessions.names([]) == {}
        assert "names" not in gateway.store.calls


async def test_names_are_known_without_a_query_until_some_are_deleted() -> None:
    """SPEC OPS-9: log lines have them. Whoever is admitted again is named again."""
    topic = "agent:main:telegram:group:-9:thread:5"
    async with a_process() as gateway:
        known = gateway.container.names
        assert known.of(GROUP) is None
        told = said("Ann")
        there = replace(told.target, thread="5")
        await gateway.gateway.accept([replace(told, target=there, topic_name="Plans")])
        gateway.store.broken = {"names"}
        direct = "agent:main:telegram:direct:7"
        found = [known.of(key) for key in (GROUP, topic, direct, "agent:main:heartbeat:1", "x", "")]
        assert found == ["Crew", "Crew / Plans", "Ann", None, None, None]
        gateway.container.forget_names()
        assert known.of(GROUP) is None
        await gateway.gateway.accept([said("Anna")])
        assert (known.of(GROUP), known.of(direct)) == ("Crew", "Anna")


async def test_names_that_a_page_has_read_are_known() -> None:
    async with a_process() as gateway:
        seen = SeenName(Target("telegram", "default", "7"), "Ann")
        await gateway.store.note_names([seen], now=gateway.clock.now())
        direct = "agent:main:telegram:direct:7"
        assert gateway.container.names.of(direct) is None
        await names(gateway, direct)
        assert gateway.container.names.of(direct) == "Ann"
