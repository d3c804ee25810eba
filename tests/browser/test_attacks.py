"""What a chat user typed is never run: it stays text wherever it is shown (SEC-1).

The policy of the pages is switched off for most of this, so that nothing but the pages themselves
protects; one test shows that the policy would hold, too. ``test_pages`` looks at each page so.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, FloatRect, Locator, Page, expect

from tests.browser.conftest import DESK, visit
from tests.browser.dashboard import EVE, Dashboard
from tests.browser.seen import (
    ATTACK,
    HIT,
    TURNED,
    Seen,
    hit,
    is_clean,
    live,
    open_details,
    send,
)

pytestmark = pytest.mark.real_time

QUERIES = (
    *("/?notice={}", "/timeline?in={}", "/deliveries?search={}", "/sessions?key={}"),
    *("/jobs?name={}&page={}", "/heartbeats/main?heartbeat_run={}", "/people?error={}"),
)
REFUSED = {
    "/chat?name={}": 422, "/runs/{}": 404, "/jobs/{}": 404, "/heartbeats/{}": 404,
    "/sessions/view?key={}": 404, "/{}": 404, "/timeline?span={}": 422, "/jobs?state={}": 422,
    "/deliveries?show={}": 422, "/heartbeats/main?outcome={}": 422,
}  # fmt: skip


@pytest.fixture(scope="module")
def openly(dash: Dashboard, chromium: Browser) -> Iterator[tuple[Page, Seen]]:
    """A window that would run what a page lets through."""
    with visit(chromium, dash.url, DESK, bypass_csp=True) as (context, seen):
        yield context.new_page(), seen


@pytest.fixture
def bare(openly: tuple[Page, Seen]) -> Page:
    return openly[0]


def test_hostile_content_is_seen_as_it_was_typed(bare: Page, dash: Dashboard) -> None:
    run = next(run for run in dash.runs("seed") if run["tools"])
    for path in (
        f"/runs/{run['id']}",
        f"/sessions/view?key={run['session']}",
        "/deliveries",
        "/heartbeats/main",
        f"/jobs/{dash.job}",
        f"/jobs/{dash.job}/edit",
    ):
        bare.goto(path)
        open_details(bare)
        is_clean(bare)
        typed = bare.locator("textarea").evaluate_all("(all) => all.map((one) => one.value)")
        text = bare.locator("main").inner_text() + "".join(typed)
        assert ATTACK in text, path
    assert bare.title().startswith("Edit <script>")


def test_what_arrives_while_one_looks_stays_text(bare: Page, dash: Dashboard) -> None:
    bare.goto("/jobs")
    live(bare)
    job = dash.make_job(ATTACK[:80])
    expect(bare.get_by_role("link", name=ATTACK[:80], exact=True)).to_be_visible()
    is_clean(bare)
    dash.client.delete(f"/api/jobs/{job}")


def test_what_the_chat_streams_stays_text(bare: Page) -> None:
    """Said by a person, said by an agent while it grows, and found again in the history."""
    bare.goto("/chat?name=hostile")
    live(bare)
    send(bare, f"echo {ATTACK}")
    formatted = ATTACK.replace("&amp;", "&")
    expect(bare.locator("li.assistant .words")).to_have_text(formatted)
    expect(bare.locator("li.user pre")).to_have_text(f"echo {ATTACK}")
    is_clean(bare)
    bare.reload()
    expect(bare.locator("li.assistant .words")).to_have_text(formatted)
    is_clean(bare)


def test_the_preview_of_a_job_says_back_nothing_but_text(bare: Page) -> None:
    bare.goto("/jobs/new")
    for label in ("Time, interval, or cron expression", "Time zone"):
        bare.get_by_label(label).fill(ATTACK)
        expect(bare.locator("#preview .problem")).to_be_visible()
        assert bare.locator("#preview").locator("script, img, a, svg").count() == 0
    is_clean(bare)


def place(found: Locator) -> FloatRect:
    box = found.first.bounding_box()
    assert box is not None
    return box


def test_a_name_that_turns_around_turns_nothing_beside_it(bare: Page, dash: Dashboard) -> None:
    job = dash.make_job(f"before {TURNED}after")
    bare.goto("/jobs")
    row = bare.locator(f"#job-{job}")
    name, does = place(row.locator(".wide bdi")), place(row.locator(".wide small"))
    assert does["x"] >= name["x"] + name["width"]
    expect(row.locator(".wide small")).to_have_text("prompt: echo done")
    bare.goto("/people")
    person = bare.get_by_role("row").filter(has_text=str(EVE))
    assert place(person.locator("small"))["x"] > place(person.locator("bdi"))["x"]
    dash.client.delete(f"/api/jobs/{job}")


def status_of(page: Page, query: str, what: str) -> int:
    """Of a page whose address has this wherever it may."""
    answer = page.goto(query.replace("{}", quote(what, safe="")))
    assert answer is not None
    return answer.status


@pytest.mark.parametrize("query", QUERIES)
def test_an_address_can_put_nothing_into_a_page(bare: Page, query: str) -> None:
    what = f'javascript:planted(window.__hit=9)//" onfocus=window.__hit=9 autofocus x="{ATTACK}'
    assert status_of(bare, query, what) == 200
    is_clean(bare)
    assert "planted" not in bare.locator("main").inner_text()


@pytest.mark.parametrize(("query", "status"), REFUSED.items())
def test_an_address_that_leads_nowhere_is_no_page_either(
    openly: tuple[Page, Seen], query: str, status: int
) -> None:
    page, seen = openly
    assert status_of(page, query, ATTACK) == status
    expect(page.locator("h1")).to_be_visible()
    is_clean(page)
    seen.expect(str(status))


PLANT = "(html) => { document.querySelector('main').innerHTML = html }"


def test_the_policy_stops_what_would_have_got_through(dash: Dashboard, chromium: Browser) -> None:
    with visit(chromium, dash.url, DESK) as (context, seen):
        page = context.new_page()
        page.goto("/people")
        page.evaluate(PLANT, ATTACK)
        page.wait_for_function("() => document.images[1].complete")
        page.get_by_text("go", exact=True).click()
        assert hit(page) is None
        assert any("Content Security Policy" in each for each in seen.complaints)
        seen.expect("")


def test_an_attack_that_runs_is_seen(dash: Dashboard, chromium: Browser) -> None:
    """Or the tests above would show nothing."""

    def look() -> None:
        with visit(chromium, dash.url, DESK, bypass_csp=True) as (context, seen):
            page = context.new_page()
            page.goto("/people")
            page.evaluate(PLANT, ATTACK)
            page.wait_for_function(f"() => window.{HIT}")
            page.goto("/health")
            seen.expect("")

    with pytest.raises(AssertionError, match="health"):
        look()


def test_every_page_and_file_brings_the_policy(dash: Dashboard) -> None:
    for path in ("/", "/chat", "/login", "/nowhere", "/static/app.js", "/jobs/preview"):
        headers = dash.client.get(path, headers={"accept": "text/html"}).headers
        policy = headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
