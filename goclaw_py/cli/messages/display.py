"""What ``outbox`` and ``inbox`` have in common: how messages are shown, and changed by id or all.

Nothing here trusts what it shows: texts and names are other people's choice (SPEC SEC-1).
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

import typer

from goclaw_py.cli.context import cli
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.output import duration, one_line, plain, show_json

if TYPE_CHECKING:
    from datetime import datetime

    from goclaw_py.model.messages import Sender, Target
    from goclaw_py.ports.control import Control

T = TypeVar("T")

PAGE = 1000
"""As many as one question may ask for, and one change may take."""
_NAMED = 5
_WORDS = 48
_NAME = 40

Id = Annotated[int, typer.Argument(min=0, max=2**63 - 1, metavar="ID", help="Its id.")]
Ids = Annotated[
    list[int] | None,
    typer.Argument(min=0, max=2**63 - 1, metavar="ID", help="Their ids."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask first.")]


# ---------------------------------------------------------------------------- to be read


def now() -> datetime:
    """The present instant."""
    from goclaw_py.common.clock import SystemClock  # noqa: PLC0415  (not needed for --help)

    return SystemClock().now()


def age(at: datetime, seen_at: datetime) -> str:
    """How long ago something was; none for what a clock that is ahead has stamped."""
    return duration(max(0.0, (seen_at - at).total_seconds()))


def place(target: Target) -> str:
    """A chat as ``channel/account/chat[/thread]``."""
    parts = [target.channel, target.account, target.chat]
    return cell("/".join(parts if target.thread is None else [*parts, target.thread]))


def cell(text: str) -> str:
    """Text as one cell or one value: a line break in it could pass for another row."""
    return one_line(text, max(len(text), 1))


def words(text: str) -> str:
    """The first words of a message."""
    return one_line(text, _WORDS)


def who(sender: Sender) -> str:
    """A person: first the id, which nobody can choose, then the names, which everybody can."""
    names = [one_line(sender.name, _NAME)]
    if sender.username:
        names.append(one_line(f"@{sender.username}", _NAME))
    seen = ", ".join(filter(None, names))
    return f"{cell(sender.id)} ({seen})" if seen else cell(sender.id)


def show_text(title: str, text: str) -> None:
    """Write a text as a whole, indented: no line of it looks like one of ours."""
    typer.echo(f"\n{title}")
    for line in plain(text).split("\n"):
        typer.echo(f"  {line}".rstrip())


def count_of(number: int) -> str:
    """So many messages; a full page may not be all of them."""
    more = " or more" if number >= PAGE else ""
    return f"{number}{more} message{'' if number == 1 else 's'}"


# ---------------------------------------------------------------------------- to be changed


@dataclass(frozen=True, slots=True)
class Box(Generic[T]):
    """Where messages are.

    Args:
        one: Finds a message. Raises ``NotFound``.
        every: What ``--all`` means: at most ``PAGE`` of them.
        id_of: The id of a message.
        line: A message as one line.
    """

    one: Callable[[Control, int], Awaitable[T]]
    every: Callable[[Control], Awaitable[Sequence[T]]]
    id_of: Callable[[T], int]
    line: Callable[[T], str]


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """Something that can be done to messages.

    Args:
        box: Where they are.
        do: Does it; to how many.
        obstacle: Why it cannot be done to a message, "" if it can.
        consequence: What a person should know before. With "" nobody is asked.
    """

    box: Box[T]
    do: Callable[[Control, Sequence[int]], Awaitable[int]]
    obstacle: Callable[[T], str]
    consequence: str = ""


@dataclass(slots=True)
class _Chosen(Generic[T]):
    """The messages that a command is about, and what is wrong with others that it names."""

    messages: list[T] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Wish:
    """Which messages somebody named, and how they want it done."""

    ids: Sequence[int] | None
    everything: bool
    as_json: bool
    yes: bool = False

    def __post_init__(self) -> None:
        if bool(self.ids) == self.everything:
            raise typer.BadParameter("give ids, or --all")


def retry(ctx: typer.Context, change: Change[T], wish: Wish) -> None:
    """Try messages again and say how many."""
    done, problems = _carried_out(ctx, change, wish)
    if wish.as_json:
        from goclaw_py.web.api.wire import Retried  # noqa: PLC0415

        show_json(Retried, Retried(done))
    else:
        typer.echo(f"{done} tried again" if done else "nothing to do")
    _end(problems)


def drop(ctx: typer.Context, change: Change[T], wish: Wish) -> None:
    """Give up messages and say how many."""
    done, problems = _carried_out(ctx, change, wish)
    if wish.as_json:
        from goclaw_py.web.api.wire import Dropped  # noqa: PLC0415

        show_json(Dropped, Dropped(done))
    else:
        typer.echo(f"{done} given up" if done else "nothing to do")
    _end(problems)


def _carried_out(ctx: typer.Context, change: Change[T], wish: Wish) -> tuple[int, list[str]]:
    """To how many messages it was done, and what stood in the way of others."""

    async def look(control: Control) -> _Chosen[T]:
        return await _choose(control, change, wish)

    chosen = cli(ctx).ask(look)
    if not chosen.messages:
        return 0, chosen.problems
    if change.consequence and not wish.yes:
        # Between two questions: while a person thinks, nothing is kept open.
        _agree(change, chosen.messages, everything=wish.everything)

    async def do(control: Control) -> int:
        return await _do(control, change, chosen, everything=wish.everything)

    return cli(ctx).ask(do), chosen.problems


async def _choose(control: Control, change: Change[T], wish: Wish) -> _Chosen[T]:
    """Look up what a change is to be done to; with ``--all`` the first page of it."""
    from goclaw_py.ports.control import NotFound  # noqa: PLC0415

    if wish.everything:
        return _Chosen(list(await change.box.every(control)))
    chosen: _Chosen[T] = _Chosen()
    for row_id in dict.fromkeys(wish.ids or ()):
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


async def _do(control: Control, change: Change[T], chosen: _Chosen[T], *, everything: bool) -> int:
    """Do it; to how many. With ``--all`` page by page, each message once."""
    done = 0
    seen: set[int] = set()
    ids = [change.box.id_of(message) for message in chosen.messages]
    while ids:
        for start in range(0, len(ids), PAGE):
            done += await change.do(control, ids[start : start + PAGE])
        seen.update(ids)
        if not everything or len(ids) < PAGE:
            break
        # What was tried again may have failed again meanwhile.
        found = map(change.box.id_of, await change.box.every(control))
        ids = [row_id for row_id in found if row_id not in seen]
    left = len(seen) - done
    if left and not everything:
        chosen.problems.append(f"{left} of them had changed meanwhile and stayed as they were")
    return done


def _agree(change: Change[T], messages: Sequence[T], *, everything: bool) -> None:
    """Ask a person at a terminal; a program has made up its mind. Raises ``typer.Abort``."""
    if not sys.stdin.isatty():
        return
    for message in messages[:_NAMED]:
        typer.echo(change.box.line(message), err=True)
    if len(messages) > _NAMED:
        typer.echo(f"… and {len(messages) - _NAMED} more", err=True)
    which = "all of them" if everything else "them" if len(messages) > 1 else "it"
    typer.confirm(f"Give {which} up? {change.consequence}.", abort=True, err=True)


def _end(problems: Sequence[str]) -> None:
    for problem in problems:
        typer.echo(f"goclaw: {plain(problem)}", err=True)
    if problems:
        raise typer.Exit(ExitCode.FAILED)
