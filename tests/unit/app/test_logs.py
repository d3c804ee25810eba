"""What stands in the log, and what never does."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from goclaw_py.app.logs import configure
from goclaw_py.config import Settings
from goclaw_py.config.models import Log, LogFormat


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    for handler in handlers:
        root.removeHandler(handler)
    yield
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(level)


@pytest.mark.parametrize("form", [LogFormat.CONSOLE, LogFormat.JSON])
def test_a_traceback_shows_no_local_variables(tmp_path: Path, form: LogFormat) -> None:
    """SPEC SEC-2: keys are among them."""
    configure(Settings(log=Log(format=form)), file=tmp_path / "log")

    def fail(key: str) -> None:
        raise ValueError(f"{len(key)} characters")

    try:
        fail("-".join(["hunter2"] * 2))
    except ValueError:
        logging.getLogger("goclaw_py.test").exception("it failed")
    text = (tmp_path / "log").read_text()
    assert "it failed" in text
    assert "15 characters" in text
    assert "in fail" in text
    assert "hunter2-hunter2" not in text
