"""What a browser noticed beside what it shows: complaints, failures, requests to other hosts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from axe_playwright_python.base import AXE_SCRIPT  # type: ignore[import-untyped]
from playwright.sync_api import (
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    Response,
    expect,
)

HIT: Final = "__hit"
"""What every attack of these tests would set, if it ran."""

ATTACK: Final = (
    "<script>window.__hit=1</script><img src=x onerror='window.__hit=2'>"
    '<a href="javascript:window.__hit=3">go</a></textarea></title></pre><svg onload=window.__hit=4>'
    "'\"&amp;{{7*7}}${7*7}`"
)
TURNED: Final = "\u202egnp.exe\u2066 \u200b"
"""Turns the direction of what follows."""


@dataclass
class Seen:
    """The complaints of one context. ``home`` is the host and port that pages may ask."""

    # Without slots: the library notes at whoever listens how it has wrapped the listener.

    home: str
    _noted: list[str] = field(default_factory=list)
    _expected: list[str] = field(default_factory=list)

    @property
    def complaints(self) -> list[str]:
        """All but those that a test has brought about."""
        return [each for each in self._noted if not any(part in each for part in self._expected)]

    def watch(self, context: BrowserContext) -> None:
        context.on("console", self._console)
        context.on("weberror", lambda error: self._noted.append(f"raised: {error.error}"))
        context.on("requestfailed", self._failed)
        context.on("request", self._asked)
        context.on("response", self._answered)

    def expect(self, *parts: str) -> None:
        """Whatever has one of these parts is meant to be complained about."""
        self._expected += parts

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self._noted.append(f"console {message.type}: {message.text}")

    def _failed(self, request: Request) -> None:
        # Leaving a page ends its stream of events, and what it still asks for.
        if request.failure != "net::ERR_ABORTED":
            self._noted.append(f"failed: {request.url}: {request.failure}")

    def _asked(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.netloc != self.home and not request.url.startswith(f"blob:http://{self.home}/"):
            self._noted.append(f"asked another host: {request.url}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self._noted.append(f"status {response.status}: {response.url}")


def violations(page: Page) -> list[str]:
    """What axe finds against this page as it is now: the rule, the place, the words."""
    # Evaluated, not added to the page: the page lets no script run that is not its own.
    page.evaluate(AXE_SCRIPT)
    found: list[Mapping[str, Any]] = page.evaluate(
        "async () => (await axe.run()).violations.map(({ id, help, nodes }) =>"
        " ({ id, help, nodes: nodes.map(({ target, html, failureSummary }) =>"
        " ({ target, html: html.slice(0, 160), failureSummary })) }))"
    )
    return [
        f"{one['id']} ({one['help']}): {json.dumps(node)}" for one in found for node in one["nodes"]
    ]


_LISTEN: Final = """() => {
  window.__focused = [];
  // Bars of the timeline move with the time, and so do the times to which it can be moved.
  const moving = / (x|width)="[\\d.]+%?"|(from|to)=[^"&]*/g;
  const named = (one) => one.outerHTML.replace(moving, "").slice(0, 120);
  document.addEventListener("focusin", ({ target }) => {
    const style = getComputedStyle(target);
    const line = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
    window.__focused.push([named(target), line]);
  });
  const wanted = "a[href], button:not([disabled]), input:not([type=hidden]), select, textarea,"
    + " summary, [tabindex='0']";
  return [...document.querySelectorAll(wanted)]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }))
    .map(named);
}"""


@dataclass(frozen=True, slots=True)
class Walk:
    """What Tab comes to, and what there is to come to. ``dark``: focused without an outline."""

    wanted: list[str]
    reached: list[str]
    dark: list[str]


def walk(page: Page) -> Walk:
    """Go through a page with Tab from its beginning."""
    page.evaluate("() => document.activeElement?.blur()")
    wanted: list[str] = page.evaluate(_LISTEN)
    for _ in range(len(wanted) + 3):  # what scrolls may show one more button
        page.keyboard.press("Tab")
    reached: list[tuple[str, bool]] = page.evaluate("() => window.__focused")
    return Walk(wanted, [html for html, _ in reached], [html for html, lit in reached if not lit])


PLANTED: Final = (
    "main script, main img, main iframe, main [onerror], main [onload], main [onmouseover],"
    " a[href^='javascript:' i], [action^='javascript:' i], [href^='data:' i]"
)
"""What no page of ours has, and an attack would bring."""


def hit(page: Page) -> str | None:
    """What an attack has set, on this page or one before; None if none has run."""
    found: str | None = page.evaluate(f"() => window.{HIT}")
    return found


_TURNING: Final = """() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  // Blocks with a text of their own end it.
  while (texts.nextNode()) {
    const { parentElement: { nodeName, parentElement }, data } = texts.currentNode;
    const isBlock = ["PRE", "TEXTAREA", "SCRIPT", "OPTION"].includes(nodeName);
    if (isBlock || parentElement?.closest(".words")) continue;
    const count = (marks) => [...data].filter((one) => marks.includes(one)).length;
    if (count("\u202a\u202b\u202d\u202e") > count("\u202c")) found.push(data);
    else if (count("\u2066\u2067\u2068") > count("\u2069")) found.push(data);
  }
  return found;
}"""


def is_clean(page: Page) -> None:
    """Nothing was planted, nothing has run, and no text turns what stands behind it."""
    assert page.locator(PLANTED).count() == 0
    assert hit(page) is None
    assert page.evaluate(_TURNING) == []


def open_details(page: Page) -> None:
    """Open everything that can be opened."""
    page.evaluate(
        "() => { for (const one of document.querySelectorAll('details')) one.open = true }"
    )


def notice(page: Page, text: str) -> None:
    """Wait until the page says this of what was done."""
    expect(page.locator(".notice")).to_have_text(text)


def press(where: Page | Locator, name: str) -> None:
    """Press a button."""
    where.get_by_role("button", name=name).click()


def answer(page: Page, *, yes: bool) -> None:
    """What is answered to the next question of the page."""
    page.once("dialog", lambda dialog: dialog.accept() if yes else dialog.dismiss())


def title(page: Page, text: str) -> None:
    """Wait for the page that is called so."""
    expect(page.get_by_role("heading", level=1)).to_have_text(text)


def whole(page: Page) -> None:
    """Wait for the page itself: where figures take their time, another one comes first."""
    expect(page.get_by_text("Adding up")).to_have_count(0)


def live(page: Page) -> None:
    """Wait until the page is told what happens."""
    expect(page.locator("#link")).to_have_text("live")


def change(page: Page) -> None:
    """Open what is done with a whole conversation."""
    page.locator("#change > summary").click()


def conversations(page: Page) -> Locator:
    """The list of conversations, which is a drawer on a narrow screen."""
    drawer = page.locator(".drawer")
    if drawer.is_visible():
        drawer.click()
    return page.get_by_role("complementary", name="Conversations")


def send(page: Page, text: str) -> None:
    """Say something in the chat."""
    page.get_by_label("Message", exact=True).fill(text)
    page.locator("#send").click()


def fill_job(page: Page, name: str, text: str, expression: str) -> None:
    """Fill the form for a new job."""
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Text", exact=True).fill(text)
    page.get_by_label(EXPRESSION).fill(expression)


EXPRESSION: Final = "Time, interval, or cron expression"


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than the screen it was made for."""
    return int(
        page.evaluate(
            "(width) => document.documentElement.scrollWidth - width",
            (page.viewport_size or {"width": 0})["width"],
        )
    )
