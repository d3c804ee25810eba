"""Heartbeats over the socket: what goes in comes out, errors included (SPEC HB-9, HB-11, HB-13)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goclaw_py.core import errors
from goclaw_py.core.budget import Budget
from goclaw_py.core.ids import AgentName, HeartbeatRunId
from goclaw_py.core.targets import Route
from goclaw_py.operations.heartbeats.answers import HeartbeatAnswer, answer_of
from goclaw_py.operations.heartbeats.operations import HeartbeatService
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy, LastChat, NoTarget
from goclaw_py.schedule.heartbeat.models import (
    HeartbeatRunStatus,
    HeartbeatStarted,
    NoHeartbeat,
    Skip,
)
from goclaw_py.schedule.heartbeat.status_texts import why
from goclaw_py.schedule.heartbeat.views import DryRunReport, HeartbeatView
from goclaw_py.web.api.wire import dump, read
from tests.unit.web import fake_heartbeats as fake
from tests.unit.web.fake_heartbeats import view as made_view
from tests.unit.web.harness import Api, connected

NOBODY = AgentName("nobody")


@dataclass(frozen=True, slots=True)
class Both:
    """The desk of a gateway, and the same from outside."""

    service: fake.FakeHeartbeats
    heartbeats: HeartbeatService


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Both]:
    async with connected(tmp_path) as (made, remote):
        yield Both(made.control.hearts, remote.heartbeats)


# ---------------------------------------------------------------------------- what is done


@pytest.mark.real_time
async def test_heartbeats_are_seen_as_they_are(both: Both) -> None:
    """SPEC HB-9, OPS-4."""
    service, remote = both.service, both.heartbeats
    assert await remote.view(fake.MAIN) == await service.view(fake.MAIN)
    assert await remote.agents() == (fake.MAIN, fake.HELPER)
    assert await remote.log(None) == [fake.SKIPPED, fake.OK, fake.DEAD]
    assert await remote.log(fake.MAIN, limit=1) == [fake.SKIPPED]
    assert await remote.log(fake.MAIN, outcome="skipped:unreadable") == [fake.SKIPPED]
    assert await remote.heartbeat_run(fake.OK.id) == fake.OK
    with pytest.raises(errors.NotFound, match="no heartbeat run '019b-unknown'"):
        await remote.heartbeat_run(HeartbeatRunId("019b-unknown"))
    assert await remote.dry_run(fake.MAIN) == service.report
    route = Route(None, "a", "b")
    service.report = DryRunReport(HeartbeatRunStatus.SKIPPED, Skip.EMPTY, "x", "", route)
    assert await remote.dry_run(fake.MAIN) == service.report


@pytest.mark.real_time
async def test_heartbeats_are_switched_muted_and_run(both: Both) -> None:
    """SPEC HB-11."""
    service, remote = both.service, both.heartbeats
    for on in (False, True, None):
        assert await remote.switch(fake.HELPER, on=on) == await service.view(fake.HELPER)
        assert service.views[fake.HELPER].heartbeat.switched is on
    for until in (fake.AT + timedelta(hours=2, microseconds=1), None):
        assert await remote.mute(fake.MAIN, until) == await service.view(fake.MAIN)
        assert service.views[fake.MAIN].heartbeat.muted_until == until
    assert await remote.run_now(fake.MAIN) == HeartbeatStarted(fake.RUNNING.id)
    for refused in NoHeartbeat:
        service.hand = refused
        assert await remote.run_now(fake.MAIN) is refused


@pytest.mark.real_time
async def test_events_and_the_checklist_go_there_and_back(both: Both) -> None:
    """SPEC HB-13."""
    service, remote = both.service, both.heartbeats
    told = await remote.add_event(fake.MAIN, "Grüße\n\u2028", now=True)
    assert ("add_event", fake.MAIN, "Grüße\n\u2028", True) in service.calls
    assert await remote.events(fake.MAIN) == [told] == service.told[fake.MAIN]
    assert await remote.checklist(fake.MAIN) == await service.checklist(fake.MAIN)
    added = await remote.add_item(fake.MAIN, "every 2h: ä")
    assert [item.text for item in added.items] == ["look at the mail\x1b[2J", "every 2h: ä"]
    assert [item.text for item in (await remote.complete_item(fake.MAIN, 1)).items] == [
        "every 2h: ä"
    ]
    assert (await remote.write_checklist(fake.MAIN, "- [ ] new\n")).text == "- [ ] new\n"


@pytest.mark.real_time
async def test_a_checklist_that_changed_meanwhile_is_not_changed_from_outside(both: Both) -> None:
    """SPEC HB-3."""
    service, remote = both.service, both.heartbeats
    seen = await remote.checklist(fake.MAIN)
    await service.add_item(fake.MAIN, "theirs")
    with pytest.raises(errors.ChecklistChanged):
        await remote.write_checklist(fake.MAIN, "- [ ] mine\n", version=seen.version)
    with pytest.raises(errors.ChecklistChanged):
        await remote.complete_item(fake.MAIN, 1, version=seen.version)
    assert len(service.texts[fake.MAIN]) == 2
    now = (await remote.checklist(fake.MAIN)).version
    assert now == (await service.checklist(fake.MAIN)).version != seen.version
    mine = await remote.write_checklist(fake.MAIN, "- [ ] mine\n", version=now)
    assert not (await remote.complete_item(fake.MAIN, 1, version=mine.version)).items


@pytest.mark.real_time
async def test_refusals_are_the_same_from_outside(both: Both) -> None:
    service, remote = both.service, both.heartbeats
    with pytest.raises(errors.UnknownAgent) as unknown:
        await remote.view(NOBODY)
    assert unknown.value.agent == "nobody"
    for _ in range(20):
        await service.add_event(fake.MAIN, "x", now=False)
    with pytest.raises(errors.TooManyEvents) as full:
        await remote.add_event(fake.MAIN, "x", now=False)
    assert (full.value.agent, full.value.most) == ("main", 20)
    with pytest.raises(errors.HeartbeatError, match="needs a text"):
        await remote.add_event(fake.MAIN, " \n", now=False)
    with pytest.raises(errors.HeartbeatError, match="at most 4000"):
        await remote.add_event(fake.MAIN, "x" * 4001, now=False)
    with pytest.raises(errors.BadChecklist, match="no item 7"):
        await remote.complete_item(fake.MAIN, 7)
    service.failure = errors.StoreUnavailable("the database does not answer")
    with pytest.raises(errors.StoreUnavailable):
        await remote.view(fake.MAIN)


@pytest.mark.real_time
async def test_what_is_too_long_is_an_error_about_the_heartbeat(both: Both) -> None:
    for text in ("x" * 100_001, "x" * 10_000_000):
        with pytest.raises(errors.HeartbeatError):
            await both.heartbeats.add_event(fake.MAIN, text, now=False)
        for change in (both.heartbeats.add_item, both.heartbeats.write_checklist):
            with pytest.raises(errors.BadChecklist):
                await change(fake.MAIN, text)
    assert both.service.calls == []


@pytest.mark.real_time
async def test_what_no_agent_can_be_called_is_not_asked_for(both: Both) -> None:
    remote = both.heartbeats
    for name in ("", ".", "..", "../x", "a?b#c", "a/b", "A", "ä", "a\n", "x" * 65):
        for question in (remote.view, remote.events, remote.run_now, remote.checklist):
            with pytest.raises(errors.UnknownAgent) as unknown:
                await question(AgentName(name))
            assert unknown.value.agent == name
    assert both.service.calls == []


# ---------------------------------------------------------------------------- on the wire


@pytest.mark.parametrize("policy", [
    HeartbeatPolicy(), replace(fake.POLICY, target=fake.CHAT),
    replace(fake.POLICY, target=replace(fake.CHAT, thread=None)),
    replace(fake.POLICY, target=NoTarget.NONE, interval=None),
    replace(fake.POLICY, target=LastChat("telegram", "work")),
    replace(fake.POLICY, day=Budget(), run=Budget(turns=3, usd=Decimal("0.10"))),
    replace(fake.POLICY, interval=timedelta(days=366, milliseconds=1)),
])  # fmt: skip
def test_any_policy_comes_back_as_it_was(policy: HeartbeatPolicy) -> None:
    seen = replace(made_view(fake.MAIN), policy=policy)
    assert read(HeartbeatView, dump(HeartbeatAnswer, answer_of(seen))) == seen


# ---------------------------------------------------------------------------- programs


async def test_a_program_reads_how_heartbeats_stand_and_why(api: Api) -> None:
    """SPEC OPS-4."""
    status, main = await api("GET", "/heartbeats/main")
    state = "on, every 30 minutes, 08:00\u201322:00 Europe/Berlin"
    assert (status, main["on"], main["state"]) == (200, True, state)
    assert tuple(main["why"]) == why(api.control.hearts.views[fake.MAIN])
    assert (await api("GET", "/heartbeats"))[1][0] == main
    assert (await api("GET", "/agents"))[1] == [{"name": "main"}, {"name": "helper"}]
    assert (await api("PUT", "/heartbeats/main/switch", {"on": False}))[1]["on"] is False


async def test_a_program_mutes_for_a_while_or_until_a_time(api: Api) -> None:
    path = "/heartbeats/main/mute"
    for body, until in (
        ({"for": "90m"}, fake.AT + timedelta(minutes=90)),
        ({"until": "2026-03-03T12:00:00+01:00"}, datetime(2026, 3, 3, 11, tzinfo=UTC)),
        ({"until": None}, None),
    ):
        assert (await api("PUT", path, body))[0] == 200
        assert api.control.hearts.views[fake.MAIN].heartbeat.muted_until == until
    for wrong in ({}, {"for": "2h", "until": None}):
        error = (await api("PUT", path, wrong))[1]["error"]
        assert '{"until": null} ends a mute' in error
    # As a program reads them.
    described = (await api.client.get("/openapi.json")).json()
    examples = described["components"]["schemas"]["MuteBody"]["examples"]
    assert len(examples) == 2
    for example in examples:
        assert (await api("PUT", path, example))[0] == 200


async def test_an_event_is_made_and_listed(api: Api) -> None:
    """SPEC HB-13."""
    path = "/agents/main/events"
    status, made = await api("POST", path, {"text": "red", "now": True})
    assert (status, made["text"], made["agent"]) == (201, "red", "main")
    assert ("add_event", fake.MAIN, "red", True) in api.control.hearts.calls
    assert (await api("GET", path))[1] == [made]
    for _ in range(19):
        await api("POST", path, {"text": "red"})
    status, full = await api("POST", path, {"text": "one more"})
    assert (status, full["kind"]) == (409, "TooManyEvents")
    assert full["facts"] == {"agent": "main", "most": 20}


async def test_a_checklist_is_its_text_and_its_open_items(api: Api) -> None:
    """SPEC HB-3."""
    path = "/heartbeats/main/checklist"
    answers = [
        await api("GET", path),
        await api("POST", f"{path}/items", {"text": "every 2h: x"}),
        await api("POST", f"{path}/items/1/done"),
        await api("PUT", path, {"text": "- [ ] every 2h: x"}),
    ]
    fields = {"text", "items", "version"}
    assert [(status, set(found)) for status, found in answers] == [(200, fields)] * 4
    assert [item["every"] for item in answers[-1][1]["items"]] == ["every 2h"]


@pytest.mark.parametrize(("method", "path", "body"), [
    ("PUT", "/heartbeats/main/checklist", {"text": "- [ ] mine"}),
    ("POST", "/heartbeats/main/checklist/items/1/done", {}),
])  # fmt: skip
async def test_a_program_that_names_a_version_changes_no_other(
    method: str, path: str, body: dict[str, str], api: Api
) -> None:
    version = (await api("GET", "/heartbeats/main/checklist"))[1]["version"]
    texts = api.control.hearts.texts
    before = texts[fake.MAIN][:]
    for another in ("", "0" * 32):
        status, refused = await api(method, path, {**body, "version": another})
        assert (status, refused["kind"], texts[fake.MAIN]) == (409, "ChecklistChanged", before)
    status, found = await api(method, path, {**body, "version": version})
    assert (status, found["version"] != version) == (200, True)


SWITCH, MUTE = "PUT /heartbeats/main/switch", "PUT /heartbeats/main/mute"
EVENTS, LIST = "POST /agents/main/events", "/heartbeats/main/checklist"
REFUSED: list[tuple[str, object]] = [
    ("GET /heartbeat-runs/%2e%2e", None),
    *((f"GET /heartbeats/{name}", None) for name in ("%2e%2e", "a%00", "a%0A", "Main")),
    *((f"GET /heartbeats/main/runs?{asked}", None) for asked in ("limit=0", "limit=1001")),
    ("GET /heartbeats/main/runs?outcome=%00", None),
    *((SWITCH, body) for body in ({}, {"on": "yes"}, {"on": 1}, {"on": True, "off": True})),
    *((MUTE, {"for": text}) for text in (None, "", "soon", "0s", "-2h", "9999999d", 7200)),
    *((MUTE, {}), (MUTE, {"for": "9" * 250 + "h"}), (MUTE, {"for": "2h", "until": None})),
    *((MUTE, {"until": at}) for at in ("2026-03-03T12:00:00", "2020-01-01T00:00:00Z")),
    (MUTE, {"until": "9999-12-31T23:59:59-14:00"}),
    *((EVENTS, {"text": text}) for text in ("", " \n\t", "x" * 4001, "x" * 100_001, 7)),
    *((EVENTS, {"text": "x", "now": "yes"}), (EVENTS, {"text": "x", "wake": True})),
    *((f"POST {LIST}/items", {"text": ""}), (f"PUT {LIST}", {"text": None})),
    *((f"PUT {LIST}", {"text": "x", "version": version}) for version in (7, "x" * 65)),
    (f"POST {LIST}/items/1/done", {"seen": "x"}),
    *((f"POST {LIST}/items/{n}/done", None) for n in (7, 0, -1, "one", 10**30)),
]


async def test_a_bad_request_is_refused_in_words(api: Api) -> None:
    for line, body in REFUSED:
        method, path = line.split()
        status, answer = await api(method, path, body)
        assert (status, bool(answer["error"])) == (422, True), (line, str(body)[:99], answer)
    hearts = api.control.hearts
    assert (hearts.views, hearts.told) == (fake.FakeHeartbeats().views, fake.FakeHeartbeats().told)


def test_no_duration_breaks_the_server() -> None:
    api = Api()

    @given(st.text())
    @settings(deadline=None, max_examples=30)
    def mute(text: str) -> None:
        status, _ = asyncio.run(api("PUT", "/heartbeats/main/mute", {"for": text}))
        assert status in (200, 422)

    mute()
