"""The pages of runs: the list, one run, and the timeline (SPEC OPS-3).

The address has the filters. Fields of the forms that are called as those of ``RunFilter`` select by
them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, groupby
from typing import Final
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from goclaw_py.core.display_names import address, sender_words, short_id
from goclaw_py.core.errors import NotFound
from goclaw_py.core.ids import SessionKey
from goclaw_py.core.messages import Role
from goclaw_py.core.outcomes import FAILURES, Outcome, Trigger, outcome_text
from goclaw_py.core.session_keys import console_chat, is_direct_chat, job_of
from goclaw_py.core.text import first_words, without_source
from goclaw_py.core.web_links import OWN_CHANNELS
from goclaw_py.operations.runs.operations import RUNNING
from goclaw_py.operations.runs.steps import step_bars
from goclaw_py.operations.runs.timeline import PARTS, draw, outcome_meaning, pile
from goclaw_py.records import (
    MOST_RUNS_COUNTED,
    MOST_RUNS_ORDERED,
    MOST_RUNS_SEARCHED,
    RunFilter,
    RunOrder,
    RunQuery,
)
from goclaw_py.web.message_text import sees_text
from goclaw_py.web.pages.filters import (
    ANY_FAILURE,
    ORDER,
    TAB,
    Field,
    ListFilters,
    Tab,
    given,
    of_agent,
    one_of,
    page_number,
    params_of,
    selected,
    time_range,
)
from goclaw_py.web.pages.parameters import WrongField, place, wrong_field
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query, back_to, form

_FILTERS: Final = tuple(one.name for one in fields(RunFilter))

SHOWN: Final = 50
_SHARED: Final = ("agent", "trigger", "outcome", ORDER)
_NEWEST: Final = "newest"
_ORDERS: Final = {
    _NEWEST: "newest first",
    RunOrder.DURATION.value: "longest first",
    RunOrder.TOKENS.value: "most tokens first",
    RunOrder.COST.value: "highest cost first",
}
_ORDER: Final = Field(ORDER, "Order", _ORDERS, default=_NEWEST)
MOST_LISTED: Final = 500
"""The number of runs on all pages of a list in another order, which each page reads again."""
_ALWAYS: Final = (RUNNING, Outcome.COMPLETED.value, ANY_FAILURE)
_STATES: Final = ("", *_ALWAYS, *(one.value for one in Outcome if one.value not in _ALWAYS))

_SHOWN_STEPS: Final = 500
_TITLE_CHARS: Final = 90

SPANS: Final = {
    "10m": timedelta(minutes=10),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(days=1),
}
_SPANS_IN_ORDER: Final = ("1h", *(name for name in SPANS if name != "1h"))

_LEGEND: Final = tuple(
    (meaning, ", ".join(outcome_text(one.value) if one else RUNNING for one in outcomes))
    for meaning, outcomes in groupby(
        sorted((*Outcome, None), key=outcome_meaning), key=outcome_meaning
    )
)
"""The colours of the timeline, with their outcomes."""

MOST: Final = 800
"""The number of runs that are drawn: each is a fifth of a kilobyte."""

SHORTEST: Final = timedelta(seconds=1)
"""The shortest time span. One with too many runs is drawn in parts, however short it is."""


def routes(service: PageServices) -> list[Route]:
    """Return the list, the timeline, and the page of a run."""
    filters = (one for one in _FILTERS if one != "outcome")
    params = params_of("range", *filters, "search", "session", "from", ORDER)
    listed = Page(
        *("/runs", "runs", "Runs", partial(_list, service), params, 2.0),
        is_cached=True,
        part="runs/page.html",
        frame="filtered.html",
    )
    filters = (one for one in _FILTERS if one != "sender")
    params = params_of("span", "from", "to", "whole", ORDER, *filters)
    timeline = Page(
        *("/timeline", "timeline", "Timeline", partial(_timeline, service), params, 2.0),
        is_cached=True,
        part="runs/timeline.html",
        frame="filtered.html",
    )
    load = partial(_run, service)
    params = ("id", "retried")
    one = Page("/runs/view", "run", "Run", load, params, every_s=2.0, part="runs/run.html")

    async def show(request: Request) -> Response:
        """Show a run by its id or the beginning of it."""
        prefix = request.path_params["prefix"]
        if len(prefix) > 64:
            raise HTTPException(404)
        return service.answer(request, one.template, await service.facts(one, {"id": prefix}))

    return [
        *(route for page in (listed, timeline, one) for route in service.routes(page)),
        Route("/runs/retry", partial(_retry, service), methods=["POST"]),
        Route("/runs/{prefix}", show),
    ]


async def _list(service: PageServices, query: Query) -> Facts:
    control = service.control
    fields = (
        # Links from sums name the instant at which these begin.
        Field("from", "From", is_time=True) if "from" in query else time_range("Started"),
        await of_agent(control, query),
        one_of("trigger", "Trigger", Trigger),
        *((Field("search", "Search", placeholder="part of the prompt"),) if sees_text() else ()),
        *given(query, "sender", "Sender", sender_words(query.get("sender", ""))),
        *given(query, "session", "Session"),
        _ORDER,
    )
    filters = ListFilters("/runs", "runs", query, fields, _STATES)
    values, show = filters.values, filters.show
    order = next((one for one in RunOrder if one == values[ORDER]), None)
    number = 1 if order is None else min(page_number(query), MOST_LISTED // SHOWN)
    since = filters.since(service.now()) if "range" in values else None
    if since is None and "from" in query:
        since = _instant("From", "from", query["from"])
    search = values.get("search", "")
    wanted = RunQuery(
        only=selected(RunFilter, values),
        session=SessionKey(values["session"]) if "session" in values else None,
        since=since,
        active=show == RUNNING,
        search=search,
        # The runs in another order are counted here, where the store does not count them.
        limit=MOST_LISTED if order and search else number * SHOWN + 1,
        before=place(query) if order is None else None,
        order=order,
    )
    one = next((one for one in Outcome if one == show), None)
    outcomes = FAILURES if show == ANY_FAILURE else (one,)
    # Of several outcomes each has its own index.
    queries = [replace(wanted, only=replace(wanted.only, outcome=each)) for each in outcomes]
    listed = asyncio.gather(*map(control.runs.list, queries))
    if search:  # counting the matches would read all prompts
        counts, pages = None, await listed
    else:
        counts, pages = await asyncio.gather(control.runs.counts(queries[0]), listed)
    found = sorted(
        chain(*pages), key=lambda run: run.place_in(order) if order else run.cursor, reverse=True
    )
    runs = found[(number - 1) * SHOWN :][:SHOWN]
    tabs = _tabs(counts, show)
    total = next((one.count for one in tabs if one.value == show), None)
    return {
        "runs": runs,
        "is_direct": is_direct_chat,
        "next": runs[-1].cursor if order is None and len(found) > SHOWN else None,
        "order": order,
        "number": number,
        "total": len(found) if total is None else total,
        "shown": SHOWN,
        "listed": MOST_LISTED,
        "filters": replace(filters, tabs=tabs),
        "shared": _shared(filters) | ({} if one is None else {"outcome": one.value}),
        "most": MOST_RUNS_COUNTED,
        "most_ordered": MOST_RUNS_ORDERED,
        "most_searched": MOST_RUNS_SEARCHED,
        "named": {
            *(run.session for run in runs),
            *(run.sender for run in runs if run.sender),
            *(values[name] for name in ("sender", "session") if name in values),
        },
    }


def _shared(filters: ListFilters) -> dict[str, str]:
    """Return the filters that the list and the timeline have both."""
    return {name: one for name, one in filters.chosen.items() if name in _SHARED}


def _tabs(counts: Mapping[str, int] | None, show: str) -> tuple[Tab, ...]:
    """Return the states with their counts: those of ``_ALWAYS``, and others that occur."""
    if counts is None:
        return tuple(map(Tab, _STATES))
    ended = sum(counts.values()) - counts.get(RUNNING, 0)
    more = ended >= MOST_RUNS_COUNTED
    sums = {"": sum(counts.values()), ANY_FAILURE: sum(counts.get(one, 0) for one in FAILURES)}
    whole = {**counts, **sums}
    return tuple(
        Tab(one, whole.get(one, 0), more and one != RUNNING)
        for one in _STATES
        if one in ("", *_ALWAYS, show) or whole.get(one)
    )


async def _timeline(service: PageServices, query: Query) -> Facts:
    """``span`` selects the time, or ``from`` and ``to`` do."""
    fields = (
        await of_agent(service.control, query),
        one_of("trigger", "Trigger", Trigger),
        one_of("outcome", "Outcome", Outcome),
        Field("from", "From", placeholder="2026-01-31 08:00", is_time=True),
        Field("to", "To", placeholder="now", is_time=True),
        replace(_ORDER, hidden=True),
    )
    tabs = tuple(map(Tab, SPANS))
    filters = ListFilters("/timeline", "runs", query, fields, _SPANS_IN_ORDER, "span", tabs=tabs)
    only = selected(RunFilter, filters.values)
    name = filters.show
    span = SPANS[name]
    # In steps, so that a small movement of the picture does not send everything again.
    step = span.total_seconds() / 200
    now = datetime.fromtimestamp((service.now().timestamp() // step + 1) * step, UTC)
    since, until = _chosen(query, now) or (now - span, now)
    length = until - since
    control = service.control
    runs = await control.runs.between(since, until, limit=MOST + 1, only=only)
    facts: Facts = {}
    if len(runs) > MOST:
        runs = []
        counts = await control.runs.density(since, until, parts=PARTS, only=only)
        facts = pile(counts, since, until)
    shared = _shared(filters)
    if outcome := shared.pop("outcome", ""):
        shared[TAB] = outcome
    return {
        "filters": filters,
        "shared": shared,
        "script": "charts.js",
        "span": "" if "from" in query else name,
        "moves": {
            "Earlier": (since - length / 2, until - length / 2),
            "Later": (since + length / 2, until + length / 2),
            "Zoom in": (since + length / 4, until - length / 4),
            "Zoom out": (since - length / 2, until + length / 2),
        },
        "runs": runs,
        "named": [run.session for run in runs],
        **(facts or draw(runs, since, until, query.get("whole", ""))),
        "whole": query.get("whole", ""),
        "piled": bool(facts),
        "since": since,
        "until": until,
        # Its end is rounded up.
        "ends_now": until >= service.now(),
        "legend": _LEGEND,
    }


def _chosen(query: Query, now: datetime) -> tuple[datetime, datetime] | None:
    """Return the time in the address, at least ``SHORTEST``. Raises ``WrongField``.

    Without ``to`` it ends now. Times without a zone are those of UTC.
    """
    if "from" not in query:
        return None
    since = _instant("From", "from", query["from"])
    until = _instant("To", "to", query["to"]) if "to" in query else now
    if not timedelta(0) <= until - since <= timedelta(days=366):
        name = "to" if "to" in query else "from"
        raise WrongField(name, query[name], "To must be after From, by a year at most")
    return since, max(until, since + SHORTEST)


def _instant(label: str, name: str, text: str) -> datetime:
    try:
        one = datetime.fromisoformat(text.strip())
        return one.replace(tzinfo=UTC) if one.tzinfo is None else one.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise wrong_field(name, label, text, "a time, such as 2026-01-31 08:00") from error


async def _run(service: PageServices, query: Query) -> Facts:
    """Prompt, answer, explanation, tools and cost of a run, and what can be done with it."""
    control = service.control
    record = await control.runs.record(query.get("id", ""))
    run, now = record.run, service.now()
    said = (one.entry.text for one in record.entries if one.entry.role is Role.USER)
    prompt = next(said, run.prompt)
    why = None
    with suppress(NotFound):
        why = await control.why(f"run:{run.id}")
    retried = None
    if re.fullmatch(r"[0-9]{1,18}", query.get("retried", "")):
        with suppress(NotFound):
            retried = (await control.deliveries.dead_letter(int(query["retried"]))).row
    return {
        "path": "/runs",
        "retried": retried,
        "chat": console_chat(run.session),
        "title": first_words(without_source(prompt), _TITLE_CHARS) or f"Run {short_id(run.id)}",
        "run": run,
        # Their messages are the Markdown of the agent; those of others have markup of their own.
        "own_channels": OWN_CHANNELS,
        "named": [run.session, *(address(one.message.target) for one in record.said)],
        "record": record,
        "prompt": without_source(prompt),
        "job": job_of(run.session),
        "why": why,
        "bars": step_bars(record, now)[-_SHOWN_STEPS:],
        "waited": run.started_at - run.submitted_at,
        "lasted": (run.finished_at or now) - run.started_at,
    }


async def _retry(service: PageServices, request: Request) -> Response:
    """Retry the messages that a run did not answer. Its page then follows the first of them."""
    control = service.control
    record = await control.runs.record((await form(request)).get("run", ""))
    retryable = record.retryable
    done = await control.deliveries.retry_dead_letters(retryable) if retryable else 0
    if not done:
        return back_to("/runs/view", "nothing", id=record.run.id)
    query = urlencode({"id": record.run.id, "retried": min(retryable)})
    return RedirectResponse(f"/runs/view?{query}", status_code=303)
