"""Shared services of pages: rendering, live updates, forms."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, cast
from urllib.parse import parse_qsl, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from goclaw_py.core.actors import acting
from goclaw_py.core.errors import GoclawError
from goclaw_py.core.pagination import MAX_CURSOR_CHARS
from goclaw_py.core.text import count
from goclaw_py.operations.control import Control
from goclaw_py.operations.nouns import NOUNS
from goclaw_py.web.api.streams import ClosedStream
from goclaw_py.web.api.wire import MAX_BODY_BYTES
from goclaw_py.web.pages.hub import Hub, LivePart
from goclaw_py.web.pages.parameters import WrongField
from goclaw_py.web.pages.rendering import THEMES, Pages
from goclaw_py.web.roles import level_of

MAX_FORM_BYTES: Final = MAX_BODY_BYTES
MAX_FIELDS: Final = 200
FORM_S: Final = 30.0
"""Seconds for the body of a form: strangers may send one, too, and hold a connection with it."""

THEME_COOKIE: Final = "goclaw_theme"

SLOW_S: Final = 0.2
"""Facts that take longer are kept; a person who waits for them is told so."""

CACHED_FACTOR: Final = 20
"""They are kept for this many times as long: collecting them again and again takes 5 % of a CPU."""

_MOST_CACHED: Final = 50

COUNTS_S: Final = 2.0
"""The numbers in the menu are at most this old when a page is made."""

Facts = Mapping[str, object]
Query = Mapping[str, str]
LoadFacts = Callable[[Query], Awaitable[Facts]]
"""Collects the facts of a page's live part; ``Query`` has only the page's parameters.

``named`` are sessions and people whose display names the part shows; it gets them as ``names``.
"""

NOTICES: Final = {
    "stopped": "Stopped.",
    "stopped_dropped": "Stopped, and dropped {}.",
    "started": "Nothing was dropped: it has started. Stop it if it should not go on.",
    "asking": "Stopped. The task waited for an approval.",
    "unsent": "Stopped. The rest of the answer will not be sent.",
    "nothing": "There was nothing to do.",
    "unchanged": "Nothing changed: {}.",
    "saved": "Saved.",
    "asked": "Requested a run of {}.",
    "removed": "Removed {}.",
    "allowed": "Allowed {}.",
    "denied": "Denied {}.",
    "deleted": "The conversation was deleted.",
    "forked": "This is a copy. What you write here changes only the copy.",
    "answered": "Answered.",
    "late": "It has been answered already, or its time is over.",
    "welcome": "Signed in.",
    "left": "Signed out.",
    **{key: text for noun in NOUNS for key, text in noun.notices.items()},
}
"""The notices after an action: those that several pages use, and those of one noun.

The address selects one of these, and says what ``{}`` in it is.
"""


ENDED: Final = "ended"
_LEFT: Final = r"[\d,]{1,9} (was|were|had) [a-z]{1,12}( already)?"
_CHAT: Final = r"[\w-]{1,32}/[\w-]{1,64}/[\w.@:-]{1,64}"
_OBJECT: Final = re.compile(
    rf"([\w.@:,-]{{1,64}}( [\w.@:,-]{{1,64}}| {_CHAT})?|{_LEFT})(; {_LEFT}){{0,7}}", re.ASCII
)
"""What was changed, in an address: a number or kind, and a name or chat; and how many were not, and
why.

No link makes us say more.
"""


@dataclass(frozen=True, slots=True)
class Page:
    """A page with a live part.

    Args:
        path: Its path, without parameters.
        name: Its templates are ``NAME.html`` and, for the live part, ``NAME_live.html``, unless
            ``part`` is given.
        title: Its title.
        load: Collects the facts of both.
        params: The query parameters that select its contents; others are ignored.
        every_s: The interval of updates of the live part, in seconds.
        is_cached: No action on it changes what it shows. Facts that take long to collect are then
            collected less often, and the page says so until they are there.
        part: The template of the live part of a page that has nothing else, or a ``frame``.
        frame: The template around ``part``.
    """

    path: str
    name: str
    title: str
    load: LoadFacts
    params: tuple[str, ...] = ()
    every_s: float = 1.0
    is_cached: bool = False
    part: str = ""
    frame: str = "live.html"

    @property
    def template(self) -> str:
        """The template of the page."""
        return self.frame if self.part else f"{self.name}.html"

    @property
    def live_template(self) -> str:
        """The template of its live part."""
        return self.part or f"{self.name}_live.html"


class PageServices:
    """The services that pages share.

    Args:
        now_s: Returns the Unix time in seconds.
    """

    def __init__(
        self, control: Control, hub: Hub, pages: Pages, now_s: Callable[[], float]
    ) -> None:
        self.control = control
        self.hub = hub
        self._pages = pages
        self._now_s = now_s
        self._loading: dict[tuple[str, ...], asyncio.Task[dict[str, object]]] = {}
        self._counts: Mapping[str, int] = {}
        self._counted_s = -COUNTS_S

    @property
    def has_menu(self) -> bool:
        """Whether there are pages besides the chat."""
        return self._pages.has_menu

    def now(self) -> datetime:
        """Return the present instant."""
        return datetime.fromtimestamp(self._now_s(), UTC)

    def routes(self, page: Page) -> list[Route]:
        """Return the page and its event stream."""
        return [Route(page.path, self.show(page)), self.live_route(page)]

    def show(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        """Return what answers with a page: without wrong parameters, of which it says so."""

        async def show(request: Request) -> Response:
            query, typed, said = own_query(page, request), dict[str, str](), ""
            while True:
                facts = asyncio.ensure_future(self.facts(page, query))
                if page.is_cached and "wait" not in request.query_params:
                    await asyncio.wait({facts}, timeout=SLOW_S)
                    if not facts.done():
                        facts.cancel()
                        return self._soon(request, page)
                try:
                    whole = {"typed": typed, "error": said} | dict(await facts)
                    whole["notice"] = await self._notice(request, whole)
                    return self.answer(request, page.template, whole, 422 if said else 200)
                except WrongField as error:
                    del query[error.field]
                    typed[error.field] = error.text
                    said = said or str(error.detail)

        return show

    async def _notice(self, request: Request, facts: Facts) -> str:
        """Return the notice that the address selects, with the name of a chat or person.

        The page may know more ``called`` than the messages of people have told.
        """
        changed = request.query_params.get("notice", "")
        notice, (*_, chat) = notice_of(changed), changed.split(" ")
        if not notice or "/" not in chat:
            return notice
        called = cast("Mapping[str, str]", facts.get("called", {})).get(chat)
        if not called:
            called = (await self.control.sessions.names([chat]))[chat]
        return notice.replace(chat, called)

    def live_route(self, page: Page) -> Route:
        """Return the event stream of a page's live part."""

        async def live(request: Request) -> Response:
            query = own_query(page, request)
            key = _part_key(page, query)

            async def make() -> str:
                part = self.render(page.live_template, await self._load(page, query))
                return part + self.render("counts.html", {"counts": await self.counts()})

            seen = request.headers.get("last-event-id", "")
            return ClosedStream(self.hub.stream(LivePart(key, make, page.every_s), seen))

        return Route(f"/live/{page.name}", live)

    async def counts(self) -> Mapping[str, int]:
        """Return the numbers beside entries of the menu, at most ``COUNTS_S`` old."""
        if self._pages.has_menu and self._now_s() >= self._counted_s + COUNTS_S:
            self._counted_s = self._now_s()
            try:
                backlog = (await self.control.lanes.status()).backlog
            except GoclawError:
                return self._counts  # the page itself may work
            if backlog is not None:
                failed = backlog.failed + backlog.unanswered
                self._counts = {"failed": failed, "approvals": backlog.approvals}
        return self._counts

    async def facts(self, page: Page, query: Query) -> Facts:
        """Return the facts for the templates of a page."""
        source = f"/live/{page.name}" + (f"?{urlencode(sorted(query.items()))}" if query else "")
        own = {"title": page.title, "path": page.path, "live": source, "query": query}
        own["part"] = page.live_template
        return own | await self._load(page, query) | {"counts": await self.counts()}

    def _soon(self, request: Request, page: Page) -> Response:
        """Return a page that says that it takes a moment, and is replaced by the whole one."""
        whole = f"{page.path}?{urlencode({**request.query_params, 'wait': '1'})}"
        facts = {"title": page.title, "path": page.path, "whole": whole}
        return self.answer(request, "soon.html", facts)

    async def _load(self, page: Page, query: Query) -> dict[str, object]:
        """Return the facts of a live part; for a page that keeps them perhaps not the newest."""
        if not page.is_cached:
            return await self._collect(page, query)
        key = _part_key(page, query)
        task = self._loading.get(key)
        if task is None:
            loop = asyncio.get_running_loop()
            began = loop.time()

            def forget_later(done: asyncio.Task[dict[str, object]]) -> None:
                took = loop.time() - began
                failed = done.cancelled() or done.exception() is not None
                is_slow = took > SLOW_S and len(self._loading) <= _MOST_CACHED
                loop.call_later(
                    CACHED_FACTOR * took if is_slow and not failed else 0,
                    self._loading.pop,
                    key,
                    None,
                )

            task = asyncio.create_task(self._collect(page, query), name="page facts")
            self._loading[key] = task
            task.add_done_callback(forget_later)
        # Others wait for it, too.
        return await asyncio.shield(task)

    async def _collect(self, page: Page, query: Query) -> dict[str, object]:
        """Return the facts of a live part, with the display names that it asks for."""
        facts = dict(await page.load(query))
        keys = cast("Iterable[str]", facts.pop("named", ()))
        if "names" not in facts:
            facts["names"] = await self.control.sessions.names(sorted(set(keys)))
        return facts

    def render(self, template: str, facts: Facts) -> str:
        """Fill a template."""
        return self._pages.render(template, facts)

    def answer(self, request: Request, template: str, facts: Facts, status: int = 200) -> Response:
        """Return a whole page, with the notice that the address selects."""
        notice = notice_of(request.query_params.get("notice", ""))
        own: dict[str, object] = {
            "notice": notice,
            "theme": theme_of(request),
            "counts": self._counts,
            "is_posted": request.method == "POST",
        }
        whole = {**own, "error": "", "typed": {}, "live": "", "query": {}} | dict(facts)
        return HTMLResponse(self.render(template, whole), status)


def notice_of(text: str) -> str:
    """Return the notice that an address selects, "" for one that is not ours."""
    word, _, changed = text.partition(" ")
    found = NOTICES.get(word, "")
    if "{}" not in found:
        return found
    return found.format(changed) if _OBJECT.fullmatch(changed) else ""


def theme_of(request: Request) -> str:
    """Return the theme that this browser has chosen; "" is that of its system."""
    chosen = request.cookies.get(THEME_COOKIE, "")
    return chosen if chosen in {theme for theme, _, _ in THEMES} else ""


async def form(request: Request) -> dict[str, str]:
    """Return the fields of a submitted form; of repeated ones the last. Raises as ``fields``."""
    return dict(await fields(request))


async def fields(request: Request) -> list[tuple[str, str]]:
    """Return names and values of a submitted form, in order.

    Raises ``HTTPException``: 415 for another content type, 413 and 400 for an invalid body, 408
    for one that does not arrive in ``FORM_S``.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "the form must be sent as application/x-www-form-urlencoded")
    body = bytearray()
    close = {"Connection": "close"}
    try:
        async with asyncio.timeout(FORM_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_FORM_BYTES:
                    raise HTTPException(413, f"the form is longer than {MAX_FORM_BYTES} bytes")
    except TimeoutError as error:
        raise HTTPException(408, "the form did not arrive in time", close) from error
    except ClientDisconnect as error:
        raise HTTPException(400, "the form was cut short", close) from error
    try:
        return parse_qsl(
            body.decode("utf-8"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except ValueError as error:
        raise HTTPException(400, "the form cannot be read") from error


def changed_notice(word: str, things: str, left: Mapping[str, int]) -> str:
    """Return the notice after an action on several objects.

    Args:
        word: One of ``NOTICES``.
        things: How many were changed, such as ``3 jobs``; "" for none.
        left: How many were not, by what they were, such as ``active already``, or had: ``ended``.
    """
    rest = [
        f"{n:,} had {what}" if what == ENDED else count(n, f"was {what}", f"were {what}")
        for what, n in left.items()
        if n
    ]
    if things:
        return f"{word} {'; '.join((things, *rest))}"
    return f"unchanged {'; '.join(rest)}" if rest else "nothing"


def back_to(path: str, notice: str, /, **query: str) -> Response:
    """Redirect to a page after an action.

    The notice is one of ``NOTICES``; after a space follows what was changed, such as ``3 jobs``.
    """
    return RedirectResponse(f"{path}?{urlencode({**query, 'notice': notice})}", status_code=303)


def _part_key(page: Page, query: Query) -> tuple[str, ...]:
    """Return what two requests must have in common to be shown the same."""
    actor = acting()
    level = "" if actor is None else f"{level_of(actor)} {actor.reads_text}"
    return (page.name, level, *(f"{name}={value}" for name, value in sorted(query.items())))


def own_query(page: Page, request: Request) -> dict[str, str]:
    """Return the parameters of a page in an address."""
    given = request.query_params
    return {name: given[name][:MAX_CURSOR_CHARS] for name in page.params if given.get(name)}
