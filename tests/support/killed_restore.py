"""Restores a backup in a process of its own, and kills that at one moment, as ``kill -9`` does.

``python -m tests.support.killed_restore URL HOME FILE MOMENT``
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from pydantic import SecretStr

from goclaw_py.app.backup.restore import examine, restore
from goclaw_py.app.backup.workspaces import Staging
from goclaw_py.app.progress import ProgressStep
from goclaw_py.config import Settings
from goclaw_py.config.models import DatabaseSettings
from goclaw_py.store.postgres.copying import Replacement

MOMENTS = {
    "emptying the tables": False,
    "restoring table sessions": False,
    "restoring table outbox": False,
    "storing the restored data": False,
    "finish": False,
    "swap": False,
    "move": False,
    "swapped": False,
    "clear": True,
}
"""Moments of a restore, and whether its transaction is committed by then."""


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before(owner: type, name: str) -> None:
    """Die at the first call of a method."""
    setattr(owner, name, lambda *_, **__: die())


def after(owner: type, name: str) -> None:
    """Die when a method has returned."""
    call: Callable[..., None] = getattr(owner, name)

    def called(*arguments: object) -> None:
        call(*arguments)
        die()

    setattr(owner, name, called)


def main(url: str, home: str, file: str, moment: str) -> None:
    match moment:
        case "finish":
            before(Replacement, "finish")
        case "swap" | "clear":
            before(Staging, moment)
        case "move":
            after(Staging, "_move")
        case "swapped":
            after(Staging, "swap")

    def tell(step: ProgressStep) -> None:
        if step.what == moment:
            die()

    settings = Settings(home=Path(home), database=DatabaseSettings(url=SecretStr(url)))
    backup = examine(Path(file), tell)
    asyncio.run(restore(settings, backup, replace=True, files=True, on_progress=tell))


if __name__ == "__main__":
    main(*sys.argv[1:])
