"""What a process knows of its messages, and when it is unsure of their order (SPEC IO-2, CMD-1)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from goclaw_py.chat.inbound.mailbox import Mailboxes
from goclaw_py.chat.inbound.mailbox_entry import MailboxEntry, MessageState
from goclaw_py.chat.inbound.turns import Turns
from goclaw_py.core.chat_commands import StopCommand
from goclaw_py.core.ids import MAIN_AGENT, NodeId, RunId
from goclaw_py.core.outcomes import Reason
from goclaw_py.records import AcceptedMessages, InboxKind, InboxRow, Stops
from goclaw_py.runs.turn import Turn
from tests.support.harness import message, session_of

SESSION = session_of("ann")
NODE = NodeId("n1")


def row(row_id: int, text: str = "hello") -> InboxRow:
    said = replace(message(text, chat="ann"), external_id=f"id {row_id}")
    kind = InboxKind.MESSAGE
    return InboxRow(row_id, said, SESSION, MAIN_AGENT, kind, 0, datetime.now(UTC))


def arrival(row_id: int, text: str = "hello") -> MailboxEntry:
    is_stop = text in ("/stop", "/stopall")
    command = StopCommand(everything=text == "/stopall") if is_stop else None
    return MailboxEntry(row(row_id, text).message, SESSION, MAIN_AGENT, command)


def held(turns: Turns, row_id: int) -> Turn:
    turn = Turn(RunId(f"r{row_id}"), SESSION, MAIN_AGENT, [row(row_id)])
    turns.hold(turn)
    return turn


def test_an_entry_of_a_message_is_the_same_before_and_after_its_commit() -> None:
    boxes, entry = Mailboxes(Turns()), arrival(1)
    boxes.enter(entry)
    assert boxes.add(row(1)) is entry
    boxes.leave([entry], committed=True)
    assert boxes.of(SESSION).waiting() == [entry]
    assert boxes.rows() == {1}


def test_a_reload_makes_fresh_what_did_not_become_stale_while_it_ran() -> None:
    turns = Turns()
    boxes = Mailboxes(turns)
    box = boxes.of(SESSION)
    boxes.release([held(turns, 1)])
    versions = boxes.versions()
    boxes.release([held(turns, 1)])
    boxes.reloaded(versions)
    assert box.stale
    boxes.reloaded(boxes.versions())
    assert not box.stale


def test_what_was_given_back_waits_in_the_order_of_the_database() -> None:
    turns = Turns()
    boxes = Mailboxes(turns)
    for number in (2, 1):
        boxes.add(row(number)).state = MessageState.TAKEN
        boxes.release([held(turns, number)])
    assert [entry.message.external_id for entry in boxes.of(SESSION).waiting()] == ["id 1", "id 2"]
    assert boxes.begun() == set()


def test_what_a_stop_has_met_stays_cancelled_although_its_commit_failed() -> None:
    boxes, first = Mailboxes(Turns()), arrival(1)
    boxes.enter(first)
    first.cancelled = Reason.STOPPED_ALL
    boxes.leave([first], committed=False)
    again = arrival(1)
    boxes.enter(again)
    assert again.cancelled is Reason.STOPPED_ALL
    boxes.leave([again], committed=False)
    assert boxes.add(row(1)).cancelled is Reason.STOPPED_ALL  # the answer was lost


@pytest.mark.parametrize("in_time", [True, False], ids=["before its commit", "during its commit"])
def test_a_cancelled_message_stays_cancelled_although_a_reload_brings_it_before_its_stop(
    in_time: bool,
) -> None:
    """It is committed, but this node claims its session only later."""
    boxes, first = Mailboxes(Turns()), arrival(1)
    boxes.enter(first)
    stored = first.new_row()
    first.cancelled = Reason.STOPPED
    if in_time:
        stored = first.new_row()
    boxes.committed([first], [stored], AcceptedMessages())
    boxes.leave([first], committed=True)
    assert boxes.add(row(1)).cancelled is Reason.STOPPED


def test_another_node_decides_about_committed_messages_when_it_executes_the_stop() -> None:
    boxes, first, lost = Mailboxes(Turns()), arrival(1), arrival(2)
    stop = arrival(3, "/stopall")
    for entry in (first, lost, stop):
        boxes.enter(entry)
    rows = {entry: entry.new_row() for entry in (first, stop)}
    first.cancelled = lost.cancelled = Reason.STOPPED_ALL
    stop.acted, stop.announce = True, lambda: None
    boxes.leave([lost], committed=False)
    for entry in (first, stop):  # in a session of another node
        boxes.committed([entry], [rows[entry]], AcceptedMessages())
        boxes.leave([entry], committed=True)
    assert boxes.add(row(1)).cancelled is None
    assert boxes.add(row(2)).cancelled is Reason.STOPPED_ALL  # its channel brings it again


def test_a_stop_that_is_stored_does_not_act_when_it_is_delivered_again() -> None:
    boxes, stop = Mailboxes(Turns()), arrival(1, "/stopall")
    boxes.enter(stop)
    stop.acted = True
    boxes.committed([stop], [stop.new_row()], AcceptedMessages((row(1, "/stopall"),)))
    boxes.leave([stop], committed=True)
    again = arrival(1, "/stopall")
    boxes.enter(again)
    assert again.acted


def test_a_stop_that_is_delivered_again_during_its_commit_acts_once() -> None:
    """It acted at its second delivery, because its session was not here at the first one."""
    boxes = Mailboxes(Turns())
    first = boxes.enter(arrival(1, "/stop"))
    second = boxes.enter(arrival(1, "/stop"))
    second.acted = True
    boxes.leave([first], committed=False)
    third = boxes.enter(arrival(1, "/stop"))
    assert third.acted
    boxes.leave([second, third], committed=False)
    assert boxes.enter(arrival(1, "/stop")).acted


def test_an_expired_node_keeps_only_what_arrives_and_its_stops_act_again() -> None:
    boxes, stop = Mailboxes(Turns()), arrival(2, "/stopall")
    boxes.add(row(1)).state = MessageState.TAKEN
    boxes.enter(stop)
    stop.acted, stop.announce = True, lambda: None
    boxes.clear(NODE)
    assert boxes.rows() == set()
    assert list(boxes.of(SESSION).entries.values()) == [stop]
    assert not stop.acted
    assert boxes.epoch == 1


@pytest.mark.parametrize("is_uncommitted", [True, False], ids=["its commit runs", "it failed"])
def test_a_stop_does_not_act_again_if_the_message_that_it_cancelled_is_still_here(
    *, is_uncommitted: bool
) -> None:
    boxes, first, stop = Mailboxes(Turns()), arrival(2), arrival(3, "/stop")
    for entry in (first, stop):
        boxes.enter(entry)
    first.cancelled = Reason.STOPPED
    stop.acted, stop.stops = True, Stops(("id 2",), Reason.STOPPED)
    if not is_uncommitted:
        boxes.leave([first, stop], committed=False)
    boxes.add(row(1))
    boxes.clear(NODE)
    assert boxes.enter(arrival(2)).cancelled is Reason.STOPPED
    assert boxes.enter(arrival(3, "/stop")).acted
    all_stop = arrival(4, "/stopall")
    boxes.enter(all_stop)
    names = ("id 2",)
    all_stop.acted = True
    all_stop.stops = Stops(names, Reason.STOPPED_ALL, everything=True)
    all_stop.announce = lambda: None
    boxes.clear(NODE)
    assert not all_stop.acted


def test_what_an_answered_stop_has_cancelled_stays_cancelled_after_the_node_has_expired() -> None:
    """Whether it was a run, a message that waited, or one whose commit had no answer."""
    boxes, lost, stop = Mailboxes(Turns()), arrival(3), arrival(4, "/stopall")
    for number in (1, 2):
        boxes.add(row(number)).state = MessageState.TAKEN
    boxes.stopped([Turn(RunId("r"), SESSION, MAIN_AGENT, [row(2)])], Reason.STOPPED)
    for entry in (lost, stop):
        boxes.enter(entry)
    lost.cancelled, stop.acted = Reason.STOPPED_ALL, True
    stop.stops = Stops(("id 1", "id 3"), Reason.STOPPED_ALL)
    boxes.leave([lost, stop], committed=False)
    boxes.clear(NODE)
    rows, messages = boxes.owed()
    assert rows == {Reason.STOPPED: [2]}
    assert [one.message.external_id for one in messages] == ["id 3", "id 4"]
    assert boxes.former == NODE
    assert [boxes.add(row(number)).cancelled for number in (1, 2, 3)] == [
        Reason.STOPPED_ALL,
        Reason.STOPPED,
        Reason.STOPPED_ALL,
    ]
    boxes.forget_former()
    assert boxes.owed()[0] == {}
    assert boxes.add(row(5)).cancelled is None


def test_an_announced_stop_is_undone_when_it_is_stored_for_another_node() -> None:
    boxes, first, stop = Mailboxes(Turns()), arrival(1), arrival(2, "/stop")
    for entry in (first, stop):
        boxes.enter(entry)
    first.cancelled, stop.acted = Reason.STOPPED, True
    boxes.leave([first, stop], committed=False)  # the person is told now
    again = [arrival(1), arrival(2, "/stop")]
    for entry in again:
        boxes.enter(entry)
    boxes.committed(again[:1], [again[0].new_row()], AcceptedMessages())
    boxes.leave(again[:1], committed=True)
    boxes.committed(again[1:], [again[1].new_row()], AcceptedMessages())
    boxes.leave(again[1:], committed=True)
    assert boxes.add(row(1)).cancelled is None
    assert not boxes.has_acted(SESSION, again[1].message)


def test_rows_that_nobody_has_any_more_are_forgotten_but_not_a_stop_that_is_not_stored() -> None:
    boxes = Mailboxes(Turns())
    for number in (1, 2, 3):
        boxes.add(row(number)).state = MessageState.TAKEN
    boxes.stopped([Turn(RunId("r"), SESSION, MAIN_AGENT, [row(2)])], Reason.STOPPED)
    boxes.forget_done((), open_rows={3})
    assert boxes.rows() == {2, 3}
    assert boxes.unstored_stops() == {Reason.STOPPED: [2]}
    boxes.stop_stored([2])
    assert boxes.unstored_stops() == {}


def test_a_session_is_idle_when_nothing_of_it_is_on_its_way_to_a_turn() -> None:
    boxes = Mailboxes(Turns())
    boxes.of(SESSION).owned = True
    entry = boxes.add(row(1))
    assert boxes.idle(ending=False) == set()
    assert boxes.idle(ending=True) == {SESSION}
    entry.state = MessageState.TAKEN
    assert boxes.idle(ending=False) == {SESSION}
    boxes.close({SESSION})
    assert boxes.rows() == set()
    assert boxes.find(SESSION) is None
