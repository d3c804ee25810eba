"""Messages that could not be worked on, groups, and a control that knows them.

Names and texts are such as somebody would choose who wants to fool an operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.messages import (
    Attachment,
    Button,
    FileKind,
    InboundMessage,
    OutboundMessage,
    OutFile,
    PeerKind,
    Sender,
    Target,
)
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.pagination import Cursor
from goclaw_py.records import (
    Chat,
    DeadLetter,
    LastActivity,
    OutboxRow,
    OutboxState,
    Unanswered,
)

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TOPIC = Target("telegram", "work", "-1001", "7")
KEY = SessionKey("agent:main:telegram.work:group:-1001:thread:7")
RUN = RunId("0190-dddd")
FOOL = "Ann\n2  telegram/default/1  9 (Owner)\x1b[2J\u202ednuof\u202c"
"""A name that would be another row, clear the screen and turn text around."""

MESSAGE = InboundMessage(
    external_id="-1001:55", target=TOPIC, peer=PeerKind.GROUP, sender=Sender("7", FOOL, "ann"),
    text="first\r\nstate    \x1b]0;owned\x07sent\u202e", sent_at=AT, message_id="55", reply_to="54",
    cut=True,
    attachments=(
        Attachment(FileKind.DOCUMENT, "ref", "a\n.pdf", "application/pdf", 2048),
        Attachment(FileKind.VOICE, "ref2"),
    ),
    quote="what\nwas said", album="album-1", edits="-1001:50", place_name="Family\nof Ann",
)  # fmt: skip
LOST = DeadLetter(
    Unanswered(8, MESSAGE, RUN, AT, AT + timedelta(minutes=1), Outcome.LOST, Reason.CRASHED),
    *(KEY, AgentName("main"), 3),
)
PRESSED = replace(MESSAGE, text="", press="done:1", attachments=(), unsupported="a poll", quote="")
DROPPED = DeadLetter(
    Unanswered(9, PRESSED, None, AT, AT, Outcome.DROPPED, Reason.QUEUE_DROPPED),
    *(KEY, AgentName("main"), 0),
)
NEXT = DeadLetter(
    Unanswered(10, replace(MESSAGE, text="next"), None, AT), KEY, AgentName("main"), 0
)
BEGUN = replace(NEXT, row=replace(NEXT.row, id=11, run_id=RUN), attempts=1)
ANSWERED = replace(LOST, row=replace(LOST.row, id=12, outcome=Outcome.COMPLETED, reason=None))

PENDING = OutboxRow(
    id=3,
    message=OutboundMessage(
        TOPIC,
        FOOL,
        reply_to="55",
        run_id=RUN,
        rich=True,
        draft="56",
        file=OutFile(FileKind.PHOTO, "/w/a.png", "a\n.png", "image/png"),
        buttons=((Button("Yes\x1b", "y"), Button("No", "n")),),
    ),
    session=KEY, state=OutboxState.WAITING, attempts=2, possible_duplicate=False, fence=4,
    created_at=AT, next_attempt_at=AT, sent_at=None, external_id=None,
    error="<html>\n" + "bad gateway " * 30,
)  # fmt: skip
SENDING = replace(PENDING, id=4, state=OutboxState.SENDING)
SENT = replace(
    PENDING, id=5, state=OutboxState.SENT, sent_at=AT, external_id="77", error=None, session=None
)
GIVEN_UP = replace(PENDING, id=6, state=OutboxState.DROPPED)

FAMILY = Chat("telegram", "default", "-1001", PeerKind.GROUP, "Family", True, "", AT, AT)
IMPOSTOR = replace(FAMILY, chat="-1002", name="Family\n-1003  Ann\x1b[2J\u202e", allowed=None)
GONE = replace(FAMILY, chat="-2001", name="", allowed=False, gone="the bot was thrown\nout")
WORK = replace(FAMILY, chat="-3001", account="work", name="Straße", allowed=None)
DIRECT = replace(FAMILY, chat="42", peer=PeerKind.DIRECT, name="Family of one", allowed=None)
EVE = replace(DIRECT, chat="50", name="Eve (@eve)")
"""Talks without an approval."""
SPOKE = LastActivity(
    Target("telegram", "default", "42"), PeerKind.DIRECT, AgentName("main"), "42", AT
)


class _Placed(Protocol):
    @property
    def cursor(self) -> Cursor: ...


P = TypeVar("P", bound=_Placed)


def behind(rows: Sequence[P], before: Cursor | None) -> list[P]:
    """What comes behind a row in a list, in whatever order that is."""
    places = [row.cursor for row in rows]
    return list(rows[places.index(before) + 1 :] if before in places else rows)


def chosen(only: object) -> list[object]:
    """A filter, if it selects anything: most tests are about none."""
    return [] if only == type(only)() else [only]


class FixedClock:
    """Always the same instant."""

    def now(self) -> datetime:
        return AT


class FakeNames:
    """The part of ``FakeControl`` that is about names."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.failure: Exception | None = None
        self.named = KnownNames()

    def _called(self, *call: object) -> None:
        self.calls.append(call)
        if self.failure is not None:
            raise self.failure
