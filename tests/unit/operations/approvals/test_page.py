"""The page of tool calls that need an approval (SPEC AGENT-11, OPS-3)."""

from __future__ import annotations

from dataclasses import replace

from goclaw_py.core.approvals import Decision
from goclaw_py.scheduler.operator_warnings import OperatorWarning
from goclaw_py.scheduler.views import Backlog
from tests.unit.web import fakes
from tests.unit.web.fake_approvals import ANSWERED, PAY, WIPE
from tests.unit.web.fake_names import KEY
from tests.unit.web.fakes import FakeControl
from tests.unit.web.pages.conftest import ORIGIN, Browser

PAGE = "/approvals"


async def test_what_waits_is_shown_with_its_answers(browser: Browser) -> None:
    text = await browser.says(PAGE, "pay", '{"to": "Bob', "Did it take effect?", KEY)
    for decision in (*PAY.request.decisions, *WIPE.request.decisions):
        assert text.count(f'name="decision" value="{decision}"') == 1
    assert "✅ Always allowed by Ann" in text
    assert f'id="approval-{ANSWERED.id}"' in text


async def test_who_asks_and_for_what_is_shown(browser: Browser) -> None:
    facts = ("group “Family”", "<b>pay</b> Bob", "allowed 2 times, denied 1 time", "bills")
    await browser.says(PAGE, "(guest)", *facts)
    raw = await browser.get(PAGE)
    assert "<b>pay</b>" not in raw.text


async def test_a_tool_is_always_allowed_only_after_a_look_at_the_rule(
    browser: Browser, control: FakeControl
) -> None:
    always = {"id": PAY.id, "decision": "always"}
    answer = await browser.post(f"{PAGE}/decide", data=always, headers=ORIGIN)
    assert answer.status_code == 200
    assert "Agent main may call pay without asking" in answer.text
    assert 'name="rule" value="pay"' in answer.text
    assert control.questions.asked[0].decision is None
    await browser.refuses(f"{PAGE}/decide", 422, "“always” adds this rule", rule="wipe", **always)
    await browser.leads(f"{PAGE}/decide", f"{PAGE}?notice=late", id="gone", decision="always")
    await browser.leads(f"{PAGE}/decide", f"{PAGE}?notice=allowed+pay", rule="pay", **always)
    assert control.questions.asked[0].decision is Decision.ALWAYS


async def test_a_question_of_the_chat_leads_back_to_the_chat(browser: Browser) -> None:
    """Found by use: Back led to the list of approvals."""
    always = {"id": PAY.id, "decision": "always", "name": "trip"}
    answer = await browser.post(f"{PAGE}/decide", data=always, headers=ORIGIN)
    assert 'href="/chat?name=trip">Back' in answer.text
    assert 'name="name" value="trip"' in answer.text
    back = "/chat?name=trip&notice=allowed+pay"
    await browser.leads(f"{PAGE}/decide", back, rule="pay", **always)
    await browser.leads(f"{PAGE}/decide", "/chat?name=trip&notice=late", rule="pay", **always)


async def test_an_answered_call_has_its_arguments_in_words(
    browser: Browser, control: FakeControl
) -> None:
    request = replace(ANSWERED.request, arguments='{"to": "Bob", "days": [1, 2]}')
    control.questions.asked = [replace(ANSWERED, request=request)]
    said = await browser.says(PAGE, "<small>to: Bob, days: [1, 2]</small>")
    assert "&quot;to&quot;" not in said
    control.questions.asked = [replace(ANSWERED, request=replace(request, arguments='{"to'))]
    await browser.says(PAGE, '<small>{"to</small>')


async def test_nothing_waits(browser: Browser, control: FakeControl) -> None:
    control.questions.asked, control.questions.granted = [], []
    said = await browser.says(PAGE, "No tool call waits for an answer.", "[agents.NAME.approval]")
    assert "Allowed without a question" not in said, "a heading without anything below it"


async def test_a_button_answers(browser: Browser, control: FakeControl) -> None:
    await browser.leads(
        f"{PAGE}/decide", f"{PAGE}?notice=allowed+pay", id=PAY.id, decision="session"
    )
    assert control.questions.asked[0].decision is Decision.SESSION
    await browser.leads(f"{PAGE}/decide", f"{PAGE}?notice=late", id=PAY.id, decision="once")
    await browser.leads(f"{PAGE}/decide", f"{PAGE}?notice=late", id="gone", decision="once")
    await browser.says(f"{PAGE}?notice=late", "It has been answered already")


async def test_a_forged_form_does_nothing(browser: Browser, control: FakeControl) -> None:
    for fields in ({}, {"id": PAY.id}, {"id": PAY.id, "decision": "expired"}):
        await browser.refuses(f"{PAGE}/decide", 422, "an answer has the id", **fields)
    await browser.refuses(f"{PAGE}/decide", 422, "skip, not once", id=WIPE.id, decision="once")
    await browser.refuses(f"{PAGE}/revoke", 422, "a grant has an agent", agent="main")
    assert control.questions.asked == [PAY, WIPE, ANSWERED]
    foreign = {"origin": "http://evil.example"}
    answer = await browser.post(f"{PAGE}/decide", data={"id": PAY.id}, headers=foreign)
    assert answer.status_code == 403


async def test_a_grant_is_revoked(browser: Browser, control: FakeControl) -> None:
    removed = f"{PAGE}?notice=revoked+grant+pay"
    await browser.leads(f"{PAGE}/revoke", removed, agent="main", tool="pay", session="")
    removed = f"{PAGE}?notice=revoked+grant+wipe"
    await browser.leads(f"{PAGE}/revoke", removed, agent="main", tool="wipe", session=KEY)
    assert control.questions.granted == []
    await browser.leads(f"{PAGE}/revoke", f"{PAGE}?notice=nothing", agent="main", tool="pay")


async def test_the_first_page_leads_to_what_waits(browser: Browser, control: FakeControl) -> None:
    warning = OperatorWarning("gateway.approvals", "2 tool calls", "wait", "/approvals")
    backlog = Backlog(inbox=0, outbox=0, failed=0, approvals=2)
    control.snapshot = replace(fakes.STATUS, backlog=backlog, warnings=(warning,))
    said = await browser.says("/", "pay", '<a href="/approvals">Decide</a>')
    assert "2 tool calls" not in said, "each is listed"
