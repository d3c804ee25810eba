"""Conversion of messages to JSON and back.

Fields with their default are left out, which keeps rows small and lets new fields have a default in
old rows. Unknown fields are ignored, because a newer release may use the same database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

import orjson

from goclaw_py.core.actors import AccessRole, Actor, ActorKind
from goclaw_py.core.ids import HeartbeatRunId, OccurrenceId, RunId
from goclaw_py.core.messages import (
    AMENDED,
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
from goclaw_py.store.text import storable

Message = TypeVar("Message", bound=InboundMessage | OutboundMessage)

_Json: TypeAlias = dict[str, Any]
"""A JSON object."""

_DEFAULTS: Mapping[type, tuple[tuple[str, object], ...]] = {
    kind: tuple((field.name, field.default) for field in fields(kind))
    for kind in (InboundMessage, OutboundMessage)
}
"""The defaults of a message's fields; ``MISSING`` for those without."""


def prepared(message: Message) -> tuple[Message, bytes]:
    """Return a message made storable, and its JSON."""
    try:
        text = _json(message)
        # Python escapes the character NUL so; a text that itself says this is looked at in vain.
        if b"\\u0000" not in text:
            return message, text
    except TypeError:  # a lone surrogate
        pass
    clean = storable(message)
    return clean, _json(clean)


def packed(message: InboundMessage | OutboundMessage) -> str:
    """Return a message as JSON."""
    return prepared(message)[1].decode()


def _json(message: InboundMessage | OutboundMessage) -> bytes:
    return orjson.dumps(
        {
            name: value
            for name, default in _DEFAULTS[type(message)]
            if (value := getattr(message, name)) is not default and value != default
        }
    )


def amendment(edit: InboundMessage) -> str:
    """Return the fields that an edit replaces in a message, as JSON."""
    edit = storable(edit)
    return orjson.dumps({name: getattr(edit, name) for name in AMENDED}).decode()


def inbound(text: str) -> InboundMessage:
    """Parse the output of ``packed``."""
    given: _Json = orjson.loads(text)
    get = given.get
    return InboundMessage(
        external_id=given["external_id"],
        target=_target(given["target"]),
        peer=PeerKind(given["peer"]),
        sender=_person(given["sender"]),
        text=given["text"],
        sent_at=datetime.fromisoformat(given["sent_at"]),
        message_id=get("message_id"),
        reply_to=get("reply_to"),
        cut=get("cut", False),
        redelivered=get("redelivered", False),
        addressed=get("addressed", True),
        attachments=tuple(map(_attachment, get("attachments", ()))),
        quote=get("quote", ""),
        quoted_from=_sender(get("quoted_from")),
        forwarded_from=_sender(get("forwarded_from")),
        album=get("album"),
        edits=get("edits"),
        press=get("press"),
        unsupported=get("unsupported", ""),
        place_name=get("place_name", ""),
        topic_name=get("topic_name", ""),
        source=get("source", ""),
        asker=get("asker", ""),
        agent=get("agent"),
        formatted=get("formatted", ""),
        quoted_files=tuple(map(_attachment, get("quoted_files", ()))),
        by=_actor(get("by")),
    )


def outbound(text: str) -> OutboundMessage:
    """Parse the output of ``packed``."""
    given: _Json = orjson.loads(text)
    get = given.get
    run_id, file, occurrence = get("run_id"), get("file"), get("occurrence")
    heartbeat_run, lost = get("heartbeat_run"), get("lost")
    return OutboundMessage(
        target=_target(given["target"]),
        text=given["text"],
        reply_to=get("reply_to"),
        run_id=None if run_id is None else RunId(run_id),
        rich=get("rich", False),
        draft=get("draft"),
        file=None if file is None else _file(file),
        buttons=tuple(tuple(map(_button, row)) for row in get("buttons", ())),
        lost=None if lost is None else LostDraft(RunId(lost["run_id"]), lost["after"], lost["id"]),
        occurrence=None if occurrence is None else OccurrenceId(occurrence),
        heartbeat_run=None if heartbeat_run is None else HeartbeatRunId(heartbeat_run),
        alert=get("alert", ""),
        album=get("album", ""),
    )


def files_json(files: Sequence[OutFile]) -> str | None:
    """Return files as JSON, for the column ``history.files``; None: there are none."""
    return orjson.dumps(storable(tuple(files))).decode() if files else None


def sent_files(text: str | None) -> tuple[OutFile, ...]:
    """Parse the output of ``files_json``."""
    return () if text is None else tuple(map(_file, orjson.loads(text)))


def _person(given: _Json) -> Sender:
    return Sender(given["id"], given["name"], given["username"])


def _sender(given: _Json | None) -> Sender | None:
    return None if given is None else _person(given)


def _actor(given: _Json | None) -> Actor | None:
    if given is None:
        return None
    role = None if given["role"] is None else AccessRole(given["role"])
    return Actor(ActorKind(given["kind"]), given["name"], role, given["reads_text"], given["via"])


def _target(given: _Json) -> Target:
    return Target(given["channel"], given["account"], given["chat"], given.get("thread"))


def _attachment(given: _Json) -> Attachment:
    return Attachment(
        kind=FileKind(given["kind"]),
        ref=given["ref"],
        name=given["name"],
        mime=given["mime"],
        size=given["size"],
    )


def _file(given: _Json) -> OutFile:
    return OutFile(FileKind(given["kind"]), given["path"], given["name"], given["mime"])


def _button(given: _Json) -> Button:
    return Button(given["text"], given["data"])
