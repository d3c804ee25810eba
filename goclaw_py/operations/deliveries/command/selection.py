"""What ``inbox`` and ``outbox`` share: options, and changing messages by id or all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final, Generic, TypeVar

import typer

from goclaw_py.cli.context import AsJson, Limit, OfChannel, cli, confirm
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.messages.display import Yes
from goclaw_py.cli.names import DisplayNames
from goclaw_py.cli.output import plain, show_json
from goclaw_py.core.errors import NotFound
from goclaw_py.core.text import count
from goclaw_py.records import MessageFilter

if TYPE_CHECKING:
    from goclaw_py.operations.control import Control

T = TypeVar("T")

PAGE = 1000
"""The most messages that one request may list or change."""
_NAMED = 5

_MOST: Final = 2**63 - 1
"""The largest number that the database has."""


def _stored(number: int) -> int:
    # As ``max`` of the argument it would be in the help, where nobody can read it.
    if not 0 <= number <= _MOST:
        raise typer.BadParameter("is not the number of a message")
    return number


def _all_stored(numbers: list[int] | None) -> list[int] | None:
    return None if numbers is None else list(map(_stored, numbers))


Id = Annotated[
    int, typer.Argument(callback=_stored, metavar="ID", help="Number of the message in the list.")
]
Ids = Annotated[
    list[int] | None,
    typer.Argument(callback=_all_stored, metavar="ID", help="Numbers of messages in the list."),
]
All = Annotated[bool, typer.Option("--all", help="Select all that failed, instead of ids.")]


@dataclass(frozen=True, slots=True)
class MessageOptions:
    """The options that select messages of a list."""

    limit: Limit = 50
    channel: OfChannel = None
    search: Annotated[str, typer.Option(help="List only messages whose text has this part.")] = ""

    def filter(self) -> MessageFilter:
        """Return the filter for these options."""
        return MessageFilter(self.channel, text=self.search)


def count_of(number: int) -> str:
    """Format a number of messages; a full page means that there may be more."""
    more = " or more" if number >= PAGE else ""
    return f"{number}{more} message{'' if number == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class MessageBox(Generic[T]):
    """How to read the messages of the inbox or the outbox.

    Args:
        one: Finds a message by id. Raises ``NotFound``.
        every: Lists the messages that ``--all`` selects, at most ``PAGE``.
        id_of: Returns the id of a message.
        key: Returns the key under which its chat has a display name.
        line: Formats a message as one line.
    """

    one: Callable[[Control, int], Awaitable[T]]
    every: Callable[[Control], Awaitable[Sequence[T]]]
    id_of: Callable[[T], int]
    key: Callable[[T], str]
    line: Callable[[T, DisplayNames], str]


@dataclass(frozen=True, slots=True)
class MessageChange(Generic[T]):
    """A change to messages: retry or drop.

    Args:
        box: How to read the messages.
        do: Applies the change; returns to how many messages.
        obstacle: Returns why the change does not apply to a message, "" if it does.
        consequence: What to know before confirming. With "" no confirmation is asked for.
    """

    box: MessageBox[T]
    do: Callable[[Control, Sequence[int]], Awaitable[int]]
    obstacle: Callable[[T], str]
    consequence: str = ""


@dataclass(slots=True)
class _Chosen(Generic[T]):
    """The messages to change, and the errors of others that were named."""

    messages: list[T] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    names: DisplayNames = field(default_factory=DisplayNames)
    """Of the first messages."""


def add_retry(app: typer.Typer, change: MessageChange[T], help_text: str) -> None:
    """Add the command ``retry`` to a group."""

    @app.command(help=help_text)
    def retry(
        ctx: typer.Context,
        ids: Ids = None,
        *,
        everything: All = False,
        as_json: AsJson = False,
    ) -> None:
        done, problems = _carried_out(ctx, change, ids, everything=everything, yes=True)
        text = f"retrying {count(done, 'message')}" if done else "nothing to retry"
        _show_done({"retried": done}, text, problems, as_json=as_json)


def add_drop(app: typer.Typer, change: MessageChange[T], help_text: str) -> None:
    """Add the command ``drop`` to a group."""

    @app.command(help=help_text)
    def drop(
        ctx: typer.Context,
        ids: Ids = None,
        *,
        everything: All = False,
        yes: Yes = False,
        as_json: AsJson = False,
    ) -> None:
        done, problems = _carried_out(ctx, change, ids, everything=everything, yes=yes)
        text = f"dropped {count(done, 'message')}" if done else "nothing to drop"
        _show_done({"dropped": done}, text, problems, as_json=as_json)


def _show_done(
    document: dict[str, int], text: str, problems: Sequence[str], *, as_json: bool
) -> None:
    if as_json:
        show_json(dict[str, int], document)
    else:
        typer.echo(text)
    for problem in problems:
        typer.echo(f"goclaw: {plain(problem)}", err=True)
    if problems:
        raise typer.Exit(ExitCode.FAILED)


def _carried_out(
    ctx: typer.Context,
    change: MessageChange[T],
    ids: Sequence[int] | None,
    *,
    everything: bool,
    yes: bool,
) -> tuple[int, list[str]]:
    """Apply a change; return to how many messages, and the errors of others."""
    if bool(ids) == everything:
        raise typer.BadParameter("give either ids or --all")

    async def choose(control: Control) -> _Chosen[T]:
        chosen = await _choose(control, change, ids or ())
        if chosen.messages and not yes:
            keys = {change.box.key(message) for message in chosen.messages[:_NAMED]}
            chosen.names = DisplayNames(await control.sessions.names(sorted(keys)))
        return chosen

    chosen = cli(ctx).ask(choose)
    if not chosen.messages:
        return 0, chosen.problems
    if not yes:
        # Ask between two connections, so that none stays open while the person decides.
        _agree(change, chosen, everything=everything)
    done = cli(ctx).ask(lambda control: _do(control, change, chosen, everything=everything))
    return done, chosen.problems


async def _choose(control: Control, change: MessageChange[T], ids: Sequence[int]) -> _Chosen[T]:
    """Look up the messages to change; without ids the first page of all."""
    if not ids:
        return _Chosen(list(await change.box.every(control)))
    chosen: _Chosen[T] = _Chosen()
    for row_id in dict.fromkeys(ids):
        try:
            message = await change.box.one(control, row_id)
        except NotFound as error:
            chosen.problems.append(str(error))
            continue
        if obstacle := change.obstacle(message):
            chosen.problems.append(f"message {row_id} {obstacle}")
        else:
            chosen.messages.append(message)
    return chosen


async def _do(
    control: Control, change: MessageChange[T], chosen: _Chosen[T], *, everything: bool
) -> int:
    """Apply a change; return to how many. ``--all`` goes page by page, each message once."""
    done = 0
    seen: set[int] = set()
    ids = [change.box.id_of(message) for message in chosen.messages]
    while ids:
        for start in range(0, len(ids), PAGE):
            done += await change.do(control, ids[start : start + PAGE])
        seen.update(ids)
        if not everything or len(ids) < PAGE:
            break
        # A retried message may have failed again meanwhile: do not retry it twice.
        found = map(change.box.id_of, await change.box.every(control))
        ids = [row_id for row_id in found if row_id not in seen]
    left = len(seen) - done
    if left and not everything:
        chosen.problems.append(f"skipped {left}, which changed meanwhile")
    return done


def _agree(change: MessageChange[T], chosen: _Chosen[T], *, everything: bool) -> None:
    """Ask for confirmation. Raises ``typer.Abort``, ``BadParameter``."""
    messages = chosen.messages
    shown = [change.box.line(message, chosen.names) for message in messages[:_NAMED]]
    if len(messages) > _NAMED:
        shown.append(f"… and {len(messages) - _NAMED} more")
    which = "it" if len(messages) == 1 else count_of(len(messages))
    which = f"all {which}" if everything and len(messages) > 1 else which
    confirm(f"Drop {which}? {change.consequence}.", yes=False, shown=shown)
