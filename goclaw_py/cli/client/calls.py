"""Methods as HTTP requests: their signature says what is sent and what comes back."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, get_type_hints
from urllib.parse import quote

from goclaw_py.core.errors import GoclawError, NotFound
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.targets import target_text
from goclaw_py.operations.declare import operations_of
from goclaw_py.operations.jobs import Requester
from goclaw_py.records import MessageFilter
from goclaw_py.web.api import wire
from goclaw_py.web.api.error_json import NotAccepted

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
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]],
    route: str,
    *,
    key: str = "",
    read: Callable[[Any], R] | None = None,
    without: str = "",
    unsent: str = "",
    **names: str,
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """Implement a method by a request.

    Arguments fill the placeholders of the path. The others are query parameters of a GET, and
    else keys of the body; a ``Requester`` is always in the query.

    Args:
        method: That of the protocol or class.
        route: Method and path, such as ``GET /api/runs/{prefix}``.
        key: The result is the value of this key of the response.
        read: Makes the result from the response; its annotation says what that is.
        without: The path if the argument in ``route`` is None.
        unsent: An argument that the gateway knows by itself.
        names: Names of arguments that the body calls otherwise.
    """
    verb, path = route.replace(":path}", "}").split()
    made = _Call(method, verb, path, key, read, without, unsent, names)

    async def sent(self: Remote, /, *args: P.args, **kwargs: P.kwargs) -> R:
        given = made.signature.bind(self, *args, **kwargs)
        given.apply_defaults()
        return made.result(await self.send(*made.request(given.arguments)))  # type: ignore[no-any-return]

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
            sent = call(
                getattr(service, name),
                one.route,
                key=one.key,
                read=one.read,
                without=one.without,
                unsent=one.unsent,
            )
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
    verb: str
    path: str
    key: str
    read: Callable[[Any], Any] | None
    without: str
    unsent: str
    names: Mapping[str, str]

    @cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.method)

    @cached_property
    def kind(self) -> Any:
        """The type of the response."""
        if self.read is not None:
            first = next(iter(inspect.signature(self.read).parameters))
            return get_type_hints(self.read)[first]
        kind: Any = get_type_hints(self.method)["return"]
        return dict[str, kind] if self.key else kind

    def request(self, arguments: Mapping[str, object]) -> tuple[str, str, object, Params]:
        """Return the request for these arguments, the service itself included."""
        _, *given = arguments.items()
        rest = dict(given)
        rest.pop(self.unsent, None)
        filled = {name: rest.pop(name) for name in re.findall(r"{(\w+)}", self.path)}
        path = self.path
        if self.without and None in filled.values():
            path, filled = self.without, {}
        for name, one in filled.items():
            if str(one) in ("", ".", ".."):
                # The path would be another one.
                raise NotAccepted(f"{name}: must not be {str(one)!r}")
        path = path.format(**{name: segment(one) for name, one in filled.items()})
        params = query(by=rest.pop("by", None))
        if self.verb == "GET":
            return self.verb, path, None, {**params, **query(**rest)}
        body = {self.names.get(name, name): value for name, value in rest.items()}
        return self.verb, path, body or None, params

    def result(self, raw: bytes) -> Any:
        """Return what a response means."""
        if self.kind is type(None):
            return None
        found = wire.read(self.kind, raw)
        if self.read is not None:
            return self.read(found)
        return found[self.key] if self.key else found


def query(**given: object) -> dict[str, Value]:
    """Return the parameters that have a value, as in a URL."""
    params: dict[str, Value] = {}
    for name, value in given.items():
        match value:
            case None:
                pass
            case Requester():
                params |= asker_params(value)
            case MessageFilter(channel, chat, since, text):
                place = None if chat is None else target_text(chat.whole_chat)
                params |= query(channel=channel, chat=place, since=since, search=text or None)
            case datetime():
                params[name] = value.isoformat()
            case Cursor():
                params[name] = str(value)
            case _ if is_dataclass(value):
                params |= query(**_fields_of(value))
            case str():
                # Use the value of an enum; httpx would send its name.
                params[name] = str.__str__(value)
            case bool() | int():
                params[name] = value
            case _:
                raise TypeError(f"{name}: no query parameter is a {type(value).__name__}")
    return params


def _fields_of(selection: Any) -> dict[str, object]:
    """Return the fields of a filter or query: each is a parameter, and none a record.

    Except ``only``, the filter of a query, whose fields are parameters too.
    """
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
