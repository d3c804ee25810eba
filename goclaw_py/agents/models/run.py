"""One run of a model agent. Heavy imports."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import chain

from pydantic_ai import Agent, AgentRun, DeferredToolRequests, ModelRequestNode
from pydantic_ai.exceptions import ModelContextWindowExceededError
from pydantic_ai.messages import (
    FunctionToolResultEvent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
)
from pydantic_ai.models import Model
from pydantic_ai.usage import UsageLimits

from goclaw_py.agents.models.approval import ReplayJudge
from goclaw_py.agents.models.compaction import (
    CHARS_PER_TOKEN,
    KEPT,
    KEPT_AFTER_OVERFLOW,
    PICTURE_TOKENS,
    TASK,
    Context,
    chars,
    compact,
    relieve,
    units,
)
from goclaw_py.agents.models.endings import CUT_TEXTS, ending_word, read_ending
from goclaw_py.agents.models.failures import (
    FAILURES,
    UNREADABLE,
    empty_response,
    explain,
    unfinished,
    unreadable,
)
from goclaw_py.agents.models.history import check_readable, drop_blanks, mend_new, to_entries
from goclaw_py.agents.models.measure import measure, usage_of
from goclaw_py.agents.models.mistakes import Mistake, Mistakes
from goclaw_py.agents.models.prompt import prompt_of
from goclaw_py.agents.models.repair import (
    AcceptedModel,
    Repair,
    Rewriting,
    call_ids,
    is_refusal,
    make_ids_unique,
    new_since,
    rewrite,
)
from goclaw_py.agents.models.replay import Replay, ReplayModel
from goclaw_py.agents.models.reply import Reply, Trace, context_tokens
from goclaw_py.agents.models.responses.limits import ResponseTooLong
from goclaw_py.agents.models.responses.progress import ResponseProgress
from goclaw_py.agents.models.toolset import RunTools
from goclaw_py.agents.models.transport import MORE_TRIES, more_tries
from goclaw_py.chat.outbound import texts
from goclaw_py.core.approvals import NO_APPROVALS, ApprovalPolicy
from goclaw_py.core.budget import BudgetScope, Limit
from goclaw_py.core.errors import AgentError, ApprovalNeeded, BudgetReached
from goclaw_py.core.outcomes import SCHEDULED, Trigger
from goclaw_py.core.run_events import NO_USAGE, RunNote, RunNoted
from goclaw_py.core.run_steps import NewMessagesStep, ResponseStep
from goclaw_py.core.text import is_blank
from goclaw_py.runs.agent_loop import (
    AgentResult,
    Emit,
    LoopEvent,
    ModelStep,
    RequestSent,
    RunRequest,
    TextPart,
)
from goclaw_py.runs.toolbox import Toolbox

_log = logging.getLogger(__name__)

MOST_REQUESTS = 50
"""The number of model requests of a run without such a budget: stops endless loops."""

_NO_LIMITS = UsageLimits(request_limit=None)
"""We count ourselves: also before tools are called, and with our own texts."""


@dataclass(frozen=True, slots=True)
class RunInputs:
    """The inputs of a run.

    Args:
        agent: The agent.
        model: Its model.
        window: Its limit in tokens.
        secrets: Secrets that no text may contain.
        system_prompt: The agent's system prompt.
        servers: The toolbox of its MCP servers, if it has any.
        missing: The names of servers that cannot be used now.
        approval: The tools whose calls people must approve.
    """

    agent: Agent[None, str | None]
    model: Model
    window: int
    secrets: tuple[str, ...] = field(repr=False)
    system_prompt: str
    servers: Toolbox | None = None
    missing: tuple[str, ...] = ()
    approval: ApprovalPolicy = NO_APPROVALS


class ModelRun:
    """A run; ``answer`` is called once."""

    def __init__(self, inputs: RunInputs, request: RunRequest, emit: Emit) -> None:
        self._agent = inputs.agent
        self._inputs = inputs
        self._listener = emit
        self._listener_error: Exception | None = None
        turns = request.budget.turns
        budget = replace(request.budget, turns=MOST_REQUESTS if turns is None else turns)
        self._new_usage = NO_USAGE
        """The usage of this run without that of the interrupted runs that it continues."""
        replay = Replay.read(request.steps)
        if replay is None:
            _log.warning("run_not_continued", extra={"run_id": request.run_id})
            request = request.begun_again()
            for step in request.steps:
                budget = budget.less(step.usage) if isinstance(step, ResponseStep) else budget
        self._budget, self._request = budget, request
        self._replay = replay or Replay()
        self._accepted = AcceptedModel(inputs.model, self._repaired)
        self._model: Model = self._accepted
        if request.steps:
            self._model = ReplayModel(self._model, self._replay)
        boxes = (request.tools,) if inputs.servers is None else (request.tools, inputs.servers)
        judge = ReplayJudge(inputs.approval, self._replay, request)
        self._tools = RunTools(boxes, request, self._replay, judge)
        self._instructions = _instructions(
            inputs, request, with_interrupted=not request.steps or replay is None
        )
        self._reply = Reply(self._emit, self._tools, self._replay)
        self._trace = Trace(request.stored_prompt)
        self._mistakes = Mistakes()
        self._has_answered = False
        self._history: list[ModelMessage] = []
        self._call_ids: set[str] = set()

    def _emit(self, event: LoopEvent) -> None:
        try:
            self._listener(event)
        except Exception as error:
            # Not the model's, although the libraries that read its stream pass it on.
            self._listener_error = error
            raise

    @property
    def _may_be_silent(self) -> bool:
        # To a heartbeat it is an answer: all is well (SPEC HB-6).
        return self._request.trigger is Trigger.HEARTBEAT

    async def answer(self) -> AgentResult | AgentError:
        """Run until the answer is complete. Errors for people are returned.

        The caller raises them outside of any exception handler: a foreign exception in their
        context may contain parts of a key and reach a log.
        """
        self._note(None)
        more_tries.set(MORE_TRIES if self._request.trigger in SCHEDULED else 0)
        clock = asyncio.timeout(self._budget.seconds)
        try:
            async with clock:
                return await self._answer()
        except FAILURES as error:
            # Nothing is retried once a response has begun, although it may have said nothing yet.
            return explain(error, self._inputs.secrets, is_retried=not self._accepted.has_begun)
        except AgentError as error:
            return error
        except TimeoutError:
            if not clock.expired():
                raise
            return self._over(Limit.SECONDS)

    async def _answer(self) -> AgentResult:
        prompt = await prompt_of(self._request.parts)
        context = self._context(prompt)
        needs_room = context.units and (context.is_full or self._replay.has_summary)
        # Stored responses need no room, and the history may be longer than it was then.
        if needs_room:
            await self._compact(context, KEPT * context.window)
        may_compact = True
        while True:
            try:
                return await self._attempt(context, prompt)
            except FAILURES as error:
                if self._has_answered:
                    raise
                is_too_long = _is(error, ModelContextWindowExceededError)
                if is_too_long and (not context.units or not may_compact):
                    raise
                if not is_too_long and (isinstance(prompt, str) or not is_refusal(error)):
                    raise
            # Not inside of ``except``: the failure must not hang on what comes of this.
            if is_too_long:
                may_compact = False
                # It takes more than we have thought, or the window is smaller than we were told.
                taken = min(context.sent, context.window)
                await self._compact(context, KEPT_AFTER_OVERFLOW * taken)
            else:
                _log.info("model_takes_no_images", extra={"run_id": self._request.run_id})
                prompt = self._request.prompt

    def _context(self, prompt: str | Sequence[UserContent]) -> Context:
        pictures = 0 if isinstance(prompt, str) else len(prompt) - 1
        return Context(
            window=self._inputs.window,
            summary=self._request.summary,
            units=units(self._request.history),
            around=len(self._instructions or "") + self._tools.chars,
            asked=len(self._request.prompt) + pictures * PICTURE_TOKENS * CHARS_PER_TOKEN,
        )

    async def _compact(self, context: Context, room: float) -> None:
        await compact(context, room, self._sum_up, self._emit)

    async def _sum_up(self, question: str) -> str:
        """Ask the same model for a summary."""
        if (summary := self._replay.summary()) is not None:
            return summary
        self._check()
        failure: AgentError
        try:
            async with self._agent.iter(
                question, instructions=TASK, usage_limits=_NO_LIMITS
            ) as run:
                async for node in run:
                    if Agent.is_call_tools_node(node):
                        asked = len(TASK) + len(question)
                        await mend_new(node.model_response)
                        self._note(node.model_response, asked, is_summary=True)
                    if Agent.is_model_request_node(node):
                        await self._receive(node, run, is_summary=True)
        except FAILURES as error:
            failure = explain(error, self._inputs.secrets, is_retried=True)
        else:
            assert run.result is not None
            response = run.result.response
            if response.finish_reason not in CUT_TEXTS and not is_blank(response.text or ""):
                return response.text or ""
            # Nothing, or the beginning of it, must not stand for a conversation.
            failure = empty_response()
        raise failure

    async def _attempt(self, context: Context, prompt: str | Sequence[UserContent]) -> AgentResult:
        self._trace.mark, self._trace.repair = context.mark, None
        self._history = context.messages
        self._call_ids = call_ids(self._history)
        async with self._agent.iter(
            prompt,
            message_history=self._history,
            instructions=self._instructions,
            usage_limits=_NO_LIMITS,
            # Stored responses may have called tools that are gone.
            toolsets=[self._tools] if self._tools.definitions or self._request.steps else None,
            model=self._model,
        ) as run:
            await self._follow(run)
        output: object = None if run.result is None else run.result.output
        if isinstance(output, DeferredToolRequests):
            await self._request.recorded()
            asks = (self._tools.asks(call.tool_call_id) for call in output.approvals)
            raise ApprovalNeeded(tuple(filter(None, asks)))
        messages = run.new_messages()
        last = next(m for m in reversed(messages) if isinstance(m, ModelResponse))
        is_said = not is_blank(text := await self._reply.text())
        if (note := CUT_TEXTS.get(last.finish_reason)) and (is_said or note == texts.ANSWER_CUT):
            self._reply.add_paragraph(note)
            self._emit(RunNoted(RunNote.ANSWER_CUT))
            text = await self._reply.text()
        said = "" if is_blank(text) else text
        if not (said or any(map(_acts, messages)) or self._may_be_silent):
            raise empty_response()
        if not said and self._reply.ends_in_thought:
            raise unfinished()  # the beginning of a thought does not say that all is well
        return AgentResult(
            said,
            entries=to_entries(
                self._request.stored_prompt,
                text,
                messages,
                mark=context.mark,
                repair=self._trace.stored_repair,
            ),
            usage=self._new_usage,
            context_tokens=context_tokens(messages),
            model=last.model_name or "",
        )

    async def _follow(self, run: AgentRun[None, str | None]) -> None:
        async for node in run:
            if Agent.is_model_request_node(node):
                await self._prepare(run, node.request)
                if self._replay.is_over:
                    self._emit(RequestSent())
                await self._receive(node, run)
            elif Agent.is_call_tools_node(node):
                self._has_answered = True
                await mend_new(node.model_response)
                if self._replay.is_new:
                    make_ids_unique(node.model_response, self._call_ids)
                else:
                    self._call_ids |= call_ids([node.model_response])
                self._note(node.model_response, self._chars(run))
                if calls := node.model_response.tool_calls:
                    self._check()
                    await self._tools.judge(calls)
                ended: list[ToolReturnPart] = []
                async with node.stream(run.ctx) as results:
                    async for result in results:
                        self._reply.on_event(result)
                        if isinstance(result, FunctionToolResultEvent):
                            ended.append(result.part)
                self._count_mistakes(calls, ended)

    async def _receive(
        self,
        node: ModelRequestNode[None, str | None],
        run: AgentRun[None, str | None],
        *,
        is_summary: bool = False,
    ) -> None:
        progress = ResponseProgress()
        async with self._reading(), progress.watched(), node.stream(run.ctx) as events:
            if not is_summary:
                self._trace.stream = events
            async for event in events:
                progress.count(event)
                if not is_summary:
                    await self._reply.receive(event)
            check_readable(events.response)
        self._trace.stream = None

    @asynccontextmanager
    async def _reading(self) -> AsyncGenerator[None]:
        """Turn what the libraries raise for a response of another shape into a failure of it."""
        try:
            yield
        except ResponseTooLong:
            self._trace.stream = None  # what nobody reads is not sent with later requests
            raise
        except UNREADABLE as error:
            if error is self._listener_error:
                raise
            raise unreadable(error) from error

    async def _prepare(self, run: AgentRun[None, str | None], request: ModelRequest) -> None:
        """Check and prepare a request; return when everything before it is stored."""
        self._trace.run, self._trace.request, self._trace.taken = run, request, ""
        self._check()
        if not self._has_answered:
            return
        messages = run.new_messages()
        drop_blanks(messages)
        relieve(messages, request, self._inputs.window)
        if taken := self._new_messages():
            self._trace.taken = taken
            run.enqueue(taken)
        await self._request.recorded()

    def _repaired(self, rewriting: Rewriting, begin: int) -> None:
        """Keep a conversation as it was accepted, for the next requests and the next runs."""
        run = self._trace.run
        assert run is not None
        everything = run.all_messages()
        changed = list(everything)
        rewrite(changed, rewriting, new_since(everything) if begin else 0)
        for message, new in zip(everything, changed, strict=True):
            message.parts = new.parts
        count = len(self._history) - (new_since(self._history) if begin else 0)
        if count and not (begin and self._has_answered):
            self._trace.repair = Repair(rewriting, count)
        self._emit(RunNoted(RunNote.HISTORY_REPAIRED))
        facts = {"run_id": self._request.run_id, "rewriting": rewriting.value}
        _log.warning("history_repaired", extra=facts)

    def _new_messages(self) -> str:
        """Return new messages of people, or those that the interrupted run had got here.

        Only between two requests: after the last one the reply is complete, and a new message gets
        its own run.
        """
        stored = self._replay.new_messages()
        if not self._replay.is_over:
            return "\n".join(stored)
        new = self._request.take_messages()
        text = "\n".join(part.text for part in new)
        if new:
            rows = (part.rows for part in new if isinstance(part, TextPart))
            self._emit(NewMessagesStep(text, tuple(chain.from_iterable(rows))))
        return "\n".join(filter(None, [*stored, text]))

    def _count_mistakes(
        self, calls: Sequence[ToolCallPart], ended: Sequence[ToolReturnPart]
    ) -> None:
        arguments = {call.tool_call_id: call.args_as_json_str() for call in calls}
        made, any_succeeded = set(), False
        for part in ended:
            name, error = part.tool_name, part.model_response_str(wrap_if_error=False)
            if part.outcome == "success":
                any_succeeded = True
            elif not self._tools.has(name):
                made.add(Mistake(name, is_unknown=True))
            else:
                made.add(Mistake(name, arguments.get(part.tool_call_id, ""), error))
        self._mistakes.count(made, any_succeeded=any_succeeded)

    def _chars(self, run: AgentRun[None, str | None]) -> int:
        """Return the number of characters of the last request."""
        return len(self._instructions or "") + self._tools.chars + chars(run.all_messages()[:-1])

    def _note(
        self, response: ModelResponse | None, request_chars: int = 0, *, is_summary: bool = False
    ) -> None:
        """Report the present state. Raises ``AgentError`` for an incomplete response."""
        entries = self._trace.entries
        if response is None:
            self._emit(ModelStep(self._new_usage, entries=entries))
            return
        read_ending(response)
        step = None
        if is_summary or self._replay.is_new:
            if measure(response, request_chars):
                self._emit(RunNoted(RunNote.USAGE_ESTIMATED))
            used = usage_of(response)
            self._new_usage = self._new_usage.plus(used)
            if response.finish_reason is not None:
                native = ModelMessagesTypeAdapter.dump_json([response])
                step = ResponseStep(native, used, is_summary)
        model, done = response.model_name or "", not response.tool_calls and self._has_answered
        self._emit(ModelStep(self._new_usage, model, done=done, entries=entries, response=step))
        # Before any tool runs: the arguments of a cut call are not what the model meant.
        if response.finish_reason is None:
            raise unfinished(ending_word(response))

    def _check(self) -> None:
        """Raise ``BudgetReached`` if the budget is used up."""
        before = self._replay.replayed.plus(self._replay.summarized)
        limit = self._budget.reached(self._new_usage.plus(before))
        if limit is not None:
            raise self._over(limit)

    def _over(self, limit: Limit) -> BudgetReached:
        said = texts.over_budget(BudgetScope.RUN, limit, self._budget)
        return BudgetReached(said, f"the run's budget of {limit.value} is used up")


def _acts(message: ModelMessage) -> bool:
    return isinstance(message, ModelResponse) and bool(message.tool_calls)


def _instructions(inputs: RunInputs, request: RunRequest, *, with_interrupted: bool) -> str | None:
    """Return the instructions, with what interrupted runs did if ``with_interrupted``."""
    lines = [inputs.system_prompt, *request.system, *request.tools.guidance]
    if with_interrupted:
        lines.insert(1, request.interrupted)
    if request.pinned:
        lines.append("Facts to remember:\n" + "\n".join(f"- {fact}" for fact in request.pinned))
    lines += [f"The tools of the server {name} are not available now." for name in inputs.missing]
    return "\n\n".join(line for line in lines if line.strip()) or None


def _is(error: Exception, kind: type[Exception]) -> bool:
    """Return whether an error, or one in a group, is of this kind."""
    if isinstance(error, ExceptionGroup):
        return error.subgroup(kind) is not None
    return isinstance(error, kind)
