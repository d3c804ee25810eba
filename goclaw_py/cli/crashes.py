"""Removes secrets from the traceback of an unexpected error (SPEC SEC-2)."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from goclaw_py.common.redaction import Redactor
from goclaw_py.model.errors import GoclawError


def hide_secrets(config: Path | None) -> None:
    """Install an exception hook that hides secrets in the traceback.

    ``config`` is the settings file as given on the command line. It is read only on a crash.
    """

    def ended(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        try:
            text = _hider(config)("".join(traceback.format_exception(kind, error, trace)))
        except Exception:
            # A boundary: on an exception here Python would print the original traceback.
            text = f"goclaw: {kind.__name__}\n"
        sys.stderr.write(text)

    sys.excepthook = ended


def _hider(config: Path | None) -> Callable[[str], str]:
    from goclaw_py.config import Settings, load  # noqa: PLC0415  (not needed for --help)
    from goclaw_py.config.secrets import known_secrets  # noqa: PLC0415

    try:
        settings = load(config)
    except (GoclawError, OSError):
        # Broken settings may be the cause. Still hide secrets of the environment and known forms.
        settings = Settings()
    return Redactor(known_secrets(settings, os.environ))
