"""A real gateway whose dashboard a real browser opens, with hostile content in every corner."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from tests.botapi.control import Control
from tests.browser.seen import ATTACK, TURNED
from tests.support.process import Home, Program, emulator, home, telegram, wait_for

ANN = 1001
EVE = 1002
GROUP = -1003
EVES_NAME = "<img src=x onerror='window.__hit=5'>"
GROUPS_NAME = "<b onmouseover='window.__hit=6'>group</b>"
LONG = "a-word-without-any-place-to-break" * 6

SETTINGS = {"GOCLAW_WEB__API": "true", "GOCLAW_WEB__PORT": "0"}
SETTINGS |= {"GOCLAW_QUEUE__DEBOUNCE_MS": "20", "GOCLAW_HEARTBEAT__INTERVAL": "12h"}
_NOTICE_S = 3.0
"""How long a notice may take that may not come: nobody else may be there to be told."""

DAILY = {"kind": "every", "every_ms": 86_400_000}


@dataclass
class Dashboard:
    """A gateway that runs, and the emulator that is its Telegram. ``url`` has no slash at its end.

    ``client`` asks the API as a page of the dashboard does.
    """

    place: Home
    gateway: Program
    bot: Control
    url: str
    client: httpx.Client = field(repr=False)
    codes: dict[int, str] = field(default_factory=dict)
    """With which the operator lets strangers in."""
    job: str = ""
    """The one that all tests may look at."""

    def get(self, path: str, **params: str | int) -> Any:
        answer = self.client.get(path, params=params)
        assert answer.is_success, answer.text
        return answer.json()

    def post(self, path: str, **body: object) -> Any:
        answer = self.client.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def say(self, text: str, chat: str = "seed") -> None:
        """Say something in a chat of the console. Nobody has to look at it."""
        self.post(f"/api/chat/{chat}/messages", message_id=uuid4().hex, text=text)

    def runs(self, chat: str) -> list[dict[str, Any]]:
        """Those of a chat of the console, the newest first."""
        found = self.get("/api/runs", limit=200)
        return [run for run in found if run["session"].endswith(f":direct:{chat}")]

    def run_of(self, chat: str, *, ended: bool = False) -> dict[str, Any]:
        """Wait for the newest run of a chat; with ``ended`` until it is over."""

        def look() -> dict[str, Any] | None:
            runs = self.runs(chat)
            return runs[0] if runs and (runs[0]["outcome"] or not ended) else None

        return wait_for(look, f"a run of the chat {chat}")

    def ended(self, chat: str) -> str:
        """What became of the newest run of a chat, once it is over."""
        return str(self.run_of(chat, ended=True)["outcome"])

    def stop(self, chat: str) -> None:
        """Stop what runs in a chat."""
        self.post(f"/api/sessions/{self.run_of(chat)['session']}/stop")

    def make_job(self, name: str, text: str = "echo done", **more: object) -> str:
        """A job that comes once a day; its id."""
        prompt = {"kind": "prompt", "text": text}
        job = self.post("/api/jobs", name=name, schedule=DAILY, payload=prompt, **more)
        return str(job["id"])

    def pair(self, user: int, name: str) -> str:
        """Let a stranger write to the bot; the code that they get."""
        self.bot.say(user, "hello", name=name)
        greeting = self.bot.wait_texts(user)[0]
        self.codes[user] = re.findall(r"\b[A-Z2-9]{8}\b", greeting)[0]
        return self.codes[user]

    def idle(self) -> None:
        """Wait until nothing runs: a heartbeat run waits for an agent that somebody talks to."""
        wait_for(lambda: not self.get("/api/runs/active")["runs"], "the agent to be idle")

    def heartbeat_run(self) -> None:
        """Let the heart beat by hand, and wait for the end of that."""
        self.idle()
        self.post("/api/heartbeats/main/run")

        def look() -> bool:
            return all(run["finished_at"] for run in self.get("/api/heartbeat-runs", agent="main"))

        wait_for(look, "the end of a heartbeat run")

    def undelivered(self, text: str) -> int:
        """A message that could not be sent, as Ann has blocked the bot; its number."""
        known, before = self._dead(), self._notices()
        self.bot.block(ANN)
        target = {"channel": "telegram", "account": "default", "chat": str(ANN)}
        message = {"kind": "message", "text": text}
        job = self.post("/api/jobs", schedule=DAILY, payload=message, target=target)["id"]
        self.post(f"/api/jobs/{job}/run")

        found = wait_for(lambda: self._dead() - known, "a message that cannot be sent")
        # The chat used last is told, if there is one: it may be that of the next test.
        with suppress(AssertionError):
            wait_for(lambda: self._notices() > before, "the notice about it", limit_s=_NOTICE_S)
        self.client.delete(f"/api/jobs/{job}")
        return max(found)

    def _notices(self) -> int:
        return len(self.get("/api/deliveries", search=", could not be delivered", limit=200))

    def _dead(self) -> set[int]:
        return {row["id"] for row in self.get("/api/deliveries", state="failed", limit=200)}


def address_of(gateway: Program) -> str:
    """Wait until a gateway says where its dashboard is."""

    def look() -> re.Match[str] | None:
        assert gateway.alive(), gateway.output
        return re.search(r"dashboard +(http://\S+)", gateway.output)

    return wait_for(look, "the address of the dashboard", limit_s=120)[1]


@contextmanager
def dashboard(folder: Path, database: str) -> Iterator[Dashboard]:
    """A gateway on that database. Every page of it has something to show."""
    with emulator() as bot:
        settings = telegram(bot, **SETTINGS, GOCLAW_DATABASE_URL=database)
        with home(folder, **settings) as place:
            gateway = place.start(ready=False)
            url = address_of(gateway)
            headers = {"origin": url}
            with httpx.Client(base_url=url, headers=headers, timeout=20, trust_env=False) as client:
                made = Dashboard(place, gateway, bot, url, client)
                _fill(made)
                yield made


def _fill(made: Dashboard) -> None:
    code = made.pair(ANN, "Ann")
    made.post("/api/people/approve", code=code)
    wait_for(lambda: _is_known(made.bot), "Ann to be let in")
    made.bot.add_group(GROUP, GROUPS_NAME)
    made.bot.say(EVE, "hi all", chat_id=GROUP, name=EVES_NAME + TURNED)
    made.pair(EVE, EVES_NAME + TURNED)
    made.job = made.make_job(ATTACK[:150] + TURNED, text=f"echo {ATTACK} {LONG}")
    checklist = {"text": f"- [ ] {ATTACK}\n- [ ] {LONG}\n"}
    made.client.put("/api/heartbeats/main/checklist", json=checklist)
    made.heartbeat_run()
    for text in (f"echo {ATTACK}\n{TURNED}", f"write {LONG}.txt {ATTACK}", "error " + ATTACK):
        known = len(made.runs("seed"))
        made.say(text)
        wait_for(lambda known=known: len(made.runs("seed")) > known, text)  # type: ignore[misc]
        made.run_of("seed", ended=True)
    made.undelivered(f"{ATTACK} {LONG}")


def _is_known(bot: Control) -> bool:
    """Ask once more: the gateway learns of an approval a moment later."""
    bot.say(ANN, "echo here I am")
    return any("here I am" in text for text in bot.texts(ANN))
