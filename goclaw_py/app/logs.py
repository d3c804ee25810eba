"""Destination and format of log lines (SPEC OPS-5, SEC-2).

The rules of SPEC OPS-5:

Structured logs: constant event names, values in fields, run id, session key and, where this
process has it without a query, the display name of the session (OPS-9) in each line; one line at
info for a run of any kind, when it has ended: an answered message costs one line. No caller waits
for a log file, a pipe or a terminal: up to 4 MB wait for it, what is more is dropped and counted
(`log_lines_dropped`). A process keeps its last 2,000 lines, at most 4 million characters, in
memory, as they are in the log, for the page Logs, `GET /api/logs` (with server-sent events) and
`goclaw logs` of a gateway without a log file: of this node, by level, text (no pattern, in any
case), agent, run, session, person. OpenTelemetry when configured, one row per run with trigger,
parent, model, tool calls, usage, cost, when it was asked for, began, said its first word and ended.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from traceback import format_exception
from typing import Any, TextIO

from goclaw_py.app.log_ring import LogRing
from goclaw_py.app.log_values import PlainValues, as_json, for_people
from goclaw_py.app.log_writer import LogWriter, report_unwritten
from goclaw_py.config.models import LogFormat, Settings
from goclaw_py.config.secrets import known_secrets
from goclaw_py.core.concurrency import worked_on
from goclaw_py.core.redaction import Redactor

_QUIET = ("httpx", "httpcore", "httpx2", "httpcore2", "telegram", "uvicorn", "asyncio")
_OF_LOGGING = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"})
"""Attributes of records that are no facts."""


def configure(
    settings: Settings,
    *,
    file: Path | None,
    secrets: Iterable[str] = (),
    ring: LogRing | None = None,
    in_thread: bool = False,
) -> None:
    """Send all log lines to ``file``, or to standard error, and what they say to ``ring``.

    Code logs through the standard library: a constant message and facts as ``extra``. Each line
    says which run, session, job or message the task works on that writes it; none has a secret of
    the settings in it, or one of ``secrets``. With ``in_thread`` a thread writes them, so that no
    caller is ever blocked.
    """
    target = settings.log.file or file
    stream = sys.stderr if target is None else _open(target)
    terminal = target is None and sys.stderr.isatty()
    is_json = settings.log.format is LogFormat.JSON or (
        settings.log.format is LogFormat.AUTO and not terminal
    )
    colors = terminal and wants_colors(os.environ)
    values = PlainValues(Redactor({*known_secrets(settings, os.environ), *secrets}))
    render = as_json if is_json else partial(for_people, colors=colors)
    handler = _Handler(stream, values, render, ring, in_thread=in_thread)
    handler.addFilter(_mark_work)
    # No line shows these, and they would cost as much as all the rest of it.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # noqa: SLF001  as the documentation of ``logging`` says
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(settings.log.level.value.upper())
    logging.captureWarnings(capture=True)
    for name in _QUIET:
        # At INFO some of them log URLs, and the URL of a bot contains its token.
        logging.getLogger(name).setLevel(logging.WARNING)
    # We log an unavailable database once; its driver logs every attempt with a traceback.
    logging.getLogger("asyncpg").setLevel(logging.ERROR)


def wants_colors(env: Mapping[str, str]) -> bool:
    """Whether to use colors in terminals (https://no-color.org)."""
    return not env.get("NO_COLOR") and env.get("TERM") != "dumb"


def mark_names(name_of: Callable[[str], str | None]) -> None:
    """Add display names to log lines with a session, until logging is configured again (OPS-9)."""

    def mark(record: logging.LogRecord) -> bool:
        session = getattr(record, "session", None)
        # A name is a help for readers: it must neither delay nor prevent a line.
        with suppress(Exception):
            if isinstance(session, str) and (name := name_of(session)) is not None:
                record.session_name = name
        return True

    for handler in logging.getLogger().handlers:
        handler.addFilter(mark)


def mark_traces(trace_of: Callable[[str], str | None]) -> None:
    """Add trace ids to log lines about runs, until logging is configured again."""

    def mark(record: logging.LogRecord) -> bool:
        run_id = getattr(record, "run_id", None)
        if isinstance(run_id, str) and (trace := trace_of(run_id)) is not None:
            record.trace_id = trace
        return True

    for handler in logging.getLogger().handlers:
        handler.addFilter(mark)


def _mark_work(record: logging.LogRecord) -> bool:
    """Add the run or job of the current task to a line, unless the line names another one."""
    facts = worked_on()
    said = vars(record)
    for name, fact in facts.items():
        if said.get(name) not in (None, fact):
            return True
    said.update(facts)
    return True


# ---------------------------------------------------------------------------- lines


class _Handler(logging.StreamHandler[Any]):
    """Writes each record as a line of plain values without secrets, even a broken record."""

    def __init__(
        self,
        stream: TextIO,
        values: PlainValues,
        render: Callable[[Mapping[str, Any]], bytes],
        ring: LogRing | None,
        *,
        in_thread: bool,
    ) -> None:
        super().__init__(stream)
        self._values = values
        self._render = render
        self._ring = ring
        self._writer: LogWriter | None = None
        if in_thread:
            with suppress(AttributeError, OSError, ValueError):  # there is no standard error
                self._writer = LogWriter(stream.fileno())

    def emit(self, record: logging.LogRecord) -> None:
        try:
            facts = self._values(_facts(record))
            when = datetime.fromtimestamp(record.created, UTC)
            facts["timestamp"] = f"{when.isoformat(timespec='microseconds')[:-6]}Z"
            line = self._render(facts)
            if self._ring is not None:
                self._ring.add(facts, len(line))
            if self._writer is not None:
                self._writer.add(line)
            else:
                self.stream.write(line.decode())
                self.flush()
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()
        else:
            super().flush()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  (its name)
        """Report a lost line. Python's own report would quote it, including secrets."""
        del record
        report_unwritten(sys.exc_info()[1])

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        if self.stream is not sys.stderr:
            self.stream.close()
        super().close()


def _open(file: Path) -> TextIO:
    """Open a file that only its owner can read, because it has data about messages."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A named pipe that is opened only for writing would block until somebody reads it.
    access = os.O_RDWR if file.is_fifo() else os.O_WRONLY
    number = os.open(file, access | os.O_CREAT | os.O_APPEND, 0o600)
    return os.fdopen(number, "w", encoding="utf-8")


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    """Return what a record says, under the names of fields."""
    try:
        event = record.getMessage()
    except Exception as error:
        # Catch everything: arguments can be objects of any class. They are not shown.
        event = f"{record.msg!s} (arguments not shown: {type(error).__name__})"
    facts: dict[str, Any] = {
        "event": event,
        "level": record.levelname.lower(),
        "logger": record.name,
    }
    facts |= {name: fact for name, fact in vars(record).items() if name not in _OF_LOGGING}
    if record.exc_info:
        # Without local variables, which may be API keys (SPEC SEC-2).
        facts["exception"] = "".join(format_exception(*record.exc_info)).rstrip("\n")
    if record.stack_info:
        facts["stack_info"] = record.stack_info
    return facts
