"""The pictures of the documents: there, described, used and small."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.guides.reading import DOCUMENTS
from tests.support.guides import ROOT

FOLDER = ROOT / "docs" / "pictures"
PICTURES = sorted(FOLDER.iterdir())
MOST_BYTES = 300_000
MOST_BYTES_IN_ALL = 1_500_000

_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")


def shown(file: Path) -> list[tuple[str, Path]]:
    """The pictures of a document: the text in place of each, and its file."""
    found = _PICTURE.findall(file.read_text(encoding="utf-8"))
    return [(text, (file.parent / path).resolve()) for text, path in found]


def test_every_picture_that_a_document_shows_is_there_and_described() -> None:
    used = [(file.name, *one) for file in DOCUMENTS for one in shown(file)]
    assert [one for one in used if not one[2].is_file()] == []
    assert [one for one in used if len(one[1].split()) < 3] == []


def test_every_picture_is_shown_by_a_document() -> None:
    used = {path for file in DOCUMENTS for _, path in shown(file)}
    assert [path.name for path in PICTURES if path not in used] == []


@pytest.mark.parametrize("file", PICTURES, ids=lambda file: file.name)
def test_a_picture_is_small_and_whole(file: Path) -> None:
    data = file.read_bytes()
    assert len(data) <= MOST_BYTES
    if file.suffix == ".svg":
        root = ET.fromstring(data)
        assert root.find("{http://www.w3.org/2000/svg}title") is not None
        assert b"<script" not in data
    else:
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", data[16:24])
        assert min(width, height) >= 400
        assert data.rstrip().endswith(b"IEND\xaeB`\x82")


def test_all_pictures_together_are_small() -> None:
    assert sum(path.stat().st_size for path in PICTURES) <= MOST_BYTES_IN_ALL
