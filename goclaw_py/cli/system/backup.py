"""``goclaw backup`` and ``goclaw restore`` (SPEC DB-5)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.cli.context import AsJson, cli, confirm, waited_for, with_options
from goclaw_py.cli.messages.display import Yes
from goclaw_py.cli.output import clock, plain, show_facts, show_json
from goclaw_py.cli.progress import progress
from goclaw_py.core.errors import SettingError

if TYPE_CHECKING:
    from goclaw_py.app.backup.backup import Saved
    from goclaw_py.app.backup.restore import Backup, InTheWay, Restored
    from goclaw_py.app.backup.settings_use import SettingsUse
    from goclaw_py.config import Settings

Files = Annotated[
    bool, typer.Option("--files/--no-files", help="Include workspaces and the settings file.")
]


def _destination(text: str) -> Path:
    """Read where a backup goes. A path does not retain the slash that says it is a folder."""
    path = Path(text)
    if text.endswith(os.sep) and not path.is_dir():
        # Such as a disk that is not mounted: a file would take its place.
        raise typer.BadParameter(f"there is no folder {text}")
    return path


def backup(
    ctx: typer.Context,
    to: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE|FOLDER",
            parser=_destination,
            help="Backup file (default: goclaw-backup-YYYYMMDD-HHMMSS.tar.gz in this folder; UTC).",
        ),
    ] = None,
    *,
    files: Files = True,
    as_json: AsJson = False,
) -> None:
    """Back up database, workspaces and settings to a file.

    Only you can read the file. The gateway can keep running.
    """
    settings = cli(ctx).settings()
    from goclaw_py.cli import composition  # noqa: PLC0415

    with progress("saving the database") as on_progress:
        done = waited_for(composition.back_up(settings, to, files=files, on_progress=on_progress))
    _show_saved(done, as_json=as_json)


@dataclass(frozen=True, slots=True)
class Choices:
    """The options of ``goclaw restore``."""

    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Only check that the backup is complete and undamaged, and list the folders, "
            "programs and MCP servers of its settings.",
        ),
    ] = False
    replace: Annotated[
        bool, typer.Option("--replace", help="Overwrite existing data and files.")
    ] = False
    files: Files = True
    yes: Yes = False
    as_json: AsJson = False


@with_options(Choices)
def restore(
    ctx: typer.Context,
    chosen: Choices,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File written by goclaw backup.")],
) -> None:
    """Restore a backup. Stop all gateways first."""
    from goclaw_py.cli import composition  # noqa: PLC0415
    from goclaw_py.config import find_file  # noqa: PLC0415  (not needed for --help)

    with progress("checking the backup") as on_progress:
        found = composition.examine(file, on_progress)
    if chosen.check:
        home, _ = find_file(cli(ctx).config, os.environ)
        _show_saved(_checked(found, home), as_json=chosen.as_json)
        if not chosen.as_json:
            typer.echo("\nThe backup is complete and undamaged; nothing was restored.")
        return
    settings = cli(ctx).settings()
    outside = False
    if settings.file is None:
        use = composition.settings_use(found, settings.home, files=chosen.files)
        outside = use is not None and _agree_to_settings(use, chosen)
    with progress("checking the database"):
        there = waited_for(
            composition.in_the_way(settings, found, files=chosen.files, outside=outside)
        )
    _agree(there, found, chosen)
    with progress("restoring") as on_progress:
        work = composition.restore(
            settings,
            found,
            replace=chosen.replace,
            files=chosen.files,
            outside=outside,
            on_progress=on_progress,
        )
        done = waited_for(work)
    _show_restored(done, settings, as_json=chosen.as_json)


def _agree_to_settings(use: SettingsUse, chosen: Choices) -> bool:
    """Return whether settings of a backup may use paths outside of the home; ask for them.

    Their programs and servers are named, because the next gateway starts them.
    """
    if chosen.files and not chosen.as_json:
        for key, started in (use.programs | use.tool_servers).items():
            typer.echo(
                f"note: the settings of the backup use {plain(f'{key}: {started}')}", err=True
            )
    if use.outside:
        question = f"The settings of the backup use {', '.join(use.outside)}. Restore them?"
        confirm(question, yes=chosen.yes)
    return bool(use.outside)


def _agree(there: InTheWay, found: Backup, chosen: Choices) -> None:
    """Ask to confirm overwriting. Raises ``BackupError``, ``BadParameter``."""
    if not chosen.replace:
        there.refuse()
        return
    lost = [f"this gateway's data ({there.contents})"] if there.tables else []
    lost += [f"the files in {folder}" for folder in there.folders]
    if not lost:
        return
    made = f"the backup of {clock(found.manifest.made_at)}"
    question = f"Overwrite {' and '.join(lost)} with {made}? The existing data is lost."
    confirm(question, yes=chosen.yes)


def _checked(found: Backup, home: Path) -> Saved:
    """Return the summary of a backup with what its settings would use in this home."""
    from goclaw_py.cli import composition  # noqa: PLC0415

    try:
        use = composition.settings_use(found, home, files=True)
    except SettingError as error:
        # The backup is good. The settings may only not fit variables of this environment.
        note = f"its settings cannot be used here: {error}"
        return replace(found.saved, notes=(*found.saved.notes, note))
    return replace(found.saved, uses=use)


def _used(use: SettingsUse) -> Iterable[tuple[str, str]]:
    for key, path in use.paths.items():
        yield plain(key), f"{path} (outside of the home)" if path in use.outside else path
    yield from (use.programs | use.tool_servers).items()


def _show_saved(done: Saved, *, as_json: bool) -> None:
    if as_json:
        from goclaw_py.app.backup.backup import Saved  # noqa: PLC0415

        show_json(Saved, done)
        return
    show_facts(
        [
            ("file", f"{done.file}, {done.size:,} bytes"),
            ("created", f"{clock(done.made_at)}, release {done.release}, schema {done.schema}"),
            ("rows", f"{sum(done.tables.values()):,} in {len(done.tables)} tables"),
            ("files", _files(done.files)),
            ("settings", "included" if done.has_settings else "not included"),
            *(() if done.uses is None else _used(done.uses)),
        ]
    )
    for note in done.notes:
        typer.echo(f"note: {plain(note)}", err=True)


def _files(files: dict[str, int]) -> str:
    return ", ".join(f"{count:,} of {agent}" for agent, count in files.items()) or "none"


def _show_restored(done: Restored, ours: Settings, *, as_json: bool) -> None:
    if as_json:
        from goclaw_py.app.backup.restore import Restored  # noqa: PLC0415

        show_json(Restored, done)
        return
    for line in _restored(done, ours):
        typer.echo(plain(line))


def _restored(done: Restored, ours: Settings) -> Iterable[str]:
    rows, made = sum(done.backup.tables.values()), clock(done.backup.made_at)
    yield f"restored {rows:,} rows from {made} into the {done.database} database"
    if done.files:
        yield f"restored files: {_files(done.files)}"
    if done.settings is not None:
        yield f"wrote {done.settings}"
    elif ours.file is None:
        # A gateway would start without channels and with the offline agent.
        lacks = "not restored with --no-files" if done.backup.has_settings else "not in this backup"
        yield f"settings: {lacks}; first copy your goclaw.toml to {ours.home}"
    for name in done.migrated:
        yield f"applied migration {name}"
    yield "next: goclaw run"
