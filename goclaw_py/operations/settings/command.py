"""``goclaw config``: show and edit settings, and check a settings file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.cli import completion
from goclaw_py.cli.context import AsJson, Cli, cli, named, waited_for, with_wide
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.messages import display
from goclaw_py.cli.output import Column, one_line, show_json, show_table
from goclaw_py.core.errors import GoclawError, NotAccepted

if TYPE_CHECKING:
    from goclaw_py.operations.control import Control
    from goclaw_py.operations.settings.models import Setting

app = typer.Typer()

_VALUE = 60
_ABOUT = 100


def _maybe_named(text: str | None) -> str | None:
    return None if text is None else named(text)


# ---------------------------------------------------------------------------- show


@app.command()
@with_wide
def show(
    ctx: typer.Context,
    section: Annotated[
        str | None,
        typer.Argument(
            callback=_maybe_named,
            autocompletion=completion.sections,
            help="Section or setting to show: lanes, agents.main, agents.main.model.",
        ),
    ] = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Include settings that are not set, and describe all.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show settings with the values in force and their sources. Secrets are hidden.

    While a gateway runs here, settings that were changed at run time are shown with these values.
    The size that goclaw lanes set has given a lane is no setting: see goclaw lanes.

    Example: goclaw config show agents.main --all
    """
    from goclaw_py.config import shown  # noqa: PLC0415

    found = _below(shown(cli(ctx).settings_in_effect()), section)
    found = [one for one in found if everything or _says_something(one) or one.path == section]
    if as_json:
        from goclaw_py.operations.settings.models import Setting  # noqa: PLC0415

        show_json(list[Setting], found)
        return
    rows = [(one.path, _value(one), one.origin, one_line(one.about, _ABOUT)) for one in found]
    empty = "no settings in this section; to list all: goclaw config show --all"
    columns: list[str | Column] = [
        "SETTING",
        Column("VALUE", least=16),
        Column("SOURCE", drop=1, least=16),
    ]
    if everything:
        columns.append(Column("DESCRIPTION", drop=2, least=24))
    show_table(columns, [row[: len(columns)] for row in rows], empty=empty)
    _note_sizes(cli(ctx), found)


def _note_sizes(options: Cli, shown: Sequence[Setting]) -> None:
    """Name the lanes that goclaw lanes set has given another size than their setting."""
    sizes = {one.path: one.value for one in shown if one.path.startswith("lanes.")}
    # A lane takes the size of its setting when that changes, and when the gateway restarts.
    if not sizes or not options.has_gateway():
        return
    with suppress(GoclawError):
        for lane in options.ask(lambda control: control.lanes.status()).lanes:
            size = sizes.get(f"lanes.{lane.name}.size", lane.concurrency)
            if size != lane.concurrency:
                now = f"lane {lane.name} has size {lane.concurrency} now"
                typer.echo(f"note: {now}, by goclaw lanes set", err=True)


def _below(settings: Sequence[Setting], section: str | None) -> list[Setting]:
    """Return the settings of a section. Raises ``BadParameter`` if there is no such section."""
    if section is None:
        return list(settings)
    found = [one for one in settings if one.path == section or one.path.startswith(f"{section}.")]
    if not found:
        from difflib import get_close_matches  # noqa: PLC0415

        from goclaw_py.config.sources import SECTIONS  # noqa: PLC0415

        if section in SECTIONS:
            return []
        known = {".".join(one.path.split(".")[:2]) for one in settings if "." in one.path}
        near = get_close_matches(section, sorted(known | {*SECTIONS}), n=1)
        hint = f"did you mean {near[0]}?" if near else f"sections: {', '.join(SECTIONS)}"
        raise typer.BadParameter(f"no section or setting {section!r}; {hint}")
    return found


def _says_something(one: Setting) -> bool:
    from goclaw_py.operations.settings.models import OriginKind  # noqa: PLC0415

    return one.kind is not OriginKind.DEFAULT or one.value not in (None, "", ())


def _value(one: Setting) -> str:
    """Format the value in force as in a settings file."""
    match one.value:
        case None:
            return one_line(one.in_force, _VALUE) or "not set"
        case bool():
            return str(one.value).lower()
        case tuple():
            import orjson  # noqa: PLC0415

            return one_line(orjson.dumps(one.value).decode(), _VALUE)
        case "":
            return '""'
        case _:
            return one_line(str(one.value), _VALUE)


# ---------------------------------------------------------------------------- edits


@app.command("set", context_settings={"ignore_unknown_options": True})
def set_(
    ctx: typer.Context,
    path: Annotated[
        str,
        typer.Argument(
            callback=named,
            autocompletion=completion.editable_settings,
            help="Setting to change, such as lanes.main.size.",
        ),
    ],
    value: Annotated[
        str, typer.Argument(help="Value, as in an environment variable; lists with commas.")
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Change a setting at run time, without a restart.

    The change holds for all gateways on this database until goclaw config reset. It overrides the
    settings file; an environment variable overrides it. Runs in progress keep their values.

    Example: goclaw config set agents.main.model openai:gpt-4o
    """
    _change(ctx, path, value, as_json=as_json)


@app.command()
def reset(
    ctx: typer.Context,
    path: Annotated[
        str,
        typer.Argument(
            callback=named,
            autocompletion=completion.editable_settings,
            help="Setting that was changed, such as lanes.main.size.",
        ),
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Undo goclaw config set. The settings file decides again."""
    _change(ctx, path, None, as_json=as_json)


def _change(ctx: typer.Context, path: str, value: str | None, *, as_json: bool) -> None:
    from goclaw_py.operations.settings.models import Setting, SettingChange  # noqa: PLC0415

    async def changed(control: Control) -> tuple[Setting | None, Setting | None]:
        before = _found((await control.settings.view()).settings, path)
        wish = SettingChange(path, value)
        view = await control.settings.change([wish], source="command line")
        return before, _found(view.settings, path)

    try:
        before, after = cli(ctx).ask(changed)
    except NotAccepted as error:
        typer.echo(f"goclaw: {error}", err=True)
        raise typer.Exit(ExitCode.USAGE) from error
    _warn(cli(ctx), path)
    if as_json:
        show_json(Setting | None, after)
        return
    old, new = ("not set" if one is None else _value(one) for one in (before, after))
    typer.echo(f"{path}: {new} (before: {old})" if old != new else f"{path}: {new} (as before)")
    _note_sizes(cli(ctx), [] if after is None else [after])


def _warn(options: Cli, path: str) -> None:
    """Warn if the model of an agent, which was changed, lacks its key, address or library."""
    parts = path.split(".")
    if parts[:1] != ["agents"] or parts[2:] != ["model"]:
        return
    from goclaw_py.cli.doctor.agents import warn_of_model  # noqa: PLC0415

    settings = options.settings_in_effect()
    if parts[1] in settings.agents:
        warn_of_model(settings, os.environ, parts[1])


def _found(settings: Sequence[Setting], path: str) -> Setting | None:
    return next((one for one in settings if one.path == path), None)


@app.command()
@with_wide
def history(
    ctx: typer.Context,
    *,
    limit: Annotated[int, typer.Option(min=1, max=999, help="Number of edits to show.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List changes of settings at run time, the newest first."""
    from goclaw_py.records import SettingEdit  # noqa: PLC0415

    found = cli(ctx).ask(lambda control: control.settings.history(limit=limit))
    if as_json:
        show_json(list[SettingEdit], found)
        return
    rows = [
        (display.moment(edit.at), edit.path, _text(edit.before), _text(edit.after), edit.source)
        for edit in found
    ]
    columns = ("WHEN", "SETTING", "BEFORE", "AFTER", Column("FROM", drop=1, least=12))
    show_table(columns, rows, empty="no setting was changed at run time")


def _text(value: str | None) -> str:
    return "not set" if value is None else one_line(value, _VALUE)


# ---------------------------------------------------------------------------- path


@app.command()
def path(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """Print the path of the settings file. To edit it: $EDITOR $(goclaw config path)."""
    from goclaw_py.config import find_file  # noqa: PLC0415

    named_file = cli(ctx).config
    home, found = find_file(named_file, os.environ)
    file = found or home / "goclaw.toml"
    if as_json:
        origin = "environment variable GOCLAW_CONFIG" if os.environ.get("GOCLAW_CONFIG") else "home"
        origin = origin if named_file is None else "--config"
        is_there = file.exists()
        facts = {"file": str(file), "exists": is_there, "home": str(home), "origin": origin}
        show_json(dict[str, str | bool], facts)
        return
    typer.echo(str(file))
    if not file.exists():
        typer.echo("this file does not exist; to create it: goclaw init", err=True)


# ---------------------------------------------------------------------------- check


@app.command()
def check(
    ctx: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(help="File to check (default: the settings file in use).", dir_okay=False),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Check a settings file and the environment variables.

    Prints every error with the allowed values, and starts nothing. Exit code 2 if there is an
    error. A model without its API key is a warning.
    """
    from goclaw_py.cli import composition  # noqa: PLC0415
    from goclaw_py.cli.doctor.agents import warn_of_model  # noqa: PLC0415
    from goclaw_py.config import SettingErrors, load  # noqa: PLC0415

    errors: tuple[GoclawError, ...] = ()
    name = "the defaults"
    try:
        settings = load(file or cli(ctx).config)
        name = str(settings.file or name)
        waited_for(composition.check_parts(settings))
        for agent in settings.agents:
            warn_of_model(settings, os.environ, agent)
    except SettingErrors as several:
        errors = several.errors
    except GoclawError as error:
        errors = (error,)
    if as_json:
        lines = [str(each) for each in errors]
        show_json(dict[str, object], {"file": str(file or name), "ok": not lines, "errors": lines})
    else:
        for each in errors:
            typer.echo(f"goclaw: {each}", err=True)
    if errors:
        raise typer.Exit(ExitCode.USAGE)
    if not as_json:
        typer.echo(f"{name}: no errors")
