"""Heartbeats of real gateways: their checklists, their runs, and what of them reached a chat."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from channels.telegram.settings import Library
from goclaw_py.web.sockets import short_path, socket_path
from tests.botapi.control import Control
from tests.botapi.records import Call
from tests.botapi.views import Seen
from tests.e2e.loopback_model import Model, use
from tests.support.postgres import Server, run_sql
from tests.support.process import Home, Program, wait_for

ANN = 1001
GROUP = -1001
TOPIC = 7

SETTINGS = """
[heartbeat]
interval = "1h"

[channels.telegram]
groups = "open"
mention = false
"""

_OPEN = frozenset({"running", "deferred"})


def with_heartbeat(
    place: Home, model: Model, database: str, library: Library = Library.PTB
) -> Home:
    """Set a home up: its agents beat every hour, so only when they are told to."""
    use(place, model)
    place.env |= {
        "GOCLAW_DATABASE_URL": database,
        "GOCLAW_CHANNELS__TELEGRAM__LIBRARY": library.value,
        "GOCLAW_CHANNELS__TELEGRAM__ALLOW": str(ANN),
    }
    configure(place, SETTINGS)
    return place


def start(place: Home, api: Control) -> Program:
    """Start a gateway, and wait until it takes updates: it imports its library meanwhile."""
    before = api.counts().get("getUpdates", 0)
    gateway = place.start()
    wait_for(lambda: api.counts().get("getUpdates", 0) > before, "the bot to be served")
    return gateway


def a_day_later(server: Server, database: str) -> None:
    """Let all that was told have been told 24 hours earlier."""
    name = urlsplit(database).path.removeprefix("/")
    earlier = "update outbox set finished_at = finished_at - interval '24 hours'"
    asyncio.run(run_sql(server.at(name), f"{earlier} where alert is not null"))


def exactly(text: str) -> str:
    """A checklist at which the loopback model answers this, character by character."""
    return f"exactly {json.dumps(text)}"


def configure(place: Home, settings: str) -> None:
    """Write the settings of a home."""
    (place.folder / "goclaw.toml").write_text(settings)


def checklist(place: Home, text: str, agent: str = "main") -> Path:
    """Write the HEARTBEAT.md of an agent; where it is."""
    file = workspace(place, agent) / "HEARTBEAT.md"
    file.write_text(text)
    return file


def workspace(place: Home, agent: str = "main") -> Path:
    """The folder of an agent."""
    folder = place.folder / ("workspace" if agent == "main" else f"workspaces/{agent}")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def ask(place: Home, method: str, path: str, body: object = None) -> Any:
    """What the API of a running gateway answers, over its socket."""
    with (
        short_path(socket_path(place.state)) as name,
        httpx.Client(
            transport=httpx.HTTPTransport(uds=name), base_url="http://goclaw", trust_env=False
        ) as client,
    ):
        answer = client.request(method, f"/api/{path}", json=body, timeout=30)
    assert answer.is_success, answer.text
    return answer.json()


def heartbeat_runs(place: Home, agent: str = "main") -> list[dict[str, Any]]:
    """The rows of the log, the oldest first."""
    rows: list[dict[str, Any]] = ask(place, "GET", f"heartbeats/{agent}/runs?limit=500")
    return rows[::-1]


def outcome(row: dict[str, Any]) -> str:
    """What a heartbeat run came to: ``ok``, ``skipped:empty``."""
    return f"{row['status']}:{row['skip']}" if row["skip"] else str(row["status"])


def begin(place: Home, agent: str = "main") -> str:
    """Let a heart beat now, by hand; its heartbeat run."""
    begun = ask(place, "POST", f"heartbeats/{agent}/run")
    assert begun["heartbeat_run"], begun
    return str(begun["heartbeat_run"])


def ended(place: Home, heartbeat_run: str) -> dict[str, Any]:
    """Wait until a heartbeat run is over and nothing of it waits to be sent; its row."""

    def look() -> dict[str, Any] | None:
        row: dict[str, Any] = ask(place, "GET", f"heartbeat-runs/{heartbeat_run}")
        is_over = row["status"] not in _OPEN and row["delivery"] != "waiting"
        return row if is_over else None

    return wait_for(look, f"the end of heartbeat run {heartbeat_run}")


def run(place: Home, text: str, agent: str = "main") -> dict[str, Any]:
    """Let a heart beat about a checklist with this text, by hand, and wait; its row."""
    checklist(place, text, agent)
    return ended(place, begin(place, agent))


def tell(place: Home, event: str, agent: str = "main", *, now: bool = True) -> None:
    """Tell an agent something with its next heartbeat run; ``now`` lets that come soon."""
    ask(place, "POST", f"agents/{agent}/events", {"text": event, "now": now})


def say(api: Control, text: str, words: str, who: int = ANN, **how: Any) -> str:
    """Say something and wait for words of the whole answer; the message that has them."""
    chat = how.get("chat_id", who)

    def answers() -> list[Seen]:
        return [seen for seen in api.view(chat) if seen.mine]

    known = len(answers())
    api.say(who, text, **how)
    # A draft has a stop button.
    found = wait_for(
        lambda: [one for one in answers()[known:] if words in one.text and not one.buttons],
        f"{words!r}, the answer to {text!r}",
    )
    return found[0].text


def stop(api: Control, who: int = ANN) -> None:
    """Stop what runs in a chat; its growing reply says so, or a message if it has none."""
    api.say(who, "/stop")
    wait_for(lambda: any("Stopped" in one for one in api.texts(who)), "the answer to /stop")


def shown(api: Control) -> list[Call]:
    """Every call that did something in a chat: messages, drafts, edits, typing, reactions."""
    return [call for call in api.transcript() if call.chat is not None]


def leaked(api: Control) -> list[Call]:
    """The calls with anything of the token in them, however it is escaped."""
    return [
        call
        for call in api.transcript()
        if "HEARTBEAT" in json.dumps(dict(call.parameters), default=str)
    ]


def asked(model: Model, words: str) -> list[list[dict[str, Any]]]:
    """The conversations that the model server was sent and that end with a text with these."""
    messages = [request["body"]["messages"] for request in model.seen()]
    return [one for one in messages if words in json.dumps(one[-1], ensure_ascii=False)]
