"""``POST /api/sessions/{key}/messages``, and schedules among the sessions (SPEC CRON-19)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from urllib.parse import quote

import pytest

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.core.errors import NoGateway, NotAChat, NotFound, SessionBusy, StoreUnavailable
from goclaw_py.core.ids import JobId, SessionKey
from goclaw_py.core.session_keys import job_session
from goclaw_py.operations.jobs.models import JobDraft, Requester
from goclaw_py.operations.sessions.operations import Submitted
from goclaw_py.records import Session
from goclaw_py.schedule.jobs.models import Prompt
from goclaw_py.schedule.jobs.schedule import Every
from tests.unit.web import fakes
from tests.unit.web.harness import Api, Gateway

PATH = f"/sessions/{fakes.SESSION}/messages"
HELLO = {"prompt": "hello"}


async def test_a_message_is_accepted(api: Api) -> None:
    expected = {"accepted": True, "sessionId": fakes.SESSION, "runId": fakes.RUN_ID}
    assert await api("POST", f"{PATH}?queue=1", HELLO) == (200, expected)
    await api("POST", f"{PATH}?queue=1", {"message": "you"})
    sent = [("send_message", fakes.SESSION, text, True) for text in ("hello", "you")]
    assert api.control.calls == sent


async def test_a_message_that_is_not_accepted_says_why(api: Api) -> None:
    busy = {"error": "Session is busy processing another message", "code": "SESSION_BUSY"}
    assert await api("POST", PATH, HELLO) == (409, busy)
    status, answer = await api("POST", "/sessions/nobody/messages", HELLO)
    assert (status, list(answer)) == (404, ["error"])
    status, answer = await api("POST", f"/sessions/{quote(fakes.BARE.key)}/messages", HELLO)
    assert (status, answer["code"]) == (409, "NOT_A_CHAT")
    api.control.failure = StoreUnavailable("the database does not answer")
    status, answer = await api("POST", PATH, HELLO)
    assert (status, answer["code"]) == (500, "DISPATCH_FAILED")


@pytest.mark.parametrize(("body", "text"), [
    ({}, "prompt is required"), ({"prompt": ""}, "prompt is required"),
    ({"prompt": " \n"}, "prompt is required"), ({"message": ""}, "prompt is required"),
    ({"text": "x"}, "text: unknown key"),
    ({"prompt": "x", "quue": True}, "quue: unknown key"),
    ({"prompt": 5}, "prompt: must be a text"), ({"message": 5}, "message: must be a text"),
    ({"prompt": "a", "message": "b"}, "prompt: give prompt or message, not both"),
    ({"prompt": "", "message": "b"}, "prompt: give prompt or message, not both"),
])  # fmt: skip
async def test_what_a_message_says_is_one_text(body: object, text: str, api: Api) -> None:
    assert await api("POST", PATH, body) == (400, {"error": text})
    assert api.control.calls == []


@pytest.mark.real_time
async def test_the_errors_of_a_message_are_raised_again_on_the_other_side(
    made: Gateway, remote: RemoteControl
) -> None:
    submitted = Submitted(fakes.SESSION, fakes.RUN_ID)
    assert await remote.sessions.send_message(fakes.SESSION, "x", queue=True) == submitted
    with pytest.raises(SessionBusy, match="Session is busy"):
        await remote.sessions.send_message(fakes.SESSION, "x", queue=False)
    with pytest.raises(NotAChat):
        await remote.sessions.send_message(fakes.BARE.key, "x", queue=False)
    with pytest.raises(NotFound):
        await remote.sessions.send_message("nobody", "x", queue=True)
    made.control.failure = StoreUnavailable("away")
    with pytest.raises(StoreUnavailable, match="away"):
        await remote.sessions.send_message(fakes.SESSION, "x", queue=True)
    made.control.failure = None
    made.control.gateway = False
    with pytest.raises(NoGateway):
        await remote.sessions.send_message(fakes.SESSION, "x", queue=True)


async def test_sessions_of_jobs_show_next_run(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    every = JobDraft(Every(timedelta(hours=2)), Prompt("x"), slug="standup")
    job = await api.control.jobs.create(every, Requester(None))
    gone = job_session(job.spec.agent, JobId("019c0000-0000-7000-8000-000000000000"))
    keys = (job_session(job.spec.agent, job.id), gone, fakes.SESSION, SessionKey("cron:standup"))

    async def listed(*_asked: object) -> list[Session]:
        return [replace(fakes.BARE, key=key) for key in keys]

    monkeypatch.setattr(fakes.FakeSessions, "list", listed)
    _, answer = await api("GET", "/sessions")
    shown = [(one["scheduleSlug"], one["scheduleNextRun"]) for one in answer]
    assert shown == [("standup", "2026-01-02T14:00:00.000Z"), *[(None, None)] * 3]
    assert answer[0]["key"] == keys[0]
