"""Every change has its row in the audit log, and no secret (SPEC SEC-9).

Promised: whatever people, programs and commands change is found afterwards, with who did it, once;
nobody edits it; it tells no secret, and no text of people; nobody fills it with refusals.
Tried: each operation through API, page, command line and chat; statements that edit the log; names
with control characters, of 1 MB, and of half characters; a database that is away;
10,000 refused stops and calls.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Final, cast

import httpx
import pytest

from goclaw_py.cli.command_text import command_text
from goclaw_py.core.actors import AccessRole, Actor, ActorKind, acts
from goclaw_py.core.approvals import ApprovalRequest, Decision
from goclaw_py.core.errors import ApprovalNeeded, GoclawError, NotFound, StoreUnavailable
from goclaw_py.core.ids import NodeId, SessionKey
from goclaw_py.core.messages import PeerKind
from goclaw_py.core.run_steps import DecisionStep
from goclaw_py.core.session_keys import DirectPolicy, GroupPolicy
from goclaw_py.core.web_links import secret_hash
from goclaw_py.gateway.audit import actions, facts
from goclaw_py.gateway.audit.log import StoredAuditLog
from goclaw_py.gateway.store_control import StoreControl
from goclaw_py.operations.control import Control
from goclaw_py.operations.declare import Actions
from goclaw_py.operations.jobs.models import JobChange, JobDraft
from goclaw_py.operations.nouns import NOUNS
from goclaw_py.operations.settings.models import (
    EditableSetting,
    SettingChange,
    SettingsView,
)
from goclaw_py.records import AuditEntry, SignInMethod, Store, Token
from goclaw_py.records.bound import bind
from goclaw_py.runs.agent_loop import Emit, RunRequest
from goclaw_py.schedule.jobs.models import FixedMessage, JobState, Prompt
from goclaw_py.schedule.jobs.policy import DEFAULT_PROFILE
from goclaw_py.testing.agents import Block, Do, Say, ScriptedAgent, Step
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.testing.clock import LoopClock
from goclaw_py.web.command_line import command_headers, from_commands
from goclaw_py.web.front import ApiOrDashboard, WebAccess
from goclaw_py.web.guard import Guard
from goclaw_py.web.pages import make_site
from tests.support.apps import lend_api
from tests.support.harness import GatewayProcess, Ways, a_process, message, session_of, until
from tests.support.heartbeat_gateway import beating
from tests.support.jobs import OPERATOR, every, setup
from tests.support.memory_store import MemoryStore
from tests.support.postgres import Database, run_sql
from tests.unit.web.fake_settings import FakeSettings

ANN: Final = Actor(ActorKind.TOKEN, "ann", AccessRole.ADMIN, via="192.0.2.1")
SECRET: Final = "not-to-be-shown-to-anybody-at-all"
PAY: Final = ApprovalRequest("c1", "pay", '{"to": "Mallory"}', timeout_s=600)
BY_OPERATORS: Final = Ways(access=DirectPolicy.OPEN)
NEWS: Final = JobDraft(every(3600), Prompt("Read my diary"), "news")


SERVICES: Final[dict[str, type]] = {
    **{noun.name: noun.service for noun in NOUNS},
}

Whole = dict[str, str]
"""Whole ids, by kind."""


def hide(text: str) -> str:
    return text.replace(SECRET, "***")


def audited(store: Store, **more: Any) -> Control:
    """The operations of a command without a gateway."""
    clock = LoopClock()
    control = StoreControl(store, clock, **more)
    return StoredAuditLog(store, clock, lambda: "n1", hide).control(control)


async def only_entry(store: Store) -> AuditEntry:
    (found,) = await store.audit_entries()
    return found


def who(entry: AuditEntry) -> tuple[str, str, str, str]:
    return entry.kind, entry.actor, entry.role, entry.via


# ---------------------------------------------------------------------------- the tables


@pytest.mark.parametrize(
    ("port", "changes", "reads"),
    [
        (Control, {}, actions.READS["control"]),
        *((service, actions.SERVICES[n], actions.READS[n]) for n, service in SERVICES.items()),
    ],
)
def test_each_operation_is_declared_to_change_or_to_read(
    port: type, changes: Actions, reads: frozenset[str]
) -> None:
    """A new operation needs a line in the table."""
    operations = {name for name in dir(port) if not name.startswith("_")}
    assert operations == changes.keys() | reads
    assert not changes.keys() & reads


@pytest.mark.parametrize("table", [actions.CHATS, actions.SIGN_INS])
def test_the_other_tables_name_methods_of_the_store(table: Actions) -> None:
    assert [name for name in table if not hasattr(MemoryStore, name)] == []


def test_subjects_use_arguments_that_the_operations_have() -> None:
    """A renamed argument would let each call fail."""
    for noun, table in actions.SERVICES.items():
        for name, change in table.items():
            given: dict[str, Any] = {
                one: _Anything()
                for one in inspect.signature(getattr(SERVICES[noun], name)).parameters
            }
            assert isinstance(change.subject(given, None), str), name
            assert isinstance(change.name(given), str), name


class _Anything:
    """Has every attribute, and is an empty list, too."""

    def __getattr__(self, name: str) -> Any:
        return _Anything()

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __str__(self) -> str:
        return "x"


# ---------------------------------------------------------------------------- operations


async def test_an_edit_of_a_job_has_what_changed_before_and_after() -> None:
    store = MemoryStore()
    control = audited(store)
    with acts(ANN):
        await control.jobs.create(NEWS, OPERATOR)
        change = JobChange(name="Headlines", payload=Prompt("Read my diary and my mail"))
        await control.jobs.edit("news", change, OPERATOR)
        await control.jobs.edit("news", JobChange(state=JobState.PAUSED), OPERATOR)
        await control.jobs.delete("news", OPERATOR)
    deleted, paused, edited, created = await store.audit_entries()
    assert [one.action for one in (created, edited, paused, deleted)] == [
        "job.create", "job.edit", "job.edit", "job.delete",
    ]  # fmt: skip
    assert {one.subject for one in (created, edited, paused, deleted)} == {"job news"}
    assert created.before is None
    assert edited.before is not None
    assert edited.after is not None
    assert (edited.before["name"], edited.after["name"]) == ("", "Headlines")
    assert edited.before.keys() == edited.after.keys() == {"name", "payload"}
    assert (paused.before, paused.after) == ({"state": "active"}, {"state": "paused"})
    assert deleted.before is not None
    assert deleted.after == {}
    assert who(edited) == ("token", "ann", "admin", "192.0.2.1")
    assert edited.node == "n1"


async def test_the_texts_of_people_are_not_in_it() -> None:
    """Only that a prompt is another one: viewers without texts may read the audit log."""
    store = MemoryStore()
    control = audited(store)
    await control.jobs.create(NEWS, OPERATOR)
    await control.jobs.edit("news", JobChange(payload=Prompt("Read my diaries")), OPERATOR)
    await control.jobs.edit("news", JobChange(payload=FixedMessage("Read my diary")), OPERATOR)
    entries = await store.audit_entries()
    assert "diar" not in repr(entries)
    (fixed, other, _) = entries
    assert fixed.after is not None
    assert other.before is not None
    same = [cast("dict[str, Any]", one["payload"]) for one in (fixed.after, other.before)]
    assert same[0]["sha256"] == same[1]["sha256"]
    assert [one["kind"] for one in same] == ["message", "prompt"]


async def test_what_failed_has_the_words_of_the_error() -> None:
    store = MemoryStore()
    control = audited(store)
    with pytest.raises(NotFound):
        await control.people.revoke("telegram", "default", "7")
    entry = await only_entry(store)
    assert (entry.action, entry.subject) == ("person.revoke", "person telegram/default/7")
    assert entry.result.startswith("nobody with the id '7' is known on telegram/default")
    assert (entry.before, entry.after) == (None, None)


async def test_a_bug_is_recorded_by_its_kind_only() -> None:
    """Its text may contain anything."""
    store = MemoryStore()
    control = audited(store)

    async def broken(*_given: object, **_more: object) -> None:
        raise RuntimeError(SECRET)

    store.allow_chat = broken  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        await control.people.allow_chat("telegram", "default", "-1", allowed=True)
    assert (await only_entry(store)).result == "RuntimeError"


async def test_reading_leaves_no_row_and_costs_no_statement() -> None:
    store = MemoryStore()
    control = audited(store)
    await asyncio.gather(
        control.sessions.list(), control.runs.list(), control.people.list(), control.people.chats(),
        control.nodes.list(), control.approvals.list(), control.deliveries.outbox(),
        control.audit.list(), control.access.sign_ins(), control.access.tokens(),
    )  # fmt: skip
    assert await store.audit_entries() == []


async def test_an_edited_setting_has_its_values_and_no_secret() -> None:
    store, settings = MemoryStore(), FakeSettings()

    async def change(changes: Any, *, source: str) -> SettingsView:
        one = EditableSetting("lanes.main.size", "9", "2", 8, edited=True)
        first, *others = settings.seen.settings
        settings.seen = replace(settings.seen, settings=(replace(first, value=9), *others))
        return replace(settings.seen, editable=(one,))

    settings.change = change  # type: ignore[method-assign]
    control = audited(store, settings=settings)
    wanted = [SettingChange("lanes.main.size", "9"), SettingChange("web.token", SECRET)]
    await control.settings.change(wanted, source="x")
    entry = await only_entry(store)
    assert (entry.action, entry.subject) == ("setting.edit", "lanes.main.size, web.token")
    assert (entry.before, entry.after) == ({"lanes.main.size": 4}, {"lanes.main.size": 9})
    assert SECRET not in repr(entry)


async def test_codes_and_links_are_not_in_it() -> None:
    store = MemoryStore()
    control = audited(store)
    made = await control.people.invite("ben")
    with pytest.raises(NotFound):
        await control.people.approve("QWERTZ12", guest=True)
    approve, invite = await store.audit_entries()
    assert invite.subject == "person ben"
    assert made.path.rpartition("/")[2] not in repr(invite)
    assert approve.subject == "person with a pairing code"
    assert approve.result.startswith("no valid pairing request has the code '…'")


PARTS: Final[tuple[tuple[str, Callable[[Control, Whole], Awaitable[Any]], str], ...]] = (
    (
        "session.rename",
        lambda control, _: control.sessions.rename(SessionKey("brow"), "Plan"),
        "session",
    ),
    ("session.delete", lambda control, _: control.sessions.delete(SessionKey("brow")), "session"),
    ("session.fork", lambda control, _: control.sessions.fork(SessionKey("brow")), "session"),
    (
        "approval.decide",
        lambda control, whole: control.approvals.decide(whole["approval"][:6], Decision.DENY),
        "approval",
    ),
    ("node.drain", lambda control, whole: control.nodes.drain(whole["node"][:-1]), "node"),
    ("job.run", lambda control, whole: control.jobs.run_now(whole["job"][:-1], OPERATOR), "job"),
)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize(("action", "change", "kind"), PARTS, ids=[action for action, *_ in PARTS])
async def test_what_is_named_by_a_part_is_recorded_by_its_whole_id(
    action: str, change: Callable[[Control, Whole], Awaitable[Any]], kind: str, *, fails: bool
) -> None:
    """Rows are searched by it; also what has failed is found."""
    ways = replace(BY_OPERATORS, jobs=setup(DEFAULT_PROFILE))
    channels = (RecordingChannel(name="console"),)
    async with a_process(agent_that_asks(), ways, channels=channels) as gateway:
        for text in ("hello", "pay"):
            await gateway.gateway.accept([message(text, chat="browser", channel="console")])
            await asyncio.sleep(5)
        control = gateway.control
        job = await control.jobs.create(NEWS, OPERATOR)
        whole = {
            "session": "agent:main:console:direct:browser",
            "run": (await control.runs.list())[-1].id,
            "approval": (await control.approvals.list())[0].id,
            "node": gateway.node(),
            "job": job.id,
        }
        services = {
            "job": control.jobs,
            "approval": control.approvals,
            "node": control.nodes,
            "session": control.sessions,
        }
        service = cast("Any", services.get(kind, control))
        if fails:
            _break(service, action)
        with suppress(GoclawError):
            await change(gateway.container.audit.control(control), whole)
        entry = await only_entry(gateway.store)
    shown = "news" if kind == "job" else whole[kind]
    assert (entry.action, entry.subject) == (action, f"{kind} {shown}")
    assert not fails or entry.result == "away"


def _break(service: Any, action: str) -> None:
    """Let an operation fail after it has found its subject."""
    name = "run_now" if action == "job.run" else action.partition(".")[2]

    async def broken(*given: Any, **more: Any) -> None:
        raise StoreUnavailable("away")

    setattr(service, name, functools.wraps(getattr(service, name))(broken))


async def test_a_new_title_has_the_old_one_before_it() -> None:
    """Also of a session that is named by a part of its key."""
    channels = (RecordingChannel(name="console"),)
    async with a_process(ways=BY_OPERATORS, channels=channels) as gateway:
        await gateway.gateway.accept([message("hello", chat="browser", channel="console")])
        await asyncio.sleep(5)
        control = gateway.container.audit.control(gateway.control)
        await control.sessions.rename(SessionKey("brow"), "Plan")
        await control.sessions.rename(SessionKey("brow"), "Plan B")
        newest = (await gateway.store.audit_entries())[0]
    assert (newest.before, newest.after) == ({"title": "Plan"}, {"title": "Plan B"})


@pytest.mark.parametrize("code", ["", " ", "n"])
async def test_a_short_code_does_not_spoil_the_words_of_the_error(code: str) -> None:
    """It is masked where the error quotes it, not wherever its letters are."""
    store = MemoryStore()
    with pytest.raises(NotFound) as raised:
        await audited(store).people.approve(code, guest=True)
    entry = await only_entry(store)
    assert entry.result == str(raised.value).replace(repr(code), "'…'")


# ---------------------------------------------------------------------------- when it cannot be


class AwayStore(MemoryStore):
    """Cannot store entries, or nothing at all."""

    is_away = False

    async def add_audit_entry(self, entry: AuditEntry) -> None:
        raise StoreUnavailable("the database does not answer")

    async def allow_chat(self, *given: Any, **more: Any) -> None:
        if self.is_away:
            raise StoreUnavailable("the database does not answer")
        await super().allow_chat(*given, **more)


@pytest.mark.parametrize("is_away", [False, True])
async def test_an_entry_that_cannot_be_stored_is_an_error_in_the_log(
    caplog: pytest.LogCaptureFixture, *, is_away: bool
) -> None:
    """What was done is done; and its own failure is what the caller is told."""
    store = AwayStore()
    store.is_away = is_away
    control = audited(store)
    allow = control.people.allow_chat("telegram", "default", "-1", allowed=True)
    with acts(ANN), caplog.at_level(logging.ERROR):
        if is_away:
            with pytest.raises(StoreUnavailable):
                await allow
        else:
            await allow
    (line,) = [one for one in caplog.records if one.message == "audit_entry_not_stored"]
    facts = vars(line)
    assert (facts["action"], facts["actor"]) == ("chat.allow", "ann")
    assert facts["subject"] == "chat telegram/default/-1"


# ---------------------------------------------------------------------------- hostile texts


HOSTILE: Final = (
    "a\x1b[2J\x00\x07\nb",
    "\u202eevil",
    "\ud800x\udc00",
    "x" * 1_000_000,
    "\u200b" * 1_000_000 + "x",
    f"with {SECRET} in it",
)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_names_are_one_short_line(text: str) -> None:
    store = MemoryStore()
    log = StoredAuditLog(store, LoopClock(), lambda: "n1", hide)
    nested: dict[str, object] = {"a": {"b": {"c": {"d": {"e": [text] * 100}}}}, text: [text]}
    actor = Actor(ActorKind.PERSON, text, via=text)
    await log.record("job.edit", text, by=actor, before={"name": text}, after=nested, result=text)
    entry = await only_entry(store)
    shown = repr((entry.actor, entry.via, entry.subject, entry.before, entry.after, entry.result))
    assert SECRET not in shown
    assert len(shown) < 3 * facts.MOST_FACTS_BYTES
    for one in (entry.actor, entry.via, entry.subject, entry.result):
        assert one.isprintable()
        assert "\u202e" not in one
    json.dumps(entry.after).encode()


async def test_facts_have_a_limit_as_a_whole() -> None:
    store = MemoryStore()
    log = StoredAuditLog(store, LoopClock(), lambda: "n1", hide)
    many = {f"name {n}": "ä" * 300 for n in range(1000)}
    await log.record("job.edit", "job x", before=many)
    entry = await only_entry(store)
    assert entry.before is not None
    assert len(json.dumps(entry.before, ensure_ascii=False).encode()) <= facts.MOST_FACTS_BYTES + 99
    assert str(entry.before["…"]).endswith(" more")


# ---------------------------------------------------------------------------- pages and API


@asynccontextmanager
async def a_browser(gateway: GatewayProcess) -> AsyncIterator[httpx.AsyncClient]:
    """API and pages of a gateway, with a token of the name ann."""
    control, store = gateway.container.audit.control(gateway.control), gateway.store
    token = Token("ann", AccessRole.ADMIN, reads_text=True, created_at=gateway.clock.now())
    text = f"goclaw_{'x' * 43}"
    await store.add_token(token, secret_hash(text))
    access = WebAccess("127.0.0.1", (), SECRET).with_store(gateway.container.audit.sign_ins(store))
    api = lend_api(control)
    site = ApiOrDashboard(api, make_site(control, api, access))
    app = Guard(site, address="127.0.0.1", sign_ins=access.sign_ins)
    headers = {"authorization": f"Bearer {text}", "accept": "text/html"}
    transport = httpx.ASGITransport(app, client=("192.0.2.1", 1))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost", headers=headers
    ) as client:
        yield client


PEOPLE: Final = {"channel": "telegram", "account": "default"}

BY_API: Final[tuple[tuple[str, str, Any, str], ...]] = (
    ("POST", "/api/jobs", {"slug": "tea", "schedule": {"kind": "every", "every_ms": 3_600_000},
                           "payload": {"kind": "message", "text": "Tea!"}}, "job.create"),
    ("PATCH", "/api/jobs/news", {"state": "paused"}, "job.edit"),
    ("POST", "/api/jobs/news/run", None, "job.run"),
    ("DELETE", "/api/jobs/news", None, "job.delete"),
    ("PUT", "/api/scheduler/zone", {"zone": "Europe/Berlin"}, "zone.choose"),
    ("PUT", "/api/lanes/main", {"concurrency": 3}, "lane.resize"),
    ("POST", f"/api/sessions/{session_of()}/stop", {"everything": False}, "session.stop"),
    ("POST", f"/api/sessions/{session_of()}/stop", {"everything": True}, "session.stop_all"),
    ("POST", f"/api/sessions/{session_of()}/reset", None, "session.reset"),
    ("POST", "/api/chats/allow", {**PEOPLE, "chat": "-1", "allowed": False}, "chat.deny"),
    ("POST", "/api/people/revoke", {**PEOPLE, "sender_id": "7"}, "person.revoke"),
    ("POST", "/api/people/approve", {"code": "QWERTZ12", "guest": True}, "person.approve"),
    ("POST", "/api/web/guests", {"name": "ben"}, "guest.invite"),
    ("DELETE", "/api/web/sign-ins", None, "sign_in.end_all"),
    ("DELETE", "/api/web/sign-ins/abc", None, "sign_in.end"),
    ("POST", "/api/deliveries/retry", {"ids": [1]}, "outgoing.retry"),
    ("POST", "/api/deliveries/drop", {"ids": [1]}, "outgoing.drop"),
    ("POST", "/api/deliveries/incoming/retry", {"ids": [1]}, "incoming.retry"),
    ("POST", "/api/deliveries/incoming/drop", {"ids": [1]}, "incoming.dismiss"),
    ("POST", "/api/grants/revoke", {"agent": "main", "tool": "pay"}, "grant.revoke"),
    ("POST", "/api/approvals/abc/decide", {"decision": "deny"}, "approval.decide"),
    ("POST", "/api/nodes/nowhere/drain", None, "node.drain"),
    ("POST", "/api/tokens", {"name": "grafana", "role": "viewer"}, "token.create"),
    ("DELETE", "/api/tokens/grafana", None, "token.revoke"),
    ("POST", "/api/heartbeats/main/run", None, "heartbeat.run"),
    ("PUT", "/api/heartbeats/main/switch", {"on": True}, "heartbeat.switch"),
    ("POST", "/api/agents/main/events", {"text": "rain"}, "heartbeat.event"),
    ("POST", "/api/heartbeats/main/checklist/items", {"text": "rain"}, "checklist.add"),
    ("POST", "/api/heartbeats/main/checklist/items/1/done", None, "checklist.complete"),
    ("PUT", "/api/heartbeats/main/checklist", {"text": "x", "version": "y"}, "checklist.write"),
    ("POST", f"/api/sessions/{session_of()}/messages?queue=true", {"prompt": "hello"},
     "session.send"),
    ("PUT", f"/api/sessions/{session_of()}/title", {"title": "Trip"}, "session.rename"),
    ("DELETE", f"/api/sessions/{session_of()}", None, "session.delete"),
    ("POST", f"/api/sessions/{session_of()}/fork", {}, "session.fork"),
)  # fmt: skip
NOT_BY_API: Final = {"heartbeats.mute", "settings.change"}
"""Operations that it cannot try, because this gateway has no heartbeat and no settings to edit."""


def test_each_operation_that_changes_something_is_tried_by_the_api() -> None:
    """An operation without a row here would not be seen to miss one in the audit log."""
    untried = set()
    for noun in NOUNS:
        for name in noun.changes:
            method, path = noun.operations[name].route.split()
            pattern = re.sub(r"\{\w+(:path)?\}", "[^/]+", path)
            if not any(
                method == m and re.fullmatch(pattern, p.partition("?")[0]) for m, p, *_ in BY_API
            ):
                untried.add(f"{noun.name}.{name}")
    assert untried == NOT_BY_API


@pytest.mark.parametrize(
    ("method", "path", "body", "action"), BY_API, ids=[f"{m} {p}" for m, p, *_ in BY_API]
)
async def test_a_change_by_the_api_leaves_one_row(
    method: str, path: str, body: Any, action: str
) -> None:
    """Also one that is refused."""
    async with a_process(ways=Ways(jobs=setup(DEFAULT_PROFILE))) as gateway:
        await gateway.say("hello")
        await gateway.channel.until_sent(1)
        await gateway.container.job_module.service.create(NEWS, OPERATOR)
        async with a_browser(gateway) as browser:
            answer = await browser.request(method, path, json=body)
        assert answer.status_code != 422, answer.text
        entry = await only_entry(gateway.store)
    assert entry.action == action
    assert (entry.result == "ok") is answer.is_success
    assert who(entry) == ("token", "ann", "admin", "192.0.2.1")
    assert entry.node == gateway.node()


BY_PAGE: Final[tuple[tuple[str, dict[str, str], str], ...]] = (
    ("/people/groups", {**PEOPLE, "chat": "-1", "allowed": "yes"}, "chat.allow"),
    ("/people/revoke", {**PEOPLE, "sender": "7"}, "person.revoke"),
    ("/people/invite", {"name": "ben"}, "guest.invite"),
    ("/deliveries/incoming/drop", {"id": "1"}, "incoming.dismiss"),
    ("/jobs/news/pause", {"back": ""}, "job.edit"),
)


@pytest.mark.parametrize(("path", "fields", "action"), BY_PAGE)
async def test_a_form_of_the_dashboard_leaves_one_row(
    path: str, fields: dict[str, str], action: str
) -> None:
    async with a_process(ways=Ways(jobs=setup(DEFAULT_PROFILE))) as gateway:
        job = await gateway.container.job_module.service.create(NEWS, OPERATOR)
        async with a_browser(gateway) as browser:
            path = path.replace("/news/", f"/{job.id}/")
            answer = await browser.post(path, data=fields)
        assert answer.status_code < 400, answer.text
        entry = await only_entry(gateway.store)
    assert entry.action == action
    assert who(entry) == ("token", "ann", "admin", "dashboard (192.0.2.1)")


async def test_without_a_token_the_dashboard_acts_for_a_person_on_this_machine() -> None:
    async with a_process() as gateway:
        control = gateway.container.audit.control(gateway.control)
        api = lend_api(control)
        site = ApiOrDashboard(api, make_site(control, api, WebAccess("127.0.0.1")))
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(Guard(site, address="127.0.0.1")),
            base_url="http://localhost",
            headers={"origin": "http://localhost"},
        ) as browser:
            await browser.post("/deliveries/incoming/drop", data={"id": "1"})
        entry = await only_entry(gateway.store)
    assert who(entry) == ("person", "this machine", "admin", "dashboard (127.0.0.1)")


async def test_pages_and_lists_leave_no_row() -> None:
    async with a_process() as gateway, a_browser(gateway) as browser:
        for path in ("/runs", "/jobs", "/people", "/audit", "/api/runs", "/api/people"):
            assert (await browser.get(path)).status_code == 200
        assert await gateway.store.audit_entries() == []


async def test_the_page_shows_names_as_text_and_follows_its_filters() -> None:
    """A name that is HTML is shown, not run; pages follow each other."""
    async with a_process() as gateway, a_browser(gateway) as browser:
        log, evil = gateway.container.audit, "<img src=x onerror=alert(1)>"
        by = Actor(ActorKind.PERSON, evil, via=evil)
        for number in range(60):
            facts = {evil: evil, "n": number}
            await log.record("job.edit", f"{evil} {number}", by=by, after=facts, result=evil)
        await log.record("node.drain", "node n2")
        page = (await browser.get("/audit?range=all&action=job")).text
        assert "<img src=x" not in page
        assert "&lt;img src=x" in page
        assert "node.drain" not in page
        assert page.count('id="entry-') == 50
        older = (await browser.get("/audit?range=all&action=job&before=11")).text
        assert older.count('id="entry-') == 10
        assert (await browser.get("/audit?before=x")).status_code == 422


async def test_an_export_has_all_entries_and_reads_a_part_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with a_process() as gateway, a_browser(gateway) as browser:
        for number in range(1203):
            await gateway.container.audit.record("job.run", f"job {number}")
        asked: list[int] = []
        entries = gateway.store.audit_entries

        async def counted(*, limit: int, **more: Any) -> list[AuditEntry]:
            asked.append(limit)
            return await entries(limit=limit, **more)

        monkeypatch.setattr(gateway.store, "audit_entries", counted)
        answer = await browser.get("/api/audit/export")
        assert answer.headers["content-type"] == "application/jsonl"
        found = [json.loads(line) for line in answer.text.splitlines()]
        assert [one["subject"] for one in found] == [f"job {n}" for n in reversed(range(1203))]
        assert asked == [500, 500, 500]
        page = await browser.get("/api/audit?limit=2&action=job")
        assert [one["subject"] for one in page.json()] == ["job 1202", "job 1201"]
        assert page.headers["link"].startswith("<?limit=2&action=job&before=")


# ---------------------------------------------------------------------------- command line


def a_context(path: str, **params: Any) -> Any:
    options = {"prompt", "agent", "always"}
    made = [
        SimpleNamespace(
            name=name,
            default=None,
            opts=[f"--{name}"],
            param_type_name="option" if name in options else "argument",
        )
        for name in params
    ]
    command = SimpleNamespace(params=made)
    return SimpleNamespace(command_path=path, params=params, command=command)


@pytest.mark.parametrize(
    ("context", "shown"),
    [
        (a_context("goclaw jobs pause", job="news"), "goclaw jobs pause news"),
        (a_context("goclaw people approve", code=SECRET), "goclaw people approve …"),
        (a_context("goclaw send", session="ann", text=SECRET), "goclaw send ann …"),
        (
            a_context("goclaw jobs add", words=[SECRET], prompt=SECRET, agent="main"),
            "goclaw jobs add … --prompt … --agent main",
        ),
        (
            a_context("goclaw deliveries incoming retry", ids=(1, 2)),
            "goclaw deliveries incoming retry 1 2",
        ),
        (a_context("goclaw jobs pause", job="a b; c"), "goclaw jobs pause 'a b; c'"),
        (a_context("goclaw approvals allow", approval="q1", always=True),
         "goclaw approvals allow q1 --always"),
    ],
)  # fmt: skip
def test_a_command_line_is_shown_without_texts_and_secrets(context: Any, shown: str) -> None:
    assert command_text(context) == shown


@pytest.mark.parametrize(
    "line", ["goclaw jobs pause news", "goclaw jobs pause ä\n\x1b", "x" * 1_000_000, "\ud800"]
)
async def test_a_command_says_who_it_is_on_the_local_socket_only(line: str) -> None:
    """The same headers over TCP mean nothing."""
    with acts(Actor(ActorKind.COMMAND_LINE, "root", AccessRole.ADMIN, via=line)):
        headers = command_headers()
    assert command_headers() == {}
    async with a_process() as gateway:
        api = lend_api(gateway.container.audit.control(gateway.control))
        for app in (from_commands(api), Guard(api, address="127.0.0.1")):
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://localhost"
            ) as client:
                await client.delete(
                    "/api/web/sign-ins", headers={**headers, "origin": "http://localhost"}
                )
        over_tcp, local = await gateway.store.audit_entries()
    assert (local.kind, local.actor, local.role) == ("command_line", "root", "admin")
    assert local.via == facts.line(line[:1000], str, 500).replace("\ufffd", "?")
    assert over_tcp.actor == "this machine"
    assert over_tcp.via == "127.0.0.1"


# ---------------------------------------------------------------------------- chats


def agent_that_asks() -> ScriptedAgent:
    async def pay(request: RunRequest, _emit: Emit) -> str:
        decided = [one.decision for one in request.steps if isinstance(one, DecisionStep)]
        if not decided:
            raise ApprovalNeeded((PAY,))
        return f"paid: {decided[-1]}"

    def choose(request: RunRequest) -> Step:
        word = (request.own_texts or request.prompt).split()[0]
        steps: dict[str, Callable[[], Step]] = {"pay": lambda: Do(pay), "work": Block}
        return steps[word]() if word in steps else Say(f"re: {request.prompt}")

    return ScriptedAgent(otherwise=choose)


IN_CHAT: Final[tuple[tuple[tuple[str, ...], str, str], ...]] = (
    (("work", "/stop"), "session.stop", f"session {session_of()}"),
    (("/stop",), "session.stop", f"session {session_of()}"),
    (("work", "/stopall"), "session.stop_all", f"session {session_of()}"),
    (("hello", "/new"), "session.reset", f"session {session_of()}"),
    (("work", "/new"), "session.reset", f"session {session_of()}"),
    (("hello", "/undo"), "session.undo", f"session {session_of()}"),
    (("hello", "/queue steer"), "session.queue_mode", f"session {session_of()}"),
    (("/jobs pause news",), "job.edit", "job news"),
    (("/jobs delete news", "/jobs delete news"), "job.delete", "job news"),
    (("/jobs run news",), "job.run", "job news"),
    (("/timezone Europe/Berlin",), "zone.choose", ""),
    (("pay", "/approve"), "approval.decide", ""),
    (("pay", "/deny"), "approval.decide", ""),
)


@asynccontextmanager
async def a_chat() -> AsyncIterator[GatewayProcess]:
    ways = Ways(jobs=setup(DEFAULT_PROFILE))
    async with a_process(agent_that_asks(), ways) as gateway:
        in_chat = replace(OPERATOR, owner=None)
        await gateway.container.job_module.service.create(NEWS, in_chat)
        yield gateway


@pytest.mark.parametrize(
    ("said", "action", "subject"), IN_CHAT, ids=[" ".join(said) for said, *_ in IN_CHAT]
)
async def test_a_command_in_a_chat_leaves_one_row(
    said: tuple[str, ...], action: str, subject: str
) -> None:
    async with a_chat() as gateway:
        if "news" in said[-1]:
            # The jobs of a chat belong to it.
            await gateway.container.job_module.service.create(
                replace(NEWS, slug="news"), await _of_chat()
            )
        for text in said:
            await gateway.say(text)
            await asyncio.sleep(5)
        entry = await only_entry(gateway.store)
    assert (entry.action, entry.result) == (action, "ok")
    assert entry.subject == subject or not subject
    assert who(entry) == ("person", "telegram/default/ann Ann", "", "telegram:ann")


async def _of_chat() -> Any:
    from tests.security.test_people import requester

    return requester("ann")


@pytest.mark.parametrize(
    "text", ["hello", "/help", "/status", "/jobs", "/queue", "/whoami", "/usage", "/approve",
             "/jobs pause nothing", "/timezone", "/timezone Nowhere", "/undo"],
)  # fmt: skip
async def test_messages_and_commands_that_change_nothing_leave_no_row(text: str) -> None:
    async with a_process() as gateway:
        await gateway.ask(text)
        assert await gateway.store.audit_entries() == []


async def test_the_heartbeat_is_changed_in_chats_with_a_row() -> None:
    async with beating() as gateway:
        for text in ("/heartbeat off", "/mute 1h", "/heartbeat add water the plants"):
            await gateway.ask(text)
        entries = await gateway.store.audit_entries()
    assert [one.action for one in reversed(entries)] == [
        "heartbeat.switch", "heartbeat.mute", "checklist.add",
    ]  # fmt: skip
    assert {one.subject for one in entries} == {"agent main"}
    assert {one.actor for one in entries} == {"telegram/default/ann Ann"}
    assert "plants" not in repr(entries)


async def test_a_change_in_a_chat_that_is_retried_leaves_a_row() -> None:
    store, clock = MemoryStore(), LoopClock()
    log = StoredAuditLog(store, clock, lambda: "n1", hide)
    chat_store = log.chat_store(bind(store, lambda: NodeId("n1")))
    with acts(ANN):
        await chat_store.retried.reset_session(session_of(), now=clock.now())
    assert (await only_entry(store)).action == "session.reset"


async def test_buttons_of_owners_leave_one_row() -> None:
    """An access request is decided; ownership takes two presses."""
    from tests.security.test_people import a_home

    async with a_home() as home:
        await home.says("eve", "let me in")
        data = home.asked("ann").buttons[0][0].data
        await home.presses("bob", data)
        await home.presses("ann", data.replace("guest", "ok"))
        assert await home.gateway.store.audit_entries() == []
        await home.presses("ann", data.replace("guest", "owner"))
        await home.presses("ann", data.replace("guest", "owner"))
        entry = await only_entry(home.gateway.store)
    assert (entry.action, entry.subject) == ("person.approve", "person telegram/default/eve")
    assert entry.after == {"name": "Eve", "verdict": "approve"}
    assert who(entry) == ("person", "telegram/default/ann Ann", "", "telegram:ann")


async def test_a_stop_is_answered_while_the_database_is_away() -> None:
    """Its row is written beside the answer."""
    async with a_process(agent_that_asks()) as gateway:
        await gateway.say("work")
        await asyncio.sleep(5)

        async def away(entry: AuditEntry) -> None:
            await asyncio.Event().wait()

        gateway.store.add_audit_entry = away  # type: ignore[method-assign]
        before = len(gateway.channel.texts())
        await gateway.say("/stop")
        await until(lambda: len(gateway.channel.texts()) > before, within_s=1)


# ---------------------------------------------------------------------------- what repeats


MANY: Final = 1_000
IN_GROUP: Final = Ways(groups=GroupPolicy.OPEN, access=DirectPolicy.OPEN)


def number_of(rows: list[AuditEntry]) -> int:
    """How many actions the rows stand for."""
    return sum(1 + cast("int", (one.after or {}).get("repeated", 0)) for one in rows)


@asynccontextmanager
async def a_busy_group() -> AsyncIterator[GatewayProcess]:
    """Ann's run works in a group, in which everybody may speak."""
    channel = RecordingChannel(trusted=False)
    async with a_process(agent_that_asks(), IN_GROUP, channels=(channel,)) as gateway:
        await in_group(gateway, "work", "ann")
        yield gateway


async def in_group(gateway: GatewayProcess, text: str, sender: str) -> None:
    said = message(text, chat="-100", sender=sender, peer=PeerKind.GROUP)
    await gateway.gateway.accept([said])
    await asyncio.sleep(0.01)


@pytest.mark.parametrize("people", [1, 300])
async def test_refused_stops_leave_few_rows_however_many_they_are(people: int) -> None:
    """One a minute for each person, the first at once; none is missing in the numbers."""
    async with a_busy_group() as gateway:
        for number in range(MANY):
            await in_group(gateway, "/stop", f"m{number % people}")
            if number == people:
                assert len(await gateway.store.audit_entries(limit=MANY)) == people
        minutes = MANY * 0.01 / 60 + 2
        await asyncio.sleep(180)
        rows = await gateway.store.audit_entries(limit=MANY)
        assert len(rows) <= people * minutes
        assert {one.result for one in rows} == {"not allowed: the runs are those of others"}
        assert number_of(rows) == MANY
        await in_group(gateway, "/stop", "ann")
        await asyncio.sleep(1)
        newest = (await gateway.store.audit_entries())[0]
    assert (newest.result, newest.after) == ("ok", {"runs": 1})


async def test_stops_that_find_nothing_leave_few_rows() -> None:
    async with a_process(ways=IN_GROUP) as gateway:
        for _ in range(1_000):
            await in_group(gateway, "/stop", "bob")
        await asyncio.sleep(180)
        rows = await gateway.store.audit_entries(limit=MANY)
    assert len(rows) == 2
    assert number_of(rows) == 1_000


async def test_refused_calls_leave_few_rows_and_accepted_ones_each_their_own() -> None:
    """Also when each call names something else."""
    store = MemoryStore()
    log = StoredAuditLog(store, LoopClock(), lambda: "n1", hide)
    control = log.control(StoreControl(store, LoopClock()))
    with acts(ANN):
        for number in range(MANY):
            with pytest.raises(NotFound):
                await control.people.revoke("telegram", "default", str(number))
            if number % 10 == 0:
                await control.people.allow_chat("telegram", "default", f"-{number}", allowed=True)
    await log.store_repeats(is_last=True)
    rows = await store.audit_entries(limit=MANY)
    refused = [one for one in rows if one.action == "person.revoke"]
    assert [one.subject for one in refused] == [
        f"person telegram/default/{n}" for n in (MANY - 1, 0)
    ]
    assert number_of(refused) == MANY
    assert len(rows) - len(refused) == MANY / 10


async def test_what_may_have_changed_something_is_never_combined() -> None:
    """An error of the database, or a bug, does not say that nothing has changed."""
    store = MemoryStore()
    control = audited(store)
    for error in (StoreUnavailable("away"), RuntimeError("a bug")):

        async def broken(*_given: object, error: Exception = error, **_more: object) -> None:
            raise error

        store.allow_chat = broken  # type: ignore[method-assign]
        for chat in range(5):
            with pytest.raises(type(error)):
                await control.people.allow_chat("telegram", "default", f"-{chat}", allowed=True)
    assert len(await store.audit_entries()) == 10


async def test_what_a_role_may_not_and_wrong_tokens_leave_no_row() -> None:
    """The guard logs them, some of many; nobody writes rows by them."""
    async with a_process() as gateway, a_browser(gateway) as browser:
        viewer, created = f"goclaw_{'v' * 43}", gateway.clock.now()
        token = Token("eve", AccessRole.VIEWER, reads_text=False, created_at=created)
        await gateway.store.add_token(token, secret_hash(viewer))
        for shown, status in ((viewer, {403}), ("wrong", {401, 429})):
            headers = {"authorization": f"Bearer {shown}", "accept": "*/*"}
            for _ in range(50):
                answer = await browser.delete("/api/web/sign-ins", headers=headers)
                assert answer.status_code in status
        assert await gateway.store.audit_entries() == []


async def test_what_repeats_is_stored_before_the_gateway_ends() -> None:
    async with a_process(ways=IN_GROUP) as gateway:
        for _ in range(5):
            await in_group(gateway, "/stop", "bob")
        await gateway.shut_down()
    last, first = await MemoryStore(gateway.database).audit_entries()
    assert (first.after, last.after) == ({}, {"repeated": 3})


# ---------------------------------------------------------------------------- the gateway itself


async def test_what_the_gateway_decides_by_itself_is_its_own() -> None:
    async with a_process(agent_that_asks()) as gateway:
        await gateway.say("pay")
        await asyncio.sleep(PAY.timeout_s + 200)
        entry = await only_entry(gateway.store)
        assert (entry.kind, entry.actor) == ("node", gateway.node())
        assert (entry.action, entry.subject) == ("approval.expire", "1 approval")


async def test_a_later_change_of_another_is_not_part_of_the_first_one() -> None:
    """A task that an operation starts is not that operation."""
    store = MemoryStore()
    control = audited(store)
    later: list[asyncio.Task[None]] = []
    allow = store.allow_chat

    async def also(*given: Any, **more: Any) -> None:
        await allow(*given, **more)
        if not later:
            later.append(
                asyncio.create_task(
                    control.people.allow_chat("telegram", "default", "-2", allowed=True)
                )
            )

    store.allow_chat = also  # type: ignore[method-assign]
    await control.people.allow_chat("telegram", "default", "-1", allowed=True)
    await asyncio.gather(*later)
    subjects = [one.subject for one in await store.audit_entries()]
    assert subjects == ["chat telegram/default/-2", "chat telegram/default/-1"]


async def test_who_signs_in_is_recorded() -> None:
    store = MemoryStore()
    log = StoredAuditLog(store, LoopClock(), lambda: "n1", hide)
    access = WebAccess("127.0.0.1", (), SECRET, lambda: LoopClock().now().timestamp())
    sign_ins = access.with_store(log.sign_ins(store)).sign_ins
    assert sign_ins is not None
    person = replace(ANN, kind=ActorKind.PERSON)
    cookie = await sign_ins.begin(person, "Firefox", method=SignInMethod.OPENID)
    with acts(person):
        await sign_ins.end(cookie)
    ended, begun = await store.audit_entries()
    assert (begun.action, ended.action) == ("sign_in.begin", "sign_in.end")
    assert begun.subject == ended.subject
    assert who(begun) == who(ended) == ("person", "ann", "admin", "192.0.2.1")
    assert cookie not in repr((begun, ended))
    assert SECRET not in repr((begun, ended))


# ---------------------------------------------------------------------------- append-only


@pytest.mark.real_time
@pytest.mark.parametrize(
    "statement",
    [
        "update audit set actor = 'nobody'",
        "update audit set result = result",
        "delete from audit",
        "delete from audit where at < now()",
        "truncate audit",
        "truncate audit cascade",
        "set goclaw.audit_kept_since = 'epoch'; delete from audit",
        "set goclaw.restores = 'yes'; delete from audit",
        "set goclaw.restores = 'no'; truncate audit",
        "set goclaw.audit_kept_since = ''; delete from audit",
        "merge into audit as a using (select 1) as b on true when matched then delete",
    ],
)
async def test_the_table_takes_new_rows_only(postgres_database: Database, statement: str) -> None:
    store = await postgres_database.open()
    log = StoredAuditLog(store, LoopClock(), lambda: "n1", hide)
    await log.record("job.edit", "job news", by=ANN)
    before = await store.audit_entries()
    with pytest.raises(Exception, match="can only be added"):
        await run_sql(postgres_database.address, statement)
    assert await store.audit_entries() == before
    await store.close()


@pytest.mark.real_time
async def test_retention_deletes_what_is_old_and_opens_the_table_to_nothing_else(
    postgres_database: Database,
) -> None:
    """Also on the connection that retention has used."""
    store = await postgres_database.open(max_size=1)
    log = StoredAuditLog(store, LoopClock(), lambda: "n1", hide)
    await log.record("job.edit", "job old", by=ANN)
    later = LoopClock().now() + timedelta(days=1)
    for subject in ("job young", "job younger"):
        old = (await store.audit_entries())[-1]
        await store.add_audit_entry(replace(old, at=later, subject=subject))
    assert await store.sweep_audit(before=later) == 1
    left = await store.audit_entries()
    assert [one.subject for one in left] == ["job younger", "job young"]
    with pytest.raises(Exception, match="can only be added"):
        await store._pool.fetch("delete from audit")
    assert await store.audit_entries() == left
    await store.close()
