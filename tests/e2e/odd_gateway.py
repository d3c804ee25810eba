"""A gateway whose agents get odd orders, in each place in which agents run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import httpx

from goclaw_py.web.sockets import short_path, socket_path
from tests.botapi.control import Control
from tests.support.process import Home, Program, wait_for

OTHER = 1000
"""A person who says nothing odd."""

CHATS = 2000
"""The chat of the first order; jobs and heartbeats tell it too."""

FAILED = "failed"


@dataclass(frozen=True)
class Odd:
    """An order, and what becomes of it.

    ``words`` are in what the chat reads. A heartbeat that completes is an alert unless it says so.
    A job may need several attempts to fail.
    """

    order: str
    words: str
    ends: str = "completed"
    heartbeat: str = ""
    attempts: int = 1
    agent: str = "main"

    @property
    def expected(self) -> dict[str, str]:
        """How its run, its occurrences and its heartbeat run end."""
        is_failure = self.ends == FAILED
        job = f"{FAILED if is_failure else 'ok'} {self.attempts}"
        heartbeat = self.heartbeat or (FAILED if is_failure else "alerted")
        return {"chat": self.ends, "job": job, "heartbeat": heartbeat}


def settings(orders: Mapping[str, Odd], agents: Mapping[str, str]) -> str:
    """Settings with these agents, and one like it for the heartbeat of each order."""
    # Heartbeats run only when they are told to: at other hours than now.
    later = datetime.now(UTC) + timedelta(hours=12)
    hours = f"start = '{later:%H:00}', end = '{later:%H:59}', timezone = 'UTC'"
    lines = [
        "[lanes]\nmain = 100\nsubagent = 100\ncron = { size = 100, scope = 'node' }",
        "[queue]\ndebounce_ms = 0",
        f"[heartbeat]\ninterval = '1h'\nactive_hours = {{ {hours} }}",
        *(f"[agents.{name}]\n{agent}" for name, agent in agents.items()),
    ]
    for number, odd in enumerate(orders.values()):
        chat = CHATS + number
        lines += [
            f"[agents.h{number}]\n{agents[odd.agent]}",
            f"[agents.h{number}.heartbeat]\ntarget = 'telegram:{chat}'",
            f"[channels.telegram.chats.{chat}]\nagent = '{odd.agent}'",
        ]
    return "\n".join(lines)


@dataclass
class OddGateway:
    """A running gateway, and what it was told."""

    home: Home
    api: Control
    client: httpx.Client
    program: Program
    jobs: dict[int, str] = field(default_factory=dict)
    """The job of each order; every second one has a session of its own for each run."""
    heartbeat_runs: dict[int, str] = field(default_factory=dict)
    """The newest heartbeat run of each order."""

    @classmethod
    @contextmanager
    def started(cls, home: Home, api: Control) -> Iterator[Self]:
        program = home.start()
        with (
            short_path(socket_path(home.state)) as name,
            httpx.Client(
                transport=httpx.HTTPTransport(uds=name),
                base_url="http://goclaw/api/",
                trust_env=False,
                timeout=60,
            ) as client,
        ):
            yield cls(home, api, client, program)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """What the API answers."""
        answer = self.client.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def order(self, number: int, text: str, agent: str = "main") -> None:
        """Give an order in a chat, by a job and by a heartbeat."""
        self.api.say(CHATS + number, text)
        chat = {"channel": "telegram", "account": "default", "chat": str(CHATS + number)}
        payload = {"kind": "prompt", "text": text}
        if number in self.jobs:
            self.ask("PATCH", f"jobs/{self.jobs[number]}", {"payload": payload})
        else:
            draft = {
                "schedule": {"kind": "every", "every_ms": 86_400_000},
                "payload": payload,
                "slug": f"odd-{number}",
                "agent": agent,
                "target": chat,
                "policy": {"retries": 1, "session": "job" if number % 2 else "fresh"},
            }
            self.jobs[number] = self.ask("POST", "jobs", draft)["id"]
        self.ask("POST", f"jobs/{self.jobs[number]}/run")
        folder = self.home.folder / f"workspaces/h{number}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "HEARTBEAT.md").write_text(text)
        begun = self.ask("POST", f"heartbeats/h{number}/run")
        self.heartbeat_runs[number] = begun["heartbeat_run"]

    def until_idle(self) -> None:
        """Wait until nothing runs or waits, nor is stored as if it did.

        Somebody else chats meanwhile: without any success, failures are taken for an outage.
        """

        def is_idle() -> bool:
            if not self._unfinished():
                return True
            known = len(self.api.texts(OTHER))
            self.api.say(OTHER, "say meanwhile")
            wait_for(lambda: len(self.api.texts(OTHER)) > known, "the answer in another chat")
            return False

        wait_for(is_idle, "the end of all runs", limit_s=240)

    def _unfinished(self) -> list[Any]:
        claims = self.ask("GET", "occurrences?limit=500")
        claims += self.ask("GET", "heartbeat-runs?limit=500")
        return [
            *self.ask("GET", "runs?active=true"),
            *self.ask("GET", "inbox?waiting=true"),
            *(row for row in claims if row["status"] in ("running", "waiting", "deferred")),
        ]

    def errors(self) -> set[str]:
        """The errors in its log but failures of runs, and what others have written into it."""
        found = set()
        for line in self.program.output.splitlines():
            try:
                facts = json.loads(line)
            except ValueError:
                found |= {line} if "Traceback" in line or "Exception" in line else set()
            else:
                if facts["level"] == "error" and facts["event"] != "run_failed":
                    found.add(facts["event"])
        return found

    def ends(self, orders: Mapping[str, Odd]) -> dict[str, dict[str, str]]:
        """How the newest run of each order has ended in each place."""
        runs: dict[str, str] = {}
        for run in self.ask("GET", "runs?limit=500"):
            runs.setdefault(run["session"].rpartition(":")[2], run["outcome"])
        jobs: dict[str, str] = {}
        for row in self.ask("GET", "occurrences?limit=500"):
            jobs.setdefault(row["job"], f"{row['status']} {row['attempts']}")
        heartbeats = {r["id"]: r["status"] for r in self.ask("GET", "heartbeat-runs?limit=500")}
        return {
            name: {
                "chat": runs[str(CHATS + number)],
                "job": jobs[self.jobs[number]],
                "heartbeat": heartbeats[self.heartbeat_runs[number]],
            }
            for number, name in enumerate(orders)
        }

    def untold(self, orders: Mapping[str, Odd]) -> dict[str, list[str]]:
        """The chats that have not read what they should have, with what they have read."""
        found: dict[str, list[str]] = {}
        for number, (name, odd) in enumerate(orders.items()):
            texts = self.api.texts(CHATS + number)
            failures = [text for text in texts if text.startswith("⚠️") and FAILED in text]
            is_told = len(failures) == (1 if odd.ends == FAILED else 0)
            if not is_told or odd.words not in "\n".join(texts):
                found[name] = texts
        return found
