"""The chat as a page: layout, what is done with messages, notifications, installing (CHAN-9)."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Browser, FilePayload, Page, Route, expect

from goclaw_py.chat.outbound import texts
from tests.browser.conftest import PHONE, SaveArtefact, Screen, Window, visit
from tests.browser.dashboard import Dashboard
from tests.browser.seen import conversations, live, overflow, press, send, violations
from tests.browser.test_working import until_confirmed

pytestmark = pytest.mark.real_time

WIDE = Screen("wide", {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"})
TABLET = Screen("tablet", {"viewport": {"width": 768, "height": 1024}, "color_scheme": "dark"})


@pytest.fixture(params=[WIDE, TABLET, PHONE], ids=str)
def screen(request: pytest.FixtureRequest) -> Screen:
    found: Screen = request.param
    return found


@pytest.fixture
def sized(dash: Dashboard, chromium: Browser, screen: Screen) -> Iterator[Page]:
    """A page at 1440, 768 and 390 pixels, in a conversation that was not there before."""
    with visit(chromium, dash.url, screen) as (context, _):
        page = context.new_page()
        page.goto("/chat/new")
        live(page)
        yield page


DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A picture of one pixel."""


def answers(page: Page) -> Any:
    return page.locator("li.assistant .words")


def two_tabs(window: Window) -> list[Page]:
    """Two pages of a conversation that was not there before."""
    pages = [window[0].new_page() for _ in range(2)]
    pages[0].goto("/chat/new")
    pages[1].goto(pages[0].url)
    for page in pages:
        live(page)
    return pages


def act(page: Page, item: str, name: str) -> None:
    """Press a button of the last message of a kind."""
    last = page.locator(item).last
    last.hover()
    last.get_by_role("button", name=name).click()


def test_the_page_fills_the_window_and_only_messages_scroll(
    sized: Page, artefacts: SaveArtefact
) -> None:
    sized.get_by_label("Message").fill("echo " + "line\n\n" * 60)
    grown = sized.get_by_label("Message").bounding_box()
    assert grown is not None
    assert grown["height"] > 100
    press(sized, "Send")
    expect(answers(sized)).to_be_visible()
    expect(sized.locator("#send")).to_be_visible()
    height = sized.evaluate("innerHeight")
    assert sized.evaluate("document.documentElement.scrollHeight") <= height
    log = sized.get_by_role("log")
    assert log.evaluate("(log) => log.scrollHeight - log.clientHeight") > 0
    assert log.evaluate("(log) => log.scrollTop") > 0
    bottom = sized.locator("#say").bounding_box()
    assert bottom is not None
    assert height - 40 <= bottom["y"] + bottom["height"] <= height
    assert bottom["height"] < 120
    artefacts(sized, f"chat {sized.viewport_size}")
    assert violations(sized) == []
    assert overflow(sized) <= 0


def test_an_example_fills_the_input(sized: Page) -> None:
    examples = sized.locator("#begin").get_by_role("button")
    expect(examples).to_have_count(3)
    assert violations(sized) == []
    press(sized, "count to 10")
    expect(sized.get_by_label("Message")).to_have_value("count to 10")
    expect(sized.get_by_label("Message")).to_be_focused()
    send(sized, "echo hello")
    expect(sized.locator("#begin")).to_be_hidden()


def test_send_becomes_stop_while_something_runs(sized: Page, dash: Dashboard) -> None:
    sized.get_by_label("Message").fill("slow 600")
    press(sized, "Send")
    stop, start = sized.locator("#stop"), sized.locator("#send")
    expect(stop).to_be_visible()
    expect(start).to_be_hidden()
    expect(sized.locator(":is(#text, #log):focus")).to_have_count(1)
    sized.get_by_label("Message").fill("and this")
    expect(start).to_be_visible()
    sized.get_by_label("Message").fill("")
    sized.reload()
    expect(stop).to_be_visible()
    expect(start).to_be_hidden()
    stop.click()
    expect(start).to_be_visible()
    expect(stop).to_be_hidden()
    expect(sized.locator(":is(#text, #log):focus")).to_have_count(1)
    assert dash.ended(sized.url.partition("name=")[2]) == "cancelled"


def test_an_answer_is_copied_and_tried_again(sized: Page) -> None:
    sized.context.grant_permissions(["clipboard-read", "clipboard-write"])
    send(sized, "echo **one**")
    act(sized, "li.assistant", "Copy message")
    sized.wait_for_function("async () => await navigator.clipboard.readText() === '**one**'")
    first = sized.locator("li.assistant").get_attribute("data-of")
    act(sized, "li.assistant", "Retry")
    expect(sized.locator(f"li[data-of='{first}']")).to_have_count(0)
    expect(sized.locator("li.assistant[data-of] .words")).to_have_text("one")
    expect(sized.locator("li.user pre")).to_have_text("echo **one**")
    sized.reload()
    expect(answers(sized)).to_have_text("one")
    expect(sized.locator("li.user")).to_have_count(1)


def test_the_last_message_is_edited_and_sent_again(sized: Page) -> None:
    for text in ("echo one", "echo too"):
        send(sized, text)
        expect(answers(sized).last).to_have_text(text.removeprefix("echo "))
    edits = sized.get_by_role("button", name="Edit and send again")
    expect(edits).to_have_count(1)
    act(sized, "li.user", "Edit and send again")
    expect(sized.get_by_label("Message")).to_have_value("echo too")
    press(sized, "Do not edit")
    expect(sized.get_by_label("Message")).to_have_value("")
    sized.get_by_label("Message").fill("typed before")
    act(sized, "li.user", "Edit and send again")
    sized.reload()
    live(sized)
    expect(sized.get_by_label("Message")).to_have_value("typed before")  # no edit, no text of one
    sized.get_by_label("Message").fill("")
    act(sized, "li.user", "Edit and send again")
    send(sized, "echo two")
    expect(answers(sized).last).to_have_text("two")
    sized.reload()
    live(sized)
    expect(answers(sized)).to_have_text(["one", "two"])


def two_in_a_turn(page: Page) -> None:
    """Two messages, the first one with a picture, that one run answers."""
    send(page, "/queue collect")
    send(page, "slow 600")
    expect(page.locator("#stop")).to_be_visible()
    picture = FilePayload(name="dot.png", mimeType="image/png", buffer=DOT)
    page.locator("#picked").set_input_files(picture)
    send(page, "my order is 4711")
    expect(page.locator("li.user")).to_have_count(3)
    send(page, "what is it?")
    expect(page.locator("li.waits")).to_have_count(2)
    press(page, "Stop")
    expect(page.locator("li.assistant[data-of] .words").last).to_contain_text("dot.png")
    expect(page.locator("#send")).to_be_visible()


@pytest.mark.parametrize("is_loaded", [False, True])
def test_a_turn_of_several_messages_is_tried_again_and_edited_as_a_whole(
    page: Page, *, is_loaded: bool
) -> None:
    """Found by use: all but its last message were lost, and none with a picture was sent again."""
    page.goto("/chat/new")
    live(page)
    two_in_a_turn(page)
    for edits in (False, True):
        if is_loaded:
            page.reload()
            live(page)
        last = page.locator("li.assistant[data-of]").last
        run = last.get_attribute("data-of")
        if edits:
            page.get_by_label("Message").press("ArrowUp")
            field = page.get_by_label("Message")
            field.fill(field.input_value().replace("what is it?", "where is it?"))
            page.locator("#send").click()
        else:
            act(page, "li.assistant", "Retry")
        expect(page.locator(f"li[data-of='{run}']")).to_have_count(0)
        expect(page.locator("li.assistant[data-of] .words").last).to_contain_text("dot.png")
        expect(page.locator("#send")).to_be_visible()
        expect(page.locator("li.user")).to_have_count(3)
        for words in ("my order is 4711", "where is it?" if edits else "what is it?"):
            expect(page.locator("li.user pre", has_text=words)).to_have_count(1)
    page.reload()
    asked = page.locator("li.user[data-of]").last
    expect(asked).to_contain_text("my order is 4711")
    expect(asked).to_contain_text("where is it?")
    expect(asked).not_to_contain_text("what is it?")
    expect(asked.locator("img")).to_have_count(1)


def test_messages_arrive_in_the_order_in_which_they_were_typed(page: Page) -> None:
    """Found by use: the request with the second one overtook the first one."""
    page.goto("/chat/new")
    live(page)
    posted: list[Route] = []

    def hold_first(route: Route) -> None:
        posted.append(route)
        if len(posted) > 1:
            route.continue_()

    page.route("**/messages", hold_first)
    for text in ("echo one", "echo two"):
        send(page, text)
    expect(page.locator("li.user")).to_have_count(2)
    assert len(posted) == 1
    posted[0].continue_()
    expect(answers(page).last).to_contain_text("two")
    page.reload()
    expect(page.locator("#talk")).to_contain_text(re.compile("one.*two", re.DOTALL))


def test_a_conversation_is_forked_at_an_answer(sized: Page) -> None:
    for text in ("echo one", "echo two"):
        send(sized, text)
        expect(answers(sized).last).to_have_text(text.removeprefix("echo "))
    origin = sized.url
    item = sized.locator("li.assistant").first
    item.hover()
    item.get_by_role("button", name="Fork").click()
    expect(sized.locator("#called")).to_have_text("Fork of echo one")
    expect(answers(sized)).to_have_text(["one"])
    live(sized)
    send(sized, "echo other")
    expect(answers(sized).last).to_have_text("other")
    sized.goto(origin)
    expect(answers(sized)).to_have_text(["one", "two"])


def test_conversations_are_found_by_title_and_by_what_was_said(sized: Page, screen: Screen) -> None:
    send(sized, f"echo Lissabon {screen} Ünïcode")
    here = sized.locator("#called")
    expect(here).to_have_text(f"echo Lissabon {screen} Ünïcode")
    found = conversations(sized)
    expect(found.get_by_role("heading", name="Today")).to_be_visible()
    assert found.get_by_role("link").count() > 1
    box = found.get_by_role("searchbox")
    box.fill(f"lissabon {screen}")
    expect(found.get_by_role("link").filter(visible=True)).to_have_count(1)
    assert violations(sized) == []
    box.fill("a title that none has")
    expect(found.get_by_role("link").filter(visible=True)).to_have_count(0)
    expect(found.get_by_text("No title has it: Enter searches what was said.")).to_be_visible()
    box.fill(f"lissabon {screen}")
    box.press("Enter")
    sized.wait_for_url(re.compile("search="))
    found = conversations(sized)
    expect(found.get_by_role("link", name=f"echo Lissabon {screen}")).to_be_visible()
    expect(found.get_by_role("link")).to_have_count(2)
    found.get_by_role("searchbox").fill("nowhere to be found")
    found.get_by_role("searchbox").press("Enter")
    expect(conversations(sized)).to_contain_text("No conversation has “nowhere to be found”")
    said = f"Second message {screen}"
    send(sized, f"echo {said}")
    expect(answers(sized).last).to_have_text(said)
    send(sized, "count to 5")
    expect(answers(sized).last).to_have_text("1 2 3 4 5")
    found = conversations(sized)
    for words in (said.upper(), "2 3 4"):
        found.get_by_role("searchbox").fill(words)
        found.get_by_role("searchbox").press("Enter")
        sized.wait_for_url(re.compile(f"search={words[:3]}".replace(" ", r"\+")))
        found = conversations(sized)
        mine = found.get_by_role("listitem").filter(has_text=f"echo Lissabon {screen}")
        expect(mine.locator("small")).to_contain_text(words, ignore_case=True)
        assert overflow(sized) <= 0


def test_a_message_that_is_too_long_is_counted_and_refused(sized: Page) -> None:
    count = sized.locator("#count")
    sized.get_by_label("Message").fill("x" * 50_000)
    expect(count).to_have_text("")
    sized.get_by_label("Message").fill("x" * 95_000)
    expect(count).to_have_text("95,000 of 100,000 characters")
    sized.get_by_label("Message").fill("x" * 100_001)
    press(sized, "Send")
    words = "Not sent: the message has 100,001 characters; the most is 100,000."
    expect(sized.locator("#doing")).to_have_text(words)
    assert len(sized.get_by_label("Message").input_value()) == 100_001
    assert overflow(sized) <= 0


def said(page: Page) -> list[str]:
    return page.locator("#talk > li > :is(pre, .words, .buttons)").all_inner_texts()


def test_commands_and_their_buttons_are_as_they_were_after_a_reload(window: Window) -> None:
    """Found by use: they vanished, or came again at the end, with one more row of buttons."""
    page = window[0].new_page()
    page.goto("/chat/new")
    live(page)
    for number, text in enumerate(("echo one", "/status", "/queue", "echo two", "/queue"), 1):
        send(page, text)
        expect(answers(page)).to_have_count(number)
    buttons = page.get_by_role("button", name="collect")
    expect(buttons).to_have_count(1)
    buttons.click()
    expect(buttons).to_have_text("✅ collect")
    send(page, "fail now")
    expect(page.locator("li.assistant .problem")).to_have_text(re.compile("You asked me to fail"))
    before = said(page)
    assert before[-1] == "🔁 Try again"
    other = window[0].new_page()
    other.goto(page.url)
    page.reload()
    for one in (page, other):
        live(one)
        expect(one.get_by_role("button", name="Try again")).to_be_visible()
        assert said(one) == before
        assert one.locator("#talk > li").evaluate_all(ROLES) == 6 * ["user", "assistant"]
    page.evaluate(CUT)
    page.evaluate(OPEN)
    live(page)
    send(page, "/whoami")
    expect(answers(page)).to_have_count(6)
    assert said(page)[: len(before)] == before


def test_a_stopped_answer_can_be_tried_again_at_once(page: Page) -> None:
    """Found by use: the note that it was stopped hid Retry until the page was loaded again."""
    page.goto("/chat/new")
    live(page)
    send(page, "count to 200")
    expect(answers(page)).to_contain_text("1 2")
    press(page, "Stop")
    expect(page.locator("#send")).to_be_visible()
    expect(page.locator("#talk p.hint")).to_have_text("Stopped. Why?")
    page.locator("li.assistant[data-of]").hover()
    expect(page.get_by_role("button", name="Retry")).to_have_count(1)


def test_a_file_over_the_page_marks_only_where_it_can_be_dropped(page: Page) -> None:
    page.goto("/chat/new")
    live(page)
    send(page, "echo one")
    expect(answers(page)).to_have_text("one")
    page.evaluate(DRAG)
    marked = page.locator("form").evaluate_all(
        "(all) => all.filter((one) => getComputedStyle(one).outlineStyle === 'dashed')"
        ".map((one) => one.id)"
    )
    assert marked == ["say"]


def test_a_device_that_is_offline_says_so_and_sends_later(window: Window) -> None:
    context, seen = window
    page = context.new_page()
    page.goto("/chat/new")
    live(page)
    seen.expect("ERR_INTERNET_DISCONNECTED", "ERR_FAILED", "ERR_INCOMPLETE_CHUNKED")
    context.set_offline(True)
    expect(page.locator("#link")).to_have_text("offline")
    expect(page.locator("#doing")).to_have_text("This device is offline.")
    send(page, "echo later")
    expect(page.locator(".place")).to_have_text("sent when this device is online again")
    context.set_offline(False)
    live(page)
    expect(answers(page)).to_have_text("later")
    expect(page.locator("li.user")).to_have_count(1)


def test_arrow_up_edits_the_last_message_and_a_slash_searches(page: Page) -> None:
    page.goto("/chat/new")
    live(page)
    send(page, "echo one")
    expect(answers(page)).to_have_text("one")
    expect(page.locator("li.user[data-last]")).to_have_count(1)
    page.get_by_label("Message").press("ArrowUp")
    expect(page.get_by_label("Message")).to_have_value("echo one")
    page.get_by_label("Message").press("Escape")
    page.get_by_role("log").focus()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    expect(page.get_by_role("searchbox")).to_have_value("")


def test_two_tabs_show_the_same_conversation_and_both_stop_it(
    window: Window, dash: Dashboard
) -> None:
    pages = two_tabs(window)
    send(pages[0], "echo for both")
    for page in pages:
        expect(page.locator("li.user pre")).to_have_text("echo for both")
        expect(answers(page)).to_have_text("for both")
        expect(page.locator(".waits")).to_have_count(0)
        assert page.locator("#talk > li").evaluate_all(ROLES) == ["user", "assistant"]
    send(pages[0], "slow 600")
    press(pages[1], "Stop")
    assert dash.ended(pages[0].url.partition("name=")[2]) == "cancelled"
    for page in pages:
        expect(page.locator("#send")).to_be_visible()


@pytest.mark.parametrize("trouble", ["fail now", "slow 600"])
def test_a_turn_without_an_answer_is_sent_again_and_those_before_it_stay(
    page: Page, trouble: str
) -> None:
    page.goto("/chat/new")
    live(page)
    send(page, "echo good")
    expect(answers(page)).to_have_text("good")
    send(page, trouble)
    if trouble == "slow 600":
        press(page, "Stop")
        expect(page.locator("#talk p.hint")).to_have_text("Stopped. Why?")
    else:
        expect(page.locator(".assistant .problem")).to_have_text(re.compile("You asked me to fail"))
    expect(page.locator("#send")).to_be_visible()
    expect(page.locator("li.user pre")).to_have_text(["echo good", trouble])
    act(page, "li.user", "Edit and send again")
    page.get_by_label("Message").fill("echo better")
    page.locator("#send").click()
    expect(answers(page).last).to_have_text("better")
    expect(page.locator("li.user pre")).to_have_text(["echo good", "echo better"])
    page.reload()
    expect(page.locator("li.user pre")).to_have_text(["echo good", "echo better"])
    expect(answers(page)).to_have_text(["good", "better"])


def test_an_answer_stands_before_the_messages_that_wait(page: Page) -> None:
    page.goto("/chat/new")
    live(page)
    send(page, "count to 5")
    expect(answers(page)).to_contain_text("1")
    send(page, "echo after")
    page.reload()
    live(page)
    expect(answers(page)).to_have_text(["1 2 3 4 5", "after"])
    assert page.locator("#talk > li").evaluate_all(ROLES) == 2 * ["user", "assistant"]


def test_a_message_that_is_stopped_while_it_waits_stays_and_is_sent_again(page: Page) -> None:
    """Found by use: it looked as if it was sent, and was gone with its text after a reload."""
    page.goto("/chat/new")
    live(page)
    send(page, "slow 600")
    expect(page.locator("#stop")).to_be_visible()
    send(page, "echo a long question")
    expect(page.locator("li.waits")).to_have_count(1)
    send(page, "/stopall")
    dropped = page.locator("li.dropped")
    for _ in range(2):
        expect(dropped).to_contain_text("Dropped: stopped while it waited.")
        page.reload()
        live(page)
    act(page, "li.dropped", "Edit and send again")
    expect(page.get_by_label("Message")).to_have_value("echo a long question")
    page.get_by_label("Message").press("Enter")
    expect(answers(page).last).to_have_text("a long question")
    expect(dropped).to_have_count(1)


@pytest.mark.parametrize(("screen", "lines"), [(PHONE, 2), (WIDE, 1)], ids=str)
def test_enter_sends_where_a_keyboard_has_shift(sized: Page, lines: int) -> None:
    box = sized.get_by_label("Message")
    box.press_sequentially("one")
    box.press("Enter")
    box.press_sequentially("two")
    expect(box).to_have_value("one\ntwo" if lines == 2 else "two")


CUT, OPEN = (f"() => dispatchEvent(new Event('{name}'))" for name in ("pagehide", "pageshow"))


def test_what_a_page_did_not_hear_is_there_once_when_it_hears_again(window: Window) -> None:
    pages = two_tabs(window)
    send(pages[0], "echo heard")
    expect(answers(pages[1])).to_have_text("heard")
    pages[1].evaluate(CUT)
    send(pages[0], "echo missed")
    expect(answers(pages[0])).to_have_text(["heard", "missed"])
    pages[1].evaluate(OPEN)
    send(pages[0], "/whoami")
    expect(answers(pages[1])).to_have_text(["heard", "missed", re.compile("You are")])
    assert pages[1].locator("#talk > li").evaluate_all(ROLES) == 3 * ["user", "assistant"]


def test_a_turn_that_is_sent_again_is_replaced_in_other_tabs(window: Window) -> None:
    pages = two_tabs(window)
    for words in ("one", "two"):
        send(pages[0], f"echo {words}")
        for page in pages:
            expect(answers(page).last).to_have_text(words)
    act(pages[0], "li.user", "Edit and send again")
    send(pages[0], "echo three")
    for page in pages:
        expect(answers(page)).to_have_text(["one", "three"])


def test_after_a_lost_connection_an_answer_in_progress_is_there_once(page: Page) -> None:
    """The gateway then sends again what has been said of it so far."""
    page.goto("/chat/new")
    live(page)
    send(page, "count to 6")
    expect(answers(page)).to_contain_text("1 2")
    half = "() => (connected(), talk.querySelector('li.assistant .words').textContent)"
    assert page.evaluate(half).startswith("1 2"), "it stays until it is said again"
    page.evaluate("() => ['pagehide', 'pageshow'].map((name) => dispatchEvent(new Event(name)))")
    expect(answers(page)).to_have_text("1 2 3 4 5 6")
    expect(page.locator("#doing")).to_be_empty()


def test_a_message_whose_run_begins_while_a_page_catches_up_is_there_once(page: Page) -> None:
    """What the page fetched then says that the message waits."""
    page.goto("/chat/new")
    live(page)
    send(page, "count to 6")
    expect(answers(page)).to_contain_text("1 2")
    send(page, "echo second")
    expect(page.locator("li.user.waits")).to_have_count(1)
    late: list[tuple[Route, APIResponse]] = []
    page.route(re.compile("/chat/talk"), lambda route: late.append((route, route.fetch())))
    page.evaluate("() => ['pagehide', 'pageshow'].map((name) => dispatchEvent(new Event(name)))")
    expect(answers(page)).to_have_text(["1 2 3 4 5 6", "second"])
    for route, response in late:
        assert "data-message" in response.text()
        route.fulfill(response=response)
    page.unroute_all(behavior="wait")
    send(page, "echo third")
    expect(answers(page)).to_have_text(["1 2 3 4 5 6", "second", "third"])
    assert page.locator("#talk > li").evaluate_all(ROLES) == 3 * ["user", "assistant"]


def test_the_focus_stays_on_a_message_when_its_run_ends(page: Page) -> None:
    """Found by use: the lines were exchanged for others, and the focus was lost."""
    page.goto("/chat/new")
    live(page)
    send(page, "count to 6")
    expect(answers(page)).to_contain_text("1 2")
    page.locator("li.user [data-act=copy]").focus()
    expect(page.locator("li.user[data-last]")).to_have_count(1)
    assert page.evaluate("document.activeElement.dataset.act") == "copy"
    page.locator("li.assistant [data-act=copy]").focus()
    page.evaluate("() => void say('echo one more')")
    expect(answers(page)).to_have_text(["1 2 3 4 5 6", "one more"])
    assert page.evaluate("document.activeElement.dataset.act") == "copy"


def test_what_is_opened_and_selected_stays_when_a_run_ends(page: Page) -> None:
    page.goto("/chat/new")
    live(page)
    send(page, "write opened.txt buy milk")
    expect(answers(page)).to_contain_text("Wrote opened.txt")
    opened = page.locator(".tools details")
    opened.locator("summary").click()
    answers(page).evaluate("(words) => getSelection().selectAllChildren(words)")
    page.evaluate("() => void say('echo more')")
    expect(answers(page).last).to_have_text("more")
    expect(page.locator("#send")).to_be_visible()
    expect(opened).to_have_attribute("open", "")
    assert "Wrote opened.txt" in page.evaluate("getSelection().toString()")


def test_what_was_said_before_new_stays_above_its_answer(page: Page) -> None:
    page.goto("/chat/new")
    live(page)
    for text in ("echo old", "/new", "echo young"):
        send(page, text)
        expect(answers(page).last).to_have_text(
            texts.NEW_SESSION if text == "/new" else text.removeprefix("echo ")
        )
    for _ in range(2):
        expect(page.locator("li.user pre")).to_have_text(["echo old", "/new", "echo young"])
        assert page.locator("#talk > li").evaluate_all(ROLES) == [
            "user",
            "assistant",
            "user",
            "assistant",
            "user",
            "assistant",
        ]
        page.reload()
        live(page)


def test_escape_closes_what_is_done_with_a_conversation(page: Page) -> None:
    page.goto("/chat/new")
    live(page)
    send(page, "echo hello")
    change = page.locator("#change")
    before = change.locator("summary").bounding_box()
    change.locator("summary").click()
    assert change.locator("summary").bounding_box() == before, "nothing moves"
    page.get_by_label("Title").press("Escape")
    expect(change).not_to_have_attribute("open", "")
    expect(change.locator("summary")).to_be_focused()


def test_earlier_lines_are_shown_on_request(page: Page) -> None:
    page.goto("/chat/new")
    live(page)
    for number, words in enumerate(("one", "two"), 1):
        send(page, f"echo {words}")
        expect(answers(page)).to_have_count(number)
    expect(page.locator("li.user[data-last]")).to_have_text(re.compile("echo two"))
    earlier = page.get_by_role("button", name="Show earlier messages")
    expect(earlier).to_be_hidden()
    page.evaluate("() => { most = 2; refresh(); }")  # as if it were long
    expect(answers(page)).to_have_text(["two"])
    earlier.click()
    expect(answers(page)).to_have_text(["one", "two"])
    expect(earlier).to_be_hidden()


DRAG = """() => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File(["x"], "x.txt"));
  const facts = { bubbles: true, cancelable: true, dataTransfer };
  document.getElementById("talk").dispatchEvent(new DragEvent("dragover", facts));
}"""

ROLES = "(all) => all.map((one) => one.className)"

HIDE = """() => Object.defineProperty(document, "hidden", { get: () => true })"""
NOTE = """window.__shown = [];
if (window.ServiceWorkerRegistration)
  ServiceWorkerRegistration.prototype.showNotification = async (title, { body }) => {
    window.__shown.push([title, body]);
  };"""


def test_an_answer_is_notified_in_the_background_after_it_was_turned_on(
    window: Window, dash: Dashboard
) -> None:
    context, _ = window
    context.add_init_script(NOTE)
    page = context.new_page()
    page.goto("/chat/new")
    live(page)
    chat = page.url.partition("name=")[2]
    context.grant_permissions(["notifications"])
    button = page.get_by_role("button", name="Notify me")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    send(page, "echo seen")
    expect(answers(page)).to_have_text("seen")
    until_confirmed(dash, chat)
    expect(page.locator("#called")).to_have_text("echo seen")
    page.evaluate(HIDE)
    dash.say("echo unseen", chat=chat)
    expect(answers(page)).to_have_text(["seen", "unseen"])
    page.wait_for_function("() => window.__shown.length")
    assert page.evaluate("window.__shown") == [["echo seen", "unseen"]]
    expect(page).to_have_title("(1) echo seen · goclaw")
    page.reload()
    expect(page).to_have_title("echo seen · goclaw")
    expect(button).to_have_attribute("aria-pressed", "true")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    page.evaluate(HIDE)
    dash.say("echo quiet", chat=chat)
    expect(answers(page)).to_have_text(["seen", "unseen", "quiet"])
    assert page.evaluate("window.__shown") == []


def test_the_chat_can_be_installed(page: Page) -> None:
    page.goto("/chat")
    link = str(page.locator("link[rel=manifest]").get_attribute("href"))
    answer = page.request.get(link)
    assert answer.headers["content-type"] == "application/manifest+json"
    facts = answer.json()
    assert (facts["start_url"], facts["display"]) == ("/chat", "standalone")
    for icon in facts["icons"]:
        found = page.request.get(icon["src"])
        assert found.headers["content-type"] == icon["type"]
        if icon["type"] == "image/png":
            width = int.from_bytes(found.body()[16:20], "big")
            assert icon["sizes"] == f"{width}x{width}"
    # The policy of the page lets the browser read it.
    session = page.context.new_cdp_session(page)
    read = session.send("Page.getAppManifest")
    assert read["url"].endswith(link)
    assert read["errors"] == []
