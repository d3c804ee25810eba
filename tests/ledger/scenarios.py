"""What is counted: each scenario is a window of six seconds in which one thing happens.

What an idle gateway does in the same window of a minute is subtracted. An index splits a page now
and then, so each scenario is counted three times, and the medians are its costs.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from importlib import import_module
from itertools import count

from tests.ledger import agent
from tests.ledger.faults import FAULTS
from tests.ledger.measure import PHASES, WINDOW_S, Act, Bench, Missing

ANN = 1001
CROWD = range(2001, 2021)
TIMES = 3
"""How often each scenario is counted."""
_messages, _crashes = count(1), count(1)


async def nothing(bench: Bench) -> None:
    """An idle minute."""


async def one_message(bench: Bench) -> None:
    bench.api.say(ANN, "What is the weather like?", name="Ann")


async def burst(bench: Bench) -> None:
    for user in CROWD:
        bench.api.say(user, "What is the weather like?", name=f"User {user}")


async def growing(bench: Bench) -> None:
    bench.api.say(ANN, f"{agent.GROWS} an answer", name="Ann")


async def stopped(bench: Bench) -> None:
    bench.api.say(ANN, f"{agent.HANGS} on", name="Ann")
    await asyncio.sleep(1)
    bench.api.say(ANN, "/stop", name="Ann")


async def web_message(bench: Bench) -> None:
    body = {"message_id": f"m{next(_messages)}", "text": "What is the weather like?"}
    await bench.request("POST", "/api/chat/ledger/messages", json.dumps(body))


async def page_of_runs(bench: Bench) -> None:
    await bench.request("GET", "/runs")


async def crash(bench: Bench) -> None:
    """Leave a run of another node, whose lease ends in the next window."""
    try:
        crashed = import_module("tests.ledger.crashed")
    except ImportError as error:
        raise Missing from error
    lease = timedelta(seconds=WINDOW_S + 1)
    message = bench.api.view(ANN)[0].message_id
    await crashed.leave_run(
        bench.folder / "state", next(_crashes), str(ANN), message, now=bench.now(), lease=lease
    )
    await asyncio.sleep(1)


SCENARIOS: dict[str, Act] = {
    "answered message": one_message,
    "burst of 20": burst,
    "growing answer": growing,
    "stopped run": stopped,
    "web chat message": web_message,
    "page of runs": page_of_runs,
}
JOB = {
    "slug": "report",
    "schedule": {"kind": "every", "every_ms": 6_000},
    "payload": {"kind": "prompt", "text": "What is new?"},
    "target": {"channel": "telegram", "account": "default", "chat": str(ANN)},
}


class Costs:
    """What is counted beyond an idle gateway."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.idle: dict[int, Counter[str]] = {}

    async def warm_up(self, acts: Mapping[str, Act]) -> dict[str, Act]:
        """Fill caches, prepare statements, and count what an idle gateway does in a minute.

        Returns what this release can do.
        """
        await switch_heartbeat(self._bench, on=False)
        possible = {}
        for name, act in acts.items():
            with suppress(Missing):
                await self._bench.count(act)
                possible[name] = act
        for _ in range(PHASES):
            window = await self._bench.count(nothing)
            self.idle[window.phase] = window.counts
        return possible

    async def of(self, act: Act, *, before: Act = nothing, warm_up: int = 0) -> dict[str, int]:
        """Count an act; ``before`` is done each time in the window before it."""
        windows = []
        for _ in range(warm_up + TIMES):
            await before(self._bench)
            windows.append(await self._bench.count(act))
        return median([(one.counts, self.idle[one.phase]) for one in windows[warm_up:]])


async def planted(bench: Bench) -> dict[str, dict[str, dict[str, int]]]:
    """Count an answered message with each of the planted faults; without any under ""."""
    counting = Costs(bench)
    await counting.warm_up({"first": one_message, "burst": burst, "next": one_message})
    found = {"": {"answered message": await counting.of(one_message)}}
    for name, plant in FAULTS.items():
        plant(bench)
        found[name] = {"answered message": await counting.of(one_message)}
    return found


async def measure(bench: Bench) -> dict[str, dict[str, int]]:
    """Count all scenarios."""
    (bench.folder / "workspace").mkdir(exist_ok=True)
    (bench.folder / "workspace/HEARTBEAT.md").write_text("- [ ] look at the backups\n")
    counting = Costs(bench)
    possible = await counting.warm_up(SCENARIOS)
    costs = {name: await counting.of(act) for name, act in possible.items()}
    with suppress(Missing):
        costs["resumed run"] = await counting.of(nothing, before=crash, warm_up=1)
    await asyncio.sleep(3)
    await bench.request("POST", "/api/jobs", json.dumps(JOB))
    costs["job occurrence"] = await counting.of(nothing, warm_up=2)
    await bench.request("PATCH", "/api/jobs/report", json.dumps({"state": "paused"}))
    await switch_heartbeat(bench, on=True)
    costs["silent heartbeat"] = await counting.of(nothing, warm_up=2)
    costs["alerting heartbeat"] = await counting.of(alert, warm_up=1)
    costs["idle minute"] = dict(sorted(sum(counting.idle.values(), Counter()).items()))
    return costs


def median(found: list[tuple[Counter[str], Counter[str]]]) -> dict[str, int]:
    """Return how much more each counter counted than in the idle window, without zeros."""
    names = sorted({name for one, idle in found for name in one | idle})
    more = {name: sorted(one[name] - idle[name] for one, idle in found) for name in names}
    return {
        name: counts[len(counts) // 2] for name, counts in more.items() if counts[len(counts) // 2]
    }


async def switch_heartbeat(bench: Bench, *, on: bool) -> None:
    await bench.request("PUT", "/api/heartbeats/main/switch", json.dumps({"on": on}))


async def alert(bench: Bench) -> None:
    alert.number += 1  # type: ignore[attr-defined]
    # The same alert would not be sent again.
    agent.checklist_reply = f"{agent.ALERT} Attempt {alert.number}."  # type: ignore[attr-defined]


alert.number = 0  # type: ignore[attr-defined]
