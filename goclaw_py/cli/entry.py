"""The command line as a whole: its global options, its errors, and crashes without secrets."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Annotated, Final

import typer
from typer.exceptions import TyperException

from goclaw_py.cli.context import Cli
from goclaw_py.cli.exits import EXPLAINED, ExitCode, code_of
from goclaw_py.cli.output import folded
from goclaw_py.cli.tree import CommandTree
from goclaw_py.core.errors import GoclawError, NoGateway, UnknownJob
from goclaw_py.core.redaction import Redactor
from goclaw_py.core.text import requirement

_CURES: Final = {
    NoGateway: "to start one: goclaw run",
    UnknownJob: "to list jobs: goclaw jobs list",
}
_GLOBAL: Final = ("--config", "--version", "-V")
_TEXTS: Final = ("TEXT", "-- PROMPT")
"""How commands call an argument that a person writes, which may begin with a dash."""

app = typer.Typer(
    name="goclaw",
    cls=CommandTree,
    help="Run AI agents that people talk to in chats such as Telegram.",
    epilog=EXPLAINED,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    # Both would import rich, which takes longer than everything else in --help.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:  # noqa: FBT001  (typer gives it so)
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415  (takes long to import)

        typer.echo(f"goclaw_py {version('goclaw_py')}")
        raise typer.Exit


@app.callback()
def options(
    ctx: typer.Context,
    file: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Settings file (default: $GOCLAW_CONFIG, then goclaw.toml in $GOCLAW_HOME).",
        ),
    ] = None,
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", is_eager=True, callback=_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Run AI agents that people talk to in chats such as Telegram."""
    del version
    hide_secrets(file)
    ctx.obj = Cli(file)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. An error is one line on standard error."""
    try:
        code = app(args=_read(arguments), prog_name="goclaw", standalone_mode=False)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except TyperException as error:
        _say(_wrong_usage(error))
        return error.exit_code
    except typer.Abort:
        typer.echo("goclaw: aborted", err=True)
        return ExitCode.FAILED
    except GoclawError as error:
        for line in _with_cure(error).splitlines():
            _say(f"goclaw: {line}")
        return code_of(error)
    except OSError as error:
        _say(f"goclaw: {_of_the_system(error)}")
        return ExitCode.FAILED
    if code == ExitCode.INTERRUPTED:
        # In a terminal ^C stands behind a question or what was typed.
        start = "\n" if sys.stdin.isatty() and sys.stderr.isatty() else ""
        typer.echo(f"{start}goclaw: interrupted", err=True)
    return code if isinstance(code, int) else ExitCode.OK


def _say(error: str) -> None:
    # The help of a group has lines of its own.
    lines = error.splitlines() if "\n" in error else folded(error, err=True)
    typer.echo("\n".join(lines), err=True)


def _with_cure(error: GoclawError) -> str:
    """Return an error with the command that helps, unless it names that already."""
    text = str(error)
    if isinstance(error, UnknownJob) and error.several:
        return text  # it names them
    cure = next((cure for kind, cure in _CURES.items() if isinstance(error, kind)), "")
    return f"{text}; {cure}" if cure.rpartition(": ")[2] not in text else text


def _wrong_usage(error: TyperException) -> str:
    """Return the error in a command line, with the command that prints its help."""
    where, colon, what = error.format_message().rpartition("': ")
    what = requirement(what.removeprefix("Invalid value: "))
    text = where + colon + what
    if "\n" in text:
        # A command group without subcommand: the text is its help.
        return text
    context = getattr(error, "ctx", None)
    command = "goclaw" if context is None else context.command_path
    option = getattr(error, "option_name", None)
    if command != "goclaw" and option in _GLOBAL:
        return f"goclaw: {option} must come before the command: goclaw {option} …"
    if option is not None and _reads_text(context) and not getattr(error, "possibilities", None):
        text = f"{text}; write -- before a text that begins with a dash"
    end = "" if text.endswith((".", "?", "…")) else "."
    return f"goclaw: {text[:1].lower()}{text[1:]}{end} See: {command} --help"


def _reads_text(context: typer.Context | None) -> bool:
    params = () if context is None else context.command.params
    return any(getattr(each, "metavar", None) in _TEXTS for each in params)


def _of_the_system(error: OSError) -> str:
    if error.strerror is None:
        return str(error)
    text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    cure = _SYSTEM_CURES.get(error.errno or 0)
    return f"{text}; {cure}" if cure else text


_SYSTEM_CURES: Final = {
    errno.EROFS: "make it writable, or set GOCLAW_HOME to a folder that is",
    errno.ENOSPC: "free some space",
}


def _read(arguments: Sequence[str]) -> list[str]:
    """Replace ``--watch`` without a value by ``--watch=1``, and ``help WORDS`` by ``WORDS --help``.

    An option with an optional value would take the next word as its value.
    """
    if arguments and arguments[0] == "help":
        return [*arguments[1:], "--help"]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    known = ["--watch=1" if word == "--watch" else word for word in arguments[:end]]
    return [*known, *arguments[end:]]


def hide_secrets(config: Path | None) -> None:
    """Install an exception hook that hides secrets in the traceback.

    ``config`` is the settings file as given on the command line. It is read only on a crash.
    """

    def ended(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        try:
            text = _hider(config)("".join(traceback.format_exception(kind, error, trace)))
        except Exception:
            # A boundary: on an exception here Python would print the original traceback.
            text = f"goclaw: {kind.__name__}\n"
        sys.stderr.write(text)

    sys.excepthook = ended


def _hider(config: Path | None) -> Callable[[str], str]:
    from goclaw_py.config import Settings, load  # noqa: PLC0415  (not needed for --help)
    from goclaw_py.config.secrets import known_secrets  # noqa: PLC0415

    try:
        settings = load(config)
    except (GoclawError, OSError):
        # Broken settings may be the cause. Still hide secrets of the environment and known forms.
        settings = Settings()
    return Redactor(known_secrets(settings, os.environ))
