"""The HTTP API of a real gateway, over TCP (SPEC OPS-2, CRON-19)."""

from __future__ import annotations

import re

import httpx

from tests.support.process import Home, wait_for

TOKEN = "0123456789abcdef-of-the-test"
STANDUP = {
    "prompt": "echo ☕",
    "schedule": {"type": "cron", "expression": "0 9 * * 1-5", "timezone": "Europe/Berlin"},
}
NOT_THEIRS = {
    421: {"host": "evil.example"},
    403: {"origin": "http://evil.example"},
    401: {"authorization": "Bearer wrong"},
}


def test_schedules_are_served_over_tcp_to_whoever_knows_the_token(place: Home) -> None:
    """With a prompt as long as may be; the command line sees the same job."""
    (place.folder / "token").write_text(f"{TOKEN}\n")
    (place.folder / "token").chmod(0o600)
    (place.folder / "goclaw.toml").write_text('[web]\nport = 0\ntoken_file = "token"\n')
    gateway = place.start(GOCLAW_WEB__API="true")
    found = wait_for(
        lambda: re.search(r"http://127\.0\.0\.1:[0-9]+", gateway.output), "its address"
    )
    headers = {"authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=found[0], headers=headers, trust_env=False, timeout=30) as client:
        assert client.get("/api/schedule").json() == []
        long = STANDUP | {"prompt": "echo " + "☕" * 99_995}
        for body, created in ((STANDUP, True), (long, False)):
            answer = client.put("/api/schedule/standup", json=body)
            assert (answer.status_code, answer.json()["created"]) == (200, created), answer.text
        (shown,) = client.get("/api/schedule").json()
        assert (shown["slug"], shown["prompt"]) == ("standup", long["prompt"])
        (job,) = place.rows("cron", "list")
        assert (job["spec"]["slug"], job["spec"]["zone"]) == ("standup", "Europe/Berlin")

        for status, wrong in NOT_THEIRS.items():
            for method in ("GET", "DELETE"):
                refused = client.request(method, "/api/schedule/standup", headers=wrong)
                assert refused.status_code == status
        assert client.delete("/api/schedule/standup").json()["deleted"] is True
        assert client.get("/api/schedule/standup").status_code == 404
        alive = client.head("/healthz", headers={"authorization": ""})
        assert (alive.status_code, alive.content) == (200, b"")
    assert TOKEN not in gateway.output
