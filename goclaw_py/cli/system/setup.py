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
SETTINGS_EXAMPLE = Path(__file__).with_name("goclaw.toml.example")


def version(*, as_json: AsJson = False) -> None:
    """Print the version of goclaw_py."""
    from importlib.metadata import version as installed_version  # noqa: PLC0415

    release = installed_version("goclaw_py")
    if as_json:
        show_json(dict[str, str], {"release": release})
    else:
        typer.echo(f"goclaw_py {release}")


def init(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """Create a settings file and a workspace with examples. Existing files are kept."""
    from goclaw_py.config import find_file, load  # noqa: PLC0415

    env = dict(os.environ)
    config = cli(ctx).config
    home, named = find_file(config, env)
    file = named or home / "goclaw.toml"
    if not file.exists():
        config = None
        env.pop("GOCLAW_CONFIG", None)
    # Report errors in existing settings before writing anything.
    workspace = load(config, env).workspace(MAIN_AGENT)
    checklist = workspace / HEARTBEAT
    example = SETTINGS_EXAMPLE.read_text("utf-8")
    wrote = {
        str(file): _write(file, example, mode=0o600),  # tokens will be put in
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
    """Return the example checklist. Raises ``GoclawError`` if the installation lacks it."""
    package = Path(goclaw_py.__file__).resolve().parent
    # It is beside the package in a source tree, and inside it in a wheel.
    for folder in (package.parent, package):
        if (folder / _EXAMPLE).is_file():
            return (folder / _EXAMPLE).read_text("utf-8")
    raise GoclawError(f"the installation is incomplete: {_EXAMPLE} is missing")


def _write(file: Path, text: str, *, mode: int) -> bool:
    """Write a file unless it exists; return whether it was written."""
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)
    return True
