"""``POST /api/sessions/{key}/messages``, and schedules among the sessions (SPEC CRON-19)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from goclaw_py.jobs.models import Prompt
from goclaw_py.jobs.schedule import Every
from goclaw_py.model.errors import NoGateway, NotAChat, NotFound, SessionBusy, StoreUnavailable
from goclaw_py.model.ids import JobId, SessionKey
from goclaw_py.model.pagination import Cursor
from goclaw_py.model.session_keys import job_session
from goclaw_py.ports.control import Submitted
from goclaw_py.ports.jobs import JobDraft, Requester
from goclaw_py.ports.store import Session
from tests.support.apps import lend_api
from tests.unit.web import fakes
from tests.unit.web.fakes import FakeControl
from tests.unit.web.harness import connected

PATH = f"/api/sessions/{fakes.SESSION}/messages"


async def post(control: FakeControl, path: str, body: object) -> tuple[int, Any]:
    transport = httpx.ASGITransport(lend_api(control))
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        answer = await client.post(path, json=body)
    return answer.status_code, answer.json()


async def test_a_message_is_accepted() -> None:
    control = FakeControl()
    status, answer = await post(control, f"{PATH}?queue=1", {"prompt": "hello"})
    expected = {"accepted": True, "sessionId": fakes.SESSION, "runId": fakes.RUN_ID}
    assert (status, answer) == (200, expected)
    assert control.calls == [("send_message", fakes.SESSION, "hello", True)]
    await post(control, f"{PATH}?queue=1", {"message": "you"})
    assert control.calls[-1] == ("send_message", fakes.SESSION, "you", True)


async def test_a_busy_session_says_so_unless_the_message_may_wait() -> None:
    status, answer = await post(FakeControl(), PATH, {"prompt": "hello"})
    assert status == 409
    assert answer == {
        "error": "Session is busy processing another message",
        "code": "SESSION_BUSY",
    }


async def test_a_session_that_is_not_stored_is_not_found() -> None:
    status, answer = await post(FakeControl(), "/api/sessions/nobody/messages", {"prompt": "x"})
    assert (status, list(answer)) == (404, ["error"])


async def test_a_session_without_a_chat_has_nobody_to_answer() -> None:
    path = f"/api/sessions/{fakes.BARE.key.replace('%', '%25').replace('?', '%3F')}".replace(
        "#", "%23"
    )
    status, answer = await post(FakeControl(), f"{path}/messages", {"prompt": "x"})
    assert (status, answer["code"]) == (409, "NOT_A_CHAT")


async def test_what_cannot_be_stored_has_failed() -> None:
    control = FakeControl()
    control.failure = StoreUnavailable("the database does not answer")
    status, answer = await post(control, PATH, {"prompt": "x"})
    assert (status, answer["code"]) == (500, "DISPATCH_FAILED")


@pytest.mark.parametrize("body", [{}, {"prompt": ""}, {"prompt": " \n"}, {"message": ""}])
async def test_a_message_says_something(body: object) -> None:
    assert await post(FakeControl(), PATH, body) == (400, {"error": "prompt is required"})


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"text": "x"}, "text: unknown key"),
        ({"prompt": "x", "quue": True}, "quue: unknown key"),
        ({"prompt": 5}, "prompt: must be a text"),
        ({"message": 5}, "message: must be a text"),
        ({"prompt": "a", "message": "b"}, "prompt: give prompt or message, not both"),
        ({"prompt": "", "message": "b"}, "prompt: give prompt or message, not both"),
    ],
)
async def test_what_a_message_says_is_one_text(body: object, text: str) -> None:
    control = FakeControl()
    assert await post(control, PATH, body) == (400, {"error": text})
    assert control.calls == []


@pytest.mark.real_time
async def test_the_errors_of_a_message_are_raised_again_on_the_other_side(tmp_path: Path) -> None:
    async with connected(tmp_path) as (made, remote):
        assert await remote.send_message(fakes.SESSION, "x", queue=True) == Submitted(
            fakes.SESSION, fakes.RUN_ID
        )
        with pytest.raises(SessionBusy, match="Session is busy"):
            await remote.send_message(fakes.SESSION, "x", queue=False)
        with pytest.raises(NotAChat):
            await remote.send_message(fakes.BARE.key, "x", queue=False)
        with pytest.raises(NotFound):
            await remote.send_message("nobody", "x", queue=True)
        made.control.failure = StoreUnavailable("away")
        with pytest.raises(StoreUnavailable, match="away"):
            await remote.send_message(fakes.SESSION, "x", queue=True)
        made.control.failure = None
        made.control.gateway = False
        with pytest.raises(NoGateway):
            await remote.send_message(fakes.SESSION, "x", queue=True)


class Listing(FakeControl):
    """Has the sessions that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.listed: list[Session] = []

    async def sessions(self, *, limit: int = 50, before: Cursor | None = None) -> list[Session]:
        return self.listed[:limit]


async def test_sessions_of_jobs_show_slug_and_next_run() -> None:
    control = Listing()
    every = JobDraft(Every(timedelta(hours=2)), Prompt("x"), slug="standup")
    job = await control.jobs.create(every, Requester(None))
    gone = job_session(job.spec.agent, JobId("019c0000-0000-7000-8000-000000000000"))
    keys = (job_session(job.spec.agent, job.id), gone, fakes.SESSION, SessionKey("cron:standup"))
    control.listed = [replace(fakes.BARE, key=key) for key in keys]
    transport = httpx.ASGITransport(lend_api(control))
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        answer = (await client.get("/api/sessions")).json()
    shown = [(one["scheduleSlug"], one["scheduleNextRun"]) for one in answer]
    assert shown == [("standup", "2026-01-02T14:00:00.000Z"), *[(None, None)] * 3]
    assert answer[0]["key"] == keys[0]
