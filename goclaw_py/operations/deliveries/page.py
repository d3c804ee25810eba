"""The page of messages that could not be delivered or answered, and of all others."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.core.display_names import address
from goclaw_py.core.errors import NotFound
from goclaw_py.core.outcomes import outcome_text
from goclaw_py.core.targets import parse_target, target_text
from goclaw_py.core.text import count
from goclaw_py.operations.deliveries.operations import Deliveries, MessageCounts
from goclaw_py.records import (
    DeadLetterQuery,
    IncomingState,
    MessageFilter,
    OutboxQuery,
    OutboxState,
)
from goclaw_py.web.api.wire import MAX_ROW_ID
from goclaw_py.web.pages.filters import (
    Field,
    ListFilters,
    Tab,
    back_to_rows,
    channels,
    given,
    one_of,
    params_of,
    query_of,
    time_range,
)
from goclaw_py.web.pages.parameters import row_place
from goclaw_py.web.pages.services import (
    Facts,
    Page,
    PageServices,
    Query,
    changed_notice,
    fields,
    form,
)

SHOWN: Final = 50
BATCH: Final = 1000
"""The number of messages that are read at once where all that match are retried or dropped."""

_STATES: Final = (
    OutboxState.FAILED,
    OutboxState.WAITING,
    OutboxState.SENDING,
    OutboxState.SENT,
    OutboxState.DROPPED,
)
"""In the order of the tabs."""
INCOMING: Final = "incoming"
OUTGOING: Final = "outgoing"
_INCOMING: Final = {
    OutboxState.FAILED: IncomingState.FAILED,
    OutboxState.WAITING: IncomingState.WAITING,
    OutboxState.DROPPED: IncomingState.DISMISSED,
}
"""The states that have incoming messages, too."""
_FILTERS: Final = ("direction", "channel", "account", "chat", "range", "search")
_NOTICES: Final = {"retry": "retried", "drop": "dropped"}
"""The notice after each action."""
_STALE: Final = re.compile(r"(in|out)-([0-9]{1,19})")
_MOST_STALE: Final = 5
"""The number of messages that are named after an action that left them; all are counted."""

Act = Callable[[Collection[int]], Awaitable[int]]


def routes(service: PageServices) -> list[Route]:
    """Return the page, and the forms to retry and drop."""

    def act(box: str, verb: str) -> Route:
        async def answer(request: Request) -> Response:
            sent = await form(request)
            outgoing, incoming = _acts(service, verb)
            done = await (outgoing if box == "outgoing" else incoming)([_row(sent.get("id", ""))])
            return _back(sent.get("rows", ""), verb, done)

        return Route(f"/deliveries/{box}/{verb}", answer, methods=["POST"])

    params, part = params_of(*_FILTERS, "stale"), "deliveries/page.html"
    load = partial(_load, service)
    page = Page("/deliveries", "deliveries", "Deliveries", load, params, 3.0, part=part)
    return [
        *service.routes(page),
        Route("/deliveries/all", _all(service), methods=["POST"]),
        Route("/deliveries/selected", _selected(service), methods=["POST"]),
        *(act(box, verb) for box in ("outgoing", "incoming") for verb in _NOTICES),
    ]


async def _load(service: PageServices, query: Query) -> Facts:
    deliveries = service.control.deliveries
    filters = _filters(query, await channels(service, query))
    only, direction, show = _only(service, filters), filters.values["direction"], filters.show
    has_out = direction != INCOMING
    has_letters = direction != OUTGOING and (show in _INCOMING or not has_out)
    # Half of each where there are two lists: a row has several forms.
    most = SHOWN // 2 if has_out and has_letters else SHOWN
    before = {name: row_place(query, name) for name in ("before", "in")}
    outgoing = OutboxQuery(OutboxState(show), only=only, limit=most + 1, before=before["before"])
    incoming = DeadLetterQuery(
        _INCOMING.get(OutboxState(show), IncomingState.FAILED), only, most + 1, before["in"]
    )
    rows, letters, counts, stale = await asyncio.gather(
        deliveries.outbox(outgoing) if has_out else _no_rows(),
        deliveries.dead_letters(incoming) if show in _INCOMING and has_letters else _no_rows(),
        deliveries.counts(only),
        _stale(deliveries, query.get("stale", "")),
    )
    outgoing_now, incoming_now = counts.changeable(OutboxState(show))
    return {
        "changeable": (outgoing_now if has_out else 0, incoming_now if has_letters else 0),
        "filters": replace(filters, tabs=_tabs(counts, direction)),
        "show": show,
        "has_out": has_out,
        "has_letters": has_letters,
        "rows": rows[:most],
        "next": rows[most - 1].id if len(rows) > most else None,
        "letters": letters[:most],
        "next_letter": letters[most - 1].row.id if len(letters) > most else None,
        "stale": stale,
        "chat_of": lambda target: target_text(target.whole_chat),
        "named": [
            *(address(row.message.target) for row in rows),
            *(one.session for one in letters),
            *(() if only.chat is None else (address(only.chat),)),
        ],
    }


def _filters(query: Query, known: Iterable[str]) -> ListFilters:
    """Return the filters of an address. ``known`` are the channels that can be selected."""
    chat = parse_target(query.get("chat", ""))
    fields = (
        time_range("Created", "all"),
        one_of("direction", "Direction", (INCOMING, OUTGOING)),
        one_of("channel", "Channel", known),
        *given(query, "account", "Account"),
        *(() if chat is None else given(query, "chat", "Chat", address(chat))),
        Field("search", "Search", placeholder="part of the text"),
    )
    return ListFilters("/deliveries", "messages", query, fields, _STATES)


def _only(service: PageServices, filters: ListFilters) -> MessageFilter:
    values = filters.values
    return MessageFilter(
        values["channel"] or None,
        parse_target(values.get("chat", "")),
        filters.since(service.now()),
        values["search"],
        values.get("account") or None,
    )


def _tabs(counts: MessageCounts, direction: str) -> tuple[Tab, ...]:
    incoming = {
        OutboxState.FAILED: counts.failed,
        OutboxState.WAITING: counts.waiting,
        OutboxState.DROPPED: counts.dismissed,
    }
    listed = {INCOMING: (incoming,), OUTGOING: (counts.outgoing,)}
    both = listed.get(direction, (incoming, counts.outgoing))
    return tuple(Tab(state.value, sum(some.get(state, 0) for some in both)) for state in _STATES)


async def _no_rows() -> list[Any]:
    return []


async def _stale(deliveries: Deliveries, text: str) -> list[tuple[str, int, str]]:
    """Return what became of the selected messages in an address that were not changed.

    Each has its kind, its number, and its state in words.
    """
    known = [(kind, int(number)) for kind, number in _STALE.findall(text)[:_MOST_STALE]]
    found = [(kind, number) for kind, number in known if number <= MAX_ROW_ID]

    async def state(kind: str, number: int) -> str:
        try:
            if kind == "out":
                return (await deliveries.outbox_row(number)).state.value
            row = (await deliveries.dead_letter(number)).row
        except NotFound:
            return "deleted"
        if row.outcome is None:
            return "running" if row.run_id else "waiting"
        return outcome_text(row.outcome)

    states = await asyncio.gather(*(state(kind, number) for kind, number in found))
    return [(*one, words) for one, words in zip(found, states, strict=True)]


def _all(service: PageServices) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that retries or drops all messages of a tab that match the filters.

    Those that failed, or, to drop them, those that wait.
    """

    async def answer(request: Request) -> Response:
        sent = await form(request)
        query = query_of(sent.get("rows", ""))
        filters = _filters(query, await channels(service, query))
        only, direction = _only(service, filters), filters.values["direction"]
        verb = "retry" if sent.get("do", "retry") == "retry" else "drop"
        waits = verb == "drop" and filters.show == OutboxState.WAITING
        deliveries = service.control.deliveries
        outgoing, incoming = _acts(service, verb)
        state = OutboxState.WAITING if waits else OutboxState.FAILED
        done, listed = 0, OutboxQuery(state, only=only, limit=BATCH)
        while direction != INCOMING and (rows := await deliveries.outbox(listed)):
            # A message that fails again meanwhile is not retried again.
            listed = replace(listed, before=rows[-1].id)
            done += await outgoing([row.id for row in rows])
        unanswered = DeadLetterQuery(IncomingState(state), only, BATCH)
        while direction != OUTGOING and (letters := await deliveries.dead_letters(unanswered)):
            unanswered = replace(unanswered, before=letters[-1].row.id)
            can_end = [one.row.id for one in letters if one.row.asking_run is None]
            done += await incoming(can_end) if can_end else 0
        return _back(sent.get("rows", ""), verb, done)

    return answer


def _selected(service: PageServices) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that retries or drops the selected messages, as far as it still can."""

    async def answer(request: Request) -> Response:
        sent = await fields(request)
        ids = {
            kind: [_row(value) for name, value in sent if name == kind] for kind in ("out", "in")
        }
        verb = next((verb for verb in _NOTICES if ("do", verb) in sent), None)
        if verb is None:
            raise HTTPException(422, "do: retry or drop")
        outgoing, incoming = _acts(service, verb)
        done, stale = 0, []
        for kind, how in (("out", outgoing), ("in", incoming)):
            # One by one, to say of each whether it was changed: there is a page of them.
            for number in ids[kind]:
                if changed := await how([number]):
                    done += changed
                else:
                    stale.append(f"{kind}-{number}")
        return _back(dict(sent).get("rows", ""), verb, done, stale)

    return answer


def _acts(service: PageServices, verb: str) -> tuple[Act, Act]:
    """Return what retries or drops outgoing messages, and incoming ones."""
    deliveries = service.control.deliveries
    if verb == "retry":
        return deliveries.retry_outbox, deliveries.retry_dead_letters
    return deliveries.drop_outbox, deliveries.dismiss_dead_letters


def _back(rows: str, verb: str, changed: int, stale: Sequence[str] = ()) -> Response:
    """Redirect to the list after a number of messages was changed."""
    things = count(changed, "message") if changed else ""
    notice = changed_notice(_NOTICES[verb], things, {"changed already": len(stale)})
    more = {"stale": ".".join(stale[:_MOST_STALE])} if stale else {}
    return back_to_rows("/deliveries", notice, rows, _FILTERS, **more)


def _row(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= MAX_ROW_ID:
        return int(text)
    raise HTTPException(422, "a message has a number")
