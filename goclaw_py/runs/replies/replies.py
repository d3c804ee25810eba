"""The reply at the end of a run, and its entry in the history of its session."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from goclaw_py.chat.channel import Channel
from goclaw_py.chat.outbound import texts
from goclaw_py.chat.outbound.albums import in_albums
from goclaw_py.chat.outbound.ok_token import conversation_text
from goclaw_py.core.chat_commands import retry_buttons
from goclaw_py.core.concurrency import in_thread_if_long
from goclaw_py.core.errors import AgentError, Fenced, ProviderUnavailable
from goclaw_py.core.ids import AgentName, RunId
from goclaw_py.core.messages import OutboundMessage, OutFile
from goclaw_py.core.outcomes import Ending, Outcome, Reason
from goclaw_py.core.run_events import RunEnded
from goclaw_py.records import Place
from goclaw_py.runs.approval_port import Questions
from goclaw_py.runs.replies.draft import OrphanedReply
from goclaw_py.runs.turn import Turn

log = logging.getLogger(__name__)


@dataclass(slots=True)
class TurnEnd:
    """The end of a turn: its outcome, its draft in the chat, its reply, and its questions.

    Draft and reply are filled in while the turn ends.
    """

    turn: Turn
    ended: Ending
    error: BaseException | None
    left: OrphanedReply
    say: tuple[OutboundMessage, ...] = ()
    questions: Questions = field(default_factory=Questions)

    @property
    def text(self) -> str:
        """Return the reply; "" if there is none."""
        outcome, words = self.ended.outcome, self._words
        if outcome in (Outcome.COMPLETED, Outcome.INTERRUPTED):
            return words
        if not self.left.id and self.ended.reason is not Reason.BUDGET:
            return words
        # The draft becomes this message: what people have read in it stays, marked as cut off.
        said = conversation_text(self.turn.progress.text).rstrip()
        return f"{said}\n\n{words or texts.interrupted_draft(outcome)}".strip()

    @property
    def is_silent(self) -> bool:
        """Return whether it was stopped without text: its end need not wait for the draft."""
        return self.ended.outcome in (Outcome.CANCELLED, Outcome.ABANDONED) and not self._words

    @property
    def may_be_retried(self) -> bool:
        """Return whether a retry may succeed; not after a limit of the settings is reached."""
        failed = self.ended.outcome in (Outcome.FAILED, Outcome.TIMED_OUT, Outcome.LOST)
        return failed and self.ended.reason not in (Reason.BUDGET, Reason.CHAIN_LIMIT)

    @property
    def _words(self) -> str:
        turn, ended, error = self.turn, self.ended, self.error
        match ended.outcome:
            case Outcome.COMPLETED if turn.progress.result is not None:
                return conversation_text(turn.progress.result.text)
            case Outcome.FAILED | Outcome.LOST:
                return error.friendly if isinstance(error, AgentError) else texts.FAILED
            case Outcome.TIMED_OUT:
                return texts.timed_out(ended.reason)
            case Outcome.ABANDONED if ended.reason in (Reason.DEADLINE, Reason.RUN_TIMEOUT):
                return texts.timed_out(ended.reason)
            case _:
                return ""


class Replies:
    """Formats replies for their channel.

    Args:
        workspaces: The folder of each agent; only files in it are sent (SPEC SEC-4).
    """

    def __init__(
        self, channels: Mapping[Place, Channel], workspaces: Mapping[AgentName, Path]
    ) -> None:
        self._channels = channels
        self._workspaces = workspaces

    async def messages(self, end: TurnEnd) -> tuple[OutboundMessage, ...]:
        """Return a reply as messages; only the first one replies to the question."""
        progress = end.turn.progress
        said = progress.said if progress.result is None else [progress.result.text]
        return await in_thread_if_long(sum(map(len, said)), partial(self._messages, end))

    def _messages(self, end: TurnEnd) -> tuple[OutboundMessage, ...]:
        turn, left = end.turn, end.left
        files, troubles = self._files(end)
        text = "\n\n".join(filter(None, [end.text, *troubles]))
        channel = self._channels.get((turn.target.channel, turn.target.account))
        parts = [text] if channel is None else channel.parts(text)
        rich = channel is not None
        said = [OutboundMessage(turn.target, part, run_id=turn.id, rich=rich) for part in parts]
        if said and (left.id or left.lost):
            said[0] = replace(said[0], draft=left.id, lost=left.lost)
        attached = [OutboundMessage(turn.target, "", run_id=turn.id, file=file) for file in files]
        said += in_albums(attached, channel)
        if said and turn.reply_to is not None:
            said[0] = replace(said[0], reply_to=turn.reply_to)
        if parts and end.may_be_retried:
            rows = [row.id for row in turn.rows]
            said[-1] = replace(said[-1], buttons=retry_buttons(rows))
        asks = end.ended.reason is Reason.APPROVAL
        if not text and left.id and (asks or end.ended.outcome is Outcome.COMPLETED):
            # There was nothing to say, or the answer comes as a message of its own after a person
            # has decided, which may be in a day: what was shown of it is removed.
            said.insert(0, OutboundMessage(turn.target, "", run_id=turn.id, draft=left.id))
        if not parts and left.lost and (asks or end.ended.outcome is not Outcome.INTERRUPTED):
            said.insert(0, OutboundMessage(turn.target, "", run_id=turn.id, lost=left.lost))
        return tuple(said)

    def bare(self, end: TurnEnd) -> tuple[OutboundMessage, ...]:
        """Return the reply without external content, after a bug in formatting it."""
        turn = end.turn
        ended = end.ended
        words = TurnEnd(turn, ended, None, OrphanedReply()).text
        if ended.outcome is Outcome.COMPLETED or not words:
            return ()
        left = end.left
        return (OutboundMessage(turn.target, words, run_id=turn.id, draft=left.id, lost=left.lost),)

    def _files(self, end: TurnEnd) -> tuple[list[OutFile], list[str]]:
        result = end.turn.progress.result
        if result is None or end.ended.outcome is not Outcome.COMPLETED:
            return [], []
        return self.sendable(result.files, end.turn.agent, end.turn.id)

    def sendable(
        self, given: Sequence[OutFile], agent: AgentName, run_id: RunId | None
    ) -> tuple[list[OutFile], list[str]]:
        """Return the files that may be sent, and a line about each other file."""
        files, troubles = [], []
        for file in given:
            reason = _refusal(file, self._workspaces[agent])
            if reason is None:
                files.append(file)
            else:
                log.warning(
                    "file_not_sent", extra={"run_id": run_id, "file": file.path, "reason": reason}
                )
                troubles.append(texts.file_not_sent(file.name, reason))
        return files, troubles


def _refusal(file: OutFile, workspace: Path) -> str | None:
    """Return why a file is not sent, or None."""
    try:
        path = Path(file.path).resolve()
        if not path.is_relative_to(workspace.resolve()):
            return "it is not in the workspace"
        found = path.is_file()
    except (OSError, ValueError, RuntimeError):
        # Agents write what they like: zero bytes, names without end, links in a circle.
        found = False
    return None if found else "there is no such file"


def signal_of(end: TurnEnd) -> RunEnded:
    """Return the signal of an end; it closes a draft that no message will complete."""
    turn, outcome = end.turn, end.ended.outcome
    finished = any(message.draft is not None for message in end.say)
    unfinished = not finished and outcome is not Outcome.INTERRUPTED
    return RunEnded(
        turn.id,
        turn.target,
        outcome,
        turn.message_ids,
        draft=end.left.id if unfinished else None,
        shown=end.left.shown,
        silent=outcome is Outcome.COMPLETED
        and not any(message.text or message.file for message in end.say),
    )


def log_failure(turn: Turn, error: BaseException | None) -> None:
    """Log why a run failed, if it did."""
    if error is None:
        return
    facts = {**turn.facts, "agent": turn.agent}
    if isinstance(error, ProviderUnavailable):
        log.debug("run_held", extra={**facts, "error": str(error)})
    elif isinstance(error, AgentError | Fenced):
        log.warning("run_failed", extra={**facts, "error": str(error)})
    else:
        log.error("run_failed", extra=facts, exc_info=error)
