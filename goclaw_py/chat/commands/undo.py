"""``/undo``: remove the last turn from the conversation (CMD-7).

The rules of SPEC CMD-7:

`/undo` removes the last turn, prompt and reply, from what the agent reads of the conversation;
repeated, the turn before. The answer quotes the prompt and lists the calls with side effects of its
run (and of interrupted runs that it continued), which are not undone. Removal, end of the command
and answer are one transaction: after a crash it undoes nothing more. Nothing is undone while
something runs or waits in the session, beyond `/new`, or of what a summary stands for; the answer
says so. Notes of jobs and pinned facts stay, and so do the entries in the record of the run
(OPS-8). `/undo RUN` removes the last turn only if it is of that run. The chat in the browser sends
`/undo RUN again`, which also makes all messages of the turn wait again, in their order and with
their files, as one turn; and `/undo RUN edit MESSAGE` with a text below it, which replaces the text
of that message first, or without MESSAGE that of the whole turn. Files of the command are added.
Both need stored messages, change only those of the sender, and answer only what tools did. In a
group: owners and admins, or anyone where `stop = "anyone"`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from goclaw_py.chat.commands.command import ChatCommand, CommandUse, HandlerDecides, HelpGroup
from goclaw_py.chat.commands.retry import NOT_STORED
from goclaw_py.chat.outbound import approval_texts, texts
from goclaw_py.chat.stop.answer import with_unread
from goclaw_py.core.chat_commands import TypedCommand
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import InboundMessage, OutboundMessage
from goclaw_py.core.text import count, first_words
from goclaw_py.records.rewind import CommandAnswer

NOTHING_TO_UNDO: Final = "There is nothing to undo in this conversation."
UNDO_BUSY: Final = (
    "I did not undo anything, because a task is running or waiting here. Stop it with /stop, or "
    "wait for it, and then send /undo again."
)
UNDO_LATE: Final = "I did not undo anything, because another message came after that turn."
UNDO_SUMMARIZED: Final = (
    "I cannot undo more: earlier turns are summarised together. /new forgets this conversation."
)
UNDO_REFUSED: Final = (
    "Only an owner or an admin of this group can undo a turn of this conversation."
)
_NAMED: Final = re.compile(
    r"(?P<run>[0-9a-f-]{32,})(?: (?P<repeats>again)| edit(?: (?P<message>\S+))?)?"
)
_MOST_CALLS: Final = 20
_ARGUMENTS: Final = 100


async def _undo(use: CommandUse) -> str:
    """Remove the last turn; the answer is stored in the same transaction (SPEC CMD-7)."""
    row, message, services = use.row, use.row.message, use.services
    rights = services.stops.rights
    if rights.limit(message) is not None and not await rights.is_admin_after_all(message):
        return UNDO_REFUSED
    if services.stops.local.is_busy(row.session):
        return UNDO_BUSY
    turn = await services.store.last_turn(row.session)
    if turn is None:
        return NOTHING_TO_UNDO
    named = _NAMED.fullmatch(use.command.line)
    if named and named["run"] != turn.run:
        return UNDO_LATE
    if turn.is_summarized:
        return UNDO_SUMMARIZED
    repeats = named is not None and named[0] != named["run"]
    again: dict[int, InboundMessage] = {}
    if named and repeats:
        again = await _messages(use, turn.run, named)
        if not again:
            return NOT_STORED
    did = [
        _call(call.name, call.arguments, ok=call.ok)
        for call in turn.calls
        if call.side_effects and not call.is_denied
    ]
    undone_text = _undone(turn.prompt, did)
    if not repeats:
        undone_text = with_unread(undone_text, message, _words_read(use.command))
    say = () if repeats and not did else (OutboundMessage(message.target, undone_text),)
    now, node = services.clock.now(), services.store.node()
    undone = await services.store.undo_turn(
        row.session, turn.run, answer=CommandAnswer(row.id, say), again=again, now=now, node=node
    )
    # False: a run has started meanwhile.
    return "" if undone else UNDO_BUSY


async def _messages(use: CommandUse, run: RunId, named: re.Match[str]) -> dict[int, InboundMessage]:
    """Return the messages of a run that are to be answered again, by row, as they are then.

    Empty if they, or the edited one, are no longer stored, or if that is of somebody else.
    """
    edit = use.row.message
    letters = await use.services.store.letters_of(run)
    found = {one.row.id: one.row.message for one in letters if one.session == use.row.session}
    if named["repeats"]:
        return found
    text = edit.text.partition("\n")[2]
    ends = f":{named['message']}"
    edited = [
        id_ for id_, one in found.items() if not named["message"] or one.external_id.endswith(ends)
    ]
    if not edited or any(found[id_].of_whom != edit.of_whom for id_ in edited):
        return {}
    for id_ in edited:
        one, is_first = found[id_], id_ == edited[0]
        files = one.attachments + (edit.attachments if is_first else ())
        found[id_] = replace(one, text=text if is_first else "", formatted="", attachments=files)
    # One whose words are in another one's now, and which has no file, is no message any more.
    return {id_: one for id_, one in found.items() if one.text or one.attachments}


def _words_read(command: TypedCommand) -> int | None:
    named = _NAMED.fullmatch(command.line)
    return 0 if named is None else None if " " in command.line else 1


def _undone(prompt: str, did: Sequence[str]) -> str:
    said = f"I removed the last turn from this conversation: “{texts.snippet(prompt)}”."
    if not did:
        return said
    more = [f"… and {count(len(did) - _MOST_CALLS, 'more call')}"] if did[_MOST_CALLS:] else []
    head = "What its tools did is not undone:"
    return "\n".join([said, head, *did[:_MOST_CALLS], *more])


def _call(tool: str, arguments: str, *, ok: bool | None) -> str:
    """Return a line about a tool call of a turn that was undone."""
    result = texts.CALL_UNKNOWN if ok is None else texts.CALL_DONE if ok else texts.CALL_FAILED
    given = first_words(approval_texts.arguments_line(arguments), _ARGUMENTS)
    return f"- {tool}{f' ({given})' if given else ''}: {result}"


COMMANDS = (
    ChatCommand("undo", HandlerDecides("CMD-7"), HelpGroup.CONVERSATION, _undo, _words_read),
)
