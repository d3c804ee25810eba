"""Methods as HTTP requests: their signature says what is sent and what comes back."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property, partial
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, get_type_hints
from urllib.parse import quote

from goclaw_py.core.actors import Least
from goclaw_py.core.errors import GoclawError, NotAccepted, NotFound
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.targets import target_text
from goclaw_py.operations.declare import Operation, operations_of
from goclaw_py.operations.jobs.models import Requester
from goclaw_py.records import JobQuery, MessageFilter
from goclaw_py.runs.usage_report import UsageQuery
from goclaw_py.web.api import wire

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Value = str | int | bool | list[str]
Params = Mapping[str, Value]


class RequestSender(Protocol):
    """Sends a request to the gateway; returns the body, or raises the error in the response."""

    def __call__(
        self, method: str, path: str, body: object = None, params: Params | None = None
    ) -> Awaitable[bytes]:
        """Raises ``NoGateway`` as well."""


class Remote:
    """A service of a gateway in another process; its methods are made with ``call``."""

    async def send(
        self, method: str, path: str, body: object = None, params: Params | None = None
    ) -> bytes:
        """Send a request; see ``RequestSender``."""
        raise NotImplementedError


def segment(value: object) -> str:
    """Quote a value as one segment of a URL path."""
    return quote(str(value), safe="")


def call(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], route: str, *, key: str = ""
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """Implement a method of a protocol by a request; see ``Operation`` for ``route`` and ``key``.

    A ``Requester`` is always in the query.
    """
    return _sender(method, Operation(route, Least.ADMIN, key=key))


def _sender(method: Callable[..., Any], operation: Operation) -> Callable[..., Any]:
    made = _Call(method, operation)

    async def sent(self: Remote, /, *args: Any, **kwargs: Any) -> Any:
        given = made.signature.bind(self, *args, **kwargs)
        given.apply_defaults()
        return made.result(await self.send(*made.request(given.arguments)))

    return sent


Refused = Callable[[str, Mapping[str, object], GoclawError], GoclawError]
"""Returns what an operation raises in place of ``NotAccepted`` and ``NotFound``."""


def remote(
    service: type[T],
    send: RequestSender,
    refused: Refused | None = None,
    **otherwise: Callable[..., Any],
) -> T:
    """Return a service of a gateway in another process: each operation is sent to its route.

    Args:
        service: The class of the service.
        send: Sends the requests.
        refused: Returns what the service itself raises for what the API cannot read or route.
        otherwise: Operations whose request or response has another form.
    """
    made = _RemoteService(service, send, refused)
    vars(made).update(otherwise)
    return cast("T", made)


class _RemoteService(Remote):
    """The operations of a service, by ``operations.declare``."""

    def __init__(self, service: type, send: RequestSender, refused: Refused | None) -> None:
        self._send = send
        for name, one in operations_of(service).items():
            sent = _sender(getattr(service, name), one)
            if refused is not None:
                sent = _refused(sent, getattr(service, name), refused)
            setattr(self, name, partial(sent, self))

    async def send(
        self, method: str, path: str, body: object = None, params: Params | None = None
    ) -> bytes:
        return await self._send(method, path, body, params)


def _refused(sent: Callable[..., Any], method: Callable[..., Any], refused: Refused) -> Any:
    signature = inspect.signature(method)

    async def translated(self: Remote, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return await sent(self, *args, **kwargs)
        except (NotAccepted, NotFound) as error:
            arguments = signature.bind(self, *args, **kwargs).arguments
            raise refused(method.__name__, arguments, error) from None

    return translated


@dataclass(frozen=True)
class _Call:
    method: Callable[..., Any]
    operation: Operation

    @cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.method)

    @cached_property
    def kind(self) -> Any:
        """The type of the response."""
        read = self.operation.read
        if read is not None:
            first = next(iter(inspect.signature(read).parameters))
            return get_type_hints(read)[first]
        kind: Any = get_type_hints(self.method)["return"]
        return dict[str, kind] if self.operation.key else kind

    def request(self, arguments: Mapping[str, object]) -> tuple[str, str, object, Params]:
        """Return the request for these arguments, the service itself included."""
        operation = self.operation
        # A segment is quoted whole: the converter of a placeholder is for the server.
        verb, path = operation.route.replace(":path}", "}").split()
        _, *given = arguments.items()
        rest = dict(given)
        rest.pop(operation.unsent, None)
        filled = {name: rest.pop(name) for name in re.findall(r"{(\w+)}", path)}
        if operation.without and None in filled.values():
            path, filled = operation.without, {}
        for name, one in filled.items():
            if str(one) in ("", ".", ".."):
                # The path would be another one.
                raise NotAccepted(f"{name}: must not be {str(one)!r}")
        path = path.format(**{name: segment(one) for name, one in filled.items()})
        params = query(by=rest.pop("by", None))
        if verb == "GET":
            return verb, path, None, {**params, **query(**rest)}
        if operation.body is not None:
            (name,) = (name for name, one in rest.items() if is_dataclass(one))
            content = operation.body(rest.pop(name))
            return verb, path, content, {**params, **query(**rest)}
        # A gateway of an older release refuses a key that it does not know.
        known = self.signature.parameters
        body = {
            name: one
            for name, one in rest.items()
            if one is not None or known[name].default is not None
        }
        return verb, path, body if rest else None, params

    def result(self, raw: bytes) -> Any:
        """Return what a response means."""
        if self.kind is type(None):
            return None
        found = wire.read(self.kind, raw)
        if self.operation.read is not None:
            return self.operation.read(found)
        return found[self.operation.key] if self.operation.key else found


def query(**given: object) -> dict[str, Value]:
    """Return the parameters that have a value, as in a URL."""
    params: dict[str, Value] = {}
    for name, value in given.items():
        match value:
            case None:
                pass
            case Requester():
                params |= asker_params(value)
            case date():
                params[name] = value.isoformat()
            case Cursor():
                params[name] = str(value)
            case _ if is_dataclass(value):
                params |= _of_record(value)
            case str():
                # Use the value of an enum; httpx would send its name.
                params[name] = str.__str__(value)
            case bool() | int():
                params[name] = value
            case float() | Decimal():
                params[name] = str(value)
            case _:
                raise TypeError(f"{name}: no query parameter is a {type(value).__name__}")
    return params


def _of_record(value: Any) -> dict[str, Value]:
    return _of_jobs(value) if isinstance(value, JobQuery) else query(**_fields_of(value))


def _of_jobs(selection: JobQuery) -> dict[str, Value]:
    """Return the selection as the parameters of ``GET /api/jobs``."""
    target = None if selection.target is None else target_text(selection.target)
    names = "limit", "offset", "name", "owner", "agent", "notify", "order"
    params = query(**{name: getattr(selection, name) for name in names}, target=target)
    return params | {
        "state": [one.value for one in selection.states],
        "kind": list(selection.kinds),
    }


def _fields_of(selection: Any) -> dict[str, object]:
    """Return the fields of a filter or query: each is a parameter, and none a record.

    Except ``only``, the filter of a query, whose fields are parameters too.
    """
    match selection:
        case MessageFilter(channel, chat, since, text, account):
            place = None if chat is None else target_text(chat.whole_chat)
            words = {"channel": channel, "account": account, "search": text or None}
            return words | {"chat": place, "since": since}
        case UsageQuery(by, since, until, days, zone, hours):
            times = {"since": since, "until": until, "days": days, "hours": hours or None}
            return {"by": ",".join(by), "tz": zone, **times}
    found = {one.name: getattr(selection, one.name) for one in fields(selection)}
    for name, value in found.items():
        if is_dataclass(value) and name != "only" and not isinstance(value, Cursor):
            raise TypeError(f"{name}: no query parameter is a {type(value).__name__}")
    return found


def asker_params(by: Requester) -> dict[str, str]:
    """Return who asks, as the parameters of ``web.api.jobs.asker_of``."""
    params = {"maker": by.maker.value, "peer": by.peer.value}
    if by.owner is not None:
        params["asker"] = by.owner
    if by.agent is not None:
        params["asker_agent"] = by.agent
    if by.chat is not None:
        params["chat"] = target_text(by.chat)
    return params
