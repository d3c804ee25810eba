"""Measuring in a process of its own."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
S = TypeVar("S")

_TOO_LONG_S = 300.0

HAS_UVLOOP = find_spec("uvloop") is not None


def in_child(measure: Callable[P, S], *arguments: P.args, **options: P.kwargs) -> S:
    """Call a function of a module in a fresh interpreter and return what it returns.

    Raises what it raises, and ``BrokenProcessPool`` if it takes longer than five minutes.
    """
    with ProcessPoolExecutor(1, get_context("spawn"), _prepare) as process:
        return process.submit(measure, *arguments, **options).result()


def run_on(loop: str, main: Coroutine[Any, Any, S]) -> S:
    """Run a coroutine on a new event loop of this kind: ``asyncio`` or ``uvloop``."""
    if loop == "uvloop":
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(main)
    return asyncio.run(main)


def loops() -> list[str]:
    """The kinds of event loop there are here."""
    return ["asyncio", "uvloop"] if HAS_UVLOOP else ["asyncio"]


def _prepare() -> None:
    # All messages at once for two slots: of course they wait. Failures are still told.
    logging.disable(logging.WARNING)
    faulthandler.dump_traceback_later(_TOO_LONG_S, exit=True)
