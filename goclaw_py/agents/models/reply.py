"""Collects the reply and the events of a run. Heavy imports."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic_ai import AgentRun
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    UserPromptPart,
)
from pydantic_ai.result import AgentStream

from goclaw_py.agents.models.failures import UNREADABLE
from goclaw_py.agents.models.history import (
    BETWEEN_PARTS,
    NO_REPAIR,
    interrupted_entries,
    is_readable,
)
from goclaw_py.agents.models.repair import Repair
from goclaw_py.agents.models.replay import Replay
from goclaw_py.agents.models.toolset import RunTools
from goclaw_py.core.concurrency import LONG, in_thread_if_long
from goclaw_py.core.messages import HistoryEntry
from goclaw_py.core.run_events import TextDelta, ToolEnded, ToolStarted
from goclaw_py.core.storable import storable
from goclaw_py.runs.agent_loop import Emit
from goclaw_py.runs.thoughts import separate


class Reply:
    """The text so far. Thoughts that are part of it are emitted and not stored."""

    def __init__(self, emit: Emit, tools: RunTools, replay: Replay) -> None:
        self._emit = emit
        self._replay = replay
        self._tools = tools
        self._parts: list[list[str]] = []
        """The pieces of each text."""

    async def text(self) -> str:
        """Return the whole text."""
        said = ["".join(pieces) for pieces in self._parts]

        def join() -> str:
            texts = (separate(one).text for one in said)
            return storable(BETWEEN_PARTS.join(filter(None, texts)))

        return await in_thread_if_long(sum(map(len, said)), join)

    @property
    def ends_in_thought(self) -> bool:
        """Return whether the last text ends within a thought."""
        return bool(self._parts) and separate("".join(self._parts[-1])).is_cut

    async def receive(self, event: object) -> None:
        """Emit an event of a response; a long text in pieces, so that others have their turn."""
        match event:
            case (
                PartDeltaEvent(delta=TextPartDelta(content_delta=str(text)))
                | PartStartEvent(part=TextPart(content=str(text)))
            ) if len(text) > LONG:
                if isinstance(event, PartStartEvent):
                    self._begin_part()
                for place in range(0, len(text), LONG):
                    self._add(text[place : place + LONG])
                    await asyncio.sleep(0)
            case _:
                self.on_event(event)

    def on_event(self, event: object) -> None:
        """Emit an event of the library, if it has an equivalent."""
        match event:
            case PartDeltaEvent(delta=TextPartDelta(content_delta=str(text))):
                self._add(text)
            case PartStartEvent(part=TextPart(content=str(text))):
                self._begin_part()
                self._add(text)
            case FunctionToolCallEvent(part=part) | FunctionToolResultEvent(part=part) if (
                self._replay.result(part.tool_call_id) is not None
            ):
                pass  # the interrupted run has reported it
            case FunctionToolCallEvent(part=call) if self._tools.asks(call.tool_call_id):
                pass  # it is not called yet
            case FunctionToolCallEvent(part=call):
                arguments = call.args_as_json_str()
                before = self._replay.unknown(call.tool_call_id)
                key = "" if before is None else before.key
                # Its server may be gone; what was recorded of the call is true of it all the same.
                effects = self._tools.has_side_effects(call.tool_name, before)
                self._emit(ToolStarted(call.tool_call_id, call.tool_name, arguments, effects, key))
            case FunctionToolResultEvent(part=part):
                ok = part.outcome == "success"
                result = part.model_response_str(wrap_if_error=False)
                uncertain = part.tool_call_id in self._replay.uncertain
                self._emit(ToolEnded(part.tool_call_id, part.tool_name, ok, result, uncertain))
            case _:
                # Thinking, and bookkeeping of the library.
                pass

    def add_paragraph(self, text: str) -> None:
        """Add a text that the model has not said."""
        self._parts.append([])
        self._add(text)

    def _begin_part(self) -> None:
        """Begin a separate text, for example after a tool call."""
        if not self._parts or self._parts[-1]:
            self._parts.append([])

    def _add(self, piece: str) -> None:
        if not piece:
            return
        pieces = self._parts[-1]
        is_later = not pieces and len(self._parts) > 1
        pieces.append(piece)
        self._emit(TextDelta(BETWEEN_PARTS + piece if is_later else piece))


@dataclass(slots=True)
class Trace:
    """The state of a run at any moment, also after its interruption.

    Args:
        prompt: Its prompt.
        mark: The mark of its summary; see ``history.mark_of``.
        run: The library's run, once it makes requests.
        request: The present request, or the last one.
        stream: The response that is being received, or was interrupted.
        taken: Messages of people that are sent with ``request``.
    """

    prompt: str
    mark: str = ""
    run: AgentRun[None, str | None] | None = None
    request: ModelRequest | None = None
    stream: AgentStream[None, str | None] | None = None
    taken: str = ""
    repair: Repair | None = None
    """How the messages before this run were rewritten, if they were refused."""

    def messages(self) -> list[ModelMessage]:
        """Return the new messages, of which the last may be incomplete."""
        if self.run is None:
            return []
        messages = list(filter(is_readable, self.run.new_messages()))
        # The library adds a request to its messages only when it is about to send it.
        if self.request is not None and not _holds(messages, self.request):
            messages.append(self.request)
        if self.taken and not _is_last_prompt(messages, self.taken):
            messages.append(ModelRequest(parts=[UserPromptPart(self.taken)]))
        partial = self.partial
        if partial is not None and messages and isinstance(messages[-1], ModelRequest):
            # For cancelled runs the library has the partial response, for others not.
            messages.append(partial)
        return messages

    @property
    def partial(self) -> ModelResponse | None:
        """Return the response that is being received, unless it cannot be read."""
        if self.stream is None:
            return None
        try:
            response = self.stream.response
        except UNREADABLE:
            return None
        return response if is_readable(response) else None

    def entries(self, note: str) -> tuple[HistoryEntry, ...]:
        """See ``ModelStep``. Works at any time, and costs nothing until it is called."""
        return interrupted_entries(
            self.prompt, self.messages(), note, mark=self.mark, repair=self.stored_repair
        )

    @property
    def stored_repair(self) -> Mapping[str, object]:
        """Return the form in which ``repair`` is stored."""
        return NO_REPAIR if self.repair is None else self.repair.metadata


def _holds(messages: Sequence[ModelMessage], request: ModelRequest) -> bool:
    """Return whether a request is among messages, perhaps as a copy."""
    if not request.parts:
        return True
    return any(message.parts and message.parts[0] is request.parts[0] for message in messages)


def _is_last_prompt(messages: Sequence[ModelMessage], text: str) -> bool:
    said = [
        part.content
        for message in messages
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]
    return bool(said) and said[-1] == text


def context_tokens(messages: Sequence[ModelMessage]) -> int | None:
    """Return the size of the last request and response; None if the server does not count."""
    answers = [message for message in messages if isinstance(message, ModelResponse)]
    return answers[-1].usage.total_tokens or None if answers else None
