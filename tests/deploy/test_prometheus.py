"""Scrape configuration and alerts, by promtool and against what /metrics offers (SPEC OPS-7)."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.commands import commands_in, is_command
from tests.deploy.offered import Query, exposition
from tests.deploy.places import PROMETHEUS, document, program, run


def alerts() -> list[Any]:
    (group,) = document(PROMETHEUS / "alerts.yml")["groups"]
    return list(group["rules"])


EACH = pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])


def test_promtool_takes_the_configuration_and_its_rules(tmp_path: Path) -> None:
    folder = tmp_path / "prometheus"
    shutil.copytree(PROMETHEUS, folder)
    check = (program("promtool"), "check", "config", folder / "prometheus.yml")
    code, output = run(*check)
    assert code != 0, "it has to say that the file with the token is missing"
    (folder / "web-token").write_text("0123456789abcdef")
    code, output = run(*check)
    assert code == 0, output
    assert f"{len(alerts())} rules found" in output


def test_the_alerts_fire_when_they_should_and_not_before() -> None:
    code, output = run(program("promtool"), "test", "rules", "alerts_test.yml", cwd=PROMETHEUS)
    assert code == 0, output


@EACH
def test_every_alert_is_tested_both_ways(alert: Any) -> None:
    name = alert["alert"]
    fires = set()
    for one in document(PROMETHEUS / "alerts_test.yml")["tests"]:
        for case in one.get("alert_rule_test", ()):
            if case["alertname"] == name:
                fires.add(bool(case.get("exp_alerts")))
        for case in one.get("promql_expr_test", ()):
            if f'alertname="{name}"' in case["expr"]:
                fires.add(bool(case.get("exp_samples")))
    assert fires == {True, False}


@EACH
def test_an_alert_asks_only_for_what_a_gateway_offers_and_says_what_to_do(alert: Any) -> None:
    query, notes = Query(alert["expr"]), alert["annotations"]
    assert query.names
    assert query.mistakes() == []
    assert alert["labels"]["severity"] in ("critical", "warning", "info")
    assert set(notes) == {"summary", "description"}
    assert [words for words in commands_in(notes["description"]) if not is_command(words)] == []
    # The labels that it shows are left by its query.
    assert set(re.findall(r"\$labels\.(\w+)", str(notes))) <= (query.groups or {"instance", "lane"})


def test_the_names_follow_the_conventions_of_prometheus() -> None:
    done = subprocess.run(
        [program("promtool"), "check", "metrics"],
        input=exposition(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        ("goclaw_database_up == 0", []),
        ("goclaw_databases_up == 0", ["no series goclaw_databases_up"]),
        ("sum by (lane) (goclaw_database_up)", ["no label lane to group by"]),
        ('rate(goclaw_runs_total{kind="x"}[5m])', ["goclaw_runs_total has no label kind"]),
        (
            'goclaw_occurrences_total{status=~"lost|late"}',
            ["goclaw_occurrences_total: no status late"],
        ),
    ],
)
def test_queries_are_taken_apart_as_these_tests_need(text: str, mistakes: list[str]) -> None:
    assert Query(text).mistakes() == mistakes
