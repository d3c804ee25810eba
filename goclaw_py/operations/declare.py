"""What operations say of themselves, beside their signatures, to all layers that offer them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from goclaw_py.core.actors import Actor, Least
from goclaw_py.records.audit import OK, Facts

_Method = TypeVar("_Method", bound=Callable[..., Any])

_ATTRIBUTE: Final = "declared_operation"

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """What is recorded of an operation.

    Args:
        action: Its name, or a function of the arguments that returns it.
        subject: Returns to what it was done, from the arguments and the result; the result is None
            if the operation has failed.
        read: Returns what it may change, before it does.
        told: Returns the same afterwards, from the arguments and the result. With ``read`` only
            what differs is recorded.
        is_done: Returns whether it has changed anything.
        said: Returns the words for the result.
        actor: Returns who did it, where nobody acts before it.
        masked: An argument that is left out of the words of errors.
        find: Returns what is named by a part of its key or id, whole: arguments for the functions
            above. It comes first, because the operation may delete what it finds.
    """

    action: str | Callable[[Arguments], str]
    subject: Callable[[Arguments, Any], str]
    read: Callable[[Any, Arguments], Awaitable[Facts | None]] | None = None
    told: Callable[[Arguments, Any], Facts] | None = None
    is_done: Callable[[Arguments, Any], bool] = lambda _arguments, _result: True
    said: Callable[[Any], str] = lambda _result: OK
    actor: Callable[[Arguments], Actor] | None = None
    masked: str = ""
    find: Callable[[Any, Arguments], Awaitable[Arguments]] | None = None

    def name(self, arguments: Arguments) -> str:
        """Return the name of the action."""
        return self.action if isinstance(self.action, str) else self.action(arguments)


Actions = Mapping[str, Change]


def named(form: str) -> Callable[[Arguments, Any], str]:
    """Return a subject with values of the arguments, such as ``session {key}``."""
    return lambda arguments, _result: form.format_map(arguments)


@dataclass(frozen=True, slots=True)
class Operation:
    """How an operation is reached, by whom, and what is recorded of it.

    Args:
        route: Method and path in the API, such as ``GET /api/runs/{prefix}``. Placeholders are
            names of arguments. The others are query parameters of a GET, and else keys of the body;
            of a query record its fields.
        least: The least role for the route.
        change: None: it changes nothing.
        key: The key of the response that has the result; "": the response is the result.
        unsent: An argument that the gateway knows by itself.
        read: Makes the result from the response; its annotation says what that is.
        body: Makes the whole body from the record among the arguments; the others are query
            parameters.
        without: The path if the argument in that of ``route`` is None.
        former: The path before 0.1.0, which is served until 1.0.
    """

    route: str
    least: Least
    change: Change | None = None
    key: str = ""
    unsent: str = ""
    read: Callable[[Any], Any] | None = None
    without: str = ""
    body: Callable[[Any], object] | None = None
    former: str = ""

    def __call__(self, method: _Method) -> _Method:
        """Declare it of a method."""
        setattr(method, _ATTRIBUTE, self)
        return method


operation = Operation
"""The decorator of the methods."""


def declared(method: Callable[..., Any]) -> Operation:
    """Return what a method has declared."""
    found: Operation = getattr(method, _ATTRIBUTE)
    return found


def operations_of(service: type) -> dict[str, Operation]:
    """Return the operations of a service by their names."""
    methods = vars(service).items()
    return {name: declared(one) for name, one in methods if hasattr(one, _ATTRIBUTE)}


@dataclass(frozen=True, slots=True)
class Noun:
    """What other layers need of a noun before they load its routes, page and commands.

    Args:
        name: Of its property of ``Control``.
        service: The class with its operations.
        pages: The routes of its pages and forms, by the least role.
        plain: The strings of its records that say nothing of what people and agents have written,
            by the name of the record.
        text: Those that may: see ``web.message_text``.
        chat_changes: Methods of the store by which commands and buttons of chats change it.
        notices: What its page says after an action, by the word in the address (``back_to``).
    """

    name: str
    service: type
    pages: Mapping[Least, tuple[str, ...]] = field(default_factory=dict)
    plain: Mapping[str, str] = field(default_factory=dict)
    text: Mapping[str, str] = field(default_factory=dict)
    chat_changes: Actions = field(default_factory=dict)
    notices: Mapping[str, str] = field(default_factory=dict)

    @property
    def operations(self) -> Mapping[str, Operation]:
        """Its operations by name."""
        return operations_of(self.service)

    @property
    def package(self) -> str:
        """The name of its folder as a package."""
        return self.service.__module__.rpartition(".")[0]

    @property
    def changes(self) -> Actions:
        """What is recorded of those that change something, by name."""
        return {name: one.change for name, one in self.operations.items() if one.change}

    @property
    def reads(self) -> frozenset[str]:
        """The names of the others."""
        return frozenset(self.operations) - self.changes.keys()

    def routes(self) -> Iterator[tuple[str, Least]]:
        """Yield each route of the API and of the pages, with its least role."""
        for one in self.operations.values():
            yield one.route, one.least
            for path in filter(None, (one.without, one.former)):
                yield f"{one.route.split()[0]} {path}", one.least
        for least, routes in self.pages.items():
            yield from ((route, least) for route in routes)
