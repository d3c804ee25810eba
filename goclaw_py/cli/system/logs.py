"""``goclaw logs``: show the log file of the gateway (SPEC OPS-5)."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from goclaw_py.cli import completion
from goclaw_py.cli.context import cli, maybe_named
from goclaw_py.cli.output import clock, plain
from goclaw_py.cli.terminal import until_interrupted
from goclaw_py.config.models import LogLevel
from goclaw_py.model.errors import NotFound

_PAUSE_S: Final = 0.3
_SEVERITY: Final = {level.value: number for number, level in enumerate(LogLevel)} | {"critical": 9}
_SHOWN_FIRST: Final = ("timestamp", "level", "event")
_NO_FILE: Final = (
    "there is no log file {file}: the gateway logs to standard error, where systemd or a container "
    "keeps it. To log into a file, set file in [log] of goclaw.toml"
)


def logs(
    ctx: typer.Context,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Also show new lines, until Ctrl-C.")
    ] = False,
    run: Annotated[
        str | None,
        typer.Option(
            callback=maybe_named,
            autocompletion=completion.runs,
            help="Show only lines about this run: its id, or a beginning of it.",
        ),
    ] = None,
    level: Annotated[
        LogLevel | None, typer.Option(help="Show only lines of this level or a higher one.")
    ] = None,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, help="Number of lines, the newest.")
    ] = 100,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line, as in the file.")
    ] = False,
) -> None:
    """Show the log file of the gateway.

    That is the file of [log] in the settings, or goclaw.log in the state folder. Lines that are
    not JSON are shown only without --run, --level and --json.
    """
    settings = cli(ctx).settings()
    file = settings.log.file or settings.state_folder / "goclaw.log"
    if not file.is_file():
        raise NotFound(_NO_FILE.format(file=file))

    def shown(line: str) -> str | None:
        return _shown(line, run, level, as_json=as_json)

    with until_interrupted():
        for text in _lines(file, shown, lines, follow=follow):
            typer.echo(text)


def _lines(
    file: Path, shown: Callable[[str], str | None], most: int, *, follow: bool
) -> Iterator[str]:
    """Yield the newest lines, and with ``follow`` those that are written from now on."""
    source = file.open(encoding="utf-8", errors="replace", newline="\n")
    try:
        yield from deque(filter(None, map(shown, _complete(source))), most)
        while follow:
            time.sleep(_PAUSE_S)
            yield from filter(None, map(shown, _complete(source)))
            if _is_replaced(file, source):
                source.close()
                source = file.open(encoding="utf-8", errors="replace", newline="\n")
    finally:
        source.close()


def _complete(source: Any) -> Iterator[str]:
    """Yield lines to the end of the file. One that is still being written comes the next time."""
    place = source.tell()
    while (line := source.readline()).endswith("\n"):
        place = source.tell()
        yield line.removesuffix("\n")
    source.seek(place)


def _is_replaced(file: Path, source: Any) -> bool:
    """Return whether a file was rotated: there is another one in its place, or it was emptied."""
    with suppress(FileNotFoundError):
        there, own = file.stat(), os.fstat(source.fileno())
        return there.st_ino != own.st_ino or there.st_size < source.tell()
    return False


def _shown(line: str, run: str | None, level: LogLevel | None, *, as_json: bool) -> str | None:
    """Return how a line is shown, None if it is not."""
    try:
        facts = json.loads(line)
    except ValueError:
        facts = None
    if not isinstance(facts, dict):
        return None if run or level or as_json else plain(line)
    if run is not None and not str(facts.get("run_id", "")).startswith(run):
        return None
    if level is not None and _SEVERITY.get(facts.get("level", ""), 0) < _SEVERITY[level]:
        return None
    return line if as_json else plain(_words(facts))


def _words(facts: Mapping[str, Any]) -> str:
    at = str(facts.get("timestamp", ""))
    with suppress(ValueError):
        at = clock(datetime.fromisoformat(at))
    rest = [f"{name}={_value(value)}" for name, value in facts.items() if name not in _SHOWN_FIRST]
    return "  ".join(
        [at, f"{facts.get('level', ''):<7}", str(facts.get("event", "")), *filter(None, rest)]
    )


def _value(value: object) -> str:
    """Return a value on one line; text with blanks in quotation marks."""
    if isinstance(value, str) and value.isprintable() and value and " " not in value:
        return value
    return json.dumps(value, ensure_ascii=False)
