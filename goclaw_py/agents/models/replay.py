"""Continues an interrupted run from its stored steps (SPEC AGENT-10). Heavy imports.

The run begins again with its prompt, but what it had finished is not repeated: stored responses
take the place of requests, and stored results that of tool calls.

The rules of SPEC AGENT-10:

A run of a `models` agent continues after its last finished step when a crash, a shutdown, a
takeover or an outage of its provider interrupted it.

- A *step* is a complete model response, the start of a tool call, its whole result, or messages
  that joined the run. It is stored before the next step begins.
- The next run for the same message, occurrence or heartbeat run replays the steps: no finished
  response is requested (or paid) again and no finished call is repeated; the text goes on in the
  same draft. A call without a result is repeated only if its tool has no side effects or is
  idempotent (MCP, of servers with `trusted`: `readOnlyHint`, when it started and now;
  `idempotentHint`); of any other, and of one whose tool is not available now, the model is told
  that the outcome is unknown, and the record marks it `uncertain`. That a call "was not made" is
  said only of one whose start is not recorded. A continued run waits up to 60 s for MCP servers
  that it had used; after 3 s the chat says for which. Setting `on_uncertain` of an agent:
  `tell_model` (default), `ask_user` (AGENT-11: *It happened*, *Run it again*, *Skip*) or `retry`.
  *Run it again* holds for one attempt.
- Each call has an idempotency key, `<run>-<step>` of its first start: in `_meta` of a call of an
  MCP server (`goclaw-py/idempotency-key`), and in `ToolContext.key`.
- A child run that its parent waits for belongs to the key of the call: the parent's repeated call
  continues it, however it ended.
- A background subagent, whose result comes into the chat later, continues without its parent, on
  any node that has the chat's account, within 31 days: with the same parent, payer and session,
  its result once. After three crashes the chat gets the message that it did not finish, with what
  was done. The parent's repeated call starts no second one.
- Stored responses and results are used as they are. System prompt, tools, model and history are
  read again for what comes after them. A budget of a run counts all attempts, also those that are
  not continued (their wall clock and their children do not count); if it ends such a run, the
  message says what was done, as in IO-2.
- An agent in Python code stores the results of steps that it names (`await request.step("pay",
  pay)`, JSON); a stored step is not done again.
- Stored is what was said, unmasked (errors: as the model gets them, with secrets masked), and no
  setting. Of a tool's result the first million characters are stored, with a note; of a larger
  result of a Python step only that it is done: the run goes on with the whole one, and a later run
  sees the stored part, or fails. Steps are deleted with the record of their run or the history of
  their session (DB-5).
- An agent that is a program (`command`) is started with `resume_args` if it had told the id of its
  conversation, else `on_interrupted` decides: `retry` (default) starts it again; `end` ends the
  run `lost` (reason `not_continued`), with one message that says what was done, once and with a
  retry button; a job tells its target or, if it tells no failures, its owner.
- A run after a failure starts from the beginning. Steps that cannot be read (another release, a
  damaged row, another kind of agent) are told in words, as in AGENT-9.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import (
    CompletedStreamedResponse,
    Model,
    ModelRequestParameters,
    StreamedResponse,
)
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from goclaw_py.core.approvals import Decision
from goclaw_py.core.run_events import NO_USAGE, ToolEnded, ToolStarted, Usage
from goclaw_py.core.run_steps import DecisionStep, NewMessagesStep, ResponseStep, RunStep

UNKNOWN_RESULT = (
    "The outcome of this call is unknown: the program was interrupted after it had started the "
    "call and before it received a result. It may or may not have taken effect, and was not "
    "repeated. Check what happened, or ask the person, before you call it again."
)


class ReplayModel(WrapperModel):
    """A model that returns the stored responses of a run before it requests new ones."""

    def __init__(self, model: Model, replay: Replay) -> None:
        super().__init__(model)
        self._replay = replay

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Return the next response as a stream."""
        asked = model_request_parameters
        if (stored := self._replay.next()) is not None:
            yield CompletedStreamedResponse(
                stored, model_request_parameters=asked, replay_events=True
            )
            return
        async with super().request_stream(messages, model_settings, asked, run_context) as stream:
            yield stream


@dataclass(slots=True)
class _Exchange:
    """A response with what followed it."""

    response: ModelResponse
    usage: Usage
    calls: dict[str, ToolStarted] = field(default_factory=dict)
    """The calls that were started, by their ids."""
    results: dict[str, ToolEnded] = field(default_factory=dict)
    taken: list[str] = field(default_factory=list)
    approvals: dict[str, Decision] = field(default_factory=dict)
    """Decisions about whether calls are allowed."""
    outcomes: dict[str, Decision] = field(default_factory=dict)
    """Decisions about the outcomes of the latest attempts of calls."""

    def add(self, step: RunStep) -> None:
        """Add what followed the response."""
        match step:
            case ToolStarted():
                self.calls.setdefault(step.call_id, step)
                self.outcomes.pop(step.call_id, None)
            case ToolEnded():
                self.results[step.call_id] = step
            case DecisionStep(call_id, decision) if call_id in self.calls:
                self.outcomes[call_id] = decision
            case DecisionStep(call_id, decision):
                self.approvals[call_id] = decision
            case NewMessagesStep():
                self.taken.append(step.text)


class Replay:
    """The stored steps of a run; a run that continues nothing has none.

    Args:
        replayed: The usage of the responses replayed so far.
        summarized: The usage of the summaries replayed so far.
    """

    def __init__(
        self, exchanges: Sequence[_Exchange] = (), summaries: Sequence[tuple[str, Usage]] = ()
    ) -> None:
        self.replayed = NO_USAGE
        self.summarized = NO_USAGE
        self._ahead = deque(exchanges)
        self._summaries = deque(summaries)
        self.uncertain: set[str] = set()
        """Calls that were not repeated although their outcome is unknown."""
        self._now: _Exchange | None = None

    @classmethod
    def read(cls, steps: Sequence[RunStep]) -> Replay | None:
        """Return the replay of steps; None if they are not those of a model that can be read."""
        exchanges: list[_Exchange] = []
        summaries: list[tuple[str, Usage]] = []
        for step in steps:
            if isinstance(step, ResponseStep):
                try:
                    (response,) = ModelMessagesTypeAdapter.validate_json(step.native)
                except (ValidationError, ValueError):
                    return None
                if not isinstance(response, ModelResponse):
                    return None
                if step.is_summary:
                    summaries.append((response.text or "", step.usage))
                else:
                    exchanges.append(_Exchange(response, step.usage))
                continue
            if not exchanges:
                return None
            exchanges[-1].add(step)
        return cls(exchanges, summaries)

    @property
    def has_summary(self) -> bool:
        """Return whether the run had compacted its conversation."""
        return bool(self._summaries)

    def summary(self) -> str | None:
        """Return the next stored summary, if there is one."""
        if not self._summaries:
            return None
        summary, usage = self._summaries.popleft()
        self.summarized = self.summarized.plus(usage)
        return summary

    def next(self) -> ModelResponse | None:
        """Go on to the next response, and return it if it is stored."""
        self._now = self._ahead.popleft() if self._ahead else None
        if self._now is None:
            return None
        self.replayed = self.replayed.plus(self._now.usage)
        return self._now.response

    @property
    def is_over(self) -> bool:
        """Return whether the present response, or the next one, is new."""
        return not self._ahead

    @property
    def is_new(self) -> bool:
        """Return whether the present response is new."""
        return self._now is None

    @property
    def tools_ahead(self) -> set[str]:
        """Return the names of the tools that the next response had called, if it is stored."""
        return {call.name for call in self._ahead[0].calls.values()} if self._ahead else set()

    def result(self, call_id: str) -> ToolEnded | None:
        """Return the stored result of a call of the present response."""
        return None if self._now is None else self._now.results.get(call_id)

    def unknown(self, call_id: str) -> ToolStarted | None:
        """Return a call of the present response if it was started and has no result."""
        now = self._now
        return None if now is None or call_id in now.results else now.calls.get(call_id)

    def about_approval(self, call_id: str) -> Decision | None:
        """Return the decision about whether a call of the present response is allowed."""
        return None if self._now is None else self._now.approvals.get(call_id)

    def about_outcome(self, call_id: str) -> Decision | None:
        """Return the decision about the outcome of an interrupted call."""
        return None if self._now is None else self._now.outcomes.get(call_id)

    def new_messages(self) -> list[str]:
        """Return the messages of people that came after the present response; once."""
        if self._now is None:
            return []
        taken, self._now.taken = self._now.taken, []
        return taken
