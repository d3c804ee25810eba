"""Errors that nobody catches, as lines of the log: Python prints them as they are (SPEC SEC-2).

Those of tasks come here by themselves: asyncio logs them.
"""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import suppress
from types import TracebackType

log = logging.getLogger(__name__)


def log_the_uncaught() -> None:
    """Log what ends this process or one of its threads, and errors that cannot be raised.

    What ends the process is told on standard error too, by whoever did that before, unless the log
    goes there.
    """
    before = sys.excepthook

    def ended(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        with suppress(Exception):
            info = (kind, error, trace)
            log.critical("process_crashed", exc_info=info)
        if not _is_log_on_stderr():
            before(kind, error, trace)

    sys.excepthook = ended
    threading.excepthook = _thread_ended
    sys.unraisablehook = _could_not_raise


# At the end of a process half of Python is gone, and what is raised in a hook is printed as it is:
# so both of these raise nothing, as does the one above.


def _thread_ended(broken: threading.ExceptHookArgs) -> None:
    if broken.exc_value is None or issubclass(broken.exc_type, SystemExit):
        return  # it was meant to end
    with suppress(Exception):
        info = (broken.exc_type, broken.exc_value, broken.exc_traceback)
        facts = {"thread_name": broken.thread.name} if broken.thread else {}
        log.critical("thread_crashed", extra=facts, exc_info=info)


def _could_not_raise(broken: sys.UnraisableHookArgs) -> None:
    if broken.exc_value is None:
        return
    with suppress(Exception):
        info = (broken.exc_type, broken.exc_value, broken.exc_traceback)
        facts = {"object": broken.object, "about": broken.err_msg}
        log.critical("unraisable_error", extra=facts, exc_info=info)


def _is_log_on_stderr() -> bool:
    handlers = logging.getLogger().handlers
    return any(getattr(handler, "stream", None) is sys.stderr for handler in handlers)
