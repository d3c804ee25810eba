"""Names of people and chats are stored when they are seen (SPEC OPS-9)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.messages import ingress_filter
from goclaw_py.model.errors import NotFound
from goclaw_py.model.messages import InboundMessage, PeerKind, Sender
from tests.support.harness import GatewayProcess, a_process, message
from tests.unit.chats.test_pairing import admit, in_public

GROUP, ANN = "agent:main:telegram:group:-9", "telegram/default/7"


def said(name: str, username: str | None = None) -> InboundMessage:
    told = message("hi", chat="-9", peer=PeerKind.GROUP)
    return replace(told, sender=Sender("7", name, username), place_name="Crew")


async def names(gateway: GatewayProcess, *keys: str) -> list[str]:
    found = await gateway.control.names(keys)
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
        await gateway.control.revoke("telegram", "default", "ann", forget=True)
        assert await names(gateway, who) == ["telegram ann"]


async def test_a_session_is_found_by_the_name_of_its_chat() -> None:
    """SPEC OPS-1: a part of the key comes first; of several the candidates are listed."""
    async with a_process() as gateway:
        for chat, name in (("7", "Anna"), ("8", "Annabel"), ("anna", "Zoe")):
            told = replace(message("hi", chat=chat), sender=Sender(chat, name))
            await gateway.gateway.accept([told])
        await asyncio.sleep(60)
        for part, chat in (("annabel", "8"), ("anna", "anna"), ("ZOE", "anna")):
            assert (await gateway.control.session(part)).key == f"agent:main:telegram:direct:{chat}"
            assert (await gateway.control.queue(part)).session.endswith(f":{chat}")
        for part, problem in (("Ann", "'Ann' is not unique: agent:main:"), ("Bo", "is no session")):
            with pytest.raises(NotFound, match=problem):
                await gateway.control.session(part)


async def test_without_the_database_ids_are_shown() -> None:
    """SPEC OPS-9: a status and its page do not fail for want of names."""
    async with a_process() as gateway:
        await gateway.gateway.accept([said("Ann")])
        gateway.store.broken = {"names"}
        assert await names(gateway, GROUP, ANN) == ["telegram -9", "telegram 7"]
        gateway.store.calls.clear()
        assert await gateway.control.names([]) == {}
        assert "names" not in gateway.store.calls
