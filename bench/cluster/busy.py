"""How soon a job begins whose session another node holds, and how many rows of the log it takes.

One of three nodes receives for the bot, so it holds the sessions of the chats that work. Each of
these chats has a job that comes due meanwhile; any node may claim it first.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final

from bench.cluster.agent import BUSY
from bench.cluster.nodes import Stage, stage
from goclaw_py.store.postgres import Address, connection

_NODES: Final = 3
_FIRST: Final = 30_001
_AT_ONCE: Final = 10
_WORKS_S: Final = 8.0
_DUE_S: Final = 3.0
_RELEASED_S: Final = 6.0
_LANES: Final = {"GOCLAW_LANE_CRON": "100"}

_users = count(_FIRST)


@dataclass(frozen=True, slots=True)
class Waits:
    """What was found.

    Args:
        seconds: From the end of the chat's run to the begin of the job's.
        rows: Of how many rows of the log each job has; all else than 1 is wrong.
        elsewhere: How many were claimed at first by a node that did not hold the session.
    """

    seconds: list[float]
    rows: Counter[int]
    elsewhere: int


def measure(times: int) -> Waits:
    """Let so many jobs wait."""
    with stage(_NODES, **_LANES) as here:
        for place in range(_NODES):
            here.start(place)
        seconds: list[float] = []
        while len(seconds) < times:
            seconds += _batch(here, min(_AT_ONCE, times - len(seconds)))
        rows = asyncio.run(_rows(here.address))
        said = "".join(program.output for program in here.running)
        return Waits(seconds, rows, said.count("job_waits_for_session"))


def _batch(here: Stage, size: int) -> list[float]:
    users = [next(_users) for _ in range(size)]
    for user in users:
        here.api.say(user, f"hello {user}")
    here.began([f"hello {user}" for user in users])
    time.sleep(_RELEASED_S)
    for user in users:
        here.api.say(user, f"{BUSY} {_WORKS_S} {user}")
        due_at = datetime.now(UTC) + timedelta(seconds=_DUE_S)
        here.post(user % _NODES, "/api/jobs", _job(user, due_at))
    began = here.began([f"job of {user}" for user in users])
    return [began[f"job of {user}"] - here.ended(f"{BUSY} {_WORKS_S} {user}") for user in users]


def _job(user: int, due_at: datetime) -> dict[str, object]:
    return {
        "slug": f"job{user}",
        "schedule": {"kind": "at", "at": due_at.isoformat()},
        "payload": {"kind": "prompt", "text": f"job of {user}"},
        "target": {"channel": "telegram", "account": "default", "chat": str(user)},
        "policy": {"session": "main"},
    }


async def _rows(address: Address) -> Counter[int]:
    async with connection(address) as one:
        found = await one.fetch("select count(*) as rows from job_runs group by job")
    return Counter(row["rows"] for row in found)
