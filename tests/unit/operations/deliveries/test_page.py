"""Messages are found by filters, and selected ones retried or dropped together (SPEC OPS-3)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import Target
from goclaw_py.operations.deliveries.page import BATCH
from goclaw_py.records import (
    ALL_MESSAGES,
    DeadLetterQuery,
    IncomingState,
    MessageFilter,
    OutboxQuery,
    OutboxState,
)
from goclaw_py.scheduler.views import Backlog
from goclaw_py.web.pages.services import COUNTS_S
from tests.unit.web import fakes
from tests.unit.web.fake_names import BEGUN, NEXT, PENDING, SENT, TOPIC
from tests.unit.web.fakes import FakeControl
from tests.unit.web.pages.conftest import FORM, ORIGIN, Browser, World

CHAT = Target("telegram", "work", "-1001")
ROWS = "chat=telegram.work%3A-1001&search=a+b&before=9&in=4&next=%2F%2Fx"
BACK = "chat=telegram.work%3A-1001&search=a+b&before=9&in=4"
DEAD = replace(PENDING, state=OutboxState.FAILED)


def asked(control: FakeControl) -> list[OutboxQuery]:
    """The lists of outgoing messages that were read."""
    return [one for _, *given in control.calls for one in given if isinstance(one, OutboxQuery)]


@pytest.mark.parametrize(
    ("body", "calls", "notice"),
    [
        ("out=4&in=8&out=5&do=retry",
         [("retry_outbox", (4,)), ("retry_outbox", (5,)), ("retry_dead_letters", (8,))],
         "retried+3+messages"),
        ("in=8&in=9&do=drop", [("dismiss_dead_letters", (8,)), ("dismiss_dead_letters", (9,))],
         "dropped+2+messages"),
        ("do=retry", [], "nothing"),
    ],
)  # fmt: skip
async def test_what_is_selected_is_retried_or_dropped(
    browser: Browser, control: FakeControl, body: str, calls: list[tuple[object, ...]], notice: str
) -> None:
    control.messages.rows = [replace(DEAD, id=number) for number in (4, 5)]
    answer = await browser.post("/deliveries/selected", content=body, headers={**FORM, **ORIGIN})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/deliveries?notice={notice}")
    assert control.calls == calls


async def test_each_selected_message_that_was_not_changed_is_named(
    browser: Browser, control: FakeControl
) -> None:
    """Another person was faster. The filters stay."""
    control.messages.rows = [SENT, DEAD]
    place = f"/deliveries?{BACK}&stale=out-778.in-777&notice=unchanged+2+were+changed+already"
    fields = {"out": 778, "in": 777, "do": "drop", "rows": ROWS}
    await browser.leads("/deliveries/selected", place, **fields)
    said = await browser.says("/deliveries?stale=out-5.in-777", "Delivery 5 is sent.")
    assert "Incoming message 777 is deleted." in said
    said = await browser.says("/deliveries?stale=out-99999999999999999999,<b>", "failed <small>4<")
    assert "Not changed" not in said


async def test_waiting_deliveries_are_selected_and_dropped(
    browser: Browser, control: FakeControl
) -> None:
    """They cannot be retried: they have not failed."""
    control.messages.rows = [PENDING]
    said = await browser.says("/deliveries?show=waiting", 'data-selects="out"', "Drop selected")
    assert f'name="out" value="{PENDING.id}"' in said
    assert "Retry selected" not in said
    assert "Drop all 2<" in said
    said = await browser.says("/deliveries", 'data-selects="in"', "Retry selected", "Drop all")
    said = await browser.says("/deliveries?show=sent")
    assert "data-selects" not in said


async def test_waiting_incoming_messages_are_selected_and_dropped(
    browser: Browser, control: FakeControl
) -> None:
    """Not one that waits for an approval; one of a run in progress does not wait."""
    asks = replace(NEXT, row=replace(NEXT.row, id=13, asking_run=RunId("r")))
    control.messages.mail.append(asks)
    said = await browser.says(
        "/deliveries?show=waiting", "waits for approval", "Drop all 1<", "(1 now)"
    )
    assert "both incoming and outgoing" not in said
    assert "waiting <small>2<" in said
    assert f'name="in" value="{NEXT.row.id}"' in said
    assert f'name="in" value="{asks.row.id}"' not in said
    assert f'id="in-{BEGUN.row.id}"' not in said
    assert said.count('action="/deliveries/incoming/drop"') == 1
    place = "/deliveries?show=waiting&notice=dropped+1+message"
    await browser.leads("/deliveries/incoming/drop", place, id=NEXT.row.id, rows="show=waiting")
    place = "/deliveries?show=waiting&account=x&notice=dropped+1+message"
    control.calls.clear()
    control.messages.mail.append(NEXT)
    await browser.leads("/deliveries/all", place, rows="show=waiting&account=x", do="drop")
    only = MessageFilter(account="x")
    assert {query.only for query in asked(control)} == {only}
    assert ("dead_letters", DeadLetterQuery(IncomingState.WAITING, only, BATCH)) in control.calls
    assert ("dismiss_dead_letters", (NEXT.row.id,)) in control.calls
    said = await browser.says("/deliveries?show=waiting", "waits for approval")
    for offered in ("Drop all", "Drop selected", "data-selects"):
        assert offered not in said
    control.calls.clear()
    place = "/deliveries?show=waiting&notice=nothing"
    await browser.leads("/deliveries/all", place, rows="show=waiting", do="drop")
    assert "dismiss_dead_letters" not in {call[0] for call in control.calls}


async def test_the_menu_counts_what_the_first_tab_lists(
    browser: Browser, control: FakeControl, world: World
) -> None:
    """Messages that could not be sent, and those that were not answered."""
    world.now_s += 2 * COUNTS_S
    control.snapshot = replace(fakes.STATUS, backlog=Backlog(0, 0, failed=3, unanswered=4))
    await browser.says("/deliveries", 'data-count="failed"', 'their senders know">7</span>')


@pytest.mark.parametrize("body", ["out=4", "out=x&do=retry", "in=-1&do=drop", "out=4&do=pay"])
async def test_a_selection_that_says_nothing_is_refused(
    browser: Browser, control: FakeControl, body: str
) -> None:
    answer = await browser.post("/deliveries/selected", content=body, headers={**FORM, **ORIGIN})
    assert (answer.status_code, control.calls) == (422, [])


async def test_all_that_match_are_retried_once(
    browser: Browser, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goclaw_py.operations.deliveries.page.BATCH", 2)
    control.messages.rows = [replace(DEAD, id=number) for number in (9, 8, 7)]
    place = f"/deliveries?{BACK}&notice=retried+5+messages"
    await browser.leads("/deliveries/all", place, rows=ROWS, do="retry")
    retried = [call[1] for call in control.calls if call[0] == "retry_outbox"]
    assert retried == [(9, 8), (7,)]
    only = MessageFilter(chat=CHAT, text="a b")
    assert {query.only for query in asked(control)} == {only}


@pytest.mark.parametrize(
    ("query", "only"),
    [
        ("", ALL_MESSAGES),
        ("show=sent&channel=telegram&range=1h&search=%25_%00x",
         MessageFilter("telegram", since=fakes.NOW.replace(microsecond=0) - timedelta(hours=1),
                       text="%_x")),
        ("chat=telegram.work:-1001", MessageFilter(chat=CHAT)),
        ("channel=telegram&account=work", MessageFilter("telegram", account="work")),
        ("chat=nonsense", ALL_MESSAGES),
        ("search=" + "x" * 9_000, MessageFilter(text="x" * 200)),
    ],
)  # fmt: skip
async def test_the_address_selects_messages(
    browser: Browser, control: FakeControl, query: str, only: MessageFilter
) -> None:
    assert (await browser.get(f"/deliveries?{query}")).status_code == 200
    assert [query.only for query in asked(control)] == [only]


async def test_tabs_count_and_chats_are_links_with_names(
    browser: Browser, control: FakeControl
) -> None:
    control.messages.rows = [SENT, DEAD]
    control.named = KnownNames({replace(TOPIC, thread=None): "Ann <\u202eb>"})
    said = await browser.says("/deliveries?show=sent&search=x", "sent <small>1<")
    assert "failed <small>4<" in said
    assert 'href="/deliveries?search=x&show=sent&chat=telegram.work%3A-1001"' in said
    text = (await browser.get("/deliveries?chat=telegram.work:-1001")).text
    assert '<option value="telegram.work:-1001" selected>Ann &lt;\u202eb&gt;\u202c</option>' in text


async def test_a_direction_selects_exactly_its_messages(
    browser: Browser, control: FakeControl
) -> None:
    """A warning about outgoing messages leads to these, and one about incoming ones to those."""
    control.messages.rows = [DEAD]
    said = await browser.says("/deliveries?direction=outgoing", "failed <small>1<", "Drop all 1")
    assert 'id="out"' in said
    assert 'id="in"' not in said
    said = await browser.says("/deliveries?direction=incoming", "failed <small>3<", "Drop all 3")
    assert 'id="in"' in said
    assert 'id="out"' not in said
    control.calls.clear()
    place = "/deliveries?direction=incoming&notice=dropped+2+messages"
    await browser.leads("/deliveries/all", place, rows="direction=incoming", do="drop")
    assert asked(control) == []
    place = "/deliveries?direction=outgoing&notice=dropped+1+message"
    await browser.leads("/deliveries/all", place, rows="direction=outgoing", do="drop")
    assert ("drop_outbox", (DEAD.id,)) in control.calls
    said = await browser.says("/deliveries?direction=incoming&show=sent", "No message matches.")
    assert 'id="out"' not in said


async def test_dismissed_messages_are_listed_with_the_dropped_ones(
    browser: Browser, control: FakeControl
) -> None:
    """What a button has dropped can be found, and retried."""
    control.messages.rows = [DEAD]
    place = "/deliveries?notice=dropped+3+messages"
    await browser.leads("/deliveries/all", place, do="drop")
    said = await browser.says("/deliveries?show=dropped", "dropped <small>3<")
    assert "Dropped incoming messages" in said
    for one in control.messages.dismissed:
        assert f'id="in-{one.row.id}"' in said
    assert "/deliveries/incoming/retry" in said
    assert "Dismiss</button>" not in said


@pytest.mark.parametrize("page", ["/deliveries", "/sessions"])
async def test_channels_of_stored_messages_can_be_selected(
    browser: Browser, control: FakeControl, page: str
) -> None:
    """Also those that are not set up any more."""
    control.messages.channels = frozenset({"mail"})
    await browser.says(page, '<option value="mail">mail</option>', '<option value="console">')
