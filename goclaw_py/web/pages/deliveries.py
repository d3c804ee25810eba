"""The page of messages that could not be delivered or answered, and of all others."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.core.display_names import address
from goclaw_py.core.errors import NotFound
from goclaw_py.core.targets import parse_target, target_text
from goclaw_py.operations.control import Control, MessageCounts
from goclaw_py.records import MessageFilter, OutboxState
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
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query, fields, form

SHOWN: Final = 50
BATCH: Final = 1000
"""The number of messages that are read at once where all that match are retried or dropped."""

_STATES: Final = {
    "failed": OutboxState.DEAD,
    "waiting": OutboxState.PENDING,
    "sending": OutboxState.SENDING,
    "sent": OutboxState.SENT,
    "dropped": OutboxState.DROPPED,
}
_FILTERS: Final = ("channel", "chat", "range", "search")
_STALE: Final = re.compile(r"(in|out)-([0-9]{1,19})")
_MOST_STALE: Final = 50

Act = Callable[[Collection[int]], Awaitable[int]]


def routes(service: PageServices) -> list[Route]:
    """Return the page, and the forms to retry and drop."""
    control = service.control

    def act(how: Act, notice: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            sent = await form(request)
            done = await how([_row(sent.get("id", ""))])
            return _back(sent.get("rows", ""), notice if done else "nothing")

        return answer

    acts: dict[str, tuple[Act, str]] = {
        "/outbox/retry": (control.retry_outbox, "retried"),
        "/outbox/drop": (control.drop_outbox, "dropped"),
        "/inbox/retry": (control.retry_dead_letters, "retried"),
        "/inbox/drop": (control.dismiss_dead_letters, "dropped"),
    }
    params = params_of(*_FILTERS, "stale")
    page = Page("/deliveries", "deliveries", "Deliveries", partial(_look, service), params, 3.0)
    return [
        *service.routes(page),
        Route("/deliveries/all", _all(service), methods=["POST"]),
        Route("/deliveries/selected", _selected(control), methods=["POST"]),
        *(
            Route(f"/deliveries{path}", act(how, notice), methods=["POST"])
            for path, (how, notice) in acts.items()
        ),
    ]


async def _look(service: PageServices, query: Query) -> Facts:
    control = service.control
    filters = _filters(query, await channels(service, query))
    only = _only(service, filters)
    show = filters.show
    has_letters = show in ("failed", "waiting")
    # Half of each where there are two lists: a row has several forms.
    most = SHOWN // 2 if has_letters else SHOWN
    before = {name: _row(query[name]) if name in query else None for name in ("before", "in")}
    rows, letters, counts, stale = await asyncio.gather(
        control.outbox(limit=most + 1, state=_STATES[show], only=only, before=before["before"]),
        control.dead_letters(
            waiting=show == "waiting", limit=most + 1, only=only, before=before["in"]
        ),
        control.message_counts(only),
        _stale(control, query.get("stale", "")),
    )
    return {
        "filters": replace(filters, tabs=_tabs(counts)),
        "show": show,
        "rows": rows[:most],
        "next": rows[most - 1].id if len(rows) > most else None,
        "letters": letters[:most] if has_letters else (),
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
        one_of("channel", "Channel", known),
        *(() if chat is None else given(query, "chat", "Chat", address(chat))),
        Field("search", "Search", placeholder="part of the text"),
    )
    return ListFilters("/deliveries", "messages", query, fields, tuple(_STATES))


def _only(service: PageServices, filters: ListFilters) -> MessageFilter:
    values = filters.values
    return MessageFilter(
        values["channel"] or None,
        parse_target(values.get("chat", "")),
        filters.since(service.now()),
        values["search"],
    )


def _tabs(counts: MessageCounts) -> tuple[Tab, ...]:
    incoming = {"failed": counts.failed, "waiting": counts.waiting}
    return tuple(
        Tab(name, counts.outgoing.get(state, 0) + incoming.get(name, 0))
        for name, state in _STATES.items()
    )


async def _stale(control: Control, text: str) -> list[tuple[str, int, str]]:
    """Return what became of the selected messages in an address that were not changed.

    Each has its kind, its number, and its state in words.
    """
    known = [(kind, int(number)) for kind, number in _STALE.findall(text)[:_MOST_STALE]]
    found = [(kind, number) for kind, number in known if number <= MAX_ROW_ID]

    async def state(kind: str, number: int) -> str:
        try:
            if kind == "out":
                return (await control.outbox_row(number)).state.value
            row = (await control.dead_letter(number)).row
        except NotFound:
            return "deleted"
        return "waiting" if row.outcome is None else row.outcome.value.replace("_", " ")

    states = await asyncio.gather(*(state(kind, number) for kind, number in found))
    return [(*one, words) for one, words in zip(found, states, strict=True)]


def _all(service: PageServices) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that retries or drops all failed messages that match the filters."""
    control = service.control

    async def answer(request: Request) -> Response:
        sent = await form(request)
        query = query_of(sent.get("rows", ""))
        only = _only(service, _filters(query, await channels(service, query)))
        retries = sent.get("do", "retry") == "retry"
        done, before = 0, None
        while rows := await control.outbox(
            limit=BATCH, state=OutboxState.DEAD, only=only, before=before
        ):
            # A message that fails again meanwhile is not retried again.
            before = rows[-1].id
            outgoing = control.retry_outbox if retries else control.drop_outbox
            done += await outgoing([row.id for row in rows])
        before = None
        while letters := await control.dead_letters(limit=BATCH, only=only, before=before):
            before = letters[-1].row.id
            incoming = control.retry_dead_letters if retries else control.dismiss_dead_letters
            done += await incoming([one.row.id for one in letters])
        notice = "retried" if retries else "dropped"
        return _back(sent.get("rows", ""), notice if done else "nothing")

    return answer


def _selected(control: Control) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that retries or drops the selected messages, as far as they still fail."""

    async def answer(request: Request) -> Response:
        sent = await fields(request)
        ids = {
            kind: [_row(value) for name, value in sent if name == kind] for kind in ("out", "in")
        }
        retries = ("do", "retry") in sent
        if not retries and ("do", "drop") not in sent:
            raise HTTPException(422, "do: retry or drop")
        outgoing = control.retry_outbox if retries else control.drop_outbox
        incoming = control.retry_dead_letters if retries else control.dismiss_dead_letters
        done, stale = 0, []
        for kind, how in (("out", outgoing), ("in", incoming)):
            # One by one, to say of each whether it was changed: there is a page of them.
            for number in ids[kind]:
                if changed := await how([number]):
                    done += changed
                else:
                    stale.append(f"{kind}-{number}")
        rows = dict(sent).get("rows", "")
        notice = ("retried" if retries else "dropped") if done else "nothing"
        return _back(rows, notice, stale)

    return answer


def _back(rows: str, notice: str, stale: Iterable[str] = ()) -> Response:
    more = {"stale": ".".join(stale)} if stale else {}
    return back_to_rows("/deliveries", notice, rows, _FILTERS, **more)


def _row(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= MAX_ROW_ID:
        return int(text)
    raise HTTPException(422, "a message has a number")
