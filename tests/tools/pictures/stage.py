"""A running gateway with people who talk to it: what the pictures show."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import httpx

from goclaw_py.store.embedded import EmbeddedPostgres
from goclaw_py.store.postgres import Address
from tests.botapi.control import Control
from tests.botapi.views import Seen
from tests.browser.dashboard import Dashboard, address_of
from tests.support.model_server import ModelServer
from tests.support.postgres import run_sql
from tests.support.process import emulator, home, telegram, wait_for
from tests.tools.pictures import script

ANN, BOB, CLEO, DAVE, MIA = 1001, 1002, 1003, 1004, 1005
NAMES: Final = {ANN: "Ann", BOB: "Bob", CLEO: "Cleo", DAVE: "Dave", MIA: "Mia"}

_SETTINGS: Final = """\
[agents.main]
model = "openai:gpt-5-mini"
base_url = "{url}"
api_key = "sk-loopback"

[agents.main.approval]
ask = ["write_file"]
allow = ["schedule_create"]

[agents.research]
model = "openai:gpt-5"
base_url = "{url}"
api_key = "sk-loopback"

[channels.telegram]
allow = ["{people}"]
"""

_PAST: Final = """
insert into runs (id, session, agent, trigger, lane, node, fence, epoch, model, channel, account,
    chat, sender, job, started_at, finished_at, submitted_at, first_text_at, outcome, requests,
    input_tokens, output_tokens, cached_tokens, cost_usd, tools)
select md5('run' || n)::uuid::text, r.session, case when x % 4 = 0 then 'research' else 'main' end,
    r.trigger, r.lane, r.node, r.fence, r.epoch, r.model, r.channel, r.account, r.chat,
    r.sender, r.job, t, t + (2 + x % 40) * interval '1 second', t - (x % 9) * interval '0.3 second',
    t + (3 + x % 13) * interval '0.2 second',
    case when x % 17 = 0 then 'failed' else 'completed' end, 1 + x % 3, 900 + x * 37,
    60 + x * 5, x * 9, 0.0006 * (3 + x % 11), r.tools
from generate_series(1, 260) as n,
    lateral (select ('x' || substr(md5('n' || n), 1, 6))::bit(24)::integer % 100 as x) as h,
    lateral (select now() - (n * 37 % (6 * 1440) + 60) * interval '1 minute' as t) as at,
    lateral (select *, row_number() over (order by id) as place from runs
        where outcome = 'completed') as r,
    lateral (select count(*) as many from runs where outcome = 'completed') as c
where r.place = 1 + n % c.many
on conflict do nothing
"""


@dataclass
class Stage:
    """The gateway, its Telegram, its model and its database."""

    dash: Dashboard
    bot: Control
    model_url: str
    folder: Path


@contextmanager
def model() -> Iterator[str]:
    """Run the scripted model server in a thread; yields its base URL."""
    loop = asyncio.new_event_loop()
    urls: list[str] = []
    ready, stop = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with ModelServer(obey=script.answers) as server:
            urls.append(server.base_url)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert ready.wait(10), "the model server does not start"
    try:
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    """Start the gateway on a new embedded database."""
    with emulator() as bot, model() as url:
        env = telegram(bot, GOCLAW_WEB__API="true", GOCLAW_WEB__PORT="0", NO_PROXY="127.0.0.1")
        env["GOCLAW_QUEUE__DEBOUNCE_MS"] = "20"
        env["GOCLAW_HEARTBEAT__INTERVAL"] = "12h"
        with home(folder, **env) as place:
            settings = _SETTINGS.format(
                url=url,
                people='", "'.join(map(str, NAMES)),
            )
            (folder / "goclaw.toml").write_text(settings, "utf-8")
            workspace = folder / "workspace"
            workspace.mkdir(exist_ok=True)
            for name, text in (
                ("today.md", script.TODAY_FILE),
                ("invoices.csv", script.INVOICES_FILE),
                ("notes.md", script.NOTES_FILE),
            ):
                (workspace / name).write_text(text, "utf-8")
            gateway = place.start("--no-console", ready=False)
            address = address_of(gateway)
            headers = {"origin": address}
            with httpx.Client(
                base_url=address, headers=headers, timeout=20, trust_env=False
            ) as client:
                yield Stage(Dashboard(place, gateway, bot, address, client), bot, url, folder)
            # The second signal ends the wait for runs in progress.
            for _ in range(2):
                gateway.send(signal.SIGTERM)
                time.sleep(0.5)


def converse(here: Stage) -> None:
    """Let Ann chat in Telegram, up to a question with buttons and an answer that still grows."""
    bot = here.bot
    _asks(here, ANN, script.TODAY, "yesterday again")
    _asks(here, ANN, script.REMIND, "I will remind you")
    target = {"channel": "telegram", "account": "default", "chat": str(ANN)}
    message = {"kind": "message", "text": "🫖 The tea is ready."}
    soon = {"kind": "at", "at": (datetime.now(UTC) + timedelta(seconds=15)).isoformat()}
    here.dash.post("/api/jobs", name="tea", schedule=soon, payload=message, target=target)
    wait_for(lambda: any("🫖" in text for text in bot.texts(ANN)), "the reminder")
    bot.say(ANN, script.SAVE, name="Ann")
    wait_for(lambda: _question(bot, "write_file"), "the next question")
    bot.say(ANN, script.LETTER, name="Ann")
    wait_for(lambda: any("caretaker" in text for text in bot.texts(ANN)), "a growing answer")


def fill(here: Stage) -> None:
    """Let other people chat, make jobs, and store runs of the last days."""
    dash = here.dash
    dash.make_job("morning briefing", script.BRIEFING)
    dash.make_job("backup report", script.DISK)
    dash.make_job("invoice check", script.INVOICES, agent="research")
    for chat, text in (("browser", script.INVOICES), ("release", script.RELEASE)):
        dash.say(text, chat)
        assert dash.ended(chat) == "completed"
    _asks(here, BOB, script.DISK, "48 GB")
    _asks(here, CLEO, script.INVOICES, "Nordwind")
    with EmbeddedPostgres(here.folder / "state" / "postgres") as server:
        found = server.start()
        address = Address(host=str(found.host), user=found.user, database=found.database)
        asyncio.run(run_sql(address, _PAST))


def make_busy(here: Stage) -> None:
    """Fill the lanes: some runs are in progress, and others wait."""
    dash, bot = here.dash, here.bot
    bot.say(BOB, script.QUOTES, name="Bob")
    dash.say(script.TRIP, "travel")
    time.sleep(1)
    bot.say(CLEO, script.PARTY, name="Cleo")
    bot.say(DAVE, script.DISK, name="Dave")
    briefing = next(one for one in _jobs(dash.get("/api/jobs")) if "briefing" in str(one))
    dash.post(f"/api/jobs/{briefing['id']}/run")
    wait_for(lambda: len(dash.get("/api/runs/active")["runs"]) >= 4, "a busy gateway")
    time.sleep(2)


def _asks(here: Stage, person: int, text: str, answer: str) -> None:
    here.bot.say(person, text, name=NAMES[person])
    wait_for(lambda: any(answer in each for each in here.bot.texts(person)), f"{answer!r}")


def _question(bot: Control, tool: str) -> Seen | None:
    """Return the message that asks Ann to approve the call of a tool."""
    found = [each for each in bot.view(ANN) if each.buttons and tool in each.text]
    return found[-1] if found else None


def _jobs(found: object) -> list[dict[str, object]]:
    assert isinstance(found, list | dict)
    jobs = found if isinstance(found, list) else found["jobs"]
    assert isinstance(jobs, list)
    return jobs
