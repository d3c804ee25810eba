"""``goclaw service``: the gateway as a service of this user (SPEC OPS-10)."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, assert_never

import typer

from goclaw_py.agents.models import read_model
from goclaw_py.cli.context import AsJson, cli
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.output import one_line, plain, show_facts, show_json
from goclaw_py.cli.progress import progress
from goclaw_py.cli.system.settings_file import replace_file
from goclaw_py.cli.system.user_services import (
    DeleteServiceFile,
    RunCommand,
    Step,
    UserService,
    Words,
    WriteServiceFile,
    user_service,
)
from goclaw_py.config import Settings
from goclaw_py.config.sources import OWN_NAMES, PREFIX
from goclaw_py.core.errors import GoclawError
from goclaw_py.web.sockets import is_answered, socket_path

app = typer.Typer(
    no_args_is_help=True,
    help="Manage the service that runs the gateway for this user.",
)

_SHOWN: Final = 2000

DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only show the files and commands of this command.")
]


@dataclass(frozen=True, slots=True)
class ServiceState:
    """The state of the service."""

    manager: str
    file: str
    is_installed: bool
    is_running: bool


@app.command()
def install(ctx: typer.Context, *, dry_run: DryRun = False, as_json: AsJson = False) -> None:
    """Install and start the service.

    It is a user unit of systemd on Linux, and a launch agent on macOS. Run it again after a change
    of PATH, GOCLAW_HOME, or the time limits of a shutdown.
    """
    settings, env = cli(ctx).settings(), dict(os.environ)
    if not dry_run:
        install_service(settings, env, quiet=as_json)
    if dry_run or as_json:
        _show(_service(settings, env).install, as_json=as_json)


@app.command()
def status(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """Show whether the service is installed and running. Exit code 1 if it is not running."""
    service = _service(cli(ctx).settings(), os.environ)
    is_installed = service.file.exists()
    code, output = _run(service.state)
    is_running = is_installed and code == 0 and service.running_word in output
    if as_json:
        show_json(
            ServiceState, ServiceState(service.manager, str(service.file), is_installed, is_running)
        )
    else:
        running = "running" if is_running else "not running"
        facts = [
            ("service", running if is_installed else "not installed"),
            ("manager", service.manager),
            ("file", str(service.file)),
            ("log", service.log),
        ]
        show_facts(facts)
    if not is_running:
        raise typer.Exit(ExitCode.FAILED)


@app.command()
def uninstall(ctx: typer.Context, *, dry_run: DryRun = False, as_json: AsJson = False) -> None:
    """Stop and remove the service. Settings and database stay."""
    service = _service(cli(ctx).settings(), os.environ)
    if not service.file.exists():
        raise GoclawError(f"the service is not installed: {service.file} does not exist")
    _check_is_ours(service)
    if not dry_run:
        with progress("stopping the service"):
            _carry_out(service, service.uninstall)
    if dry_run or as_json:
        _show(service.uninstall, as_json=as_json)
    else:
        typer.echo(f"removed {plain(str(service.file))}")


def install_service(settings: Settings, env: Mapping[str, str], *, quiet: bool) -> None:
    """Write the file of the service, and start it. Raises ``GoclawError``."""
    service = _service(settings, env)
    _check_is_ours(service)
    if not service.file.exists() and is_answered(socket_path(settings.state_folder)):
        raise GoclawError("a gateway is already running; stop it, then: goclaw service install")
    if names := ", ".join(_not_seen(settings, env)):
        typer.echo(
            f"warning: the service does not get these variables of this terminal: {names}; "
            "put their values into the settings, or into files that they name",
            err=True,
        )
    with progress("starting the service"):
        _carry_out(service, service.install)
    if not quiet:
        typer.echo(f"installed {plain(str(service.file))}")
        typer.echo(f"log: {plain(service.log)}")
        if service.hint:
            typer.echo(service.hint)


def is_available(settings: Settings, env: Mapping[str, str]) -> bool:
    """Return whether this machine has a service manager that can be reached."""
    return _run(_service(settings, env).reach)[0] == 0


def _service(settings: Settings, env: Mapping[str, str]) -> UserService:
    return user_service(settings, env, sys.platform, os.getuid())


def _check_is_ours(service: UserService) -> None:
    """Raise ``GoclawError`` if the file exists and is not from this command."""
    file = service.file
    if file.exists() and not file.read_text("utf-8", "replace").startswith(service.signature):
        raise GoclawError(
            f"{file} was not written by goclaw service install; remove or rename it first"
        )


def _not_seen(settings: Settings, env: Mapping[str, str]) -> Iterator[str]:
    """Find the variables that a gateway in this terminal would use, and a service would not get."""
    names = {settings.web.token_env}
    for agent in settings.agents.values():
        names.add(agent.api_key_env)
        models = (agent.model, *agent.fallback)
        providers = [read[0] for model in models if (read := read_model(model))]
        names.update(provider.url_variable for provider in providers)
        if agent.api_key is None and agent.api_key_file is None:
            names.update(name for provider in providers for name in provider.key_variables)
    is_ours = {name for name in env if name.startswith(PREFIX) and name not in OWN_NAMES}
    yield from sorted(name for name in {*names, *is_ours} if name and env.get(name))


def _carry_out(service: UserService, steps: Iterable[Step]) -> None:
    """Do the steps until one fails. Raises ``GoclawError``."""
    code, output = _run(service.reach)
    if code:
        raise GoclawError(
            f"{service.manager} cannot be reached for this user ({output}); "
            "keep this command running in another way: goclaw run --no-console"
        )
    for step in steps:
        match step:
            case WriteServiceFile(file, text):
                replace_file(file, text)
            case DeleteServiceFile(file):
                file.unlink(missing_ok=True)
            case RunCommand(words, may_fail):
                code, output = _run(words)
                if code and not may_fail:
                    command = shlex.join(words)
                    raise GoclawError(f"{command} failed: {output}; for more: {service.log}")
            case _:
                assert_never(step)


def _run(words: Words) -> tuple[int, str]:
    """Run a command of the service manager; return its exit code and its output."""
    try:
        done = subprocess.run(  # noqa: S603 - our own arguments, no shell
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        return 127, f"{words[0]}: {error.strerror}"
    return done.returncode, one_line(done.stdout, _SHOWN)


def _show(steps: Iterable[Step], *, as_json: bool) -> None:
    """Print what the steps do."""
    if as_json:
        show_json(list[dict[str, str]], [_document(step) for step in steps])
        return
    for step in steps:
        match step:
            case WriteServiceFile(file, text):
                typer.echo(f"write {plain(str(file))}:\n{plain(text)}")
            case DeleteServiceFile(file):
                typer.echo(f"delete {plain(str(file))}")
            case RunCommand(words):
                typer.echo(f"run {plain(shlex.join(words))}")
            case _:
                assert_never(step)


def _document(step: Step) -> dict[str, str]:
    match step:
        case WriteServiceFile(file, text):
            return {"write": str(file), "text": text}
        case DeleteServiceFile(file):
            return {"delete": str(file)}
        case RunCommand(words):
            return {"run": shlex.join(words)}
        case _:
            assert_never(step)
