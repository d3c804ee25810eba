"""The page of the audit log (SPEC SEC-9)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.messages import Target
from tests.unit.web import fake_access
from tests.unit.web.fakes import FakeControl
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


@pytest.mark.parametrize(("subject", "link"), [
    ("session agent:main:telegram:direct:7", ">session <bdi>Ann</bdi></a>"),
    ("person telegram/default/7",
     '<a href="/people?search=7" title="person telegram/default/7">person <bdi>Ann</bdi></a>'),
    ("job tea", '<a href="/jobs/tea" title="job tea">job <bdi>tea</bdi></a>'),
    ("agent main", '<a href="/heartbeats/main" title="agent main">agent <bdi>main</bdi></a>'),
    ("approval ab1", '<a href="/approvals#approval-ab1" title="approval ab1">'),
    ("token x", '<bdi>token x</bdi>'),
])  # fmt: skip
async def test_a_subject_leads_to_its_page(
    browser: Browser,
    control: FakeControl,
    monkeypatch: pytest.MonkeyPatch,
    subject: str,
    link: str,
) -> None:
    control.named = KnownNames({Target("telegram", "default", "7"): "Ann"})
    for before, after in ((None, None), ({"allowed": None}, {"allowed": False})):
        entry = replace(fake_access.AUDIT[0], subject=subject, before=before, after=after)
        monkeypatch.setattr(fake_access, "AUDIT", [entry])
        said = await browser.says("/audit?range=all", link)
        assert "null" not in said
