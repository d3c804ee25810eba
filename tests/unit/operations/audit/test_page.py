"""The page of the audit log (SPEC SEC-9)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.web import fake_access
from tests.unit.web.pages.conftest import Browser


@pytest.mark.parametrize(("value", "shown"), [
    ("2026-12-07T20:42:05.600124Z",
     '<time datetime="2026-12-07T20:42:05.600Z">2026-12-07 20:42:05 UTC</time>'),
    ("2026-12-07T20:42+01:00",
     '<time datetime="2026-12-07T19:42:00.000Z">2026-12-07 19:42:00 UTC</time>'),
    ("2026-99-07T20:42:05Z", "<bdi>2026-99-07T20:42:05Z</bdi>"),
    ("2026-12-07", "<bdi>2026-12-07</bdi>"),
])  # fmt: skip
async def test_a_time_is_shown_as_times_are_everywhere(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, value: str, shown: str
) -> None:
    entry = replace(fake_access.AUDIT[0], before=None, after={"expires_at": value})
    monkeypatch.setattr(fake_access, "AUDIT", [entry])
    await browser.says("/audit?range=all", f"expires_at: {shown}")
