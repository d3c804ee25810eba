"""Keeping things for minutes instead of months, so that forgetting happens within a measurement."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from importlib import import_module
from types import ModuleType
from typing import Final

_KEPT: Final = {
    "goclaw_py.store.upkeep_rules": (
        "FINISHED_KEPT",
        "UNSEEN_KEPT",
        "RUNS_KEPT",
        "SESSIONS_KEPT",
        "REQUESTS_KEPT",
    ),
    "goclaw_py.schedule.jobs.job_rules": ("KEPT",),
    "goclaw_py.store.heartbeat_rules": ("KEPT",),
}
_OFTEN: Final = {"goclaw_py.schedule.retention": ("FIRST_S", "TIDY_S")}


@contextmanager
def shortened(kept: timedelta, every_s: float) -> Iterator[None]:
    """Let what is forgotten at all (SPEC DB-5) be forgotten after ``kept``, looked for so often.

    In this process; enter it before a gateway is made. Raises ``AttributeError`` if a constant is
    gone: the measurement would wait for months.
    """
    # Whatever copies a constant has done so now.
    import goclaw_py.store.postgres  # noqa: F401
    import tests.support.memory_store  # noqa: F401

    with ExitStack() as after:
        for constants, value in ((_KEPT, kept), (_OFTEN, every_s)):
            for module, names in constants.items():
                for name in names:
                    _replace(import_module(module), name, value, after)
        yield


def _replace(module: ModuleType, name: str, value: object, after: ExitStack) -> None:
    """A constant, and the copies of it in modules that import it by its name."""
    old = getattr(module, name)
    ours = ("goclaw_py", "tests.support.memory_store")
    for other in [one for key, one in sys.modules.items() if key.startswith(ours)]:
        if getattr(other, name, None) is old:
            setattr(other, name, value)
            after.callback(setattr, other, name, old)
