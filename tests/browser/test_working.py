"""What an agent does: said in the chat, watched and stopped, found again (OPS-3, CHAN-9)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.dashboard import Dashboard
from tests.browser.seen import answer, live, notice, overflow, press, send, title, violations
from tests.support.process import wait_for

pytestmark = pytest.mark.real_time


@pytest.fixture(autouse=True)
def _idle(dash: Dashboard) -> Iterator[None]:
    """Leaves nothing at work, also where a test has failed."""
    yield
    for run in dash.get("/api/runs", active="true"):
        dash.post(f"/api/sessions/{run['session']}/stop")


def until_confirmed(dash: Dashboard, chat: str) -> None:
    """Wait until a page has said that it shows a message: what is streamed comes before that."""

    def look() -> bool:
        rows = dash.get("/api/deliveries", limit=200, state="sent")
        return any(row["message"]["target"]["chat"] == chat for row in rows)

    wait_for(look, f"a message in the chat {chat} to be confirmed")


def answers(page: Page) -> Locator:
    return page.locator("li.assistant .words")


def lines(page: Page) -> list[str]:
    return page.locator("#talk li > :is(pre, .words)").all_inner_texts()


def test_an_answer_grows_appears_once_and_is_there_after_a_reload(page: Page) -> None:
    page.goto("/chat?name=growing")
    live(page)
    send(page, "count to 3")
    expect(answers(page)).to_have_text(re.compile("^1( 2)?$"))
    expect(page.locator("#doing")).to_have_text("The agent is working…")
    expect(answers(page)).to_have_text("1 2 3")
    expect(page.locator("#doing")).to_have_text("")
    send(page, "echo and\nthis")
    expect(answers(page)).to_have_text(["1 2 3", "and\nthis"])
    said = ["count to 3", "1 2 3", "echo and\nthis", "and\nthis"]
    assert lines(page) == said
    page.reload()
    live(page)
    assert lines(page) == said


def test_an_answer_that_nobody_has_seen_yet_appears_once(page: Page, dash: Dashboard) -> None:
    """It is in the history already, and comes once more for whoever looks first."""
    dash.say("echo at last", chat="unseen")
    dash.run_of("unseen", ended=True)
    page.goto("/chat?name=unseen")
    until_confirmed(dash, "unseen")
    assert lines(page) == ["echo at last", "at last"]


def test_an_answer_in_markdown_is_formatted_and_its_code_copied(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/chat?name=formatted")
    live(page)
    send(page, "echo **bold** [site](https://example.org)\n```\nx = '<b>'\n```")
    for _ in range(2):
        said = answers(page)
        expect(said.locator("strong")).to_have_text("bold")
        link = said.get_by_role("link", name="site")
        expect(link).to_have_attribute("rel", "noopener noreferrer")
        expect(said.locator("pre")).to_have_text("x = '<b>'")
        press(said, "Copy")
        expect(said.get_by_role("button")).to_have_text("Copied")
        assert page.evaluate("() => navigator.clipboard.readText()") == "x = '<b>'\n"
        assert violations(page) == []
        page.evaluate("() => navigator.clipboard.writeText('')")
        page.reload()


def test_whoever_reads_an_earlier_message_stays_there(page: Page, dash: Dashboard) -> None:
    page.goto("/chat?name=long")
    live(page)
    send(page, "echo " + "line\n\n" * 60)
    expect(answers(page)).to_have_count(1)
    log = page.get_by_role("log")
    assert log.evaluate("(log) => log.scrollTop") > 0
    log.evaluate("(log) => new Promise((go) => { log.onscroll = go; log.scrollTop = 0 })")
    dash.say("echo meanwhile", chat="long")
    expect(answers(page)).to_have_count(2)
    assert log.evaluate("(log) => log.scrollTop") == 0
    send(page, "echo last")
    expect(answers(page)).to_have_count(3)
    assert log.evaluate("(log) => log.scrollTop") > 0


def test_the_tools_of_a_run_have_cards_while_it_runs_and_later(page: Page) -> None:
    page.goto("/chat?name=tools")
    live(page)
    send(page, "write notes.txt buy milk")
    expect(answers(page)).to_contain_text("Wrote notes.txt")
    for _ in range(2):
        card = page.locator(".tools details")
        expect(card).to_have_count(1)
        expect(card.locator("summary")).to_have_text(re.compile(r"^\s*ok\s+write_file"))
        card.locator("summary").press("Enter")
        expect(card.get_by_role("link")).to_be_visible()
        assert violations(page) == []
        page.reload()
        live(page)
    page.locator(".tools summary").click()
    page.locator(".tools").get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"/runs/"))


def test_why_a_message_has_no_answer_is_there_at_once_and_after_a_reload(page: Page) -> None:
    page.goto("/chat?name=failing")
    live(page)
    send(page, "fail now")
    for _ in range(2):
        expect(page.locator("li.assistant .problem")).to_have_text(
            "You asked me to fail, so I did. Why?"
        )
        expect(page.locator("li.assistant")).to_have_count(1)
        expect(page.locator("#talk .buttons").get_by_role("button")).to_have_count(1)
        page.reload()
    expect(page.locator("li.user")).to_have_count(1)
    page.get_by_role("link", name="Why?").click()
    title(page, "Why?")


def test_messages_that_wait_are_listed_in_their_order(page: Page) -> None:
    page.goto("/chat?name=waiting")
    live(page)
    send(page, "/queue queue")
    send(page, "slow 600")
    expect(page.locator("#doing")).to_have_text("The agent is working…")
    send(page, "echo one")
    send(page, "echo two")
    waiting = page.locator("li.user.waits")
    places = ["next", "2nd in line"]
    for _ in range(2):
        expect(waiting.locator(".place")).to_have_text(places)
        page.reload()
        live(page)
    assert lines(page)[-3:] == ["slow 600", "echo one", "echo two"]
    press(page, "Stop")
    expect(waiting).to_have_count(0)


@pytest.mark.parametrize("way", ["button", "command"])
def test_what_the_agent_does_is_stopped_in_the_chat(page: Page, dash: Dashboard, way: str) -> None:
    """CMD-1."""
    page.goto(f"/chat?name={way}")
    send(page, "count to 600")
    expect(answers(page).first).to_contain_text("1")
    if way == "button":
        press(page, "Stop")
    else:
        send(page, "/stop")
    expect(page.locator("#doing")).to_have_text("")
    assert dash.ended(way) == "cancelled"
    expect(page.locator("#talk p.hint")).to_have_text("Stopped. Why?")
    expect(answers(page)).to_have_count(1)
    typed = ["count to 600"] if way == "button" else ["count to 600", "/stop"]
    expect(page.locator("li.user pre")).to_have_text(typed)
    words = answers(page).inner_text()
    page.reload()
    live(page)
    expect(page.locator("li.user pre")).to_have_text(typed)
    expect(page.locator("#talk p.hint")).to_have_text("Stopped. Why?")
    expect(answers(page)).to_have_text(words)


def test_a_conversation_in_progress_is_marked_in_the_list(page: Page, dash: Dashboard) -> None:
    dash.say("slow 600", "marked")
    dash.run_of("marked")
    page.goto("/chat?name=other")
    mark = page.locator("#list a[href$='name=marked'] .badge")
    expect(mark).to_have_attribute("aria-label", "in progress")
    assert violations(page) == []
    dash.stop("marked")
    expect(mark).to_have_count(0)


def test_commands_are_suggested_and_chosen_by_keys(page: Page) -> None:
    page.goto("/chat/new")
    live(page)
    text, commands = page.get_by_label("Message"), page.get_by_role("option")
    text.press_sequentially("/st")
    expect(commands).to_have_count(3)
    expect(commands.first).to_contain_text("/stop Stop the oldest task")
    assert violations(page) == []
    text.press("ArrowDown")
    text.press("ArrowDown")
    expect(page.locator("[aria-selected=true]")).to_contain_text("/status")
    expect(text).to_have_attribute("aria-activedescendant", "command-status")
    text.press("Enter")
    expect(text).to_have_value("/status ")
    expect(commands).to_have_count(0)
    text.fill("/wh")
    text.press("Escape")
    expect(commands).to_have_count(0)
    text.fill("/who")
    text.press("Tab")
    expect(text).to_have_value("/whoami ")
    expect(text).to_be_focused()
    text.fill("/he")
    commands.first.click()
    text.fill("/whoami")
    text.press("Enter")
    expect(page.locator("li.user pre")).to_have_text("/whoami")
    expect(commands).to_have_count(0)


def test_what_is_said_while_the_agent_works_is_answered_next(page: Page, dash: Dashboard) -> None:
    page.goto("/chat?name=meanwhile")
    send(page, "count to 3")
    expect(answers(page)).to_contain_text("1")
    send(page, "echo and then")
    expect(answers(page)).to_have_text(["1 2 3", "and then"])
    assert dash.ended("meanwhile") == "completed"


def test_now_shows_a_run_as_it_begins_and_stops_it(page: Page, dash: Dashboard) -> None:
    page.goto("/")
    live(page)
    page.evaluate("() => { window.__same = true }")
    dash.say("slow 600", chat="watched")
    row = page.get_by_role("row").filter(has_text="console watched")
    expect(row).to_contain_text("slow 600")
    expect(page.get_by_role("img", name="1 of 2 slots in use")).to_be_visible()
    assert page.evaluate("() => window.__same")
    press(row, "Stop")
    notice(page, "Stopped.")
    expect(row).to_have_count(0)
    assert dash.ended("watched") == "cancelled"


def test_now_tells_what_a_request_waits_for_and_drops_it(page: Page, dash: Dashboard) -> None:
    """LANE-7."""
    for chat in ("first", "second"):
        dash.say("slow 600", chat=chat)
        dash.run_of(chat)
    dash.say("echo too late", chat="third")
    page.goto("/")
    row = page.get_by_role("row").filter(has_text="console third")
    expect(row).to_contain_text("a slot of its lane")
    answer(page, yes=False)
    press(row, "Stop all")
    expect(row).to_contain_text("a slot of its lane")
    answer(page, yes=True)
    press(row, "Stop all")
    expect(row).to_have_count(0)
    for chat in ("first", "second"):
        dash.stop(chat)
        assert dash.ended(chat) == "cancelled"
    assert dash.runs("third") == []


def test_the_timeline_leads_to_the_record_of_a_run(page: Page, dash: Dashboard) -> None:
    """What was asked, which tools were used, what was said, how it was delivered (OPS-5)."""
    page.goto("/chat?name=recorded")
    send(page, "write plan.txt water the plants")
    expect(answers(page)).to_contain_text("Wrote plan.txt")
    until_confirmed(dash, "recorded")
    page.get_by_role("link", name="Runs", exact=True).click()
    page.get_by_role("link", name="Timeline").click()
    page.get_by_role("link", name="10m").click()
    stroke = page.get_by_role("link", name=re.compile("console recorded: completed after"))
    expect(stroke).to_have_count(1)
    stroke.click()
    title(page, "write plan.txt water the plants")
    assert page.url.endswith(dash.run_of("recorded")["id"])
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text("Wrote plan.txt, 17 bytes.")
    expect(answer).to_contain_text("sent")
    expect(answer).to_contain_text("console recorded")
    expect(page.get_by_role("region", name="Why?")).to_contain_text("was answered after")
    steps = page.get_by_role("region", name="Steps")
    steps.locator("summary").filter(has_text="write_file").click()
    arguments = steps.locator("details[open] pre").first
    expect(arguments).to_have_text(re.compile(r'^\{\n  ".*"water the plants', re.DOTALL))
    page.get_by_role("link", name="console recorded").first.click()
    expect(page.get_by_role("region", name="Conversation")).to_contain_text("water the plants")


def test_a_run_that_failed_is_retried_and_forked(page: Page, dash: Dashboard) -> None:
    """SPEC OPS-3: with what was sent to the chat, why, and the two ways to go on."""
    dash.say("echo before", chat="again")
    dash.run_of("again", ended=True)
    dash.say("error out of tea", chat="again")
    wait_for(lambda: len(dash.runs("again")) == 2, "the second run")
    failed = dash.run_of("again", ended=True)["id"]
    page.goto(f"/runs/{failed}")
    expect(page.get_by_role("region", name="Answer")).to_contain_text("You asked me to fail")
    expect(page.get_by_role("region", name="Why?")).to_contain_text(
        "goclaw deliveries incoming retry"
    )
    press(page, "Retry")
    wait_for(lambda: len(dash.runs("again")) == 3, "a run that tries again")
    again = dash.run_of("again", ended=True)["id"]
    expect(page.locator(".notice")).to_contain_text("Retried by run")
    expect(page.locator(".notice a")).to_have_attribute("href", f"/runs/{again}")
    expect(page.get_by_text("It cannot be retried here")).to_have_count(0)
    page.goto(f"/runs/{failed}")
    expect(page.get_by_text("It cannot be retried here")).to_be_visible()
    press(page, "Fork")
    notice(page, "This is a copy. What you write here changes only the copy.")
    assert "/chat?name=fork-" in page.url
    expect(page.get_by_text("echo before")).to_be_visible()


@pytest.mark.parametrize("width", [390, 1440])
def test_a_drag_over_the_timeline_zooms_in(page: Page, dash: Dashboard, width: int) -> None:
    dash.say("echo a", chat="zoomed")
    dash.run_of("zoomed", ended=True)
    page.set_viewport_size({"width": width, "height": 844})
    now = datetime.now(UTC)
    hour = {"from": now - timedelta(minutes=59), "to": now + timedelta(minutes=1)}
    page.goto(f"/timeline?{urlencode(hour)}")
    picture = page.get_by_role("group", name="Runs of the chosen time")
    box = picture.bounding_box()
    assert box is not None
    assert box["width"] > width * 0.75
    assert overflow(page) <= 0
    before = picture.get_attribute("data-since") or ""
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 30, steps=4)
    expect(picture.locator(".zoom")).to_have_count(1)
    page.mouse.up()
    expect(picture).not_to_have_attribute("data-since", before)
    shown = [picture.get_attribute(f"data-{name}") or "" for name in ("since", "until")]
    since, until = map(datetime.fromisoformat, shown)
    assert abs((until - since).total_seconds() - 1800) < 60
    second = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$")
    for label in ("From (UTC)", "To"):
        expect(page.get_by_label(label, exact=True)).to_have_value(second)
    page.get_by_role("link", name="Zoom out").click()
    expect(picture).not_to_have_attribute("data-since", shown[0])
    page.get_by_role("navigation", name="How far back").get_by_role("link", name="1h").click()
    expect(page.get_by_role("group", name="Runs of the last 1h")).to_be_visible()


def test_a_session_begins_afresh_after_a_question(page: Page, dash: Dashboard) -> None:
    dash.say("echo old words", chat="renewed")
    dash.run_of("renewed", ended=True)
    page.goto("/sessions")
    page.get_by_label("Search").fill("RENEWED")
    press(page, "Show")
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_role("link", name="console renewed").click()
    said = page.get_by_role("region", name="Conversation")
    expect(said).to_contain_text("old words")
    answer(page, yes=True)
    press(page, "New conversation")
    notice(page, "Started a new conversation.")
    expect(said).to_contain_text("No messages in this conversation yet.")


def test_runs_are_filtered_counted_and_sorted(page: Page, dash: Dashboard) -> None:
    """SPEC OPS-3: the address keeps the filters and the order of all pages."""
    for text in ("echo a", "fail"):
        dash.say(text, chat="sorted")
        dash.run_of("sorted", ended=True)
    key = dash.run_of("sorted")["session"]
    page.goto(f"/runs?session={key}")
    tabs = page.get_by_role("navigation", name="Outcome")
    expect(tabs.get_by_role("link", name="failed")).to_contain_text("1")
    shown = page.get_by_role("table").get_by_role("row")
    expect(shown).to_have_count(3)
    head = page.get_by_role("columnheader", name="Duration")
    expect(head).to_have_attribute("aria-sort", "none")
    head.get_by_role("link").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    page.reload()
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(shown).to_have_count(3)
    tabs.get_by_role("link", name="failed").click()
    expect(shown).to_have_count(2)
    page.reload()
    expect(shown).to_have_count(2)
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(page.get_by_label("Session")).to_have_value(key)
    listed = page.url
    page.locator("tbody td.wide a").click()
    page.get_by_role("heading", level=1, name="fail").wait_for()
    page.reload()
    page.locator(".above").get_by_role("link", name="Runs").click()
    expect(page).to_have_url(listed)


def test_usage_is_drawn_and_has_its_table(page: Page, dash: Dashboard) -> None:
    dash.say("echo a", chat="used")
    dash.run_of("used", ended=True)
    page.goto("/usage?by=trigger")
    runs = page.get_by_role("figure").filter(has_text=re.compile(r"^\s*Runs"))
    expect(runs.locator("rect.told")).to_have_count(1)
    expect(runs.locator("rect.told title")).to_have_text(re.compile(r"\d runs$"))
    expect(page.get_by_role("row").filter(has_text="chat")).to_have_count(1)
    page.get_by_text("The same as a table").click()
    expect(page.get_by_role("table").first.get_by_role("row")).to_have_count(8)


def test_the_first_page_leads_from_a_figure_and_a_warning_to_what_it_counts(
    page: Page, dash: Dashboard
) -> None:
    """What needs a person names its subject first, and that leads to the list."""
    dash.say("fail", chat="broken")
    dash.ended("broken")
    page.goto("/")
    live(page)
    entry = page.locator(".warnings .warning").filter(has_text="got no answer").first
    assert entry.inner_text().strip()[0].isdigit()
    entry.get_by_role("link").click()
    title(page, "Deliveries")
    page.goto("/")
    page.locator("#figures a").filter(has_text="cost today").click()
    title(page, "Usage")
