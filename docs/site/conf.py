"""The documentation site, from the documents as they stand in the repository: ``make docs``.

Sources are found below the root of the repository, so that links of the documents also work where
somebody reads them without the site. Its menu is made from the tables of ``docs/guide/README.md``.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.parsers import Parser

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ROOT / "docs" / "guide" / "README.md"
HOME = "README"

project = "goclaw_py"
release = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
copyright = "the authors of goclaw_py, MIT licence"  # noqa: A001
root_doc = HOME
extensions = ["myst_parser"]
include_patterns = ["*.md", "docs/*.md", "docs/**/*.md", "examples/*.md", "examples/*.py"]
include_patterns += ["goclaw_py/chat/channel.py", "goclaw_py/core/errors.py"]  # linked by guides
exclude_patterns = [".*", "build", "tests"]
myst_heading_anchors = 4
nitpicky = True

html_theme = "furo"
html_title = f"goclaw_py {release}"
html_logo = html_favicon = "../../goclaw_py/web/pages/static/icon.svg"
html_static_path = ["static"]
html_search_scorer = str(ROOT / "docs/site/scorer.js")
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = html_use_index = False
_COLOURS = {"light": "#0b6e69", "dark": "#4fc3b8"}
html_theme_options = {
    f"{theme}_css_variables": {
        **{f"color-brand-{name}": colour for name in ("primary", "content", "visited")},
        "font-stack": "system-ui, sans-serif",
        "font-stack--monospace": "ui-monospace, Menlo, Consolas, monospace",
    }
    for theme, colour in _COLOURS.items()
}

_PROJECT = (
    *(f"docs/{name}" for name in ("spec", "cron-rules", "scaling", "architecture", "costs")),
    *("docs/adr/README", "CONTRIBUTING", "AGENTS", "CODE_OF_CONDUCT", "SECURITY", "CHANGELOG"),
)
_TREE = "\n\n```{{toctree}}\n:{option}\n\n{pages}\n```\n"


def _menu() -> Iterator[tuple[str, list[str]]]:
    """Yield the parts of the menu: a title, and the pages in the order of the guides."""
    listed = set[str]()
    for section in GUIDES.read_text("utf-8").split("\n## ")[1:]:
        found = [
            (GUIDES.parent / link).resolve().relative_to(ROOT).with_suffix("").as_posix()
            for link in re.findall(r"\]\(([^)#]+\.md)\)", section)
        ]
        pages = [page for page in dict.fromkeys(found) if page not in listed]
        if not listed:
            pages.insert(0, "docs/guide/README")
        listed.update(pages)
        yield section.partition("\n")[0], pages
    yield "Project", [page for page in _PROJECT if page not in listed]


def _add_trees(_app: Sphinx, page: str, source: list[str]) -> None:
    """Add what only the site needs: which pages are below which."""
    trees: list[tuple[str, list[str]]] = []
    match page:
        case "README":
            trees = [(f"hidden:\n:caption: {title}", pages) for title, pages in _menu()]
        case "docs/adr/README":
            files = sorted((ROOT / "docs" / "adr").glob("0*.md"))
            trees = [("titlesonly:", [f"docs/adr/{file.stem}" for file in files])]
    for option, pages in trees:
        source[0] += _TREE.format(option=option, pages="\n".join(f"/{one}" for one in pages))


class Program(Parser):
    """A page that shows a program."""

    supported = ("program",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        env: BuildEnvironment = document.settings.env
        name = Path(env.docname).name + ".py"
        env.metadata[env.docname]["orphan"] = ""
        code = nodes.literal_block(inputstring, inputstring, language="python")
        document += nodes.section("", nodes.title(name, name), code, ids=["program"])


def _copy_home(app: Sphinx, error: Exception | None) -> None:
    """The first page is the README, also under the name that servers look for."""
    if error is None:
        shutil.copy(Path(app.outdir) / f"{HOME}.html", Path(app.outdir) / "index.html")


def setup(app: Sphinx) -> None:
    """Register what this file adds to Sphinx."""
    app.add_source_suffix(".py", "program")
    app.add_source_parser(Program)
    app.connect("source-read", _add_trees)
    app.connect("build-finished", _copy_home)
