"""Where log lines go and how they look (SPEC OPS-5)."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path

import structlog

from goclaw_py.config.models import LogFormat, Settings

_QUIET = ("httpx", "httpcore", "httpx2", "httpcore2", "telegram", "uvicorn", "asyncio")


def configure(settings: Settings, *, file: Path | None) -> None:
    """Send all log lines to ``file``, or to standard error.

    Code logs through the standard library: a constant message and facts as ``extra``.
    """
    target = settings.log.file or file
    if target is None:
        handler: logging.Handler = logging.StreamHandler(sys.stderr)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(target, encoding="utf-8")
    terminal = target is None and sys.stderr.isatty()
    as_json = settings.log.format is LogFormat.JSON or (
        settings.log.format is LogFormat.AUTO and not terminal
    )
    handler.setFormatter(_formatter(as_json=as_json, colors=terminal))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(settings.log.level.value.upper())
    for name in _QUIET:
        # At INFO some of them print addresses, and a bot's address holds its token.
        logging.getLogger(name).setLevel(logging.WARNING)


def mark_traces(trace_of: Callable[[str], str | None]) -> None:
    """Give lines about a run the id of its trace, from now until the log is configured anew."""

    def mark(record: logging.LogRecord) -> bool:
        run_id = getattr(record, "run_id", None)
        if isinstance(run_id, str) and (trace := trace_of(run_id)) is not None:
            record.trace_id = trace
        return True

    for handler in logging.getLogger().handlers:
        handler.addFilter(mark)


def _formatter(*, as_json: bool, colors: bool) -> logging.Formatter:
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[structlog.typing.Processor]
    if as_json:
        last = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        # The usual one prints local variables, and keys are among them (SPEC SEC-2).
        plain = structlog.dev.plain_traceback
        last = [structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
    )
