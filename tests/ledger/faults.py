"""Faults that make an answered message dearer, planted in a gateway that is measured."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import aiohttp
import asyncpg

from tests.ledger import agent
from tests.ledger.measure import Bench
from tests.ledger.wire import Server


def statement(_bench: Bench) -> None:
    """Run one more statement in each run, whichever comes first."""
    original = asyncpg.Connection.fetch
    is_due = False

    async def fetch(self: Any, query: str, *given: Any, **more: Any) -> Any:
        nonlocal is_due
        if is_due:
            is_due = False
            await original(self, "select 1")
        return await original(self, query, *given, **more)

    async def before_answer() -> None:
        nonlocal is_due
        is_due = True

    asyncpg.Connection.fetch = fetch
    agent.before_answer = before_answer


def log_line(_bench: Bench) -> None:
    """Write one more line of the log in each run."""

    async def before_answer() -> None:
        logging.getLogger("goclaw_py").info("planted")

    agent.before_answer = before_answer


def call(bench: Bench) -> None:
    """Call the Bot API once more in each run."""

    async def before_answer() -> None:
        async with aiohttp.ClientSession() as session:
            await session.post(f"{bench.api.url}/bot{bench.api.token}/getMe")

    agent.before_answer = before_answer


def index(bench: Bench) -> None:
    """Drop an index that no other replaces: without it, the sessions of a node are read whole."""
    agent.before_answer = agent.nothing
    server = Server(bench.folder / "state")
    server.rows("drop index sessions_owned")
    server.close()


FAULTS: dict[str, Callable[[Bench], None]] = {
    "statements": statement,
    "log lines": log_line,
    "Bot API calls": call,
    "rows read in sequence": index,
}
"""What each of them makes larger."""
