"""Unexpected errors in a scenario."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


class _Handler(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self.found.append(f"{record.getMessage()}: {record.exc_info[1]!r}")


@contextmanager
def logged_errors() -> Iterator[list[str]]:
    """Errors that are logged with their traces; nothing else is logged."""
    logger, handler = logging.getLogger("goclaw_py"), _Handler()
    known = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    try:
        yield handler.found
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = known
