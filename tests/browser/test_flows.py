"""Flows of a day at three widths in both themes, by the keyboard alone (OPS-3, CHAN-9).

After each flow the page is within its screen, and axe finds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, FloatRect, Locator, Page, expect

from goclaw_py.web.pages.rendering import IN_MENU
from tests.browser.conftest import Screen, visit
from tests.browser.dashboard import Dashboard
from tests.browser.seen import live, overflow, send, title, violations, whole

pytestmark = pytest.mark.real_time

WIDTHS = (390, 768, 1440)
SCREENS = [
    Screen(f"{width} {theme}", {"viewport": {"width": width, "height": 844}, "color_scheme": theme})
    for width in WIDTHS
    for theme in ("light", "dark")
]
FLOWS: dict[str, Callable[[Page, Dashboard], None]] = {}


def flow(function: Callable[[Page, Dashboard], None]) -> Callable[[Page, Dashboard], None]:
    """Add a flow to the table."""
    FLOWS[function.__name__] = function
    return function


def enter(what: Locator) -> None:
    """Press the Enter key on something that has the focus."""
    what.press("Enter")


def width_of(page: Page) -> int:
    return (page.viewport_size or {"width": 0})["width"]


def place(found: Locator) -> FloatRect:
    box = found.bounding_box()
    assert box is not None
    return box


@pytest.fixture(scope="module", params=SCREENS, ids=str)
def screened(
    request: pytest.FixtureRequest, dash: Dashboard, chromium: Browser
) -> Iterator[tuple[Page, str]]:
    """A window, and the name of its screen. All windows are of one gateway.

    A wrong code is answered with 404.
    """
    with visit(chromium, dash.url, request.param) as (context, seen):
        seen.expect("404")
        yield context.new_page(), str(request.param).replace(" ", "-")


@pytest.fixture(scope="module", autouse=True)
def _failed_delivery(dash: Dashboard) -> None:
    """For the menu and Now, whatever other tests have left."""
    dash.undelivered("for the flows")


@flow
def menu(page: Page, dash: Dashboard) -> None:
    """Four groups; a drawer on narrow screens; a number beside what needs a person."""
    del dash
    page.goto("/")
    pages = page.get_by_role("navigation", name="Pages")
    if width_of(page) < 1024:
        expect(pages).to_be_hidden()
        enter(page.get_by_role("button", name="Menu"))
    groups = ["Overview", "Activity", "Automation", "Admin"]
    expect(pages.get_by_role("heading")).to_have_text(groups)
    expect(pages.get_by_role("listitem").first).to_have_text("Chat")
    deliveries = pages.get_by_role("link", name="Deliveries")
    expect(deliveries.locator(".count")).to_have_text(re.compile(r"\d+"))
    enter(deliveries)
    title(page, "Deliveries")


@flow
def now(page: Page, dash: Dashboard) -> None:
    """Figures lead to what they count, a warning to what it is about, with names."""
    del dash
    page.goto("/")
    live(page)
    expect(page.locator("#figures > a")).to_have_count(6)
    warning = page.locator(".warning").filter(has_text="could not be delivered: Ann").first
    assert "goclaw " not in warning.inner_text()
    enter(warning.get_by_role("link"))
    title(page, "Deliveries")
    page.go_back()
    failed = page.locator("#figures a").filter(has_text="failed today")
    number = failed.locator("strong").inner_text().strip()
    enter(failed)
    title(page, "Runs")
    expect(page.locator(".tabs [aria-current] small")).to_have_text(number)
    page.go_back()
    enter(page.locator("#figures a").filter(has_text="runs waiting"))
    expect(page.get_by_role("heading", name="Waiting")).to_be_in_viewport()


@flow
def lists(page: Page, dash: Dashboard) -> None:
    """A run is found by its prompt; a row is one line, on a phone two; jobs change in bulk."""
    del dash
    page.goto("/runs?range=all")
    if width_of(page) < 640:
        enter(page.locator(".fold > summary"))
    search = page.get_by_role("searchbox", name="Search")
    search.fill("ERROR <script>")
    enter(search)
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("error <script>")
    assert place(rows)["height"] <= (66 if width_of(page) <= 768 else 34)
    page.goto("/jobs")
    live(page)
    # By its id: a paused job has no next run, so its row moves.
    job = page.locator(f"#{page.locator('tbody tr').first.get_attribute('id')}")
    for action, state in (("Pause", "paused"), ("Resume", "active")):
        job.get_by_role("checkbox").press("Space")
        enter(page.get_by_role("button", name=f"{action} 1", exact=True))
        expect(job).to_contain_text(state)


@flow
def one_run(page: Page, dash: Dashboard) -> None:
    """Why, the answer that was sent, and the steps, which open."""
    run = next(run for run in dash.runs("seed") if run["tools"])
    page.goto(f"/runs/{run['id']}")
    expect(page.get_by_role("region", name="Why?")).to_contain_text("completed")
    expect(page.get_by_role("region", name="Answer")).to_contain_text("Wrote ")
    steps = page.get_by_role("region", name="Steps")
    enter(steps.locator("summary").filter(has_text="write_file"))
    expect(steps.locator("details[open] pre").first).to_be_visible()
    enter(page.locator(".above").get_by_role("link", name="Runs"))
    enter(page.get_by_role("link", name="Timeline"))
    whole(page)
    picture = page.get_by_role("group", name=re.compile("^Runs of"))
    assert place(picture)["width"] > 0.7 * width_of(page)


@flow
def settings(page: Page, dash: Dashboard) -> None:
    """One section is open, with the values in force; a search shows one list while one types."""
    del dash
    page.goto("/settings?section=scheduler")
    expect(page.locator("#found table")).to_have_count(1)
    expect(page.locator("#found tr").filter(has_text="max_jobs")).to_contain_text("50")
    search = page.get_by_role("searchbox")
    search.press_sequentially("main.size")
    expect(page.get_by_role("heading", name="setting with “main.size”")).to_be_visible()
    expect(page.locator("#found table")).to_have_count(1)
    expect(page.locator("#found tr").filter(has_text="main.size")).to_contain_text("2")
    enter(page.locator("#found").get_by_role("link", name="lanes", exact=True))
    expect(page.get_by_role("region", name="lanes")).to_be_visible()


@flow
def people(page: Page, dash: Dashboard) -> None:
    """Requests come first; a wrong code is said where it was typed."""
    del dash
    page.goto("/people")
    expect(page.get_by_role("region").first).to_contain_text("Pending requests")
    code = page.get_by_label("Pairing code")
    code.fill("WRONG")
    enter(code)
    expect(page.get_by_role("alert")).to_contain_text("no valid pairing request")
    expect(page.get_by_label("Pairing code")).to_be_focused()


@flow
def chat(page: Page, dash: Dashboard) -> None:
    """The input stays at the bottom, Send turns into Stop, and what waits is greyed."""
    page.goto("/chat/new")
    live(page)
    expect(page.locator("#begin button")).to_have_count(3)
    enter(page.locator("#begin button").first)
    box = page.get_by_label("Message", exact=True)
    expect(box).not_to_have_value("")
    send(page, "echo " + "line\n\n" * 40)
    expect(page.locator("li.assistant .words")).to_have_count(1)
    screen = page.viewport_size or {"height": 0}
    assert place(box)["y"] > 0.8 * screen["height"]
    assert page.evaluate("() => document.documentElement.scrollHeight") <= screen["height"]
    send(page, "/queue queue")
    send(page, "slow 600")
    expect(page.locator("#stop")).to_be_visible()
    send(page, "echo later")
    expect(page.locator("li.user.waits .place")).to_have_text("next")
    assert violations(page) == []
    enter(page.locator("#stop"))
    expect(page.locator("#send")).to_be_visible()


@pytest.mark.parametrize("name", FLOWS)
def test_a_flow_is_done_by_the_keyboard_on_each_screen(
    screened: tuple[Page, str], dash: Dashboard, name: str
) -> None:
    page, _ = screened
    FLOWS[name](page, dash)
    whole(page)
    assert overflow(page) <= 0
    assert violations(page) == []


def test_every_page_fits_each_screen_and_is_read_without_scripts(
    screened: tuple[Page, str], dash: Dashboard, chromium: Browser
) -> None:
    size = {"viewport": screened[0].viewport_size}
    bare = Screen("bare", size)
    with visit(chromium, dash.url, bare, java_script_enabled=False) as (context, _):
        page = context.new_page()
        for path, name in IN_MENU:
            if path == "/chat":
                continue
            page.goto(path)
            title(page, name)
            assert overflow(page) <= 0, path
