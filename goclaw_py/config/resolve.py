"""Derive queue policies, channel accounts and API keys from the settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import SecretStr

from goclaw_py.config.agents import API_KEY
from goclaw_py.config.lanes import Queue
from goclaw_py.config.masking import is_secret
from goclaw_py.config.models import AccountSettings, Settings
from goclaw_py.config.origins import KeyPath
from goclaw_py.config.sign_in import CLIENT_SECRET
from goclaw_py.config.types import EnvText, HiddenText, Section
from goclaw_py.config.web import TOKEN
from goclaw_py.config.work_sources import SOURCE_TOKEN
from goclaw_py.core.errors import SettingError
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import PeerKind
from goclaw_py.core.redaction import HIDDEN
from goclaw_py.core.session_keys import DEFAULT_ACCOUNT
from goclaw_py.scheduler.models import DEFAULT_POLICY, Debounce, Drop, Mode, QueuePolicy

_CAPACITY = 10
_DEBOUNCE_MS = 800
_CONCURRENCY = {PeerKind.DIRECT: 1, PeerKind.GROUP: 3}


@dataclass(frozen=True, slots=True)
class ChannelAccount:
    """One enabled account of a channel, with its ``path`` in the settings.

    ``options`` are the keys that only the channel itself knows, including tokens.
    """

    channel: str
    name: str
    settings: AccountSettings
    options: Mapping[str, object] = field(default_factory=dict, repr=False)
    path: KeyPath = ()


def accounts(settings: Settings) -> Iterator[ChannelAccount]:
    """Return every enabled account, in the order of the file."""
    for channel, section in settings.channels.items():
        for name, account in section.by_name.items():
            if account.enabled:
                below = () if account is section else ("accounts", name)
                options = {key: _plain(key, value) for key, value in account.options.items()}
                yield ChannelAccount(channel, name, account, options, ("channels", channel, *below))


def _plain(key: str, value: object) -> object:
    """Convert an option from the environment, which is text, to the type it has in the file."""
    if not isinstance(value, EnvText):
        return value
    word = value.strip().lower()
    if word in ("true", "false"):
        return word == "true"
    return (
        int(word)
        if re.fullmatch("-?[0-9]{1,18}", word) and not is_secret(("", key))
        else str(value)
    )


def option_error(settings: Settings, account: ChannelAccount, error: SettingError) -> SettingError:
    """Complete a channel's error about an option: add path and origin, mask secrets."""
    path = (*account.path, *error.key.split("."))
    return settings.error(path, error.value, error.allowed)


def queue_policy(
    settings: Settings,
    agent: AgentName,
    channel: str | None = None,
    account: str = DEFAULT_ACCOUNT,
    peer: PeerKind | None = None,
    within: Sequence[Queue] = (),
) -> QueuePolicy:
    """Return the queue policy of a session (SPEC section 2).

    Levels override each other in this order: global, agent, channel, account, ``within`` (the
    sections of its chat and its thread). ``peer`` is None for sessions that are not chats: they
    run one turn at a time without debounce, whatever is set for chats (SPEC QUEUE-1).
    """
    merged = _merged(settings, agent, channel, account, within)
    concurrency = 1 if peer is None else merged.max_concurrent or _CONCURRENCY[peer]
    debounce_ms = _DEBOUNCE_MS if merged.debounce_ms is None else merged.debounce_ms
    return QueuePolicy(
        mode=merged.mode or Mode.QUEUE,
        capacity=merged.capacity or _CAPACITY,
        drop=merged.drop or Drop.OLD,
        debounce_s=0.0 if peer is None else debounce_ms / 1000,
        concurrency=concurrency,
        turn_messages=merged.turn_messages or DEFAULT_POLICY.turn_messages,
        turn_chars=merged.turn_chars or DEFAULT_POLICY.turn_chars,
        debounce=merged.debounce or _default_debounce(settings, agent),
    )


def _default_debounce(settings: Settings, agent: AgentName) -> Debounce:
    """Return how an agent is debounced: programs may have effects that are not known here."""
    section = settings.agents.get(agent)
    is_model = section is not None and section.is_language_model
    return Debounce.SPECULATIVE if is_model else Debounce.FIXED


def knows_stop_words(
    settings: Settings, agent: AgentName, channel: str, account: str, within: Sequence[Queue] = ()
) -> bool:
    """Whether a message that is only "stop" stops runs of a chat; levels as in ``queue_policy``."""
    return _merged(settings, agent, channel, account, within).stop_words is not False


def _merged(
    settings: Settings,
    agent: AgentName,
    channel: str | None,
    account: str,
    within: Sequence[Queue],
) -> Queue:
    levels = [settings.queue]
    if agent in settings.agents:
        levels.append(settings.agents[agent].queue)
    if channel is not None and channel in settings.channels:
        section = settings.channels[channel]
        levels.append(section.queue)
        if account in section.accounts:
            levels.append(section.accounts[account].queue)
    levels += within
    merged = Queue()
    for level in levels:
        merged = merged.model_copy(update=level.model_dump(exclude_none=True))
    return merged


def api_key(settings: Settings, agent: AgentName, env: Mapping[str, str]) -> SecretStr | None:
    """Return the API key for an agent's model; None: use the variable of the provider.

    Reads ``api_key_file``. Raises ``SettingError`` if the file cannot be read or is empty, or the
    variable of ``api_key_env`` is not set, or for a key that cannot be sent.
    """
    path = ("agents", agent)
    return _secret(settings, path, settings.agents[agent], "api_key", env, API_KEY)


def web_token(settings: Settings, env: Mapping[str, str]) -> SecretStr | None:
    """Return the token of the HTTP API on TCP; None: no token is needed (SPEC OPS-2, SEC-1).

    Reads ``token_file``. Raises ``SettingError`` as ``api_key`` does, and for a malformed token.
    """
    return _secret(settings, ("web",), settings.web, "token", env, TOKEN)


def openid_secret(settings: Settings, env: Mapping[str, str]) -> SecretStr | None:
    """Return the secret for the OpenID provider; None: this is a public client (SPEC SEC-10).

    Raises ``SettingError`` as ``api_key`` does.
    """
    path = ("web", "openid")
    return _secret(settings, path, settings.web.openid, "client_secret", env, CLIENT_SECRET)


def source_token(settings: Settings, source: str, env: Mapping[str, str]) -> SecretStr | None:
    """Return the token of a work source. Raises ``SettingError`` as ``api_key`` does."""
    path = ("sources", source)
    return _secret(settings, path, settings.sources[source], "token", env, SOURCE_TOKEN)


def _secret(
    settings: Settings,
    path: KeyPath,
    section: Section,
    name: str,
    env: Mapping[str, str],
    kind: HiddenText,
) -> SecretStr | None:
    """Return a secret that is set directly as ``name``, in a file, or in a variable.

    It becomes a part of an HTTP header: what a header cannot contain is refused here, because the
    error of a request would come late and could show the secret.
    """
    variable: str | None = getattr(section, f"{name}_env")
    file: Path | None = getattr(section, f"{name}_file")
    if variable is not None:
        key, shown = f"{name}_env", variable
        if not (value := env.get(variable, "").strip()):
            raise settings.error((*path, key), shown, "this variable is not set")
    elif file is not None:
        key, shown = f"{name}_file", str(file)
        value = _from_file(settings, (*path, key), file)
    else:
        secret: SecretStr | None = getattr(section, name)
        if secret is None:
            return None
        key, shown, value = name, HIDDEN, secret.get_secret_value().strip()
    if not re.fullmatch(kind.pattern, value):
        what = f"the {name.rpartition('_')[2]} must be {kind.meaning}"
        raise settings.error((*path, key), shown, what)
    return SecretStr(value)


def _from_file(settings: Settings, path: KeyPath, file: Path) -> str:
    try:
        value = file.read_text("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise settings.error(path, str(file), f"cannot be read: {reason}") from error
    if not value:
        raise settings.error(path, str(file), "the file is empty")
    return value
