"""The dashboard: how soon a page shows, what open dashboards cost, and how much a page weighs.

A gateway process on the embedded database, an agent that takes a tenth of a second, and the
system's Chromium, which has been to each page before.

    python -m bench.dashboard [streams|paint|weight] [--rounds 10] [--quick]

``streams`` measures the gateway's CPU while runs come at an even pace, without and with dashboards
that look at Now, and with programs that follow all runs by the API; ``paint`` the time from the
request to the first contentful paint; ``weight`` all bytes of a page with its files, uncompressed.
Everything shares the machine, so the load before and the pace that was reached are told, too.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

import httpx

from bench.options import asked
from bench.scheduler.report import Figure, Line, Report, Sign, Wanted, progress
from bench.telegram.processes import own_cpu_s
from goclaw_py.runs.agent_loop import Emit, RunRequest
from goclaw_py.web.pages.rendering import NAVIGATION
from tests.support.process import Home, home, wait_for

PAINT_MS = Wanted(Sign.BELOW, 300)
MORE = Wanted(Sign.BELOW, 5)
DASHBOARD: Final = "/live/now"
FOLLOWER: Final = "/api/runs/events"
WEIGHT_KB = Wanted(Sign.BELOW, 250)

WORK_S = 0.1
LANE = 50
CHATS = 200
_ARGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
)
_PAINTED: Final = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured.

    Args:
        rounds: How often each page is painted; streams are opened half as often.
        dashboards: So many look at Now, or follow all runs.
        per_s: So many runs are asked for in a second.
        seconds: How long CPU is measured, each time.
    """

    rounds: int = 10
    dashboards: int = 20
    per_s: float = 50.0
    seconds: float = 10.0


QUICK = Sizes(rounds=1, seconds=3.0)


async def run(request: RunRequest, emit: Emit) -> str:
    """The agent: works for a moment, and has nothing to send."""
    await asyncio.sleep(WORK_S)
    return ""


@dataclass(frozen=True, slots=True)
class Served:
    """A gateway process with its dashboard."""

    pid: int
    url: str


@contextmanager
def _gateway() -> Iterator[Served]:
    settings = {
        "GOCLAW_WEB__API": "true",
        "GOCLAW_WEB__PORT": "0",
        "GOCLAW_AGENTS__MAIN__MODEL": "python:bench.dashboard:run",
        "GOCLAW_QUEUE__DEBOUNCE_MS": "0",
        "GOCLAW_LANE_MAIN": str(LANE),
    }
    with (
        tempfile.TemporaryDirectory(prefix="goclaw-bench-") as folder,
        home(Path(folder), **settings) as place,
    ):
        yield started(place)


def started(place: Home) -> Served:
    """Start a gateway; return it when its dashboard answers."""
    gateway = place.start(ready=False)

    def look() -> re.Match[str] | None:
        if not gateway.alive():
            raise RuntimeError(gateway.output)
        return re.search(r"dashboard +(http://\S+)", gateway.output)

    return Served(gateway.pid, wait_for(look, "the dashboard", limit_s=120)[1])


# ------------------------------------------------------------------------------------ streams


@dataclass(frozen=True, slots=True)
class Stretch:
    """What was found in a while: CPU in percent of one processor, runs that ended in a second."""

    cpu: float
    runs_per_s: float
    kb_per_s: float


def streams(served: Served, sizes: Sizes) -> Report:
    """What dashboards cost that look at Now while runs come and go, and programs that follow."""
    found = asyncio.run(_streams(served, sizes))
    alone, watched, followed = found[""], found[DASHBOARD], found[FOLLOWER]
    about = (
        f"{sizes.per_s:g} runs a second of {WORK_S:g} s each, asked for over HTTP; CPU of the "
        "gateway process in percent of one processor, without and with streams in turns"
    )
    lines = [
        Line("none open", _figures(alone)),
        Line(f"{sizes.dashboards} dashboards", _figures(watched)),
        Line("more", (_more(alone, watched),)),
        Line(f"{sizes.dashboards} of the API", _figures(followed)),
        Line("more", (_more(alone, followed),)),
    ]
    return Report("dashboard streams", about, len(alone), lines)


def _more(alone: list[Stretch], together: list[Stretch]) -> Figure:
    more = [two.cpu - one.cpu for one, two in zip(alone, together, strict=True)]
    return Figure("CPU", more, "%", MORE)


def _figures(stretches: list[Stretch]) -> tuple[Figure, ...]:
    return (
        Figure("CPU", [one.cpu for one in stretches], "%"),
        Figure("runs", [one.runs_per_s for one in stretches], "/s"),
        Figure("sent", [one.kb_per_s for one in stretches], "KB/s"),
    )


async def _streams(served: Served, sizes: Sizes) -> dict[str, list[Stretch]]:
    """What was found with nothing open, which is "", and with streams of each path."""
    found: defaultdict[str, list[Stretch]] = defaultdict(list)
    rounds = max(1, sizes.rounds // 2)
    async with httpx.AsyncClient(
        base_url=served.url,
        headers={"origin": served.url},
        timeout=60,
        trust_env=False,
        limits=httpx.Limits(max_connections=LANE),
    ) as client:
        crowd = asyncio.create_task(_ask(client, sizes.per_s))
        try:
            # A gateway that has just begun does everything for the first time.
            await asyncio.sleep(sizes.seconds / 2)
            for done in range(rounds):
                progress("dashboard streams", done, rounds)
                for path in ("", DASHBOARD, FOLLOWER):
                    count = sizes.dashboards if path else 0
                    async with _readers(served.url, path, count) as received:
                        found[path].append(await _stretch(served, client, sizes, received))
        finally:
            crowd.cancel()
            await asyncio.gather(crowd, return_exceptions=True)
    return found


async def _stretch(
    served: Served, client: httpx.AsyncClient, sizes: Sizes, received: list[int]
) -> Stretch:
    await asyncio.sleep(1)
    runs, used, begin, sent = (
        await _ended(client),
        own_cpu_s(served.pid),
        time.perf_counter(),
        sum(received),
    )
    await asyncio.sleep(sizes.seconds)
    passed, used = time.perf_counter() - begin, own_cpu_s(served.pid) - used
    more = sum(received) - sent
    runs = await _ended(client) - runs
    return Stretch(100 * used / passed, runs / passed, more / passed / 1024)


async def _ask(client: httpx.AsyncClient, per_s: float) -> None:
    """Say something in one chat after the other, at an even pace, whatever became of it."""
    begin, asked_for = time.perf_counter(), 0
    async with asyncio.TaskGroup() as group:
        while True:
            while asked_for < per_s * (time.perf_counter() - begin):
                body = {"message_id": uuid4().hex, "text": f"message {asked_for}"}
                path = f"/api/chat/bench{asked_for % CHATS}/messages"
                group.create_task(_post(client, path, body))
                asked_for += 1
            await asyncio.sleep(1 / per_s)


async def _post(client: httpx.AsyncClient, path: str, body: dict[str, str]) -> None:
    (await client.post(path, json=body)).raise_for_status()


async def _ended(client: httpx.AsyncClient) -> float:
    text = (await client.get("/metrics")).text
    return sum(
        float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith("goclaw_runs_total{")
    )


@asynccontextmanager
async def _readers(url: str, path: str, count: int) -> AsyncIterator[list[int]]:
    """So many streams that are read; how many bytes came over each."""
    received = [0] * count
    readers = [asyncio.create_task(_read(url, path, received, number)) for number in range(count)]
    try:
        yield received
        for reader in readers:
            if reader.done():
                reader.result()
                raise RuntimeError("a stream has ended")
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)


async def _read(url: str, path: str, received: list[int], number: int) -> None:
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        while piece := await reader.read(65_536):
            received[number] += len(piece)
    finally:
        writer.close()


# ------------------------------------------------------------------------------------ one page


def paint(served: Served, sizes: Sizes) -> Report:
    """How soon each page shows something, in a browser that has been there before."""
    from playwright.sync_api import sync_playwright

    from tests.tools.debian_tools import path_of

    found: defaultdict[str, list[float]] = defaultdict(list)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path_of("chromium"), args=list(_ARGS))
        page = browser.new_page(base_url=served.url)
        for done in range(-1, sizes.rounds):
            if done >= 0:
                progress("dashboard paint", done, sizes.rounds)
            for path, name in NAVIGATION:
                page.goto(path)
                painted = page.wait_for_function(_PAINTED).json_value()
                if done >= 0:
                    found[name].append(float(painted))
        browser.close()
    about = "from the request to the first contentful paint, at the size of a desk"
    lines = [Line(name, (Figure("", times, "ms", PAINT_MS),)) for name, times in found.items()]
    return Report("dashboard paint", about, sizes.rounds, lines)


def weight(served: Served, sizes: Sizes) -> Report:
    """All that a browser loads for each page when it has nothing of it."""
    lines = []
    with httpx.Client(base_url=served.url, trust_env=False) as client:
        for path, name in NAVIGATION:
            html = client.get(path, headers={"accept": "text/html"}).content
            files = sorted(set(re.findall(rb'(?:src|href)="(/static/[^"#]+)', html)))
            own = [len(client.get(file.decode()).content) for file in files]
            whole = (len(html) + sum(own)) / 1024
            figures = (
                Figure("", [whole], "KB", WEIGHT_KB),
                Figure("page", [len(html) / 1024], "KB"),
                Figure(f"{len(files)} files", [sum(own) / 1024], "KB"),
            )
            lines.append(Line(name, figures))
    return Report("dashboard weight", "all bytes of a page and its files, uncompressed", 1, lines)


PARTS: Final = {"streams": streams, "paint": paint, "weight": weight}


def main() -> None:
    """Run what was asked for."""
    sizes, parts = asked("bench.dashboard", __doc__, Sizes(), QUICK, PARTS)
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"load of the machine before: {load} on {os.cpu_count()} processors")
    with _gateway() as served:
        # Always in this order: the pages then show what the runs have left.
        for show in (partial(PARTS[part], served, sizes) for part in PARTS if part in parts):
            show().show()


if __name__ == "__main__":
    main()
