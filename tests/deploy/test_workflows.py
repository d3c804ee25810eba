"""The workflows of the repository."""

from __future__ import annotations

import re

from tests.deploy.places import ROOT


def test_actions_are_those_that_were_looked_at() -> None:
    """A tag can be moved to other code, a commit cannot."""
    used = [
        line.strip().removeprefix("- uses: ")
        for path in (ROOT / ".github" / "workflows").glob("*.yml")
        for line in path.read_text("utf-8").splitlines()
        if "uses:" in line
    ]
    assert used
    assert [
        one for one in used if not re.fullmatch(r"\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)
    ] == []
