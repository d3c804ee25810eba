"""``/api/sessions`` and ``/api/names`` (SPEC OPS-2, OPS-4, OPS-8, OPS-9)."""

from __future__ import annotations

from contextlib import suppress

import pytest

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.errors import NotAccepted, NotAChat, NotFound, NotRewindable, SessionBusy
from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.operations.sessions.operations import SessionFork, Submitted
from goclaw_py.records import SessionQuery, SessionState
from goclaw_py.scheduler.views import StopReport
from tests.unit.web import fakes
from tests.unit.web.harness import Gateway

pytestmark = pytest.mark.real_time


async def test_everything_comes_back_as_it_was(made: Gateway, remote: RemoteControl) -> None:
    assert await remote.sessions.list() == [fakes.FULL, fakes.BARE]
    wanted = SessionQuery(
        agent=AgentName("a b&c"), channel="telegram", state=SessionState.WAITING, search="conso"
    )
    assert await remote.sessions.list(wanted) == [fakes.FULL]
    assert await remote.sessions.list(SessionQuery(before=fakes.FULL.cursor)) == [fakes.BARE]
    assert await remote.sessions.queue("console") == fakes.QUEUE
    # One more than was asked for tells whether there is another page.
    first, second, third, _ = made.control.calls
    assert first == ("sessions", SessionQuery(limit=51))
    assert second == (
        "sessions",
        SessionQuery(
            agent=wanted.agent,
            channel="telegram",
            state=SessionState.WAITING,
            search="conso",
            limit=51,
        ),
    )
    assert third == ("sessions", SessionQuery(limit=51, before=fakes.FULL.cursor))


async def test_sessions_and_people_are_named(made: Gateway, remote: RemoteControl) -> None:
    made.control.named = KnownNames({fakes.LOCAL: "Plans"})
    keys = {fakes.SESSION, "telegram/default/42"}
    assert (await remote.sessions.names(keys))[fakes.SESSION] == "Plans"


async def test_everything_that_can_be_done_is_done(made: Gateway, remote: RemoteControl) -> None:
    stopped = await remote.sessions.stop(fakes.SESSION, everything=True)
    again = await remote.sessions.stop(fakes.SESSION, everything=False)
    await remote.sessions.reset(fakes.SESSION)
    assert await remote.sessions.rename(fakes.SESSION, "Plans") == "Plans"
    await remote.sessions.delete(fakes.SESSION)
    fork = await remote.sessions.fork(fakes.SESSION)
    sent = await remote.sessions.send_message(fakes.SESSION, "hello", queue=True)
    assert (stopped.stopped, len(stopped.dropped)) == ((fakes.RUN_ID,), 2)
    assert again == StopReport(already_stopping=True)
    assert fork == SessionFork(fakes.FORK, fakes.SESSION, 2, "fork-1")
    assert sent == Submitted(fakes.SESSION, fakes.RUN_ID)
    assert made.control.calls == [
        ("stop", fakes.SESSION, True),
        ("stop", fakes.SESSION, False),
        ("reset", fakes.SESSION),
        ("session", fakes.SESSION),
        ("rename", fakes.SESSION, "Plans"),
        ("session", fakes.SESSION),
        ("delete", fakes.SESSION),
        ("session", fakes.SESSION),
        ("fork", fakes.SESSION, None),
        ("send_message", fakes.SESSION, "hello", True),
    ]


async def test_what_cannot_be_done_raises_the_same_error(remote: RemoteControl) -> None:
    with pytest.raises(NotAccepted, match="a title has at most 80 characters, not 81"):
        await remote.sessions.rename(fakes.SESSION, "x" * 81)
    with pytest.raises(NotAChat):
        await remote.sessions.delete(fakes.BARE_KEY)
    with pytest.raises(NotRewindable, match="run 0190-zzzz added nothing"):
        await remote.sessions.fork(fakes.SESSION, at="0190-zzzz")
    with pytest.raises(SessionBusy):
        await remote.sessions.send_message(fakes.SESSION, "hello", queue=False)


@pytest.mark.parametrize("key", [fakes.SESSION, fakes.BARE.key, "agent:main:x/history/y"])
async def test_a_session_key_of_any_characters_arrives_whole(
    made: Gateway, remote: RemoteControl, key: str
) -> None:
    """SPEC IO-7: keys hold colons; those of the API hold what their caller likes."""
    assert await remote.sessions.history(SessionKey(key), limit=9) == fakes.HISTORY
    assert made.control.calls == [("history", key, 9, False)]
    with suppress(NotFound):
        await remote.sessions.queue(key)
    assert made.control.calls[-1] == ("queue", key)
    assert await remote.sessions.asides(SessionKey(key), limit=9) == fakes.ASIDES
    assert made.control.calls[-1:] == [("asides", key, 9)]
    if "history" not in key:
        assert (await remote.sessions.get(key)).key == key
