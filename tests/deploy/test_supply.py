"""What a gateway is made of: pinned, compared with hashes, and listed (SPEC OPS-7)."""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import requires
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.places import ROOT, run
from tests.tools.sbom import REQUIREMENTS, mistake, pins, sbom

MACHINES = [
    {"python_version": python, "python_full_version": f"{python}.1", "sys_platform": system}
    for python, system in product(("3.11", "3.12", "3.13", "3.14"), ("linux", "darwin"))
]
"""Where a gateway runs, as markers of requirements see it."""


def test_a_gateway_has_the_versions_that_all_tests_ran_with() -> None:
    everything = pins(ROOT / "constraints.txt")
    assert {name: everything.get(name) for name in pins(REQUIREMENTS)} == pins(REQUIREMENTS)


def test_every_package_has_hashes_and_nothing_else() -> None:
    lines = REQUIREMENTS.read_text("utf-8").replace(" \\\n", "").splitlines()
    marker = r"( ; [\w \"'!=<>.]+)?"
    pattern = re.compile(rf"[a-z0-9-]+==[\w.]+{marker}(    --hash=sha256:[0-9a-f]{{64}})+")
    assert [line for line in lines if not pattern.fullmatch(line)] == []
    assert len(lines) == len(pins(REQUIREMENTS)) > 50


def needed(requirement: Requirement, seen: set[tuple[str, str]]) -> Iterator[str]:
    """The names of a package and of all that it needs on any of the machines."""
    name = canonicalize_name(requirement.name)
    for extra in ("", *requirement.extras):
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        yield name
        for text in requires(name) or ():
            other = Requirement(text)
            places = [machine | {"extra": extra} for machine in MACHINES]
            if other.marker is None or any(other.marker.evaluate(place) for place in places):
                yield from needed(other, seen)


def test_all_that_a_gateway_needs_on_any_machine_is_pinned() -> None:
    """pip refuses to install what it has no hash of."""
    ours = set[tuple[str, str]]()
    wanted = {
        *needed(Requirement("goclaw_py[otel]"), ours),
        *needed(Requirement("hatchling"), ours),
    }
    assert wanted - {"goclaw-py"} == set(pins(REQUIREMENTS))


@cache
def whole() -> dict[str, Any]:
    return sbom(pins(REQUIREMENTS))


def test_every_package_of_a_gateway_is_listed_with_its_licence() -> None:
    listed = {one["purl"]: one for one in whole()["components"]}
    assert set(listed) == {f"pkg:pypi/{name}@{v}" for name, v in pins(REQUIREMENTS).items()}
    assert [name for name, one in listed.items() if not one.get("licenses")] == []
    root = whole()["metadata"]["component"]
    assert (root["name"], root["licenses"][0]["license"]["id"]) == ("goclaw_py", "MIT")


def test_the_list_says_what_needs_what() -> None:
    refs = {one["bom-ref"] for one in whole()["components"]}
    graph = {one["ref"]: one["dependsOn"] for one in whole()["dependencies"]}
    assert graph.keys() == refs | {whole()["metadata"]["component"]["bom-ref"]}
    assert {other for others in graph.values() for other in others} <= refs
    assert any(ref.startswith("aiogram==") for ref in graph["root-component"])


def test_the_list_is_valid_cyclonedx() -> None:
    """A few packages with each kind of licence: validating all takes half a minute."""
    few = {name: v for name, v in pins(REQUIREMENTS).items() if name in {"segno", "tiktoken"}}
    listed = sbom(few)
    assert [one["name"] for one in listed["components"]] == ["segno", "tiktoken"]
    assert mistake(listed) == ""
    listed["components"][0]["type"] = "thing"
    assert "thing" in mistake(listed)


def test_a_list_of_other_versions_is_refused() -> None:
    with pytest.raises(ValueError, match=r"not installed as in requirements\.txt: segno"):
        sbom({"segno": "0.0.1"})


def recipe(target: str) -> list[str]:
    """The commands of a target of make."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert found
    return [line.removeprefix("\t@") for line in found[1].splitlines()]


def test_the_checksums_name_every_file_of_a_release(tmp_path: Path) -> None:
    checksums = recipe("dist")[-1]
    folder = tmp_path / "dist"
    folder.mkdir()
    files = {"a.whl": b"wheel", "sbom.cdx.json": b"{}"}
    for name, data in files.items():
        (folder / name).write_bytes(data)
    assert run("/bin/sh", "-c", checksums, cwd=tmp_path) == (0, "")
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    assert lines == [f"{hashlib.sha256(data).hexdigest()}  {name}" for name, data in files.items()]


def test_a_release_is_checked_built_and_signed_before_it_is_published() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))
    steps = workflow["jobs"]["release"]["steps"]
    done = [step.get("run") or step["uses"].partition("@")[0] for step in steps]
    names = ["make check", "make dist", "actions/attest-build-provenance"]
    places = [done.index(name) for name in names]
    assert places == sorted(places)
    assert shlex.split(done[-1])[:3] == ["gh", "release", "create"]
    (signing,) = [step for step in steps if "attest" in step.get("uses", "")]
    assert signing["with"] == {"subject-checksums": "dist/SHA256SUMS"}


@pytest.mark.parametrize(
    ("schema", "files"),
    [("github-workflows", "workflows/*.yml"), ("renovate", "renovate.json")],
)
def test_what_github_and_renovate_read_is_valid(schema: str, files: str) -> None:
    found = sorted((ROOT / ".github").glob(files))
    assert found
    tool = Path(sys.executable).with_name("check-jsonschema")
    code, output = run(tool, "--builtin-schema", f"vendor.{schema}", *found)
    assert code == 0, output
