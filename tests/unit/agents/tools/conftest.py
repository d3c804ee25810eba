from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tools import ToolHost


@pytest.fixture
def service(tmp_path: Path) -> ToolHost:
    """Tools at work in ``tmp_path / "workspace"``; beside it there is a secret."""
    (tmp_path / "secret.txt").write_text("the secret", "utf-8")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return ToolHost(workspace)
