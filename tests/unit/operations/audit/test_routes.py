"""``/api/audit``: who has changed what (SPEC SEC-9)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.records import ALL_ENTRIES, AuditFilter
from tests.unit.web.fake_access import AUDIT
from tests.unit.web.fake_names import AT
from tests.unit.web.harness import Gateway

pytestmark = pytest.mark.real_time


async def test_everything_comes_back_as_it_was(made: Gateway, remote: RemoteControl) -> None:
    assert await remote.audit.list() == AUDIT
    only = AuditFilter("ann", "node", "node-2", AT, AT + timedelta(days=1))
    assert await remote.audit.list(limit=1, only=only, before=2) == AUDIT[1:]
    # One more than was asked for tells whether there is another page.
    asked = [("audit_entries", 51, ALL_ENTRIES, None), ("audit_entries", 2, only, 2)]
    assert made.control.calls == asked
