"""``goclaw init`` and ``goclaw version``."""

from __future__ import annotations

import os
from pathlib import Path

import typer

import goclaw_py
from goclaw_py.cli.context import AsJson, cli
from goclaw_py.cli.output import show_json
from goclaw_py.model.errors import GoclawError
from goclaw_py.model.ids import MAIN_AGENT

HEARTBEAT = "HEARTBEAT.md"
_EXAMPLE = "HEARTBEAT.md.example"


def version(*, as_json: AsJson = False) -> None:
    """Show the release."""
    from importlib.metadata import version as installed_version  # noqa: PLC0415

    release = installed_version("goclaw_py")
    if as_json:
        show_json(dict[str, str], {"release": release})
    else:
        typer.echo(f"goclaw_py {release}")


def init(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """Write a settings file and a workspace to start from. Nothing is overwritten."""
    from goclaw_py.cli.system.example import EXAMPLE  # noqa: PLC0415
    from goclaw_py.config import find_file, load  # noqa: PLC0415

    env = dict(os.environ)
    config = cli(ctx).config
    home, named = find_file(config, env)
    file = named or home / "goclaw.toml"
    if not file.exists():
        config = None
        env.pop("GOCLAW_CONFIG", None)
    # What is there and wrong is told before anything is written.
    workspace = load(config, env).workspace(MAIN_AGENT)
    checklist = workspace / HEARTBEAT
    wrote = {
        str(file): _write(file, EXAMPLE, mode=0o600),  # tokens will be put in
        str(checklist): _write(checklist, heartbeat_example(), mode=0o644),
    }
    if as_json:
        show_json(
            dict[str, str], {name: "wrote" if is_new else "kept" for name, is_new in wrote.items()}
        )
        return
    for name, is_new in wrote.items():
        typer.echo(f"{'wrote ' if is_new else 'kept  '} {name}")
    typer.echo("next: goclaw run")


def heartbeat_example() -> str:
    """The checklist that explains itself. Raises ``GoclawError`` if the installation lacks it."""
    package = Path(goclaw_py.__file__).resolve().parent
    # In a source tree it stands beside the package, in a wheel inside of it.
    for folder in (package.parent, package):
        if (folder / _EXAMPLE).is_file():
            return (folder / _EXAMPLE).read_text("utf-8")
    raise GoclawError(f"the installation is incomplete: {_EXAMPLE} is missing")


def _write(file: Path, text: str, *, mode: int) -> bool:
    """Write a file that is not there yet; False if it is."""
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)
    return True
