"""What an invited person reaches by a personal link, and what not (SPEC CHAN-13, SEC-1)."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from html import unescape
from pathlib import Path
from typing import cast

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Route

from goclaw_py.chat.outbound import texts
from goclaw_py.chat.terminals import TerminalMessage
from goclaw_py.core.approvals import Approval
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.messages import FileKind, HistoryEntry, OutFile, Role
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.web_links import LINK_LASTS, SIGN_IN_LASTS, secret_hash
from goclaw_py.operations.approvals.operations import Approvals
from goclaw_py.operations.runs.operations import Runs
from goclaw_py.operations.sessions.operations import QueueView, Sessions
from goclaw_py.records import (
    NEWEST_SESSIONS,
    ApprovalQuery,
    ApprovalStore,
    RunQuery,
    Session,
    SessionQuery,
    Store,
    StoredEntry,
    StoredRun,
)
from goclaw_py.web.api.routes import make_api
from goclaw_py.web.front import ApiOrDashboard, WebAccess
from goclaw_py.web.guard import Guard
from goclaw_py.web.guests import make_guest_site
from goclaw_py.web.guests.entrance import MOST_REQUESTS
from goclaw_py.web.guests.site import MOST_CONVERSATIONS
from goclaw_py.web.pages import SiteParts, make_site
from goclaw_py.web.pages.chat.files import guest_path
from goclaw_py.web.signin import GUEST_COOKIE
from tests.support.memory_store import MemoryStore
from tests.unit.web.fake_approvals import PAY, FakeApprovalStore
from tests.unit.web.fake_names import FixedClock
from tests.unit.web.fake_terminals import FakeTerminals, FakeUploads
from tests.unit.web.fakes import (
    ENDED,
    FULL,
    NOW,
    QUEUE,
    RUN_ID,
    SESSION,
    FakeControl,
    FakeRunStore,
    FakeSessions,
)
from tests.unit.web.pages.conftest import ORIGIN, TOKEN, Browser

OWN_PATHS = {
    *(
        "/",
        "/chat",
        "/live/chat",
        "/chat/talk",
        "/chat/new",
        "/chat/export",
        "/chat/delete",
        "/chat/markdown",
        "/logout",
        "/theme",
    ),
    *("/chat/file", "/chat/files"),
}


def link(name: str) -> str:
    """The secret of the first link of a person: 43 characters."""
    return (name * 43)[:43]


def session(chat: str, at: int = 0) -> Session:
    key = SessionKey(f"agent:main:web:direct:{chat}")
    return replace(FULL, key=key, last_active_at=NOW + timedelta(seconds=at))


class AskingStore(FakeApprovalStore):
    """A question waits in every session."""

    async def approvals(self, query: ApprovalQuery) -> list[Approval]:
        return [PAY]


class GuestRuns(FakeRunStore):
    """One run, which has ended; ``GuestControl`` says how, and what it has said."""

    def __init__(self, control: GuestControl) -> None:
        super().__init__(control._called)
        self._control = control

    async def find_run(self, prefix: str) -> list[StoredRun]:
        found = await super().find_run(prefix)
        return [replace(run, session=self._control.session_of_run) for run in found]

    async def run_history(self, _run: RunId) -> list[StoredEntry]:
        return await self._control.sessions.history(SESSION)

    async def runs(self, _query: RunQuery) -> list[StoredRun]:
        error = "cannot open /srv/operator/secret"
        failed = replace(ENDED, outcome=Outcome.FAILED, reason=None, error=error)
        return [failed] if self._control.failed else [ENDED]


class GuestSessions(FakeSessions):
    """Conversations of several people; what was said in one names it."""

    _control: GuestControl

    async def delete(self, key: SessionKey) -> None:
        self._control._called("delete", key)

    async def queue(self, key: str) -> QueueView:
        self._control._called("queue", key)
        return replace(QUEUE, session=SessionKey(key), running=(), messages=(), unanswered=())

    async def history(
        self, key: SessionKey, *, limit: int = 200, whole: bool = False
    ) -> list[StoredEntry]:
        self._control._called("history", key, limit, whole)
        entry = HistoryEntry(Role.ASSISTANT, f"said in {key}.", files=self._control.files)
        return [StoredEntry(entry, NOW, RUN_ID)]

    async def list(self, query: SessionQuery = NEWEST_SESSIONS) -> list[Session]:
        self._control._called("sessions", query)
        found = (*self._control.known, FULL)
        return [one for one in found if query.search in one.key][: query.limit]


class GuestControl(FakeControl):
    """Knows conversations of several people; what was said in one names it."""

    def __init__(self) -> None:
        super().__init__()
        self.files: tuple[OutFile, ...] = ()
        self.session_of_run = SESSION
        self.failed = False
        asking = cast("ApprovalStore", AskingStore(self._called))
        self.approvals = Approvals(asking, FixedClock())
        self.known = [session(chat) for chat in ("ann", "ann.trip", "bob", "anna", "bob.ann")]

    @property
    def runs(self) -> Runs:
        return Runs(cast("Store", GuestRuns(self)), FixedClock())

    @property
    def sessions(self) -> Sessions:
        return cast("Sessions", GuestSessions(self))


class House:
    """A gateway with invited people, and its operator."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.store = MemoryStore()
        self.control, self.terminals = GuestControl(), FakeTerminals()
        self.now_s = NOW.timestamp()
        access = WebAccess("127.0.0.1", (), token, lambda: self.now_s)
        self.api: FastAPI = make_api(self.control, FakeTerminals())
        self.site = make_site(self.control, self.api, access)
        self.workspaces: dict[AgentName, Path] = {}
        self.uploads = FakeUploads()
        self.agents: dict[AgentName, str] = {}
        parts = SiteParts(agents=self.agents, workspaces=self.workspaces, uploads=self.uploads)
        self.guests = make_guest_site(self.control, self.terminals, self.store, access, parts=parts)
        halves = ApiOrDashboard(self.api, self.site)
        self.app = Guard(halves, address="127.0.0.1", sign_ins=access.sign_ins, guests=self.guests)

    def reset(self) -> None:
        """As it was at first."""
        vars(self.store).update(vars(MemoryStore()))
        vars(self.control).update(vars(GuestControl()))
        vars(self.terminals).update(vars(FakeTerminals()))
        self.now_s = NOW.timestamp()
        self.guests._browsers.clear()
        self.agents.clear()

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self.now_s, UTC)

    async def invite(self, name: str, secret: str = "", *, again: bool = False) -> str:
        """Invite a person; the path of the link."""
        secret, until = secret or link(name), self.now + LINK_LASTS
        stored = secret_hash(secret)
        assert await self.store.invite(name, stored, again=again, now=self.now, expires_at=until)
        return f"/join/{secret}"

    async def guest(self, name: str) -> Browser:
        """A browser that is signed in by a link."""
        browser, path = Browser(self.app), await self.invite(name)
        await browser.leads(path, "/chat")
        return browser


@cache
def _house(token: str) -> House:
    """Made once: to make it costs more than to ask it."""
    return House(token)


@pytest.fixture(params=["", TOKEN], ids=["no token", "token"])
def house(request: pytest.FixtureRequest) -> House:
    made = _house(request.param)
    made.reset()
    return made


@pytest.fixture
def locked() -> House:
    """With a token."""
    made = _house(TOKEN)
    made.reset()
    return made


async def test_examples_are_what_the_agent_understands(house: House) -> None:
    """Found by use: a guest of the offline agent was offered what it cannot answer."""
    house.agents[AgentName("main")] = "offline"
    browser = await house.guest("ann")
    new = await browser.says("/chat?name=new", "count to 10")
    assert "What can you do for me?" not in new
    assert "offline" not in new, "the model is none of a guest's business"


# ---------------------------------------------------------------------------- the link


async def test_opening_a_link_changes_nothing_and_its_button_signs_in(house: House) -> None:
    """A program that shows a preview of the link does not use it up."""
    path = await house.invite("ann")
    for method in ("GET", "HEAD", "GET"):
        answer = await Browser(house.app).request(method, path)
        assert (answer.status_code, answer.headers.get("set-cookie")) == (200, None)
        assert "ann" not in answer.text
    browser = Browser(house.app)
    answer = await browser.send_form(path)
    assert (answer.status_code, answer.headers["location"]) == (303, "/chat")
    cookie = answer.headers["set-cookie"]
    for part in ("HttpOnly", "SameSite=lax", f"Max-Age={SIGN_IN_LASTS.days * 86_400}", "Path=/"):
        assert part in cookie
    assert "Secure" not in cookie
    await browser.says("/chat", "said in agent:main:web:direct:ann.")


async def test_a_used_link_leads_its_own_browser_back_and_no_other(house: House) -> None:
    browser, path = await house.guest("ann"), f"/join/{link('ann')}"
    answer = await browser.get(path)
    assert (answer.status_code, answer.headers["location"]) == (303, "/chat")
    await browser.leads(path, "/chat")
    opened = await Browser(house.app).get(path)
    assert (opened.status_code, "was used already" in opened.text) == (410, True)
    await Browser(house.app).refuses(path, 410, "was used already")


@pytest.mark.parametrize(
    ("prepare", "status", "words"),
    [
        ("expire", 410, "has expired"),
        ("revoke", 404, "is not valid"),
        ("replace", 404, "is not valid"),
    ],
)
async def test_a_link_that_is_over_signs_nobody_in(
    house: House, prepare: str, status: int, words: str
) -> None:
    path = await house.invite("ann")
    match prepare:
        case "expire":
            house.now_s += LINK_LASTS.total_seconds()
        case "revoke":
            await house.store.revoke("web", "default", "ann")
        case "replace":
            await house.invite("ann", "x" * 43, again=True)
    browser = Browser(house.app)
    opened = await browser.get(path)
    assert (opened.status_code, words in opened.text) == (status, True)
    assert "You are invited" not in opened.text
    await browser.refuses(path, status, words)
    assert not browser.cookies


@pytest.mark.parametrize("secret", [
    "x", "x" * 42, "x" * 44, "x" * 4096, "é" * 43, "%00" * 43, "..%2F..%2Fapi", "'; --",
])  # fmt: skip
async def test_a_wrong_link_is_refused(house: House, secret: str) -> None:
    opened = await Browser(house.app).get(f"/join/{secret}")
    assert "You are invited" not in opened.text
    answer = await Browser(house.app).send_form(f"/join/{secret}")
    assert answer.status_code in (401, 404, 405)
    assert "set-cookie" not in answer.headers


async def test_wrong_links_lock_nobody_out(house: House) -> None:
    """Behind a reverse proxy all people have one address."""
    path = await house.invite("ann")
    for number in range(100):
        await Browser(house.app).refuses(f"/join/{number:043}", 404)
    await Browser(house.app).leads(path, "/chat")


async def test_a_link_is_used_only_from_its_own_page(house: House) -> None:
    """SEC-1: no other site can sign a browser in, or by another name of this machine."""
    path, browser = await house.invite("ann"), Browser(house.app)
    for headers in ({}, {"origin": "http://evil.example"}, {"origin": "null"}):
        assert (await browser.post(path, headers=headers)).status_code == 403
    evil = {"host": "evil.example", "origin": "http://evil.example"}
    assert (await browser.post(path, headers=evil)).status_code == 421
    await browser.leads(path, "/chat")


async def test_over_tls_the_cookie_is_secure(locked: House) -> None:
    path = await locked.invite("ann")
    headers = {"origin": "https://localhost:8420"}
    answer = await Browser(locked.app).post(path, headers=headers)
    assert "Secure" in answer.headers["set-cookie"]


# ---------------------------------------------------------------------------- only their chat


def _routes(house: House) -> list[tuple[str, str]]:
    """Method and path of each route of the operator, filled with what exists."""
    site: Starlette = house.site._app  # type: ignore[attr-defined]
    found = [("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics"), ("GET", "/openapi.json")]
    for path, methods in house.api.openapi()["paths"].items():
        found += [(method.upper(), path) for method in methods]
    for route in site.routes:
        assert isinstance(route, Route)
        found += [(method, route.path) for method in sorted(route.methods or ())]
    assert len(found) > 150
    return [
        (method, re.sub(r"{[^}]+}", "agent:main:console:direct:local", path))
        for method, path in found
    ]


async def test_of_all_routes_a_guest_reaches_only_the_chat(house: House) -> None:
    browser = await house.guest("ann")
    house.control.calls.clear()
    reached = set()
    for method, path in _routes(house):
        if path in OWN_PATHS or path.startswith(("/api/chat/", "/static/")):
            continue
        kind = {"content-type": "application/json"} if "/api" in path else {}
        answer = await browser.request(method, path, headers={**ORIGIN, **kind}, content=b"{}")
        if answer.status_code != 404:
            reached.add(path)
    assert reached == set()
    assert house.control.calls == []


@pytest.mark.parametrize("name", [
    "bob", "anna", "ann", "ann.trip", "bob.ann", "local", "browser", "a" * 50,
])  # fmt: skip
async def test_no_name_leads_to_the_chat_of_somebody_else(house: House, name: str) -> None:
    """What a guest names is a conversation of theirs."""
    browser = await house.guest("ann")
    await browser.post("/chat/delete", data={"name": name}, headers=ORIGIN)
    for path in (f"/chat?name={name}", f"/chat/export?name={name}"):
        said = (await browser.get(path)).text
        assert "said in" not in said or "web:direct:ann." in said
        for other in ("bob", "anna", "bob.ann"):
            assert f"said in agent:main:web:direct:{other}." not in said
    body = {"message_id": "1", "text": "hi"}
    await browser.post(f"/api/chat/{name}/messages", json=body, headers=ORIGIN)
    assert all(chat == f"ann.{name}" for chat, _, _ in house.terminals.said)
    reading = ("history", "queue", "delete")
    keys = {call[1] for call in house.control.calls if call[0] in reading}
    assert keys <= {"agent:main:web:direct:ann", "agent:main:web:direct:ann.trip"}


async def test_a_guest_sees_only_the_names_of_their_own_conversations(house: House) -> None:
    said = await (await house.guest("ann")).says("/chat?name=trip", "trip", "direct:ann.trip.")
    assert "bob" not in said
    assert "anna" not in said


@pytest.mark.parametrize("path", [
    "/api/chat/../runs", "/api/chat/x/../../runs", "/chat/../runs",
    "/api/chat/%2e%2e/messages", "/api/chat/x%2F..%2F..%2Fbob/messages", "//api/runs", "/API/runs",
    "/api/runs?name=x", "/api/chat", "/api/chat/", "/static/../api/runs", "/static/..%2f..%2fapi",
    "/join", "/live/now", "/live/people", "/sessions/view?key=agent:main:web:direct:bob",
])  # fmt: skip
async def test_tricks_with_paths_lead_nowhere(house: House, path: str) -> None:
    browser = await house.guest("ann")
    house.control.calls.clear()
    for method in ("GET", "POST"):
        # As it stands: a client would tidy it up.
        raw = httpx.URL("http://localhost:8420").copy_with(raw_path=path.encode())
        answer = await browser.request(method, raw, headers=ORIGIN)
        assert answer.status_code in (303, 400, 401, 404, 405), (method, answer.text)
    assert house.control.calls == []
    assert house.terminals.said == []


async def test_the_page_of_a_guest_has_no_way_into_the_dashboard(house: House) -> None:
    page = (await (await house.guest("ann")).get("/chat")).text
    found = set(re.findall(r'(?:href|action)="(/[^"?#]*)', page))
    assert {path for path in found if not path.startswith("/static/")} == {
        "/", "/chat", "/chat/new", "/chat/export", "/chat/delete", "/logout", "/theme",
    }  # fmt: skip


async def test_the_conversations_of_a_guest_are_numbered(house: House) -> None:
    browser = await house.guest("bob")
    assert (await browser.get("/chat/new")).headers["location"] == "/chat?name=2"
    house.control.known = [session("bob"), session("bob.2"), session("bob.4"), session("bobby.3")]
    assert (await browser.get("/chat/new")).headers["location"] == "/chat?name=3"
    await browser.says("/chat?name=3", "Conversation 1", "Conversation 2", "Conversation 4")


async def test_a_conversation_of_a_guest_has_its_first_words_as_title(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read once: the list is made anew each second."""
    asked = StoredEntry(HistoryEntry(Role.USER, "Plan <b>a trip"), NOW, RUN_ID)

    async def history(
        sessions: GuestSessions, key: SessionKey, *, limit: int = 200, whole: bool
    ) -> object:
        sessions._control._called("history", key, limit, whole)
        return [asked]

    monkeypatch.setattr(GuestSessions, "history", history)
    browser = await house.guest("bob")
    house.control.known = [session("bob"), session("bob.2")]
    title = "<bdi>Plan &lt;b&gt;a trip</bdi></a>"
    for search, found in (("", 2), ("TRIP", 2), ("no such", 0)):
        page = (await browser.get("/chat", params={"search": search})).text
        assert page.count(title) == found
    titles = [call for call in house.control.calls if call[0] == "history" and call[2] == 1000]
    assert len(titles) == 2


async def test_the_title_of_a_guest_is_there_before_the_first_answer(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by use: it was "Conversation 2" until the answer ended."""

    async def history(*_: object, **__: object) -> list[StoredEntry]:
        return []

    async def queue(_: GuestSessions, key: str) -> QueueView:
        waits = [replace(one, message=replace(one.message, text="/plan")) for one in QUEUE.messages]
        waits[0] = replace(waits[0], message=replace(waits[0].message, text="Plan **a** trip"))
        return replace(QUEUE, session=SessionKey(key), messages=tuple(waits), unanswered=())

    monkeypatch.setattr(GuestSessions, "history", history)
    monkeypatch.setattr(GuestSessions, "queue", queue)
    browser = await house.guest("bob")
    house.control.known = [session("bob.2")]
    await browser.says("/chat?name=2", "<bdi>Plan a trip</bdi></a>", "<bdi>Plan a trip</bdi></h2>")


async def test_a_guest_deletes_a_conversation_of_theirs(house: House) -> None:
    browser = await house.guest("ann")
    await browser.says("/chat/delete?name=trip", "Delete the conversation", "cannot be undone")
    await browser.leads("/chat/delete", "/chat?notice=deleted", name="trip")
    assert ("delete", "agent:main:web:direct:ann.trip") in house.control.calls
    await browser.says("/chat/delete?name=none", "there is no conversation none", status=404)


async def test_a_message_of_a_guest_goes_to_their_chat(house: House) -> None:
    browser = await house.guest("ann")
    body = {"message_id": "", "text": "hi"}
    for number, conversation in enumerate(("chat", "trip", "trip")):
        body["message_id"] = str(number)
        answer = await browser.post(f"/api/chat/{conversation}/messages", json=body, headers=ORIGIN)
        assert answer.status_code == 204
    expected = [("ann", "0", "hi"), ("ann.trip", "1", "hi"), ("ann.trip", "2", "hi")]
    assert house.terminals.said == expected
    long = await browser.post(f"/api/chat/{'x' * 61}/messages", json=body, headers=ORIGIN)
    assert long.status_code == 404


async def test_the_conversations_of_a_guest_are_limited(house: House) -> None:
    browser = await house.guest("ann")
    house.control.known = [session(f"ann.{number}") for number in range(MOST_CONVERSATIONS)]
    body = {"message_id": "1", "text": "hi"}
    answer = await browser.post("/api/chat/new/messages", json=body, headers=ORIGIN)
    assert (answer.status_code, "which is the limit" in answer.json()["error"]) == (409, True)
    assert (await browser.post("/api/chat/7/messages", json=body, headers=ORIGIN)).is_success


# ---------------------------------------------------------------------------- the end of it


async def test_a_removed_person_is_signed_out_at_once(house: House) -> None:
    """Also from what is open, and even without a token the browser does not get the dashboard."""
    ann, bob = await house.guest("ann"), await house.guest("bob")
    streams = [
        asyncio.create_task(browser.get(path))
        for browser in (ann, bob)
        for path in ("/live/chat", "/api/chat/chat/events")
    ]
    await asyncio.sleep(0.05)
    await house.store.revoke("web", "default", "ann")
    await house.guests.recheck()
    async with asyncio.timeout(5):
        await asyncio.gather(*streams[:2])
    assert [each.done() for each in streams[2:]] == [False, False]
    for path in ("/", "/chat", "/runs"):
        assert (await ann.get(path)).headers["location"] == "/signed-out"
    await ann.says("/signed-out", "no longer signed in")
    body = {"message_id": "1", "text": "hi"}
    assert (await ann.post("/api/chat/chat/messages", json=body, headers=ORIGIN)).status_code == 401
    assert house.terminals.said == []
    house.guests.close()
    async with asyncio.timeout(5):
        await asyncio.gather(*streams)


async def test_who_signs_out_needs_another_link(house: House) -> None:
    browser = await house.guest("ann")
    cookie = browser.cookies[GUEST_COOKIE]
    answer = await browser.send_form("/logout")
    assert answer.status_code == 200
    assert "You are signed out" in answer.text
    assert not browser.cookies
    browser.cookies[GUEST_COOKIE] = cookie
    assert (await browser.get("/chat")).headers["location"] == "/signed-out"
    await Browser(house.app).refuses(f"/join/{link('ann')}", 404)


async def test_a_sign_in_ends_after_half_a_year(house: House) -> None:
    browser = await house.guest("ann")
    house.now_s += SIGN_IN_LASTS.total_seconds() - 1
    await browser.says("/chat", "said in")
    house.now_s += 1
    assert (await browser.get("/chat")).headers["location"] == "/signed-out"


@pytest.mark.parametrize("value", [
    "", "x", "x" * 43, "x" * 4096, "ann", "1790000000.00", "é" * 43, '"', "deleted", "../x",
])  # fmt: skip
async def test_a_made_up_cookie_opens_nothing(house: House, value: str) -> None:
    """Nor the dashboard, where there is no token."""
    await house.guest("ann")
    for path in ("/", "/runs", "/api/runs"):
        cookie = f"{GUEST_COOKIE}={value}".encode()
        answer = await Browser(house.app).get(path, headers=[(b"cookie", cookie)])
        assert answer.headers.get("location") == "/signed-out"


async def test_a_changed_cookie_is_not_valid(house: House) -> None:
    browser = await house.guest("ann")
    cookie = browser.cookies[GUEST_COOKIE]
    for changed in (cookie[:-1], cookie + "A", cookie.swapcase(), link("ann"), cookie[::-1]):
        browser.cookies.clear()
        browser.cookies[GUEST_COOKIE] = changed
        assert (await browser.get("/chat")).headers["location"] == "/signed-out"


async def test_an_error_leads_a_guest_back_to_the_page_they_have(house: House) -> None:
    browser = await house.guest("ann")
    for path in ("/none", "/chat/delete?name=none"):
        said = await browser.says(path, '<a href="/">Back to the chat</a>', status=404)
        assert "Back to Now" not in said


async def test_without_the_database_nobody_is_let_in(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = await house.guest("ann")

    async def away(*_given: object, **_more: object) -> None:
        raise StoreUnavailable("the database does not answer")

    monkeypatch.setattr(house.store, "web_link_of_cookie", away)
    await browser.says("/chat", "the database does not answer", status=503)
    assert (await browser.get("/api/chat/chat/events")).status_code == 503


async def test_the_operator_of_the_same_browser_may_use_the_token(locked: House) -> None:
    """A program with the token is the operator, whatever cookie it has."""
    browser = await locked.guest("ann")
    headers = {"authorization": f"Bearer {TOKEN}"}
    assert (await browser.get("/api/runs", headers=headers)).status_code == 200
    for wrong in ("Bearer ", "Bearer x", "Basic x"):
        answer = await browser.get("/api/runs", headers={"authorization": wrong})
        assert answer.status_code == 404


async def test_a_browser_has_a_limited_number_of_streams(house: House) -> None:
    """It must not take all connections from the operator and from other guests."""
    ann, bob = await house.guest("ann"), await house.guest("bob")
    path = "/api/chat/chat/events"
    streams = [asyncio.create_task(ann.get(path)) for _ in range(MOST_REQUESTS)]
    await asyncio.sleep(0.05)
    await ann.says("/chat", "too many pages open", status=429)
    await bob.says("/chat", "said in")
    house.guests.close()
    async with asyncio.timeout(5):
        await asyncio.gather(*streams)
    house.guests._browsers.clear()
    await ann.says("/chat", "said in")


# ---------------------------------------------------------------------------- files


@pytest.mark.real_time
async def test_a_guest_gets_files_of_their_own_runs_only(house: House, tmp_path: Path) -> None:
    """And is told of no folder of the operator's machine."""
    browser = await house.guest("ann")
    (tmp_path / "plan.txt").write_text("a plan", "utf-8")
    file = OutFile(FileKind.DOCUMENT, str(tmp_path / "plan.txt"), "plan.txt", "text/plain")
    house.workspaces[AgentName("main")] = tmp_path
    house.control.files = (file,)
    for conversation, status in (("ann", 200), ("ann.trip", 200), ("bob", 404), ("anna", 404)):
        house.control.session_of_run = SessionKey(f"agent:main:web:direct:{conversation}")
        answer = await browser.get("/chat/file", params={"run": RUN_ID, "path": guest_path(file)})
        assert (answer.status_code, answer.text == "a plan") == (status, status == 200)
        whole = {"run": RUN_ID, "path": file.path}
        assert (await browser.get("/chat/file", params=whole)).status_code == 404
    answer = await browser.get("/chat/file", params={"run": "0", "path": guest_path(file)})
    assert "there is no such file in this run" in answer.text
    page = (await browser.get("/chat")).text
    assert f"path={guest_path(file)}" in page
    assert str(tmp_path) not in page


@pytest.mark.real_time
async def test_a_guest_gets_each_of_several_files_with_the_same_name(
    house: House, tmp_path: Path
) -> None:
    """Pasted pictures are all called ``image.png``."""
    browser = await house.guest("ann")
    for name in ("1-image.png", "2-image.png"):
        (tmp_path / name).write_text(name, "utf-8")
    house.workspaces[AgentName("main")] = tmp_path
    house.control.files = tuple(
        OutFile(FileKind.PHOTO, str(tmp_path / name), "image.png", "image/png")
        for name in ("1-image.png", "2-image.png")
    )
    house.control.session_of_run = SessionKey("agent:main:web:direct:ann")
    page = (await browser.get("/chat")).text
    addresses = [unescape(one) for one in re.findall(r'href="(/chat/file[^"]*)', page)]
    found = [(await browser.get(one)).text for one in addresses]
    assert found == ["1-image.png", "2-image.png"]


async def test_an_upload_takes_the_room_of_its_guest(house: House) -> None:
    for name in ("ann", "bob"):
        browser = await house.guest(name)
        answer = await browser.post("/chat/files?name=a.txt", content=b"x", headers=ORIGIN)
        assert answer.status_code == 200
    assert house.uploads.guests == ["ann", "bob"]


async def test_a_file_is_told_to_a_guest_without_its_folder(house: House) -> None:
    browser = await house.guest("ann")
    file = OutFile(FileKind.DOCUMENT, "/srv/operator/plan.txt", "plan.txt", "text/plain")
    house.terminals.events.put_nowait(TerminalMessage("r1", "here", RUN_ID, file))
    house.terminals.events.put_nowait(None)
    said = (await browser.get("/api/chat/trip/events")).text
    assert f'"path":"{guest_path(file)}"' in said
    assert "/srv/operator" not in said
    assert house.terminals.attached == ["ann.trip"]


async def test_a_guest_chooses_no_agent(house: House) -> None:
    browser = await house.guest("ann")
    body = {"message_id": "1", "text": "hi", "agent": "main"}
    answer = await browser.post("/api/chat/chat/messages", json=body, headers=ORIGIN)
    assert (answer.status_code, house.terminals.said) == (404, [])
    assert (await browser.get("/chat?name=new&agent=main")).status_code == 404


async def test_a_button_is_pressed_in_the_chat_of_the_guest(house: House) -> None:
    browser = await house.guest("ann")
    body = {"press_id": "1", "receipt": "r1", "data": "retry:x"}
    answer = await browser.post("/api/chat/bob/press", json=body, headers=ORIGIN)
    assert answer.status_code == 204
    assert [chat for chat, *_ in house.terminals.pressed] == ["ann.bob"]


async def test_a_guest_sees_no_question_about_a_tool_and_no_text_of_an_error(house: House) -> None:
    """AGENT-11: the owners are asked. A text may name files of the operator's machine."""
    house.control.failed = True
    browser = await house.guest("ann")
    page = (await browser.get("/chat")).text
    assert "May the agent do this?" not in page
    assert texts.FAILED in page
    assert "/srv/operator" not in page
    assert "/why" not in page
