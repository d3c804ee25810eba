"""Agents in Python code of the user: ``python:module:callable`` (SPEC AGENT-2c)."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import inspect
import json
import threading
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, Future
from dataclasses import replace
from functools import partial
from typing import Any, ParamSpec, TypeVar

from goclaw_py.core.concurrency import in_import_thread
from goclaw_py.core.errors import AgentError, SettingError
from goclaw_py.core.run_steps import MOST_STORED, ValueStep
from goclaw_py.runs.agent_loop import AgentResult, Emit, LoopEvent, MessagePart, RunRequest

P = ParamSpec("P")
T = TypeVar("T")

Target = Callable[[RunRequest, Emit], object]
"""The function to call for each run; returns a text, a result, or an awaitable of one."""

MOST_WAITING = 256
"""The number of events of a thread that wait for the event loop, which handles them in one turn."""

_FORM = "must be python:module:callable, with a module that Python can import"


class CallableAgent:
    """Runs a function, or an object with ``run``.

    An ``async`` function runs in the event loop and can be cancelled. A plain function runs in its
    own thread: **cancellation cannot reach it**. Its run then lasts until the function returns, so
    that the next run of the session does not overlap it, and its result is discarded. A second
    cancellation abandons the thread, and the end of the process does not wait for it.
    """

    def __init__(self, target: Target, *, owner: object = None) -> None:
        """Wrap ``target``. ``warm_up`` and ``close`` of ``owner`` are called if it has them."""
        self._target = target
        self._owner = owner
        self._is_async = _is_async(target)
        self._imports_beside = True

    @classmethod
    def load(cls, path: str, *, key: str) -> CallableAgent:
        """Import ``module:callable``; the part after the colon may have dots.

        A class with ``run`` is instantiated without arguments. Raises ``SettingError`` with ``key``
        if something is missing or cannot be called. Other errors of the module are not caught.
        """
        setting = f"python:{path}"
        module_name, _, attribute = path.partition(":")
        if not module_name or not attribute:
            raise SettingError(key, setting, _FORM)
        found = _find(module_name, attribute, key=key)
        if inspect.isclass(found) and hasattr(found, "run"):
            found = found()
        target = getattr(found, "run", found)
        if not callable(target):
            reason = f"{attribute} of {module_name} is neither callable nor has it a method run"
            raise SettingError(key, setting, f"{reason}; {_FORM}")
        return cls(target, owner=found)

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        """Call it with the request and ``emit``.

        ``emit`` and ``request.take_messages`` may be called from its thread.
        """
        if self._imports_beside:
            # Its code may import what an agent of the gateway needs, and two threads at once get
            # modules that are not complete.
            await in_import_thread(int)
            self._imports_beside = False
        request = request.begun_again()
        if self._is_async:
            given = self._target(replace(request, step=_StoredSteps(request, emit)), emit)
        else:
            given = await self._in_thread(request, emit)
        if inspect.isawaitable(given):
            given = await given
        if isinstance(given, str):
            return AgentResult(given)
        if isinstance(given, AgentResult):
            return given
        raise AgentError(
            "The agent gave no answer that I can read.",
            f"{self._target!r} returned {type(given).__name__}, not str or AgentResult",
        )

    async def warm_up(self) -> None:
        """Call the object's ``warm_up``, if it has one."""
        await _call_optional(self._owner, "warm_up")

    async def close(self) -> None:
        """Call the object's ``close``, if it has one."""
        await _call_optional(self._owner, "close")

    async def _in_thread(self, request: RunRequest, emit: Emit) -> object:
        loop = asyncio.get_running_loop()

        room = threading.Semaphore(MOST_WAITING)

        def emit_in_loop(event: LoopEvent) -> None:
            room.release()
            emit(event)

        def emit_from_thread(event: LoopEvent) -> None:
            room.acquire()
            loop.call_soon_threadsafe(emit_in_loop, event)

        def messages_from_thread() -> tuple[MessagePart, ...]:
            taken: Future[tuple[MessagePart, ...]] = Future()
            loop.call_soon_threadsafe(_settle, taken, request.take_messages)
            return taken.result()

        context = contextvars.copy_context()
        in_thread = replace(request, take_messages=messages_from_thread)
        work = partial(context.run, self._target, in_thread, emit_from_thread)
        done = loop.run_in_executor(_DaemonThreads(), work)
        # Fetched in any case: asyncio would report the error of a stopped run as forgotten.
        done.add_done_callback(asyncio.Future.exception)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            # A second cancellation ends this wait: a loop that shuts down must not hang here.
            await asyncio.wait([done])
            raise


_TOO_LARGE = ""
"""The stored value of a step whose result was larger."""


class _StoredSteps:
    """Implements ``StepFunction`` with the steps of a request."""

    def __init__(self, request: RunRequest, emit: Emit) -> None:
        self._emit = emit
        self._recorded = request.recorded
        self._stored: defaultdict[str, deque[str]] = defaultdict(deque)
        for step in request.steps:
            if isinstance(step, ValueStep):
                self._stored[step.name].append(step.value)

    async def __call__(self, name: str, work: Callable[[], Awaitable[object]]) -> Any:
        if stored := self._stored[name]:
            value = stored.popleft()
            if value == _TOO_LARGE:
                raise AgentError(
                    "I was interrupted, and a result that I need was too large to be kept.",
                    f"step {name} is done, but its result had more than {MOST_STORED:,} characters",
                )
            return json.loads(value)
        value = json.dumps(await work())
        self._emit(ValueStep(name, value if len(value) <= MOST_STORED else _TOO_LARGE))
        await self._recorded()
        return json.loads(value)


class _DaemonThreads(Executor):
    """One daemon thread per call.

    The interpreter joins the threads of the standard pool at its end; a hanging thread would keep
    the process alive forever.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        thread = threading.Thread(
            target=_settle, args=(future, partial(fn, *args, **kwargs)), name="agent", daemon=True
        )
        thread.start()
        return future


def _settle(future: Future[T], call: Callable[[], T]) -> None:
    try:
        result = call()
    except StopIteration as error:
        # No future takes it: the run would wait forever.
        stopped = RuntimeError("the function raised StopIteration")
        stopped.__cause__ = error
        future.set_exception(stopped)
    # Not caught for good: handed over, to be raised again where the run awaits it.
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


def _find(module_name: str, attribute: str, *, key: str) -> object:
    setting = f"python:{module_name}:{attribute}"
    try:
        found: object = importlib.import_module(module_name)
    except ImportError as error:
        top = module_name.partition(".")[0]
        where = f"; if {top} is a file of yours, put its folder on PYTHONPATH"
        if not isinstance(error, ModuleNotFoundError) or error.name != top:
            where = ""  # it was found, and cannot import something itself
        reason = f"{module_name} cannot be imported ({error}); {_FORM}{where}"
        raise SettingError(key, setting, reason) from error
    except (TypeError, ValueError) as error:
        # A relative or empty name: ".agent", "agent..loop".
        raise SettingError(key, setting, f"{module_name} is no module name; {_FORM}") from error
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            reason = f"{module_name} has no {attribute}"
            raise SettingError(key, setting, f"{reason}; {_FORM}") from error
    return found


def _is_async(target: Target) -> bool:
    called = target if inspect.isroutine(target) else getattr(target, "__call__", target)  # noqa: B004 - not a test for being callable
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(called)


async def _call_optional(owner: object, method: str) -> None:
    call = getattr(owner, method, None)
    if callable(call):
        given = call()
        if isinstance(given, Awaitable):
            await given
