"""``goclaw init``: the first run (SPEC OPS-10).

The rules of SPEC OPS-10:

First run.

- `goclaw init` asks for bot token, model with key, time zone (default: the machine's) and who may
  talk (default: pairing; else only the given ids), then whether to install the service. Each
  answer is also an option; without a terminal nothing is asked. Enter accepts a default; secrets
  are read without echo. Token (`getMe`) and model (one request) are tested unless `--no-test`;
  what fails is explained and asked again, and from an option ends the command; what cannot be
  tested now, because its server cannot be reached, may be kept untested. Models of servers on this
  machine (Ollama, LM Studio, llama.cpp, vLLM at their ports) are offered. Nothing is written
  before the last question. Secrets go into files of mode 0600 beside the settings; the settings
  are the commented example with the answers, written at once or not at all. An existing file is
  kept; `--force` replaces it and keeps a copy. It ends with the next three steps, with a link and,
  in a terminal, a QR code to the bot.
- `goclaw service install | status | uninstall`: a user unit of systemd (as in `deploy/`, without
  what needs root) or a launch agent of launchd. `--dry-run` shows files and commands. Variables
  that the service does not get are named. Without a service manager, and where another
  `goclaw.service` of this user exists, nothing is written, exit code 1. `status` exits with 1 if
  the service does not run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

import goclaw_py
from goclaw_py.cli.context import AsJson, cli, with_options
from goclaw_py.cli.output import plain, show_json
from goclaw_py.cli.qr_code import show_qr_code
from goclaw_py.config import find_file, load
from goclaw_py.core.errors import GoclawError
from goclaw_py.core.ids import MAIN_AGENT

if TYPE_CHECKING:
    from goclaw_py.cli.system.questions import Given, SetupQuestions
    from goclaw_py.cli.system.settings_file import Answers

HEARTBEAT: Final = "HEARTBEAT.md"
_EXAMPLE = "HEARTBEAT.md.example"


@dataclass(frozen=True, slots=True)
class InitOptions:
    """The options of ``goclaw init``. Those that are None are asked for in a terminal."""

    token_file: Annotated[
        Path | None, typer.Option(help="File with the bot token; it is copied beside the settings.")
    ] = None
    model: Annotated[
        str | None, typer.Option(help='Model: PROVIDER:NAME, or "offline", which needs no key.')
    ] = None
    key_file: Annotated[
        Path | None, typer.Option(help="File with the API key; it is copied beside the settings.")
    ] = None
    base_url: Annotated[
        str | None, typer.Option(help="Address of another server with the API of the provider.")
    ] = None
    timezone: Annotated[
        str | None, typer.Option(help="Time zone of jobs and people (default: of this machine).")
    ] = None
    allow: Annotated[
        str | None,
        typer.Option(
            metavar="IDS",
            help="The only people who may talk, such as 12345,67890 (default: whom you approve).",
        ),
    ] = None
    service: Annotated[
        bool | None,
        typer.Option("--service/--no-service", help="Install the user service: goclaw service."),
    ] = None
    test: Annotated[bool, typer.Option("--test/--no-test", help="Test the token and the key.")] = (
        True
    )
    force: Annotated[
        bool, typer.Option("--force", help="Replace the settings file; a copy of it is kept.")
    ] = False
    as_json: AsJson = False


@with_options(InitOptions)
def init(ctx: typer.Context, chosen: InitOptions) -> None:
    """Set up goclaw: ask a few questions, and write the settings.

    Every answer can be an option. Without a terminal, or with --json, nothing is asked.
    """
    from goclaw_py.cli.doctor.agents import warn_of_model  # noqa: PLC0415
    from goclaw_py.cli.system.questions import Given, Keyboard, SetupQuestions  # noqa: PLC0415
    from goclaw_py.cli.system.service import is_available  # noqa: PLC0415

    env = dict(os.environ)
    home, named = find_file(cli(ctx).config, env)
    file = named or home / "goclaw.toml"
    given = Given(**{one.name: getattr(chosen, one.name) for one in fields(Given)})
    if file.exists() and not chosen.force:
        _complete_existing(file, env, given, chosen)
        return
    is_asked = not chosen.as_json and sys.stdin.isatty() and sys.stdout.isatty()
    questions = SetupQuestions(Keyboard() if is_asked else None, given, env)
    questions.ask()
    wants_service = bool(chosen.service)
    if is_asked and chosen.service is None and is_available(load(Path(os.devnull), env), env):
        wants_service = questions.confirm("Install goclaw as a service that starts at login?")
    done = _write(file, questions.answers, env)
    _show(_with_checklist(done, file, env), as_json=chosen.as_json)
    warn_of_model(load(file, env), env, MAIN_AGENT)
    failure = _install(file, env, quiet=chosen.as_json) if wants_service else None
    if not chosen.as_json:
        is_running = wants_service and failure is None
        _show_next(questions, is_running=is_running, draw=is_asked)
    if failure is not None:
        raise failure


def _install(file: Path, env: dict[str, str], *, quiet: bool) -> GoclawError | None:
    """Install the service; return why it failed, which does not undo the settings."""
    from goclaw_py.cli.system.service import install_service  # noqa: PLC0415

    try:
        install_service(load(file, env), env, quiet=quiet)
    except GoclawError as error:
        return error
    return None


def _complete_existing(file: Path, env: dict[str, str], given: Given, chosen: InitOptions) -> None:
    """Create what is missing beside an existing settings file. Raises ``GoclawError``."""
    if given.has_settings or chosen.service:
        raise GoclawError(
            f"{file} exists; edit it; to replace it: goclaw init --force (a copy is kept)"
        )
    _show(_with_checklist({file: "kept"}, file, env), as_json=chosen.as_json)
    if not chosen.as_json:
        typer.echo("next: goclaw run, or goclaw init --force to begin again")


def _write(file: Path, answers: Answers, env: dict[str, str]) -> dict[Path, str]:
    """Write the settings and the secrets; return what was done, by file."""
    from goclaw_py.cli.system.settings_file import replace_file, settings_text  # noqa: PLC0415

    copies = {}
    for name, secret in answers.secrets.items():
        path = file.with_name(name)
        copies[path] = replace_file(path, f"{secret}\n", back_up=True)
    text = settings_text(answers)
    copies[file] = replace_file(file, text, lambda new: load(new, env), back_up=True)
    kept = {copy: "copied" for copy in copies.values() if copy is not None}
    return {file: "wrote", **dict.fromkeys(copies, "wrote"), **kept}


def _with_checklist(done: dict[Path, str], file: Path, env: dict[str, str]) -> dict[Path, str]:
    """Create the checklist, unless the settings are wrong or it exists."""
    checklist = load(file, env).workspace(MAIN_AGENT) / HEARTBEAT
    is_new = _write_new(checklist, heartbeat_example())
    return {**done, checklist: "wrote" if is_new else "kept"}


def _show(done: dict[Path, str], *, as_json: bool) -> None:
    if as_json:
        show_json(dict[str, str], {str(path): what for path, what in done.items()})
        return
    for path, what in done.items():
        typer.echo(f"{what:<6} {plain(str(path))}")


def _show_next(questions: SetupQuestions, *, is_running: bool, draw: bool) -> None:
    """Print the next three steps, and the link to the bot."""
    typer.echo("\nNext:")
    for number, (command, words) in enumerate(next_steps(questions, is_running=is_running), 1):
        typer.echo(f"  {number}. {command:<28}  {words}")
    if questions.bot and draw:
        show_qr_code(f"https://t.me/{questions.bot}")


def next_steps(questions: SetupQuestions, *, is_running: bool) -> Iterator[tuple[str, str]]:
    """Yield the next three steps: a command or link, and what it is for."""
    running = ("goclaw status", "see that the gateway runs")
    if not questions.has_bot:
        yield running if is_running else ("goclaw run", "start the gateway, and chat here")
        yield "goclaw open", "open the dashboard in a browser"
        yield "goclaw doctor", "see what else can be set up, such as Telegram"
        return
    yield running if is_running else ("goclaw run --no-console", "start the gateway")
    link = f"https://t.me/{questions.bot}" if questions.bot else "write to your bot"
    # Without a link the step itself says to write.
    to_do = "write to the bot: it" if questions.bot else "it"
    if questions.answers.allow:
        yield link, f"{to_do} answers you"
        yield "goclaw open", "open the dashboard in a browser"
    else:
        yield link, f"{to_do} replies with a pairing code"
        yield "goclaw people approve CODE", "approve yourself with that code"


def heartbeat_example() -> str:
    """Return the example checklist. Raises ``GoclawError`` if the installation lacks it."""
    package = Path(goclaw_py.__file__).resolve().parent
    # It is beside the package in a source tree, and inside it in a wheel.
    for folder in (package.parent, package):
        if (folder / _EXAMPLE).is_file():
            return (folder / _EXAMPLE).read_text("utf-8")
    raise GoclawError(f"the installation is incomplete: {_EXAMPLE} is missing")


def _write_new(file: Path, text: str) -> bool:
    """Write a file unless it exists; return whether it was written."""
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        return False
    return True
