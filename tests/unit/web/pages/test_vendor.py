"""Files of others in the package are those that were fetched, and no others."""

import tomllib

from tests.tools.vendor import FOLDER, SOURCES, digests


def test_files_of_others_are_unchanged_and_all_are_listed() -> None:
    assert digests() == tomllib.loads(SOURCES.read_text())["sha256"]


def test_the_licences_of_all_packages_are_beside_them() -> None:
    licences = (FOLDER / "LICENSES.txt").read_text()
    for package in tomllib.loads(SOURCES.read_text())["package"]:
        assert f"== {package['name']} " in licences
