"""Every page: what it shows, what its buttons do, and that nothing runs in it (OPS-3, SEC-1)."""

from __future__ import annotations

import asyncio
import html
import re
from dataclasses import replace
from datetime import datetime, timedelta
from html.parser import HTMLParser
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.records import OutboxState, RunFilter, RunSpan
from goclaw_py.scheduler.operator_warnings import OperatorWarning
from goclaw_py.scheduler.views import ChannelState, ChannelView
from goclaw_py.web.front import WebAccess
from goclaw_py.web.pages import SiteParts, make_site
from goclaw_py.web.pages.rendering import NAVIGATION, Assets
from goclaw_py.web.pages.services import MAX_FORM_BYTES, fields
from tests.support.apps import lend_api
from tests.unit.web import fake_names, fakes
from tests.unit.web.fakes import FakeControl
from tests.unit.web.pages.conftest import FORM, ORIGIN, Browser

ATTACK = "<script>alert(1)</script><img src=x onerror=alert(2)>'\"</pre></textarea>"
PAGES = [path for path, _ in NAVIGATION]
PAGES += ["/sessions/view?key=local", "/runs/0190-aaaa", "/deliveries?show=sent", "/jobs/new"]
PAGES += ["/timeline?span=24h", "/heartbeats/main", "/heartbeats/main/dry-run"]
PAGES += ["/why", "/why?about=agent:main:console:direct:local"]
MAX_PAGE_BYTES = 250 * 1024


class Reader(HTMLParser):
    """Reads a page as a browser would, and notes what would run and what is without a name."""

    VOID = frozenset({"meta", "link", "img", "input", "br", "rect", "line", "path"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.handlers: list[str] = []
        self.elsewhere: list[str] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        facts = {name: value or "" for name, value in attrs}
        self.handlers += [name for name in facts if name.startswith("on") or name == "style"]
        if tag == "script":
            self.scripts.append(facts.get("src", "inline"))
        self.elsewhere += [
            facts[name]
            for name in ("src", "href", "action")
            if name in facts and not facts[name].startswith(("/", "#"))
        ]
        if "id" in facts:
            self.ids.append(facts["id"])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def check_that_nothing_runs(text: str) -> None:
    """No script but ours and nothing from elsewhere; elements are closed and their ids differ."""
    page = Reader(text)
    assert all(source.startswith("/static/") for source in page.scripts)
    assert (page.handlers, page.elsewhere, page.open) == ([], [], [])
    assert len(set(page.ids)) == len(page.ids)


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_is_whole_and_loads_nothing_else(browser: Browser, path: str) -> None:
    answer = await browser.get(path)
    assert answer.status_code == 200
    check_that_nothing_runs(answer.text)
    policy = answer.headers["content-security-policy"]
    assert ("default-src 'none'" in policy, "unsafe" in policy) == (True, False)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


async def test_all_that_a_page_loads_is_small(browser: Browser) -> None:
    """OPS-3: page weight in all."""
    files = sum(len(content) for content in Assets().contents.values())
    for path in PAGES:
        assert files + len((await browser.get(path)).content) < MAX_PAGE_BYTES


async def test_what_people_and_models_write_stays_text(
    browser: Browser, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-1: from chats, names and what a model has said."""
    dead = replace(fakes.DEAD, message=OutboundMessage(fakes.LOCAL, ATTACK), error=ATTACK)
    control.messages.rows = [dead]
    control.snapshot = replace(
        fakes.STATUS, warnings=(OperatorWarning("x", ATTACK, ATTACK),), database=ATTACK
    )
    entry = replace(fakes.HISTORY[0], entry=replace(fakes.HISTORY[0].entry, text=ATTACK))
    monkeypatch.setattr(fakes, "HISTORY", [entry])
    tool = replace(fakes.ENDED.tools[0], name=ATTACK, arguments=ATTACK, result=ATTACK)
    monkeypatch.setattr(fakes, "ENDED", replace(fakes.ENDED, tools=(tool,), error=ATTACK))
    for path in ("/", "/deliveries", "/health", "/sessions/view?key=local", "/runs/0190-aaaa"):
        text = (await browser.get(path)).text
        check_that_nothing_runs(text)
        assert html.escape(ATTACK).replace("&#x27;", "&#39;").replace("&quot;", "&#34;") in text


async def test_an_address_can_make_a_page_say_nothing(browser: Browser) -> None:
    for path in ("/?notice=You+were+hacked", "/?error=x"):
        answer = await browser.get(path)
        assert answer.status_code == 200
        assert 'role="status">You' not in answer.text
        assert "alert(1)" not in answer.text


@pytest.mark.parametrize("path", [
    *("/?agent=", "/logs?agent=", "/logs?level=", "/runs?show=", "/runs?range=", "/runs?trigger="),
    *("/timeline?span=", "/timeline?outcome=", "/sessions?show=", "/sessions?channel="),
    *("/deliveries?show=", "/deliveries?range=", "/deliveries?direction=", "/jobs?state="),
    *("/jobs?kind=", "/jobs?agent=", "/heartbeats?show=", "/heartbeats?agent="),
    "/heartbeats/main?outcome=",
])  # fmt: skip
@pytest.mark.parametrize("value", ["bogus?", ATTACK, "\0"], ids=["bogus", "attack", "zero"])
async def test_an_unknown_value_of_a_filter_is_said(
    browser: Browser, path: str, value: str
) -> None:
    """Otherwise all rows would be listed as those that match, and an action would take all."""
    answer = await browser.get(path + quote(value))
    assert answer.status_code == 422
    assert " is not " in answer.text
    check_that_nothing_runs(answer.text)


async def test_a_notice_names_what_was_changed_in_two_words_at_most(browser: Browser) -> None:
    await browser.says("/jobs?notice=paused+3+jobs", ">Paused 3 jobs.<")
    await browser.says("/jobs?notice=job-deleted+job+standup", ">Deleted job standup.<")
    for changed in ("", "+", "+you+were+hacked", "+<b>", "+%E2%80%AEx", "+x%00", "+" + "x" * 65):
        page = (await browser.get(f"/jobs?notice=paused{changed}")).text
        assert 'class="notice"' not in page


# ---------------------------------------------------------------------------- what is shown


async def test_a_question_about_nothing_stays_on_its_page(browser: Browser) -> None:
    """Found by use: it answered with a page without a field, that named commands."""
    text = await browser.says("/why?about=nobody", "Nothing is called", "Did you mean one of these")
    assert 'name="about" value="nobody"' in text
    assert 'href="/why?about=ann%20%26%20bob"' in text


async def test_what_to_do_is_a_link_to_the_page_that_does_it(browser: Browser) -> None:
    for path in ("/why", "/runs/0190-aaaa"):
        text = await browser.says(path, "goclaw deliveries incoming retry 7")
        assert '<a href="/deliveries#in-7">Retry the message</a>' in text


async def test_pages_tell_what_there_is(browser: Browser, control: FakeControl) -> None:
    told = ("Grüße", "read_file", "three lines", "no result", "$0.0123", "1 min 1 s")
    await browser.says("/runs/0190-aaaa", *told, "chat not found")
    # Step by step (SPEC OPS-8).
    await browser.says("/runs/0190-aaaa", "calls pay", "no money", "failed")
    failed = ("possible duplicate", "Retry all 4", 'action="/deliveries/all"')
    await browser.says("/deliveries", "chat not found", *failed)
    sent = replace(fakes.DEAD, id=5, state=OutboxState.SENT, sent_at=fakes.NOW, error=None)
    control.messages.rows = [sent]
    await browser.says("/deliveries?show=sent", 'id="out-5"')
    assert 'id="out-5"' not in await browser.says("/deliveries?show=waiting")


async def test_the_timeline_draws_each_run_and_tells_it_in_words(
    browser: Browser, control: FakeControl
) -> None:
    text = (await browser.get("/timeline?span=10m")).text
    assert text.count(">console local: ") == 2
    _, since, until, _ = next(call for call in control.calls if call[0] == "runs_between")
    assert isinstance(since, datetime)
    assert isinstance(until, datetime)
    assert since <= fakes.NOW <= until
    assert (until - since).total_seconds() == 600


async def test_sessions_are_shown_by_name_with_the_key_on_hover(
    browser: Browser, control: FakeControl
) -> None:
    """SPEC OPS-9. Whoever chooses a name does not write the page."""
    key = "agent:main:console:direct:local"
    control.named = KnownNames({Target("console", "default", "local"): "Ann <b>"})
    for path in ("/", "/sessions", "/timeline?span=10m", f"/sessions/view?key={key}"):
        text = (await browser.get(path)).text
        assert "<bdi>Ann &lt;b&gt;</bdi>" in text
        assert key in text


async def test_too_many_runs_are_counted_in_parts_that_lead_closer(
    browser: Browser, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is left out, and the part that is pressed is shown with a bar for each run."""

    async def runs_between(
        since: datetime, until: datetime, *, limit: int, only: RunFilter, after: None
    ) -> list[RunSpan]:
        assert only == RunFilter(AgentName("main"))
        many = until - since > timedelta(minutes=10)
        return [replace(fakes.SPAN, started_at=since)] * (limit if many else 1)

    monkeypatch.setattr(control.stored_runs, "runs_between", runs_between)
    text = (await browser.get("/timeline?span=6h&agent=main")).text
    assert "1,001 runs: 100 failed, 1 running, 900 completed" in text
    assert fakes.SPAN.id not in text
    links = re.findall(r'href="(/timeline\?agent=main&from=[^"]+)"><rect', html.unescape(text))
    assert len(links) == 2
    assert re.fullmatch(r".*&from=[\d-]{10}\+[\d%A]{12}&to=[\d-]{10}\+[\d%A]{12}", links[1])
    closer = (await browser.get(links[1])).text
    assert fakes.SPAN.id in closer
    _, since, until, *_ = [call for call in control.calls if call[0] == "run_density"][-1]
    assert isinstance(since, datetime)
    assert isinstance(until, datetime)
    assert (until - since).total_seconds() == 6 * 3600


@pytest.mark.parametrize(("path", "wrong", "left", "said"), [
    ("/timeline", {"from": "x<b>"}, {"to": "2026-01-01"}, "From: “x<b>” is not a time"),
    ("/timeline", {"to": "x"}, {"from": "2026-01-01"}, "To: “x” is not a time"),
    ("/timeline", {"from": "1999-01-01T00:00:00Z"}, {}, "To must be after From"),
    ("/timeline", {"to": "2026-01-01"}, {"from": "2026-01-02"}, "To must be after From"),
    ("/timeline", {"from": "0001-01-01", "to": "9999-12-31"}, {}, "To must be after From"),
    ("/timeline", {"to": "2028-01-01"}, {"from": "2026-01-01"}, "by a year at most"),
    ("/timeline", {"from": "x"}, {"trigger": "cron"}, "From: “x” is not a time"),
    ("/usage", {"tz": "Mars/North"}, {"by": "model"}, "Time zone: “Mars/North” is not a time"),
])  # fmt: skip
async def test_a_wrong_field_is_said_above_the_form_which_keeps_it(
    browser: Browser, path: str, wrong: dict[str, str], left: dict[str, str], said: str
) -> None:
    """The page is there without it, and its stream gets what is right."""
    answer = await browser.get(path, params=wrong | left)
    text = answer.text
    assert answer.status_code == 422
    assert said in html.unescape(text)
    for name, value in wrong.items():
        field = re.search(rf'<input name="{name}"[^>]*>', text)
        assert field is not None
        assert f'value="{html.escape(value)}"' in field[0]
        assert 'aria-invalid="true"' in field[0]
    (live,) = re.findall(r'<div id="live" data-live="([^"]*)"', text)
    assert dict(parse_qsl(urlsplit(html.unescape(live)).query)) == left


async def test_a_page_of_one_thing_leads_to_its_list(browser: Browser) -> None:
    text = await browser.says("/runs/0190-aaaa", '<p class="above"><a href="/runs">Runs</a></p>')
    assert '<nav class="tabs" aria-label="List">' not in text
    assert 'class="above"' not in await browser.says(
        "/runs", '<nav class="tabs" aria-label="List">'
    )


@pytest.mark.parametrize(("path", "status", "link"), [
    ("/runs/none", 404, '"/runs">Back to Runs<'),
    ("/jobs/none/edit", 404, '"/jobs">Back to Jobs<'), ("/none", 404, '"/">Back to Now<'),
])  # fmt: skip
async def test_an_error_leads_back_to_its_list(
    path: str, status: int, link: str, browser: Browser
) -> None:
    await browser.says(path, link, status=status)


async def test_a_long_text_is_shown_by_its_beginning_and_where_all_of_it_is(
    browser: Browser, control: FakeControl
) -> None:
    """Whatever somebody sends: fifty of them are one page."""
    control.messages.rows = [
        replace(fakes.DEAD, message=OutboundMessage(fakes.LOCAL, "x" * 100_000))
    ]
    answer = await browser.get("/deliveries")
    assert len(answer.content) < 20_000
    assert f"<summary>{'x' * 79}…</summary>" in answer.text
    assert "96,000 characters more" in answer.text
    assert f"goclaw deliveries show {fakes.DEAD.id}" in answer.text


async def test_a_message_is_shown_as_it_is_read_in_its_chat(control: FakeControl) -> None:
    rich = OutboundMessage(fakes.LOCAL, "<b>wet</b>", rich=True)
    control.messages.rows = [replace(fakes.DEAD, message=rich)]

    def read(message: OutboundMessage) -> str:
        return message.text.replace("<b>", "").replace("</b>", "")

    site = make_site(control, lend_api(control), WebAccess("127.0.0.1"), parts=SiteParts(read))
    async with Browser(site) as browser:
        text = (await browser.get("/deliveries")).text
    assert "<summary>wet</summary><pre>wet</pre>" in "".join(text.split("\n"))


async def test_the_number_of_warnings_leads_to_them(browser: Browser, control: FakeControl) -> None:
    warning = OperatorWarning("a", "Lane main", "is full", "/settings", "goclaw lanes")
    control.snapshot = replace(fakes.STATUS, warnings=(warning,))
    said = await browser.says("/health", '<a href="#warnings"><strong>1</strong>warning</a>')
    listed = said.partition('id="warnings"')[2].partition("</section>")[0]
    assert 'href="/settings"><bdi>Lane main</bdi>' in listed


async def test_health_tells_how_to_get_a_channel_where_there_is_none_but_its_own(
    browser: Browser, control: FakeControl
) -> None:
    assert "@BotFather" not in (await browser.get("/health")).text
    own = ChannelView("console", "default", ChannelState.CONNECTED, "")
    control.snapshot = replace(fakes.STATUS, channels=(own,))
    assert "@BotFather" in (await browser.get("/health")).text


async def test_what_is_gone_is_said_to_people_and_to_programs(browser: Browser) -> None:
    for path, words in (("/runs/nothing", "no run"), ("/nowhere", "there is no such page")):
        shown = await browser.get(path)
        assert shown.status_code == 404
        assert words in shown.text
        assert 'href="/deliveries"' in shown.text
        assert shown.headers["content-type"].startswith("text/html")
        told = await browser.get(path, headers={"accept": "application/json"})
        assert told.status_code == 404
        assert words in told.json()["error"]


async def test_a_database_that_is_away_is_said(browser: Browser, control: FakeControl) -> None:
    control.failure = fakes.unavailable()
    await browser.says("/", "the database does not answer", status=503)


# ---------------------------------------------------------------------------- what buttons do


@pytest.mark.parametrize(("path", "fields", "call"), [
    ("/stop", {"session": "s"}, ("stop", "s", False)),
    ("/stop", {"session": "s", "run": "0190-aaaa"}, ("stop", "s", False, "0190-aaaa")),
    ("/stop", {"session": "s", "everything": "yes"}, ("stop", "s", True)),
    ("/sessions/reset", {"key": "local"}, ("reset", fakes.SESSION)),
])  # fmt: skip
async def test_a_button_does_what_it_says(
    browser: Browser, control: FakeControl, path: str, fields: dict[str, str], call: object
) -> None:
    answer = await browser.send_form(path, **fields)
    assert answer.status_code == 303
    assert "notice=" in answer.headers["location"]
    assert call in control.calls
    assert (await browser.get(answer.headers["location"])).status_code == 200


@pytest.mark.parametrize(("path", "row", "called"), [
    ("/deliveries/outgoing/retry", fakes.DEAD.id, "retry_outbox"),
    ("/deliveries/outgoing/drop", fakes.DEAD.id, "drop_outbox"),
    ("/deliveries/incoming/retry", fake_names.LOST.row.id, "retry_dead_letters"),
    ("/deliveries/incoming/drop", fake_names.LOST.row.id, "dismiss_dead_letters"),
])  # fmt: skip
async def test_messages_are_tried_again_or_given_up(
    browser: Browser, control: FakeControl, path: str, row: int, called: str
) -> None:
    answer = await browser.send_form(path, id=row)
    assert answer.status_code == 303
    assert [args for name, *args in control.calls if name == called] == [[(row,)]]
    unknown = await browser.send_form(path, id=77)
    assert unknown.headers["location"] == "/deliveries?notice=nothing"


async def test_all_failures_are_tried_again_at_once(browser: Browser, control: FakeControl) -> None:
    assert (await browser.send_form("/deliveries/all")).status_code == 303
    assert {"retry_outbox", "retry_dead_letters"} <= {name for name, *_ in control.calls}


@pytest.mark.parametrize(("path", "fields"), [
    ("/stop", {}), ("/deliveries/outgoing/retry", {"id": "x"}),
    ("/deliveries/outgoing/retry", {"id": "-1"}), ("/deliveries/outgoing/retry", {"id": "9" * 30}),
    ("/deliveries/incoming/drop", {}),
])  # fmt: skip
async def test_a_form_that_lacks_something_changes_nothing(
    browser: Browser, control: FakeControl, path: str, fields: dict[str, str]
) -> None:
    await browser.refuses(path, 422, 'role="alert"', **fields)
    assert control.calls == []


@pytest.mark.parametrize(("disconnects", "status"), [(False, 408), (True, 400)])
async def test_a_form_that_does_not_arrive_holds_no_connection_and_fills_no_log(
    disconnects: bool, status: int
) -> None:
    """Strangers may send forms, too: to sign in (SEC-1, SEC-3)."""
    messages: list[Message] = [{"type": "http.request", "body": b"token=", "more_body": True}]
    if disconnects:
        messages.append({"type": "http.disconnect"})

    async def receive() -> Message:
        if not messages:
            await asyncio.sleep(3600)
        return messages.pop(0)

    headers = [(name.encode(), value.encode()) for name, value in FORM.items()]
    with pytest.raises(HTTPException) as refused:
        await fields(Request({"type": "http", "method": "POST", "headers": headers}, receive))
    assert refused.value.status_code == status
    assert refused.value.headers == {"Connection": "close"}


async def test_no_page_leads_to_another_scheme(browser: Browser) -> None:
    """Behind a proxy that speaks TLS, a made-up absolute address would lead to plain HTTP."""
    answer = await browser.get("/runs/", headers={"host": "localhost"})
    assert (answer.status_code, answer.headers.get("location")) == (404, None)


async def test_what_no_browser_sends_is_refused(browser: Browser, control: FakeControl) -> None:
    wrong = {**ORIGIN, "content-type": "application/json"}
    assert (await browser.post("/stop", content=b"{}", headers=wrong)).status_code == 415
    long = b"session=" + b"x" * (MAX_FORM_BYTES + 1)
    many = b"&".join(b"a=b" for _ in range(300))
    for content, status in ((long, 413), (many, 400), (b"a=%ff", 400)):
        answer = await browser.post("/stop", content=content, headers={**ORIGIN, **FORM})
        assert answer.status_code == status
    assert (await browser.put("/stop", headers=ORIGIN)).status_code == 405
    assert (await browser.get("/stop")).status_code == 405
    assert (await browser.post("/stop", content=b"session=s", headers={})).status_code == 403
    assert control.calls == []


async def test_files_are_kept_by_browsers_as_long_as_their_address_holds(browser: Browser) -> None:
    assets = Assets()
    for name, content in assets.contents.items():
        pinned = await browser.get(f"/static/{name}?v={assets.version}")
        assert pinned.content == content
        assert "immutable" in pinned.headers["cache-control"]
        other = await browser.get(f"/static/{name}?v=old")
        assert other.headers["cache-control"] == "no-cache"
    for path in ("/static/none.css", "/static/../site.py", "/static/%2e%2e/site.py"):
        assert (await browser.get(path)).status_code == 404


# ---------------------------------------------------------------------------- the theme


async def test_a_theme_is_chosen_and_kept_by_the_browser(browser: Browser) -> None:
    page = (await browser.get("/runs?show=failed")).text
    assert '<html lang="en">' in page
    assert 'content="light dark"' in page
    for theme in ("dark", "light"):
        fields = urlencode({"theme": theme}).encode()
        referer = {"referer": "http://localhost:8420/runs?show=failed&notice=saved"}
        answer = await browser.post("/theme", content=fields, headers={**ORIGIN, **FORM, **referer})
        assert (answer.status_code, answer.headers["location"]) == (303, "/runs?show=failed")
        cookie = answer.headers["set-cookie"]
        assert "Max-Age=31536000" in cookie
        assert "HttpOnly" in cookie
        page = (await browser.get("/runs")).text
        assert f'<html lang="en" data-theme="{theme}">' in page
        assert f'name="color-scheme" content="{theme}"' in page
        assert page.count('aria-pressed="true"') == 1
    await browser.leads("/theme", "/", theme="")
    assert '<html lang="en">' in (await browser.get("/")).text


@pytest.mark.parametrize("referer", ["", "//evil.example", "https://evil.example//x", "x\\y"])
async def test_a_wrong_theme_is_ignored_and_leads_nowhere_else(
    browser: Browser, referer: str
) -> None:
    fields = urlencode({"theme": ATTACK}).encode()
    headers = {**ORIGIN, **FORM, "referer": referer}
    answer = await browser.post("/theme", content=fields, headers=headers)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "set-cookie" not in answer.headers
    browser.cookies.set("goclaw_theme", '"><script>')
    assert '<html lang="en">' in (await browser.get("/")).text
