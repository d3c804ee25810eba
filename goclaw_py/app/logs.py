"""Destination and format of log lines (SPEC OPS-5, SEC-2)."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path

import structlog

from goclaw_py.app.log_ring import LogRing
from goclaw_py.app.log_values import for_terminals, plain_values
from goclaw_py.common.log_context import worked_on
from goclaw_py.common.redaction import Redactor
from goclaw_py.config.models import LogFormat, Settings
from goclaw_py.config.secrets import known_secrets

_QUIET = ("httpx", "httpcore", "httpx2", "httpcore2", "telegram", "uvicorn", "asyncio")


def configure(
    settings: Settings,
    *,
    file: Path | None,
    secrets: Iterable[str] = (),
    ring: LogRing | None = None,
) -> None:
    """Send all log lines to ``file``, or to standard error, and what they say to ``ring``.

    Code logs through the standard library: a constant message and facts as ``extra``. Each line
    says which run, session, job or message the task works on that writes it; none has a secret of
    the settings in it, or one of ``secrets``.
    """
    target = settings.log.file or file
    handler = _handler(target)
    terminal = target is None and sys.stderr.isatty()
    as_json = settings.log.format is LogFormat.JSON or (
        settings.log.format is LogFormat.AUTO and not terminal
    )
    hide = Redactor({*known_secrets(settings, os.environ), *secrets})
    colors = terminal and wants_colors(os.environ)
    processors = _processors(hide, as_json=as_json, colors=colors)
    if ring is not None:
        processors[-1] = _kept(ring, processors[-1])
    handler.setFormatter(_Formatter(processors))
    handler.addFilter(_mark_work)
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
    if all(said.get(name) in (None, fact) for name, fact in facts.items()):
        said.update(facts)
    return True


# ---------------------------------------------------------------------------- destinations


def _handler(file: Path | None) -> logging.Handler:
    if file is None:
        return _ToStream(sys.stderr)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _ToFile(file, encoding="utf-8")


def _tell_unwritten() -> None:
    """Report a lost line. Python's own report would quote it, including secrets."""
    error = sys.exc_info()[0]
    words = "a log line could not be written" if error is None else f"not logged: {error.__name__}"
    try:
        sys.stderr.write(f"goclaw: {words}\n")
    except (OSError, ValueError, AttributeError):
        return  # standard error cannot be written either


class _ToStream(logging.StreamHandler):  # type: ignore[type-arg]
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  (its name)
        del record
        _tell_unwritten()


class _ToFile(logging.FileHandler):
    """Creates a file that only its owner can read, because it has data about messages."""

    def _open(self) -> TextIOWrapper:
        number = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(number, "a", encoding=self.encoding)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  (its name)
        del record
        _tell_unwritten()


# ---------------------------------------------------------------------------- format


class _Formatter(structlog.stdlib.ProcessorFormatter):
    """Formats every record, even if its message cannot be formatted."""

    def __init__(self, processors: list[structlog.typing.Processor]) -> None:
        shared: list[structlog.typing.Processor] = [
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ]
        super().__init__(foreign_pre_chain=shared, processors=processors)

    def format(self, record: logging.LogRecord) -> str:
        try:
            record.getMessage()
        except Exception as error:
            # Catch everything: arguments can be objects of any class. They are not shown.
            record = logging.makeLogRecord(vars(record))
            record.msg = f"{record.msg!s} (arguments not shown: {type(error).__name__})"
            record.args = None
        return super().format(record)


def _processors(hide: Redactor, *, as_json: bool, colors: bool) -> list[structlog.typing.Processor]:
    # The default formatter prints local variables, which may contain API keys (SPEC SEC-2).
    first: list[structlog.typing.Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
        plain_values(hide),
    ]
    if as_json:
        return [*first, structlog.processors.JSONRenderer()]
    console = structlog.dev.ConsoleRenderer(
        colors=colors, exception_formatter=structlog.dev.plain_traceback
    )

    def render(logger: object, method: str, event: structlog.typing.EventDict) -> str:
        return console(logger, method, for_terminals(logger, method, event))

    return [*first, render]


def _kept(ring: LogRing, render: structlog.typing.Processor) -> structlog.typing.Processor:
    """Render lines, and keep the values of each: neither renderer changes them."""

    def processor(
        logger: object, method: str, event: structlog.typing.EventDict
    ) -> structlog.typing.ProcessorReturnValue:
        text = render(logger, method, event)
        assert isinstance(event, dict)
        ring.add(event, len(str(text)))
        return text

    return processor
