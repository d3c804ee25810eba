"""One gateway and one browser for all tests of the dashboard: both take seconds to start."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.dashboard import Dashboard, dashboard
from tests.browser.seen import HIT, Seen, hit
from tests.support.postgres import Server, run_sql
from tests.tools.debian_tools import Missing, path_of

QUIET: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
PATIENCE_MS: Final = 20_000
"""A guard against waiting for ever: this machine may be busy with other things."""

_NOTE: Final = f"""Object.defineProperty(window, "{HIT}", {{
  set: (value) => localStorage.setItem("{HIT}", value),
  get: () => localStorage.getItem("{HIT}"),
}})"""
"""What one page notes, later ones still know."""


@dataclass(frozen=True)
class Screen:
    """What a person looks at."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


DESK: Final = Screen("desk", {"viewport": {"width": 1200, "height": 800}, "color_scheme": "light"})
_SMALL: Final = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
PHONE: Final = Screen("phone", {**_SMALL, "color_scheme": "dark"})


@pytest.fixture(scope="package")
def program() -> Path:
    """The system's browser; asked for before anything that takes long."""
    try:
        return path_of("chromium")
    except Missing as missing:
        words = str(missing)
    pytest.fail(words, pytrace=False)


@pytest.fixture(scope="package")
def databases(program: Path, request: pytest.FixtureRequest) -> list[str]:
    """DSNs of empty databases, made while this thread may still run a loop of its own."""
    # As an argument it would be started before the browser is looked for.
    postgres_server: Server = request.getfixturevalue("postgres_server")
    names = [f"browser_{uuid4().hex}" for _ in range(3)]
    asyncio.run(run_sql(postgres_server.address, *(f"create database {name}" for name in names)))
    address = postgres_server.address
    return [f"postgresql://{address.user}@/{name}?host={address.host}" for name in names]


@pytest.fixture(scope="package")
def dash(tmp_path_factory: pytest.TempPathFactory, databases: list[str]) -> Iterator[Dashboard]:
    """The gateway of most tests: it needs no token."""
    # What fails is told by the test; the questions before it would fill the report.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    with dashboard(tmp_path_factory.mktemp("browser") / "home", databases[0]) as made:
        yield made


@pytest.fixture(scope="package")
def chromium(program: Path, databases: list[str]) -> Iterator[Browser]:
    """It, with an empty profile, once the databases are made: it keeps this thread's loop busy."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        try:
            yield browser
        finally:
            browser.close()


Window = tuple[BrowserContext, Seen]
SaveArtefact = Callable[[Page, str], None]


@contextmanager
def visit(browser: Browser, url: str, screen: Screen, **options: Any) -> Iterator[Window]:
    """A visitor of its own. At the end nothing was complained about, and no attack has run."""
    context = browser.new_context(base_url=url, **screen.options, **options)
    context.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    context.add_init_script(_NOTE)
    seen = Seen(urlsplit(url).netloc)
    seen.watch(context)
    try:
        yield context, seen
        if options.get("java_script_enabled", True):
            for page in context.pages:
                if page.url != "about:blank":
                    assert hit(page) is None, page.url
        assert seen.complaints == []
    finally:
        context.close()


@pytest.fixture
def window(dash: Dashboard, chromium: Browser) -> Iterator[Window]:
    """A visitor at a desk."""
    with visit(chromium, dash.url, DESK) as made:
        yield made


@pytest.fixture
def page(window: Window) -> Page:
    return window[0].new_page()


@pytest.fixture
def seen(window: Window) -> Seen:
    """What the browser of ``page`` complains about; a test may expect some of it."""
    return window[1]


@pytest.fixture
def plain(dash: Dashboard, chromium: Browser) -> Iterator[Page]:
    """A window of somebody who lets no script run."""
    with visit(chromium, dash.url, DESK, java_script_enabled=False) as (context, _):
        yield context.new_page()


@pytest.fixture(scope="session")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> SaveArtefact:
    """Keeps pictures of pages in the folder ``GOCLAW_ARTEFACTS``, or in a temporary one."""
    named = os.environ.get("GOCLAW_ARTEFACTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("artefacts")
    folder.mkdir(parents=True, exist_ok=True)
    print(f"pictures of the dashboard are kept in {folder}")

    def keep(page: Page, name: str) -> None:
        safe = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        page.screenshot(path=folder / f"{safe}.png", full_page=True)

    return keep
