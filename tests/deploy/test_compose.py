"""compose.yaml, by the schema of the Compose specification (SPEC OPS-7)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.deploy.places import COMPOSE, DEPLOY, DOCKERFILE, run, service


def test_compose_takes_the_file_and_would_not_take_a_mistake(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(COMPOSE.read_text("utf-8").replace("stop_grace_period", "stop_grace"))
    tool = Path(sys.executable).with_name("check-jsonschema")
    schema = ("--builtin-schema", "vendor.compose-spec", "--output-format", "json")
    code, output = run(tool, *schema, COMPOSE, wrong)
    assert code == 1
    found = json.loads(output)
    assert found["parse_errors"] == []
    assert {Path(error["filename"]) for error in found["errors"]} == {wrong}, output


def test_compose_builds_our_image_from_the_top_of_the_checkout() -> None:
    build = service("goclaw")["build"]
    context = (DEPLOY / build["context"]).resolve()
    assert (context / build["dockerfile"]) == DOCKERFILE


def test_the_gateway_waits_for_a_database_that_answers_over_tcp() -> None:
    """While PostgreSQL is being set up, it answers on its unix socket already."""
    assert service("goclaw")["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert "--host=127.0.0.1" in service("postgres")["healthcheck"]["test"]


def test_the_gateway_can_be_reached_from_this_machine_only() -> None:
    assert all(port.startswith("127.0.0.1:") for port in service("goclaw")["ports"])
    assert "ports" not in service("postgres")
