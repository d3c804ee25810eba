"""Texts in bodies that no database and no channel takes: cleaned, or refused in words."""

from __future__ import annotations

import pytest

from tests.unit.web.harness import Api

HALF, NUL, ESCAPE = r"a\ud83d", r"a\u0000", r"a\u001b[31m"
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("text", [HALF, NUL, ESCAPE, "a" * 200_000, r"\ud83d\udc4d"])
@pytest.mark.parametrize(("path", "body"), [
    ("/chat/c/messages", '{"text": "TEXT"}'),
    ("/chat/c/press", '{"message": "1", "data": "TEXT"}'),
    ("/heartbeats/main/events", '{"text": "TEXT"}'),
    ("/heartbeats/main/checklist/items", '{"text": "TEXT"}'),
    ("/jobs", '{"schedule": "every 1h", "prompt": "TEXT", "name": "TEXT"}'),
    ("/pairing/approve", '{"code": "TEXT"}'),
    ("/people/names", '{"name": "TEXT"}'),
    ("/approvals/a/decide", '{"decision": "TEXT"}'),
])  # fmt: skip
async def test_no_text_in_a_body_is_a_defect(path: str, body: str, text: str, api: Api) -> None:
    answer = await api.client.post(
        f"/api{path}", content=body.replace("TEXT", text).encode(), headers=JSON
    )
    assert answer.status_code < 500, answer.text
