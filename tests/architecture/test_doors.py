"""One door for each third party: only the modules named here may import it."""

from __future__ import annotations

from tests.architecture.sources import OURS, Module, is_stdlib, modules, nouns

ANYWHERE = OURS


def of_each_noun(name: str) -> tuple[str, ...]:
    return tuple(f"{noun}.{name}" for noun in nouns())


DOORS: dict[str, tuple[str, ...]] = {
    "aiogram": ("channels.telegram.via_aiogram", "channels.telegram.library_client"),
    "aiohttp": (
        "channels.telegram.http",
        "goclaw_py.core.net.proxied_sessions",
        "goclaw_py.core.net.socks_connector",
        "goclaw_py.schedule.sources.github_http",
    ),
    "aiohttp_socks": ("goclaw_py.core.net.socks_connector",),
    "anyascii": ("goclaw_py.schedule.jobs.models",),
    "anthropic": ("goclaw_py.agents.models",),
    "authlib": ("goclaw_py.web.openid.provider",),
    "asyncpg": ("goclaw_py.store.postgres", "goclaw_py.store.migrate"),
    "croniter": ("goclaw_py.schedule.cron.expression",),
    "fastapi": ("goclaw_py.web", *of_each_noun("routes")),
    "fastmcp": ("goclaw_py.agents.models.mcp", "goclaw_py.agents.models.responses.mcp_messages"),
    "genai_prices": ("goclaw_py.agents.models",),
    "httpx": ("goclaw_py.cli",),
    "httpx2": (
        "goclaw_py.agents.models",
        "goclaw_py.core.net.proxies",
        "goclaw_py.web.openid.provider",
    ),
    "joserfc": ("goclaw_py.web.openid.provider",),
    "jinja2": ("goclaw_py.web.pages.rendering", "goclaw_py.cli.simulate.page"),
    "markdown_it": ("goclaw_py.core.markdown",),
    "markupsafe": ("goclaw_py.web.pages",),
    "mcp": ("goclaw_py.agents.models.mcp", "goclaw_py.agents.models.responses.mcp_messages"),
    "openai": ("goclaw_py.agents.models",),
    "opentelemetry": ("goclaw_py.observability.opentelemetry", "goclaw_py.app.tracing"),
    "orjson": ANYWHERE,
    "prometheus_client": ("goclaw_py.observability.prometheus",),
    "prompt_toolkit": ("goclaw_py.cli.chats.editor",),
    "pydantic": (
        "goclaw_py.config",
        "goclaw_py.agents.tools",
        "goclaw_py.web",
        *of_each_noun("routes"),
        "goclaw_py.agents.models",
        "goclaw_py.store.backup.manifest",
        *of_each_noun("routes"),
        "channels.telegram.settings",
        "channels.telegram.deferred_models",
    ),
    "pygments": ("goclaw_py.web.pages.chat.highlighting",),
    "pydantic_ai": ("goclaw_py.agents.models",),
    "pydantic_core": ("goclaw_py.config",),
    "rich": ("goclaw_py.cli",),
    "segno": ("goclaw_py.cli.qr_code",),
    "starlette": ("goclaw_py.web", *of_each_noun("page")),
    "telegram": ("channels.telegram.via_ptb", "channels.telegram.library_client"),
    "tenacity": ("goclaw_py.core.retry", "goclaw_py.agents.models"),
    "typer": ("goclaw_py.cli", *of_each_noun("command")),
    "uvicorn": ("goclaw_py.web",),
    "uvloop": ("goclaw_py.app",),
    "yaml": ("goclaw_py.operations.jobs.command.files",),
}


def third_parties(module: Module) -> set[str]:
    packages = {name.partition(".")[0] for name in module.imports()}
    return {package for package in packages if not is_stdlib(package) and package not in OURS}


def test_a_third_party_is_imported_through_its_door_only() -> None:
    used = [(module, package) for module in modules() for package in third_parties(module)]
    unlisted = {package for _, package in used} - DOORS.keys()
    assert unlisted == set(), "name the package and its door in this table"
    beside = {(m.name, package) for m, package in used if not m.is_in(*DOORS[package])}
    assert beside == set(), "these modules are not the doors of these packages"


def test_every_import_is_seen_wherever_it_stands() -> None:
    seen = {package for module in modules() for package in third_parties(module)}
    # The first two are imported inside of functions, the third at the top of its module.
    assert {"anthropic", "rich", "asyncpg"} <= seen
