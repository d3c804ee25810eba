"""What a command says when it ends by an error that nobody expected (SPEC SEC-2)."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType


def hide_secrets(config: Path | None) -> None:
    """From now on the traceback with which this process ends shows no secret.

    ``config`` is the settings file, as it was named. It is read only then.
    """

    def ended(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        try:
            text = _hider(config)("".join(traceback.format_exception(kind, error, trace)))
        except Exception:
            # A boundary: what is raised here Python would print, and the error as it is.
            text = f"goclaw: {kind.__name__}\n"
        sys.stderr.write(text)

    sys.excepthook = ended


def _hider(config: Path | None) -> Callable[[str], str]:
    from goclaw_py.common.redaction import Hider  # noqa: PLC0415
    from goclaw_py.config import Settings, load  # noqa: PLC0415  (not needed for --help)
    from goclaw_py.config.known_secrets import known_secrets  # noqa: PLC0415
    from goclaw_py.model.errors import GoclawError  # noqa: PLC0415

    try:
        settings = load(config)
    except (GoclawError, OSError):
        # They may be what is wrong. The environment and what looks like a secret are left.
        settings = Settings()
    return Hider(known_secrets(settings, os.environ))
