"""``/api/approvals`` and ``/api/grants``: questions about tool calls (SPEC AGENT-11)."""

from __future__ import annotations

import pytest

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.core.approvals import Decision
from goclaw_py.core.errors import ApprovalClosed, NotAccepted, NotFound
from goclaw_py.core.ids import AgentName
from goclaw_py.records import ApprovalQuery
from tests.unit.web.fake_approvals import ANSWERED, GRANT, IN_SESSION, PAY, WIPE
from tests.unit.web.fake_names import KEY, TOPIC
from tests.unit.web.harness import Api

MAIN = AgentName("main")


@pytest.mark.real_time
async def test_everything_comes_back_as_it_was(remote: RemoteControl) -> None:
    assert await remote.approvals.list() == [PAY, WIPE]
    everything = ApprovalQuery(KEY, waiting=False, limit=3)
    assert await remote.approvals.list(everything) == [PAY, WIPE, ANSWERED]
    assert await remote.approvals.list(ApprovalQuery(before=PAY.cursor)) == [WIPE]
    assert await remote.approvals.get("9f8") == PAY
    done = await remote.approvals.decide("9f8", Decision.SESSION)
    assert (done.id, done.decision) == (PAY.id, Decision.SESSION)
    assert await remote.approvals.grants() == [GRANT, IN_SESSION]
    await remote.approvals.revoke(MAIN, "pay")
    await remote.approvals.revoke(MAIN, "wipe", KEY)
    assert await remote.approvals.grants() == []


@pytest.mark.real_time
async def test_a_selection_that_the_route_does_not_have_is_refused(remote: RemoteControl) -> None:
    """Not left out: the list would be another one."""
    with pytest.raises(TypeError, match="asked_in"):
        await remote.approvals.list(ApprovalQuery(KEY, asked_in=TOPIC))


@pytest.mark.real_time
async def test_an_answer_that_does_not_count_raises_the_same_error(remote: RemoteControl) -> None:
    with pytest.raises(NotFound):
        await remote.approvals.decide("9f", Decision.ONCE)
    with pytest.raises(ApprovalClosed, match="answered already"):
        await remote.approvals.decide(ANSWERED.id, Decision.ONCE)
    with pytest.raises(NotAccepted, match="can be happened, again, skip, not once"):
        await remote.approvals.decide(WIPE.id, Decision.ONCE)
    with pytest.raises(NotFound, match="shell"):
        await remote.approvals.revoke(MAIN, "shell")


@pytest.mark.parametrize(("body", "status", "text"), [
    ({"decision": "once"}, 409, "answered already"),
    ({"decision": "skip"}, 422, "can be once, session, always, deny, not skip"),
    ({"decision": "expired"}, 422, "decision: must be"),
    ({"decision": "yes"}, 422, "decision: must be"),
    ({}, 422, "decision: is required"),
    ({"decision": "once", "by": "me"}, 422, "by: unknown key"),
])  # fmt: skip
async def test_a_bad_answer_says_why(body: object, status: int, text: str, api: Api) -> None:
    got, answer = await api("POST", f"/approvals/{ANSWERED.id}/decide", body)
    assert got == status
    assert text in answer["error"]
    assert answer.get("code", "") == ("APPROVAL_CLOSED" if status == 409 else "")
