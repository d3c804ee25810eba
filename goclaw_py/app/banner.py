"""The text that is printed when a gateway is ready: what is running, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from goclaw_py.app.parts import Parts
from goclaw_py.config.models import Settings
from goclaw_py.core.ids import AgentName
from goclaw_py.core.web_links import OWN_CHANNELS

OFFLINE = "offline"
ONLY_CONSOLE = "this terminal only"


def banner(
    settings: Settings,
    parts: Parts,
    release: str,
    unusable: Mapping[AgentName, tuple[str, str]],
    web: str | None = None,
    *,
    chats_here: bool,
) -> Iterator[str]:
    """Return at most ten lines. ``web`` is the address of the webhooks or the API.

    ``unusable`` says of agents why they cannot ask their model, and what to do.
    """
    yield f"goclaw {release} is ready."
    # `goclaw init` creates goclaw.toml and changes no existing one.
    is_new = settings.file is None
    model = "for a model: goclaw init" if is_new else "set another model in goclaw.toml"
    telegram = "for Telegram: goclaw init" if is_new else "for Telegram set channels.telegram"
    for name, agent in list(settings.agents.items())[:2]:
        hint = f"  (needs no API key; {model})" if agent.model == OFFLINE else ""
        if problem := unusable.get(AgentName(name)):
            hint = f"  (cannot answer: {'; '.join(problem)})"
        yield f"  agent     {name}: {agent.model}{hint}"
    outside = [f"{name}/{account}" for name, account in parts.channels if name not in OWN_CHANNELS]
    yield f"  channels  {', '.join(outside) or f'{ONLY_CONSOLE}; {telegram}'}"
    if web is not None:
        serves_api = settings.web.serves_api(has_hooks=bool(parts.hooks))
        yield f"  {'dashboard' if serves_api else 'webhooks '} {web}"
    where = "managed" if settings.database.url else f"embedded, in {settings.state_folder}"
    yield f"  database  {where}"
    if chats_here:
        yield f"  log       {settings.log.file or settings.state_folder / 'goclaw.log'}"
        yield "Type a message, such as: count to 30. Ctrl-C or /stop stops it, Ctrl-D exits."
    else:
        yield "To chat in another terminal: goclaw chat. To show the state: goclaw status."
