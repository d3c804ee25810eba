"""``goclaw logs``: show the log file of the gateway (SPEC OPS-5)."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from goclaw_py.cli import completion
from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.cli.context import cli, maybe_named, waited_for, with_options, with_wide
from goclaw_py.cli.messages import display
from goclaw_py.cli.output import clock, plain, shows_whole
from goclaw_py.cli.terminal import until_interrupted
from goclaw_py.config.models import LogLevel
from goclaw_py.core.errors import BadInterval, NoGateway, NotFound
from goclaw_py.core.time.texts import age
from goclaw_py.observability.log_lines import LogFilter, LogTail, value_text
from goclaw_py.schedule.jobs.schedule import parse_interval
from goclaw_py.web.api.wire import MAX_LIMIT, read
from goclaw_py.web.sockets import is_answered, socket_path

if TYPE_CHECKING:
    from goclaw_py.config import Settings

_PAUSE_S: Final = 0.3
_SHOWN_FIRST: Final = ("timestamp", "level", "event")
_NO_FILE: Final = (
    "there is no log file {file}, and no gateway is running here to ask for its newest lines. "
    "A gateway logs to standard error, where systemd or a container keeps it, or into the file of "
    "[log] in goclaw.toml"
)


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The options of ``goclaw logs``."""

    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Also show new lines, until Ctrl-C.")
    ] = False
    run: Annotated[
        str | None,
        typer.Option(
            callback=maybe_named,
            autocompletion=completion.runs,
            help="Show only lines about this run: its id, or a beginning of it.",
        ),
    ] = None
    search: Annotated[
        str, typer.Option(help="Show only lines with this text in their event or a field.")
    ] = ""
    since: Annotated[
        str, typer.Option(metavar="DURATION", help="Show only lines of the last 10m, 2h or 1d.")
    ] = ""
    level: Annotated[
        LogLevel | None, typer.Option(help="Show only lines of this level or a higher one.")
    ] = None
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, help="Maximum number of lines, the newest.")
    ] = 100
    lines: Annotated[
        int | None, typer.Option(min=0, hidden=True, help="Former name of --limit.")
    ] = None
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line, as in the file.")
    ] = False


@with_wide
@with_options(LogOptions)
def logs(ctx: typer.Context, chosen: LogOptions) -> None:
    """Show the log of the gateway.

    That is the file into which the running gateway logs: that of [log] in the settings, or
    goclaw.log in the state folder. If it logs elsewhere, it is the last 2,000 lines that it has in
    memory. Lines that are not JSON are shown only without options that select, and without --json.
    Empty fields, and which module has logged, are shown only with --wide and --json.
    """
    settings = cli(ctx).settings()
    file, socket = _file(settings), socket_path(settings.state_folder)
    level, follow, as_json = chosen.level, chosen.follow, chosen.as_json
    only = LogFilter("" if level is None else level.value, chosen.search, run=chosen.run or "")
    most = chosen.limit if chosen.lines is None else chosen.lines
    is_any = follow or not most
    since = _since(chosen.since)

    def shown(line: str) -> str | None:
        return _shown(line, only, since, as_json=as_json)

    with until_interrupted():
        is_live = is_answered(socket)
        if file.is_file() and (not is_live or _is_written_since(file, socket)):
            if not is_live:
                written = age(datetime.fromtimestamp(file.stat().st_mtime, UTC), display.now())
                note = f"no gateway is running here; {file} was last written {written}"
                typer.echo(f"goclaw: {note}", err=True)
            for text in _lines(file, shown, most, follow=follow):
                is_any = True
                typer.echo(text)
        else:
            ask = _ask(settings, only, since, most, follow=follow, as_json=as_json)
            is_any = waited_for(ask) or is_any
        if not is_any:
            typer.echo(f"goclaw: {_none_text(only, chosen.since)}", err=True)


def _since(given: str) -> datetime | None:
    """Return from when on lines are shown; None: all. Raises ``BadParameter``."""
    try:
        return display.now() - parse_interval(given) if given else None
    except (BadInterval, OverflowError) as error:
        raise typer.BadParameter(f"--since {given!r}: write 10m, 2h or 1d") from error


def _is_written_since(file: Path, socket: Path) -> bool:
    """Return whether a file was written after the socket was made, at the start of the gateway.

    Otherwise an earlier gateway wrote the file, and this one logs to standard error.
    """
    with suppress(FileNotFoundError):
        return file.stat().st_mtime >= socket.stat().st_mtime
    return False


def _none_text(only: LogFilter, since: str) -> str:
    about = f" about run {only.run}" if only.run else ""
    of_level = f" of level {only.level} or higher" if only.level else ""
    with_text = f" with {only.search!r}" if only.search else ""
    of_time = f" of the last {since}" if since else ""
    return f"there are no log lines{about}{of_level}{with_text}{of_time}"


async def _ask(
    settings: Settings,
    only: LogFilter,
    since: datetime | None,
    most: int,
    *,
    follow: bool,
    as_json: bool,
) -> bool:
    """Print the lines that the gateway has in memory; return whether there were any.

    Raises ``NotFound`` without a gateway.
    """
    wanted: dict[str, str | int] = {name: text for name, text in asdict(only).items() if text}
    place, limit = "", min(most, MAX_LIMIT)
    async with RemoteControl(socket_path(settings.state_folder)) as remote:
        while True:
            params = {**wanted, "limit": limit, "after": place}
            try:
                tail = read(LogTail, await remote.send("GET", "/api/logs", params=params))
            except NoGateway as error:
                if not place:
                    raise NotFound(_NO_FILE.format(file=_file(settings))) from error
                # It restarts: what it logs then is new.
                tail = LogTail(place)
            lines = [facts for facts in tail.lines if _is_of(facts, since)]
            for facts in lines:
                typer.echo(json.dumps(facts) if as_json else plain(log_line(facts)))
            if not follow:
                return bool(lines)
            place, limit = tail.place, MAX_LIMIT
            await asyncio.sleep(_PAUSE_S)


def _file(settings: Settings) -> Path:
    return settings.log.file or settings.state_folder / "goclaw.log"


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


def _shown(line: str, only: LogFilter, since: datetime | None, *, as_json: bool) -> str | None:
    """Return how a line is shown, None if it is not."""
    try:
        facts = json.loads(line)
    except ValueError:
        facts = None
    if not isinstance(facts, dict):
        return None if only != LogFilter() or since or as_json else plain(line)
    if not only.selects(facts) or not _is_of(facts, since):
        return None
    return line if as_json else plain(log_line(facts))


def _is_of(facts: Mapping[str, Any], since: datetime | None) -> bool:
    """Return whether a line is not older than ``since``; one without a time is older."""
    try:
        return since is None or datetime.fromisoformat(str(facts.get("timestamp"))) >= since
    except (ValueError, TypeError):
        return False


def log_line(facts: Mapping[str, Any]) -> str:
    """Return a log line for people: time, level, event, and its fields."""
    at = str(facts.get("timestamp", ""))
    with suppress(ValueError):
        at = clock(datetime.fromisoformat(at))
    rest = [
        f"{name}={_value(value)}"
        for name, value in facts.items()
        if name not in _SHOWN_FIRST and (shows_whole() or (value is not None and name != "logger"))
    ]
    return "  ".join(
        [at, f"{facts.get('level', ''):<7}", str(facts.get("event", "")), *filter(None, rest)]
    )


def _value(value: object) -> str:
    """Return a value on one line; text with blanks in quotation marks."""
    if isinstance(value, str) and value.isprintable() and value and " " not in value:
        return value
    return value_text(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
