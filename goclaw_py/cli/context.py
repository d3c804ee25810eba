"""What every command needs: settings, and a connection to the gateway or the database."""

from __future__ import annotations

import inspect
import math
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, get_type_hints

import typer

from goclaw_py.app.progress import ProgressStep
from goclaw_py.cli import completion
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.output import Printer, folded, full_width, plain, show_text
from goclaw_py.cli.progress import progress, report
from goclaw_py.core.errors import GoclawError, NoGateway

if TYPE_CHECKING:
    from goclaw_py.config import Settings
    from goclaw_py.operations.control import Control
    from goclaw_py.operations.settings.models import SettingsView


T = TypeVar("T")
_PATIENCE_S = 4.0
"""How long a command waits for the edits that a gateway has applied."""

STORED_ONLY: Final = (
    "no gateway is running here, so nothing goes on; this is the state in the database "
    "(to start one: goclaw run)"
)

Question = Callable[["Control"], Awaitable[T]]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, as in the HTTP API.")]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of results.")]
OfChannel = Annotated[
    str | None, typer.Option(help="List only what belongs to this channel: telegram, …")
]


def _interval(seconds: float | None) -> float | None:
    if seconds is not None and not (math.isfinite(seconds) and 0.1 <= seconds <= 86_400):
        raise typer.BadParameter("must be seconds from 0.1 to 86400, such as --watch=5")
    return seconds


Watch = Annotated[
    float | None,
    typer.Option(
        "--watch",
        metavar="[=SECONDS]",
        callback=_interval,
        help="Refresh every SECONDS (default 1) until Ctrl-C.",
    ),
]
"""``entry`` replaces ``--watch`` without a value by ``--watch=1``."""


Wide = Annotated[
    bool,
    typer.Option("--wide", help="Show all columns, with full ids. Long cells are folded."),
]


@dataclass(frozen=True, slots=True)
class Cli:
    """The global options."""

    config: Path | None

    def settings(self) -> Settings:
        """Read the settings. Raises ``SettingError``."""
        from goclaw_py.config import load  # noqa: PLC0415  (not needed for --help)

        return load(self.config)

    def has_gateway(self) -> bool:
        """Return whether a gateway answers in the state folder."""
        from goclaw_py.web.sockets import is_answered, socket_path  # noqa: PLC0415

        return is_answered(socket_path(self.settings().state_folder))

    def settings_in_effect(self) -> Settings:
        """Read the settings, with the variables and edits of the gateway here (SPEC OPS-11).

        Without an answer of a gateway they are those of file and environment.
        """
        from goclaw_py.config import as_in_gateway  # noqa: PLC0415

        settings = self.settings()
        if not self.has_gateway():
            return settings

        async def applied() -> SettingsView:
            import asyncio  # noqa: PLC0415

            async with asyncio.timeout(_PATIENCE_S), gateway_alone(settings) as control:
                return await control.settings.view()

        try:
            return as_in_gateway(settings, waited_for(applied()).settings)
        except (GoclawError, TimeoutError):
            # The gateway hangs, or the file has changed and does not allow the edits any more.
            return settings

    def ask(self, question: Question[T], *, create: bool = False, what: str = "") -> T:
        """Ask the gateway, or the database if no gateway is running.

        ``what`` is shown while that takes long. Raises ``NoDatabase`` if there is none; a command
        that stores something may ``create`` it.
        """
        settings = self.settings()

        async def answered() -> T:
            async with connected(settings, create=create) as control:
                if what:
                    report(ProgressStep(what))
                return await question(control)

        with progress("looking for the gateway"):
            return waited_for(answered())


def waited_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a new event loop. SIGTERM cancels it, as Ctrl-C does."""
    import asyncio  # noqa: PLC0415  (not needed for --help)
    import logging  # noqa: PLC0415

    # A command reports its errors itself: without handlers, Python would print warnings between.
    logging.lastResort = logging.NullHandler()
    return asyncio.run(_until_terminated(work))


async def _until_terminated(work: Coroutine[Any, Any, T]) -> T:
    """Cancel on SIGTERM, which would otherwise leave a partial backup or an unused server."""
    import asyncio  # noqa: PLC0415

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    is_terminated = False

    def terminate() -> None:
        nonlocal is_terminated
        is_terminated = True
        task.cancel()

    try:
        loop.add_signal_handler(signal.SIGTERM, terminate)
    except (RuntimeError, ValueError):
        return await work  # not the main thread: the caller handles signals
    try:
        return await work
    except asyncio.CancelledError:
        if is_terminated:
            raise SystemExit(ExitCode.TERMINATED) from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def cli(ctx: typer.Context) -> Cli:
    """The global options of a command."""
    found = ctx.obj
    assert isinstance(found, Cli)
    return found


def answer(
    ctx: typer.Context,
    question: Question[T],
    output: Printer[T],
    *,
    create: bool = False,
    what: str = "",
) -> T:
    """Ask as ``Cli.ask`` does, print the answer and return it."""
    found = cli(ctx).ask(question, create=create, what=what)
    output.print(found)
    return found


def answer_or_watch(
    ctx: typer.Context,
    question: Question[T],
    output: Printer[T],
    every_s: float | None,
    *,
    live: bool = False,
) -> None:
    """Print an answer once or repeatedly. ``live``: only a gateway can answer, not a database."""
    if every_s is None:
        answer(ctx, question, output)
        return
    from goclaw_py.cli.watch import watch  # noqa: PLC0415

    connect = gateway_alone if live else connected
    watch(cli(ctx).settings(), connect, question, output, every_s=every_s)


@asynccontextmanager
async def connected(settings: Settings, *, create: bool = False) -> AsyncIterator[Control]:
    """Connect to the gateway of the state folder, or to the database if none is running here.

    Raises ``NoDatabase`` if there is none; ``create`` makes one.
    """
    from goclaw_py.web.sockets import is_answered, socket_path  # noqa: PLC0415

    path = socket_path(settings.state_folder)
    if is_answered(path):
        from goclaw_py.cli.client.control import RemoteControl  # noqa: PLC0415

        async with RemoteControl(path) as remote:
            report(ProgressStep("asking the gateway"))
            yield remote
    else:
        from goclaw_py.cli import composition  # noqa: PLC0415

        async with composition.open_control(settings, create=create) as control:
            yield control


@asynccontextmanager
async def gateway_alone(settings: Settings) -> AsyncIterator[Control]:
    """Connect to the gateway of the state folder, never to the database."""
    from goclaw_py.cli.client.control import RemoteControl  # noqa: PLC0415
    from goclaw_py.web.sockets import socket_path  # noqa: PLC0415

    async with RemoteControl(socket_path(settings.state_folder)) as remote:
        yield remote


async def is_live(control: Control) -> bool:
    """Return whether a gateway answers, and not only the database."""
    try:
        await control.lanes.status()
    except NoGateway:
        return False
    return True


def note_stored(ctx: typer.Context, *, unfinished: bool = True) -> None:
    """Say on standard error that no gateway works on what the rows call running, waiting or due.

    ``unfinished``: whether they call anything so. The database says what was, until a gateway
    starts.
    """
    if unfinished and not cli(ctx).has_gateway():
        typer.echo(STORED_ONLY, err=True)


async def check_agent(control: Control, agent: str | None) -> None:
    """Raise ``BadParameter`` if the settings have no such agent; None is any.

    Ask it when nothing was found: what a former agent has left can still be listed.
    """
    if agent is not None and agent not in (agents := await control.heartbeats.agents()):
        raise no_such_agent(agent, agents)


def no_such_agent(agent: str, agents: Iterable[str]) -> typer.BadParameter:
    """Return the error for an agent that is not in the settings, which have these."""
    return typer.BadParameter(f"there is no agent {agent!r}; there are: {', '.join(agents)}")


_NO_FILTERS: Final = ("limit", "watch", "as_json", "everything")
"""Options of lists that leave no kind of rows out."""


def selects(options: Any) -> bool:
    """Return whether an option, of a dataclass of ``with_options``, leaves kinds of rows out."""
    return any(
        one.name not in _NO_FILTERS and getattr(options, one.name) != one.default
        for one in fields(options)
    )


def no_rows(things: str, command: str, *, filtered: bool, otherwise: str) -> str:
    """Return what a list without rows says; ``command`` lists all things."""
    return f"no matching {things}; to list all: goclaw {command}" if filtered else otherwise


def choice(
    names: Iterable[str], help_text: str = "", former: Collection[str] = (), *, hidden: bool = False
) -> Any:
    """Return an option that takes one of these names, or a former one, which no help lists.

    ``hidden``: no help lists the option itself, the former name of another one.
    """
    known = ", ".join(names)

    def checked(text: str | None) -> str | None:
        if text is not None and text not in {*known.split(", "), *former}:
            raise typer.BadParameter(f"must be one of {known}")
        return text

    return typer.Option(
        callback=checked,
        autocompletion=completion.words(known.split(", ")),
        help=help_text or f"One of {known}.",
        hidden=hidden,
    )


def maybe_named(text: str | None) -> str | None:
    """Validate an optional id or name."""
    return None if text is None else named(text)


def confirm(question: str, *, yes: bool, shown: Iterable[str] = ()) -> None:
    """Ask before a change that cannot be undone, unless ``yes`` was given.

    Call it between two connections, so that none stays open while the person decides. ``shown``
    are lines above the question. Raises ``BadParameter`` without a terminal, where nobody could
    refuse, and ``typer.Abort`` if the person does.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"{plain(question)} Without a terminal, confirm with --yes")
    for line in shown:
        show_text(line, err=True)
    if not is_agreed(plain(question)):
        raise typer.Abort


YES_OR_NO: Final = {"y": True, "yes": True, "n": False, "no": False}
"""The answers to a question, in lower case."""


def is_agreed(question: str) -> bool:
    """Return the answer of a person in the terminal; by default no. Raises ``EOFError``.

    Not ``typer.confirm``: it takes Ctrl-C for a no, and answers a typing error in its own words.
    """
    while True:
        shown = "\n".join(folded(f"{question} [y/N]:", err=True))
        typer.echo(f"{shown} ", nl=False, err=True)
        line = sys.stdin.readline()
        if not line:
            raise EOFError  # Ctrl-D
        if (word := line.strip().lower() or "n") in YES_OR_NO:
            return YES_OR_NO[word]
        typer.echo("goclaw: answer y or n", err=True)


def named(text: str) -> str:
    """Validate an id or name of the command line; a blank one would match everything."""
    if not text.strip():
        raise typer.BadParameter("must not be blank")
    return text.strip()


SessionName = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        callback=named,
        autocompletion=completion.sessions,
        help="Session key or any unique part of it, name or address of the chat (telegram:5), or "
        "an agent with only one direct chat.",
    ),
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        callback=named,
        autocompletion=completion.runs,
        help="Id of the run, or a unique beginning of it.",
    ),
]


def with_options(kind: type[T]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add each field of a dataclass to a command as an option.

    The fields are annotated like parameters of a typer command, and have defaults. The command
    gets the dataclass as its second argument.
    """
    hints = get_type_hints(kind, include_extras=True)
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # it is a dataclass
    defaults = kind()

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        def called(ctx: typer.Context, **given: Any) -> None:
            command(ctx, kind(**{name: given.pop(name) for name in names}), **given)

        first, _, *others = inspect.signature(command, eval_str=True).parameters.values()
        options = [_option(name, hints[name], getattr(defaults, name)) for name in names]
        return _like(called, command, [first, *options, *others])

    return decorated


def with_wide(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--wide`` to a command that prints tables."""

    def called(ctx: typer.Context, *, wide: bool, **given: Any) -> None:
        if wide and ctx.invoked_subcommand is not None:
            raise typer.BadParameter("put --wide after the subcommand")
        with full_width(wide):
            command(ctx, **given)

    first, *others = inspect.signature(command, eval_str=True).parameters.values()
    return _like(called, command, [first, *others, _option("wide", Wide, default=False)])


def _option(name: str, annotation: Any, default: object) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _like(
    called: Callable[..., None], command: Callable[..., None], parameters: list[inspect.Parameter]
) -> Callable[..., None]:
    """Make a function look like a command with these parameters: typer reads them from it."""
    by_kind = sorted(parameters, key=lambda parameter: parameter.kind)
    called.__signature__ = inspect.Signature(by_kind)  # type: ignore[attr-defined]
    called.__name__, called.__doc__ = command.__name__, command.__doc__
    return called
