"""How messages are stored."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.actors import AccessRole, Actor, ActorKind
from goclaw_py.core.messages import (
    Attachment,
    Button,
    FileKind,
    InboundMessage,
    LostDraft,
    OutboundMessage,
    OutFile,
    PeerKind,
    Sender,
    Target,
)
from goclaw_py.store.postgres.messages.message_json import amendment, inbound, outbound, packed
from goclaw_py.store.text import storable

SENT_AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
ANN = Target("telegram", "default", "100")

# What people send, with all that no database takes.
words = st.text(st.characters(codec=None), max_size=20)
maybe = st.none() | words
kinds = st.sampled_from(FileKind)
targets = st.builds(Target, words, words, words, maybe)
zones = st.sampled_from([UTC, timezone(timedelta(hours=-3, minutes=-30))])
instants = st.builds(
    lambda seconds, zone: (SENT_AT + timedelta(seconds=seconds)).astimezone(zone),
    st.floats(-1e9, 2e9),
    zones,
)
attachments = st.builds(Attachment, kinds, words, words, words, st.none() | st.integers(0, 2**53))

# Each field by its name: a field that is added and not stored must fail here.
INBOUND = {
    "external_id": words,
    "target": targets,
    "peer": st.sampled_from(PeerKind),
    "sender": st.builds(Sender, words, words, maybe),
    "text": words,
    "formatted": words,
    "sent_at": instants,
    "message_id": maybe,
    "reply_to": maybe,
    "cut": st.booleans(),
    "redelivered": st.booleans(),
    "addressed": st.booleans(),
    "attachments": st.lists(attachments, max_size=3).map(tuple),
    "quote": words,
    "quoted_files": st.lists(attachments, max_size=2).map(tuple),
    "quoted_from": st.none() | st.builds(Sender, words, words, maybe),
    "forwarded_from": st.none() | st.builds(Sender, words, words, maybe),
    "asker": maybe,
    "album": maybe,
    "edits": maybe,
    "press": maybe,
    "unsupported": words,
    "place_name": words,
    "topic_name": words,
    "source": words,
    "agent": maybe,
    "by": st.none()
    | st.builds(
        Actor,
        st.sampled_from(ActorKind),
        words,
        st.none() | st.sampled_from(AccessRole),
        st.booleans(),
        words,
    ),
}
OUTBOUND = {
    "target": targets,
    "text": words,
    "reply_to": maybe,
    "run_id": maybe,
    "rich": st.booleans(),
    "draft": maybe,
    "file": st.none() | st.builds(OutFile, kinds, words, words, words),
    "buttons": st.lists(
        st.lists(st.builds(Button, words, words), max_size=2).map(tuple), max_size=2
    ).map(tuple),
    "lost": st.none() | st.builds(LostDraft, words, maybe, maybe),
    "occurrence": maybe,
    "heartbeat_run": maybe,
    "alert": words,
    "album": words,
}


def an_inbound(**given: object) -> InboundMessage:
    whole = InboundMessage("100:1", ANN, PeerKind.DIRECT, Sender("7", "Ann"), "hello", SENT_AT)
    return inbound(json.dumps(json.loads(packed(whole)) | given))


def test_the_properties_below_cover_every_field() -> None:
    assert INBOUND.keys() == {field.name for field in fields(InboundMessage)}
    assert OUTBOUND.keys() == {field.name for field in fields(OutboundMessage)}


@given(st.builds(InboundMessage, **INBOUND))
def test_a_received_message_comes_back_as_it_was_stored(message: InboundMessage) -> None:
    assert inbound(packed(message)) == storable(message)


@given(st.builds(OutboundMessage, **OUTBOUND))
def test_a_message_to_be_sent_comes_back_as_it_was_stored(message: OutboundMessage) -> None:
    assert outbound(packed(message)) == storable(message)


@given(st.builds(InboundMessage, **INBOUND), st.builds(InboundMessage, **INBOUND))
def test_an_amendment_replaces_what_an_edit_says_and_nothing_else(
    message: InboundMessage, edit: InboundMessage
) -> None:
    amended = inbound(json.dumps(json.loads(packed(message)) | json.loads(amendment(edit))))
    changed = {"text", "formatted", "attachments", "quote", "quoted_files"}
    for field in fields(InboundMessage):
        source = edit if field.name in changed else message
        assert getattr(amended, field.name) == getattr(storable(source), field.name)


def test_what_is_at_its_default_is_not_stored() -> None:
    message = InboundMessage("1", ANN, PeerKind.GROUP, Sender("7"), "", SENT_AT)
    assert json.loads(packed(message)).keys() == {
        "external_id",
        "target",
        "peer",
        "sender",
        "text",
        "sent_at",
    }
    assert json.loads(packed(OutboundMessage(ANN, ""))).keys() == {"target", "text"}


def test_a_row_of_the_first_release_can_be_read() -> None:
    """DB-2."""
    old = """{"external_id": "100:1", "target": {"channel": "telegram", "account": "default",
        "chat": "100", "thread": null}, "peer": "direct", "sender": {"id": "7", "name": "Ann",
        "username": null}, "text": "hello", "sent_at": "2026-01-02T03:04:05.678901+00:00",
        "message_id": "1", "reply_to": null, "cut": false}"""
    assert inbound(old) == InboundMessage(
        "100:1", ANN, PeerKind.DIRECT, Sender("7", "Ann"), "hello", SENT_AT, message_id="1"
    )
    answer = """{"target": {"channel": "telegram", "account": "default", "chat": "100"},
        "text": "hi", "reply_to": "1", "run_id": null}"""
    assert outbound(answer) == OutboundMessage(ANN, "hi", reply_to="1")


def test_a_field_of_a_newer_release_is_ignored() -> None:
    """DB-2."""
    assert an_inbound(mood="glad") == an_inbound()
