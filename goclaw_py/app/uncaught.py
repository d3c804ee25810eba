"""Logs uncaught errors, because Python would print them unmasked (SPEC SEC-2).

Errors of tasks are already logged by asyncio.
"""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import suppress
from types import TracebackType

log = logging.getLogger(__name__)


def log_the_uncaught() -> None:
    """Log uncaught errors of the process and its threads, and errors that cannot be raised.

    The previous hook also prints an error that ends the process to standard error, unless the log
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


# At interpreter shutdown many objects are gone, and errors in a hook would be printed unmasked.
# Therefore these two hooks never raise, like the one above.


def _thread_ended(broken: threading.ExceptHookArgs) -> None:
    if broken.exc_value is None or issubclass(broken.exc_type, SystemExit):
        return  # a normal end of the thread
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
