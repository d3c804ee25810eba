"""The dashboard over a large database: 10,000 sessions, 1,000,000 runs and 100,000 jobs.

A gateway process on an embedded server. Every page as a whole, with filters, searches, last pages
and its live part; then the first paint in the system's Chromium. The database is kept in FOLDER,
and used again if it is there and has the present schema.

    python -m bench.large [pages] [paint] [--folder FOLDER] [--rounds 10] [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import html
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

import httpx

from bench.api.measure import quantile
from bench.dashboard import Served, Sizes, paint, started
from bench.large import rows
from bench.large.rows import AGENTS, Size
from bench.scheduler.report import Figure, Line, Report, Sign, Wanted, progress
from goclaw_py.app.database import FOLDER
from goclaw_py.core.pagination import Cursor
from goclaw_py.store.embedded import EmbeddedPostgres
from goclaw_py.store.postgres import Address
from tests.support.process import home

PAGE_MS = Wanted(Sign.BELOW, 300)
SEARCH_MS = Wanted(Sign.BELOW, 200)
QUICK = Size(sessions=500, runs=5_000, jobs=1_000)


def pages(size: Size) -> dict[str, str]:
    """Return the addresses that are measured, by what is in them."""
    now = datetime.now(UTC)
    half = size.sessions // 2
    direct = f"agent:main:telegram:direct:{half | 5 if half % 10 == 1 else half + 2}"
    busy = "agent:main:telegram:direct:2"
    last = Cursor(now - timedelta(days=88, hours=23), ("x",))
    year = {"from": (now - timedelta(days=90)).isoformat(), "to": now.isoformat()}
    found = {
        "Now": ("/", {}),
        "Runs": ("/runs", {}),
        "Runs, at any time": ("/runs", {"range": "all"}),
        "Runs, last page": ("/runs", {"range": "all", "before": str(last)}),
        "Runs, failed, at any time": ("/runs", {"range": "all", "show": "failed"}),
        "Runs, of an agent and trigger": (
            "/runs",
            {"range": "all", "agent": "agent7", "trigger": "cron"},
        ),
        "Runs, of a person": ("/runs", {"range": "all", "sender": "telegram/default/2"}),
        "Runs, of a session": ("/runs", {"range": "all", "session": busy}),
        "Runs, rare combination": (
            "/runs",
            {"range": "all", "agent": "agent7", "trigger": "subagent", "show": "failed"},
        ),
        "A run": ("/runs/run-000000777", {}),
        "Timeline": ("/timeline", {}),
        "Timeline, 24 h": ("/timeline", {"span": "24h"}),
        "Timeline, everything": ("/timeline", year),
        "Timeline, everything of an agent": ("/timeline", year | {"agent": "agent7"}),
        "Timeline, 24 h, failed": ("/timeline", {"span": "24h", "outcome": "failed"}),
        "Sessions": ("/sessions", {}),
        "Sessions, search for a name": ("/sessions", {"search": "number 77"}),
        "Sessions, search without result": ("/sessions", {"search": "nobody at all"}),
        "Sessions, running": ("/sessions", {"show": "running"}),
        "Sessions, waiting, of an agent": ("/sessions", {"show": "waiting", "agent": "main"}),
        "Sessions, of a channel": ("/sessions", {"channel": "telegram"}),
        "Sessions, last page": ("/sessions", {"before": str(Cursor(last.at, ("x",)))}),
        "A session": ("/sessions/view", {"key": busy}),
        "Another session": ("/sessions/view", {"key": direct}),
        "Jobs": ("/jobs", {}),
        "Jobs, paused": ("/jobs", {"state": "paused"}),
        "Jobs, of an agent": ("/jobs", {"agent": "agent7"}),
        "Jobs, of a person": ("/jobs", {"owner": "telegram:direct:77"}),
        "Jobs, of a kind": ("/jobs", {"kind": "every"}),
        "Jobs, search": ("/jobs", {"name": "number 7777"}),
        "Jobs, search without result": ("/jobs", {"name": "nothing like that"}),
        "Jobs, last page": ("/jobs", {"page": str(size.jobs // 50)}),
        "A job": (f"/jobs/task-{size.jobs - 6}", {}),
        "Heartbeats": ("/heartbeats", {}),
        "A heartbeat": ("/heartbeats/main", {}),
        "Heartbeats, failing": ("/heartbeats", {"show": "failing"}),
        "A heartbeat, in a week": ("/heartbeats/main", {"range": "7d"}),
        "A heartbeat, failed": ("/heartbeats/agent1", {"outcome": "failed"}),
        "Deliveries": ("/deliveries", {}),
        "Deliveries, sent": ("/deliveries", {"show": "sent"}),
        "Deliveries, waiting": ("/deliveries", {"show": "waiting"}),
        "Deliveries, of a chat": ("/deliveries", {"show": "sent", "chat": "telegram:77"}),
        "Deliveries, of a channel": ("/deliveries", {"channel": "web"}),
        "Deliveries, in a day": ("/deliveries", {"range": "24h"}),
        "Deliveries, search": ("/deliveries", {"show": "sent", "search": "order 999999"}),
        "Deliveries, search without result": (
            "/deliveries",
            {"show": "sent", "search": "nothing like that"},
        ),
        "Deliveries, last page": ("/deliveries", {"show": "sent", "before": "100"}),
        "Approvals": ("/approvals", {}),
        "Chat": ("/chat", {}),
        "People": ("/people", {}),
        "Usage": ("/usage", {}),
        "Usage, 90 days": ("/usage", {"range": "90d"}),
        "Usage, 90 days, by person": ("/usage", {"range": "90d", "by": "sender"}),
        "Usage, 90 days, by job": ("/usage", {"range": "90d", "by": "job"}),
        "Health": ("/health", {}),
        "Why, of a session": ("/why", {"about": busy}),
    }
    return {
        name: path + (f"?{urlencode(params)}" if params else "")
        for name, (path, params) in found.items()
    }


def show_pages(served: Served, size: Size, rounds: int, only: str = "") -> Report:
    """Measure how long each page takes, to the last byte."""
    asked = {name: path for name, path in pages(size).items() if only.lower() in name.lower()}
    about = (
        f"from the request to the last byte of the page, {rounds} times; "
        f"{size.sessions:,} sessions, {size.runs:,} runs, {size.jobs:,} jobs"
    )
    report = Report("large dashboard", about, rounds)
    headers = {"accept": "text/html"}
    with httpx.Client(base_url=served.url, trust_env=False, timeout=60, headers=headers) as client:
        for done, (name, path) in enumerate(asked.items()):
            progress(f"large dashboard: {name}", done, len(asked))
            first, whole = _first_look(client, path)
            took, text = [], ""
            for _ in range(rounds):
                begin = time.perf_counter()
                text = _got(client, path)
                took.append(1000 * (time.perf_counter() - begin))
            wanted = SEARCH_MS if "search" in name else PAGE_MS
            figures = (
                Figure("p50", took, "ms", wanted),
                Figure("p95", [quantile(took, 95)], "ms"),
                Figure("at first", [first], "ms", wanted),
                Figure("whole", [whole], "ms"),
                Figure("live", [_live(client, text)], "ms", PAGE_MS),
                Figure("", [len(text) / 1024], "KB"),
            )
            report.lines.append(Line(name, figures))
    return report


def _got(client: httpx.Client, path: str) -> str:
    answer = client.get(path)
    if answer.status_code != 200:
        raise RuntimeError(f"{path}: {answer.status_code} {answer.text[-300:]}")
    return answer.text


def _live(client: httpx.Client, page: str) -> float:
    """Return the ms until the live part of a page comes; 0 if it has none."""
    source = re.search(r'data-live="([^"]+)"', page)
    if source is None:
        return 0.0
    begin = time.perf_counter()
    with client.stream("GET", html.unescape(source[1])) as stream:
        for piece in stream.iter_text():
            if "event: part" in piece:
                return 1000 * (time.perf_counter() - begin)
    raise RuntimeError(f"{source[1]} has ended")


def _first_look(client: httpx.Client, path: str) -> tuple[float, float]:
    """Return the ms until something is shown, and until it is the whole page.

    Nobody has looked at it before, and the database reads it from the disk.
    """
    begin = time.perf_counter()
    text = _got(client, path)
    first = 1000 * (time.perf_counter() - begin)
    if soon := re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', text):
        _got(client, html.unescape(soon[1]))
    return first, 1000 * (time.perf_counter() - begin)


@contextmanager
def large(folder: Path, size: Size) -> Iterator[Served]:
    """A gateway on a database of this size in a folder, which is filled unless it is."""
    settings = {
        "GOCLAW_WEB__API": "true",
        "GOCLAW_WEB__PORT": "0",
        "GOCLAW_QUEUE__DEBOUNCE_MS": "0",
        **{
            f"GOCLAW_AGENTS__{agent.upper()}__MODEL": "python:bench.dashboard:run"
            for agent in AGENTS
        },
    }
    with home(folder, **settings) as place:
        for log in folder.glob("gateway-*.log"):
            log.unlink()  # it has the address of an earlier gateway
        mark, version = place.state / "filled", rows.version(size)
        if not mark.exists() or mark.read_text() != version:
            # Another release, or it was interrupted.
            shutil.rmtree(place.state, ignore_errors=True)
            with EmbeddedPostgres(place.state / FOLDER) as embedded:
                found = embedded.start()
                address = Address(host=str(found.host), user=found.user, database=found.database)
                asyncio.run(rows.fill(address, size))
            mark.write_text(version)
        yield started(place)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.large",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", choices=["pages", "paint", []], help="both by default")
    parser.add_argument("--folder", type=Path, default=Path("build/large"))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", default="", help="measure pages with this text in their names")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it works")
    given = parser.parse_args()
    if given.rounds < 1:
        parser.error("--rounds is at least 1")
    size = QUICK if given.quick else Size()
    folder = given.folder / ("quick" if given.quick else "full")
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"load of the machine before: {load} on {os.cpu_count()} processors")
    with large(folder, size) as served:
        if not given.parts or "pages" in given.parts:
            show_pages(served, size, given.rounds, given.only).show()
        if not given.parts or "paint" in given.parts:
            paint(served, replace(Sizes(), rounds=given.rounds)).show()


if __name__ == "__main__":
    main()
