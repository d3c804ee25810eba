"""A secret sentence reaches no viewer without text, wherever it stands (SPEC SEC-8).

Promised: no page and no GET route shows it, and no search tells that it is there.
Tried: it stands in messages, answers, failures, titles, names of people, jobs of three kinds, their
results, a checklist, an event, an alert, and a tool call that waits for an approval. All routes are
read as a viewer, and, so that this says something, as an admin, who finds it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

import pytest
from starlette.types import Message

from goclaw_py.core.actors import AccessRole, Least
from goclaw_py.core.approvals import ApprovalRequest
from goclaw_py.core.errors import AgentError, ApprovalNeeded
from goclaw_py.core.ids import MAIN_AGENT, SessionKey
from goclaw_py.core.outcomes import Trigger
from goclaw_py.core.web_links import secret_hash
from goclaw_py.gateway.service import GatewayControl
from goclaw_py.records import OutboxQuery, RunQuery, SessionQuery, Token
from goclaw_py.records.tokens import PREFIX
from goclaw_py.runs.agent_loop import Emit, RunRequest
from goclaw_py.testing.agents import Do, Fail, Say, ScriptedAgent, Step
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.web.api.routes import make_api
from goclaw_py.web.front import ApiOrDashboard, WebAccess
from goclaw_py.web.guard import Guard
from goclaw_py.web.pages import make_site
from goclaw_py.web.roles import routes
from tests.support.figures import snapshots_of
from tests.support.harness import GatewayProcess, a_process, message, until
from tests.support.heartbeat_gateway import heartbeat_gateway, write
from tests.support.jobs import OPERATOR, Wanted, at, every, make

WORD: Final = "quetzalcoatl"
SECRET: Final = f"{WORD} flies at noon"
LONG_S: Final = 3.0
"""How long an event stream is read."""

TOKEN: Final = "a-token-of-thirty-two-characters"


def choose(request: RunRequest) -> Step:
    if request.trigger is Trigger.HEARTBEAT:
        return Say(f"Alert: {SECRET}")
    if "fail" in request.prompt:
        return Fail(AgentError(f"The model refuses {SECRET}.", SECRET))
    if "pay" in request.prompt:
        return Do(pay)
    return Say(f"re: {request.prompt}")


async def pay(request: RunRequest, emit: Emit) -> str:
    asked = ApprovalRequest("c1", "pay", f'{{"to": "{SECRET}"}}', timeout_s=360_000.0)
    raise ApprovalNeeded((asked,))


@dataclass(slots=True)
class Reader:
    """Reads the routes of a gateway as somebody."""

    guard: Guard
    ids: dict[str, list[str]] = field(default_factory=dict)

    async def read(self, token: str, path: str) -> tuple[int, str]:
        """The status and the body; of an event stream what comes in some seconds."""
        place, _, query = path.partition("?")
        headers = [
            (b"host", b"localhost"),
            (b"authorization", f"Bearer {token}".encode()),
            (b"accept", b"*/*" if place.startswith("/api") else b"text/html"),
        ]
        scope = {
            "type": "http", "method": "GET", "path": place, "raw_path": quote(place).encode(),
            "query_string": query.encode(), "headers": headers, "client": ("192.0.2.1", 1),
            "server": ("localhost", 80), "scheme": "http", "root_path": "", "http_version": "1.1",
            "asgi": {"spec_version": "2.3", "version": "3.0"},
        }  # fmt: skip
        status, body, over = 0, b"", asyncio.Event()

        async def receive() -> Message:
            await over.wait()
            return {"type": "http.disconnect"}

        async def send(sent: Message) -> None:
            nonlocal status, body
            status = sent.get("status", status)
            body += sent.get("body", b"")

        serving = asyncio.create_task(self.guard(scope, receive, send))
        await asyncio.wait({serving}, timeout=LONG_S)
        over.set()
        await asyncio.wait({serving}, timeout=LONG_S)
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        return status, body.decode("utf-8", "replace")

    def paths(self) -> list[tuple[str, Least]]:
        """Each GET route, once for each id that its parameter may be."""
        found = []
        for method, path, least in routes():
            if method != "GET" or path.startswith(("/static", "/login", "/forbidden")):
                continue
            head, brace, rest = path.partition("{")
            if not brace:
                more = {"/live/session": "key", "/sessions/view": "key", "/live/run": "run",
                        "/runs/view": "run", "/live/job": "job", "/jobs/view": "job"}  # fmt: skip
                if path in more:
                    own = more[path]
                    name = "key" if own == "key" else "id"
                    found += [(f"{path}?{name}={quote(one)}", least) for one in self.ids[own]]
                else:
                    found.append((path, least))
                continue
            name, _, tail = rest.partition("}")
            for one in self.ids[name.removesuffix(":path")]:
                found.append((f"{head}{one}{tail}", least))
        return found


@pytest.fixture
async def reader() -> AsyncIterator[tuple[Reader, GatewayProcess]]:
    async with _gateway() as made:
        yield made


@asynccontextmanager
async def _gateway() -> AsyncIterator[tuple[Reader, GatewayProcess]]:
    channels = (RecordingChannel(), RecordingChannel(name="console"))
    agent = ScriptedAgent(otherwise=choose)
    async with a_process(agent, heartbeat_gateway(), channels=channels) as gateway:
        look = snapshots_of(gateway).full
        control = GatewayControl(gateway.store, gateway.clock, gateway.container, look)
        await _plant(gateway, control)
        await gateway.store.add_token(
            Token("viewer", AccessRole.VIEWER, False, gateway.clock.now()),
            secret_hash(f"{PREFIX}{'v' * 43}"),
        )
        now_s = lambda: gateway.clock.now().timestamp()  # noqa: E731
        access = WebAccess("127.0.0.1", (), TOKEN, now_s).with_store(gateway.store)
        api = make_api(control, agents=(MAIN_AGENT,))
        site = ApiOrDashboard(api, make_site(control, api, access))
        made = Reader(Guard(site, address="127.0.0.1", sign_ins=access.sign_ins))
        await _find_ids(made, control)
        yield made, gateway
        api.state.closing.set()


async def _plant(gateway: GatewayProcess, control: GatewayControl) -> None:
    write(gateway, f"# Checklist\n\n- [ ] {SECRET}\n")
    await gateway.ask(f"{SECRET}, what now?")
    await gateway.gateway.accept(
        [message(f"{SECRET} in a title", chat="browser", channel="console")]
    )
    await gateway.gateway.accept([message(f"fail with {SECRET}", chat="ben")])
    await gateway.gateway.accept([message(f"pay {SECRET}", chat="eve")])
    await until(lambda: len(gateway.channel.sent) >= 3)
    wanted = [
        Wanted(every(600), f"report {SECRET}", slug=f"{WORD}-report"),
        Wanted(every(600), f"fail {SECRET}", slug=f"{WORD}-fail"),
        Wanted(every(600), SECRET, slug=f"{WORD}-tea", message=True),
        Wanted(at(864_000), SECRET, slug=f"{WORD}-later", target=None),
    ]
    for one in wanted:
        await make(gateway, one)
    await control.heartbeats.add_event(MAIN_AGENT, SECRET, now=False)
    await asyncio.sleep(1_300)
    # It stays for the page of events.
    await control.heartbeats.add_event(MAIN_AGENT, SECRET, now=False)
    console = SessionKey("agent:main:console:direct:browser")
    assert await control.sessions.rename(console, f"About {SECRET}")


async def _find_ids(reader: Reader, control: GatewayControl) -> None:
    page = await control.jobs.search(_all_jobs(), OPERATOR)
    logged = await control.jobs.log(None, OPERATOR, limit=20)
    runs = await control.runs.list(RunQuery(limit=30))
    reader.ids |= {
        "key": [one.key for one in await control.sessions.list(SessionQuery(limit=20))],
        "prefix": [run.id for run in runs],
        "run": [run.id for run in runs],
        "row_id": [str(row.id) for row in await control.deliveries.outbox(OutboxQuery(limit=10))]
        + ["1", "2", "3"],
        "job": [job.id for job in page.jobs] + [job.spec.slug for job in page.jobs],
        "slug": [job.spec.slug for job in page.jobs],
        "occurrence": [one.id for one in logged],
        "agent": ["main"],
        "heartbeat_run": [str(one.id) for one in await control.heartbeats.log(MAIN_AGENT, limit=5)],
        "chat": ["nobody"],
    }
    approvals = await control.approvals.list()
    reader.ids["prefix"] += [one.id for one in approvals]
    assert approvals
    assert all(reader.ids.values())


def _all_jobs() -> Any:
    from goclaw_py.records import JobQuery

    return JobQuery()


@pytest.mark.slow
async def test_a_secret_reaches_no_viewer(reader: tuple[Reader, GatewayProcess]) -> None:
    made, _gateway = reader
    found: dict[str, str] = {}
    seen_by_admins = set()
    paths = made.paths()
    for path, least in paths:
        if path.startswith("/api/chat"):
            continue
        status, body = await made.read(PREFIX + "v" * 43, path)
        body = body.replace(path, "").replace(quote(path, safe=""), "")
        assert status != 500, path
        assert (status == 403) >= (least > Least.VIEWER), path
        if WORD in body.casefold():
            found[path] = body[max(0, body.casefold().index(WORD) - 200) :][:400]
        status, body = await made.read(TOKEN, path)
        assert status != 500, path
        if WORD in body.casefold():
            seen_by_admins.add((path, least))
    assert found == {}
    assert len({path for path, _ in paths}) > 150
    assert len([least for _, least in seen_by_admins if least is Least.VIEWER]) > 30
    assert len([least for _, least in seen_by_admins if least is Least.TEXT]) > 30


SEARCHES: Final = [
    "/api/sessions?search=", "/api/sessions/", "/api/sessions/{}/queue",
    "/api/outbox?search=", "/api/outbox/counts?search=",
    "/api/inbox?search=", "/api/inbox?waiting=true&search=", "/api/jobs?name=",
    "/api/scheduler/counts?name=",
    "/api/schedule?name=", "/api/jobs/", "/api/schedule/", "/api/why?about=", "/api/logs?search=",
    "/?search=", "/live/now?search=", "/sessions?search=", "/live/sessions?search=",
    "/deliveries?search=", "/live/deliveries?search=", "/jobs?search=", "/live/jobs?search=",
    "/jobs?name=",
    "/jobs/", "/runs?search=", "/runs?person=", "/usage?search=", "/logs?search=", "/why?about=",
    "/heartbeats?search=", "/timeline?search=", "/people?search=", "/api/names?keys=",
]  # fmt: skip


@pytest.mark.slow
async def test_no_search_tells_that_a_word_is_there(
    reader: tuple[Reader, GatewayProcess],
) -> None:
    made, _gateway = reader
    for place in SEARCHES:
        answers = []
        for word in ("zalcoa", f"{WORD}-report", "zzzzzz", f"{'z' * 12}-report"):
            path = place.format(word) if "{}" in place else place + word
            status, body = await made.read(PREFIX + "v" * 43, path)
            answers.append((status, _without(body, word)))
        assert answers[:2] == answers[2:], place


def _without(body: str, word: str) -> str:
    """A body without the word, as the page repeats it, and without what changes with time."""

    body = body.replace(word, "")
    return re.sub(r"[\d:.TZ-]{8,}|\d+(\.\d+)? s\b|id: \S+", "", body)
