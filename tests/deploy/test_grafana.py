"""The dashboard of Grafana: complete, and fed by what /metrics offers (SPEC OPS-7)."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.offered import Query, series
from tests.deploy.places import DASHBOARD, program, run

WHOLE: Any = json.loads(DASHBOARD.read_text("utf-8"))
PANELS = [panel for panel in WHOLE["panels"] if panel["type"] != "row"]
EACH = pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])


def plain(expression: str) -> str:
    """Without Grafana's own variables."""
    for variable, value in (("$__rate_interval", "5m"), ("$__interval", "1m")):
        expression = expression.replace(variable, value)
    return re.sub(r'=~"\$\w+"', '=~".+"', expression)


def expressions() -> list[str]:
    notes = [note["expr"] for note in WHOLE["annotations"]["list"]]
    return notes + [target["expr"] for panel in PANELS for target in panel["targets"]]


def test_the_dashboard_has_the_rows_of_an_operator() -> None:
    rows = [panel["title"] for panel in WHOLE["panels"] if panel["type"] == "row"]
    assert rows == ["Overview", "Runs", "Deliveries", "Jobs", "Heartbeats", "Cost", "Process"]


def test_ids_and_titles_are_unique() -> None:
    ids = [panel["id"] for panel in WHOLE["panels"]]
    titles = [panel["title"] for panel in WHOLE["panels"]]
    assert len(set(ids)) == len(ids)
    assert len(set(titles)) == len(titles)
    assert all(titles)


def test_no_panel_lies_on_another() -> None:
    places = [panel["gridPos"] for panel in WHOLE["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for a, b in combinations(places, 2):
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        below = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
        assert beside or below, (a, b)


@EACH
def test_a_panel_has_a_unit_and_asks_only_for_what_a_gateway_offers(panel: Any) -> None:
    assert panel["fieldConfig"]["defaults"]["unit"]
    sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
    assert all(one == {"type": "prometheus", "uid": "${datasource}"} for one in sources)
    references = [target["refId"] for target in panel["targets"]]
    assert len(set(references)) == len(references) > 0
    for target in panel["targets"]:
        query = Query(plain(target["expr"]))
        assert query.names
        assert query.mistakes() == []
        shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        assert shown <= (query.groups or {"instance"})


def test_the_variables_that_queries_use_are_defined() -> None:
    defined = {one["name"]: one["type"] for one in WHOLE["templating"]["list"]}
    assert defined["datasource"] == "datasource"
    used = set(re.findall(r"\$(?!__)\{?(\w+)", json.dumps(WHOLE)))
    assert used == set(defined)
    for one in WHOLE["templating"]["list"][1:]:
        assert (
            Query(one["query"]["query"].split("(")[1].split(",")[0].split("{")[0]).mistakes() == []
        )


def test_all_that_a_gateway_tells_of_itself_is_shown() -> None:
    ours = {
        re.sub("_(bucket|count|sum|created)$", "", name) for name in series() if "goclaw" in name
    }
    shown = {name for text in expressions() for name in Query(plain(text)).names}
    assert ours - {name.removesuffix("_bucket") for name in shown} == set()


def test_prometheus_understands_every_query(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": plain(text)}
        for number, text in enumerate(expressions())
    ]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    code, output = run(program("promtool"), "check", "rules", file)
    assert code == 0, output
