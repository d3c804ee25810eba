"""What the API says of itself (SPEC OPS-2): every operation, in full, with examples that hold."""

from __future__ import annotations

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from goclaw_py.web.api import openapi as description
from goclaw_py.web.api.openapi import operations
from tests.support.apps import lend_api
from tests.unit.web.fake_terminals import FakeTerminals
from tests.unit.web.fakes import FakeControl

JSON = "application/json"
OPEN = ("/healthz", "/readyz")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return lend_api(FakeControl(), FakeTerminals()).openapi()


async def test_it_is_made_once_and_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    made_in: list[int] = []

    def complete(document: dict[str, Any]) -> dict[str, Any]:
        made_in.append(threading.get_ident())
        return document

    monkeypatch.setattr(description, "_complete", complete)
    transport = httpx.ASGITransport(lend_api(FakeControl()))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answers = await asyncio.gather(*(client.get("/openapi.json") for _ in range(3)))
        refused = await client.post("/openapi.json")
    assert {answer.headers["content-type"] for answer in answers} == {JSON}
    assert all(answer.json()["openapi"] == "3.1.0" for answer in answers)
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET")
    assert len(made_in) == 1
    assert made_in[0] != threading.get_ident()


def validator(document: dict[str, Any], schema: dict[str, Any]) -> Any:
    # Imported late: it compiles grammars for a second, in each process that collects tests.
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

    return Draft202012Validator({**schema, "components": document["components"]})


async def test_a_parameter_counts_once_and_a_number_is_no_time(document: dict[str, Any]) -> None:
    """Of two values any may be meant; pydantic reads ``23723`` as seconds since 1970."""
    transport = httpx.ASGITransport(lend_api(FakeControl(), FakeTerminals()))
    tried: Counter[str] = Counter()
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:

        async def refusal(method: str, path: str, **parameters: object) -> str:
            filled = re.sub(r"{[^}]+}", "7", path)
            answer = await client.request(method, filled, params=parameters)  # type: ignore[arg-type]
            assert answer.status_code in (400, 422), (path, parameters, answer.text)
            return str(answer.json()["error"])

        for path, method, operation in operations(document):
            for one in operation.get("parameters", ()):
                if one["in"] != "query":
                    continue
                name, schema = one["name"], one["schema"]
                if schema.get("type") != "array":
                    tried["twice"] += 1
                    assert await refusal(method, path, **{name: ["a", "b"]}) == (
                        f"{name}: is given 2 times"
                    )
                if "date-time" in str(schema):
                    tried["time"] += 1
                    assert f"{name}: must be a time with a zone" in await refusal(
                        method, path, **{name: "23723"}
                    )
    assert tried["twice"] > 100
    assert tried["time"] > 8


async def test_a_list_may_be_given_in_parts() -> None:
    transport = httpx.ASGITransport(lend_api(FakeControl(), FakeTerminals()))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/api/jobs?state=active&state=paused")
    assert answer.status_code == 200


def test_every_operation_is_named_summed_up_and_sorted(document: dict[str, Any]) -> None:
    found = list(operations(document))
    assert len(found) > 70
    names = Counter(operation["operationId"] for _, _, operation in found)
    assert names.most_common(1)[0][1] == 1
    for path, method, operation in found:
        where = f"{method} {path}"
        assert operation["tags"], where
        summary, text = operation["summary"], operation["description"]
        assert text.replace("\n", " ").startswith(summary.split("\n")[0]), where
        assert summary[0].isupper(), where
        assert not summary.endswith("."), where
        assert "``" not in text, where


def test_every_body_and_every_answer_has_an_example(document: dict[str, Any]) -> None:
    for path, method, operation in operations(document):
        contents = [("body", operation.get("requestBody", {}).get("content", {}))]
        contents += [(code, one.get("content", {})) for code, one in operation["responses"].items()]
        for where, content in contents:
            for kind, media in content.items():
                if kind in (JSON, "text/event-stream"):
                    assert "example" in media, f"{method} {path} {where}"


def test_examples_are_what_their_schemas_say(document: dict[str, Any]) -> None:
    checked = 0
    for path, method, operation in operations(document):
        medias = [operation.get("requestBody", {})]
        medias += operation["responses"].values()
        for one in medias:
            for media in one.get("content", {}).values():
                if "example" in media and "schema" in media:
                    wrong = list(validator(document, media["schema"]).iter_errors(media["example"]))
                    assert not wrong, f"{method} {path}: {wrong[0].message}"
                    checked += 1
        for parameter in operation.get("parameters", []):
            schema = parameter["schema"]
            for example in parameter.get("examples", schema.get("examples", [])):
                assert validator(document, schema).is_valid(example), f"{method} {path} {parameter}"
    assert checked > 500


def differing(document: dict[str, Any], schema: dict[str, Any], value: object) -> Iterator[str]:
    """Fields that only the schema or only its example has, with those of its parts."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    match value:
        case dict():
            fields = schema.get("properties", {})
            yield from (fields.keys() ^ value.keys()) if fields else ()
            for name in fields.keys() & value.keys():
                yield from (
                    f"{name}.{one}" for one in differing(document, fields[name], value[name])
                )
        case [first, *_]:
            yield from differing(document, schema.get("items", {}), first)


def test_examples_of_answers_have_the_fields_of_their_schemas(document: dict[str, Any]) -> None:
    wrong = {
        f"{method} {path}: {name}"
        for path, method, operation in operations(document)
        for code, answer in operation["responses"].items()
        for media in answer.get("content", {}).values()
        if code[0] == "2" and "example" in media and "schema" in media
        for name in differing(document, media["schema"], media["example"])
    }
    assert wrong == set()


def test_examples_show_nothing_that_does_harm_in_a_terminal(document: dict[str, Any]) -> None:
    for path, method, operation in operations(document):
        text = str([one.get("content") for one in operation["responses"].values()])
        assert text.replace("\n", "").isprintable(), f"{method} {path}"
        assert "\\x1b" not in text, f"{method} {path}"


def test_every_refusal_is_described_as_an_error(document: dict[str, Any]) -> None:
    for path, method, operation in operations(document):
        where = f"{method} {path}"
        codes = set(operation["responses"])
        assert {"403", "421"} <= codes, where
        assert ("401" in codes) is (path not in OPEN), where
        assert ("415" in codes) is ("requestBody" in operation), where
        if "{" in path or "requestBody" in operation or operation.get("parameters"):
            assert codes & {"400", "404", "422"}, where
        for code in codes:
            if code >= "400":
                schema = operation["responses"][code]["content"][JSON]["schema"]
                assert validator(document, schema).is_valid({"error": "x"}) or code in (
                    *("404", "409", "503"),
                ), f"{where} {code}"
                assert not validator(document, schema).is_valid({}), f"{where} {code}"


def test_lists_say_how_to_read_on(document: dict[str, Any]) -> None:
    paged = {
        path.removeprefix("/api/")
        for path, method, operation in operations(document)
        if "Link" in operation["responses"].get("200", {}).get("headers", {})
    }
    assert paged == {
        *(
            "runs",
            "runs/timeline",
            "sessions",
            "deliveries/incoming",
            "deliveries",
            "people",
            "chats",
            "heard",
        ),
        *("approvals", "heartbeat-runs", "heartbeats/{agent}/runs", "occurrences"),
        *("jobs/{job}/log", "settings/history", "audit"),
    }
    for path in paged:
        names = {one["name"] for one in document["paths"][f"/api/{path}"]["get"]["parameters"]}
        assert "limit" in names
        assert names & {"before", "after"}
