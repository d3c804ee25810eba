"""Write the list of all packages of a gateway with their licences: ``make sbom``.

CycloneDX describes the environment in which it runs, which also has the tools of developers. What a
gateway needs is in ``deploy/requirements.txt``: exactly these packages stay. Nothing is downloaded.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "deploy" / "requirements.txt"
_PIN = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)
_PACKAGE = re.compile(r"pkg:pypi/([a-z0-9-]+)@([^?]+)")


def pins(requirements: Path) -> dict[str, str]:
    """The version of each package."""
    return dict(_PIN.findall(requirements.read_text("utf-8")))


def sbom(needed: dict[str, str]) -> dict[str, Any]:
    """Describe the needed packages, as they are installed here.

    Raises:
        ValueError: Some are not installed, or in another version.
    """
    command = (sys.executable, "-m", "cyclonedx_py", "environment", sys.executable)
    # It would validate what is dropped below too, which takes as long again.
    options = ("--gather-license-texts", "--output-reproducible", "--no-validate")
    project = ("--pyproject", str(ROOT / "pyproject.toml"))
    whole = subprocess.run([*command, *options, *project], capture_output=True, check=True)
    found: dict[str, Any] = json.loads(whole.stdout)
    packages = {}
    for component in found["components"]:
        # The checkout has no version of an index: it is the root, not a component.
        package = _PACKAGE.match(component.get("purl", ""))
        if package and needed.get(package[1]) == package[2]:
            packages[package[1]] = component
    if missing := needed.keys() - packages.keys():
        raise ValueError(f"not installed as in {REQUIREMENTS.name}: {', '.join(sorted(missing))}")
    refs = {one["bom-ref"] for one in packages.values()}
    root = found["metadata"]["component"]["bom-ref"]
    found["components"] = list(packages.values())
    found["dependencies"] = [
        {"ref": one["ref"], "dependsOn": sorted(refs & set(one.get("dependsOn", ())))}
        for one in found["dependencies"]
        if one["ref"] in refs | {root}
    ]
    return found


def mistake(found: dict[str, Any]) -> str:
    """Say why this is no CycloneDX, "" if it is."""
    validator = JsonStrictValidator(SchemaVersion.from_version(found["specVersion"]))
    wrong = validator.validate_str(json.dumps(found))
    return "" if wrong is None else str(wrong)


def main() -> int:
    try:
        found = sbom(pins(REQUIREMENTS))
    except ValueError as error:
        print(f"sbom: {error}", file=sys.stderr)
        return 1
    if wrong := mistake(found):
        print(f"sbom: {wrong}", file=sys.stderr)
        return 1
    file = ROOT / "dist" / "sbom.cdx.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(found, indent=2) + "\n", "utf-8")
    print(f"{file.relative_to(ROOT)}: {len(found['components'])} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
