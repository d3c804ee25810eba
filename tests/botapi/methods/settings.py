"""The bot itself: who it is, its menu, where its updates go."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from tests.botapi.rules import Json, Parameters, bad_request
from tests.botapi.world import Hook, World

_NAME = re.compile(r"[a-z0-9_]{1,32}")
_SECRET = re.compile(r"[A-Za-z0-9_-]*")
_SECRET_LIMIT = 256
_PORTS = frozenset([None, 443, 80, 88, 8443])
_MOST_CONNECTIONS = 100


def get_me(world: World, _call: Parameters) -> object:
    return {
        **world.me(),
        "can_join_groups": True,
        "can_read_all_group_messages": not world.privacy,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
        "has_topics_enabled": any(chat.private and chat.topics for chat in world.chats.values()),
    }


def set_my_commands(world: World, call: Parameters) -> object:
    commands: list[Json] = []
    for entry in call.items("commands"):
        if not isinstance(entry, dict):
            raise bad_request("expected an Object as bot command")
        if not _NAME.fullmatch(str(entry.get("command", ""))):
            raise bad_request("BOT_COMMAND_INVALID")
        if not 1 <= len(str(entry.get("description", ""))) <= 256:
            raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
        commands.append(entry)
    if len(commands) > 100:
        raise bad_request("BOT_COMMANDS_TOO_MUCH")
    match call.json("scope"):
        case None | {"type": "default"}:
            world.commands = commands
        case {"type": "chat", "chat_id": int(chat_id)} if chat_id in world.chats:
            world.chat_commands[chat_id] = commands
        case {"type": "chat"}:
            raise bad_request("chat not found")
        case _:
            raise bad_request("unsupported scope of commands")
    return True


def set_webhook(world: World, call: Parameters) -> object:
    url = call.text("url").strip()
    if not url:
        return delete_webhook(world, call)
    _check_url(url, local=world.local)
    secret = call.text("secret_token")
    if len(secret) > _SECRET_LIMIT:
        raise bad_request("secret token is too long")
    if not _SECRET.fullmatch(secret):
        raise bad_request("secret token contains unallowed characters")
    if call.json("allowed_updates") is not None:
        world.updates.allowed = frozenset(map(str, call.items("allowed_updates")))
    connections = min(max(call.number("max_connections", 40), 1), _MOST_CONNECTIONS)
    hook = world.hook
    if (url, secret, connections) != (hook.url, hook.secret, hook.connections):
        world.hook = Hook(url, secret, connections)
    return True


def _check_url(url: str, *, local: bool) -> None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise bad_request("bad webhook: URL is invalid") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
    if local:
        return
    if parts.scheme == "http":
        raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
    if port not in _PORTS:
        words = "Webhook can be set up only on ports 80, 88, 443 or 8443"
        raise bad_request(f"bad webhook: {words}")


def delete_webhook(world: World, _call: Parameters) -> object:
    world.hook = Hook()
    return True


def get_webhook_info(world: World, _call: Parameters) -> object:
    hook = world.hook
    info: Json = {
        "url": hook.url,
        "has_custom_certificate": False,
        "pending_update_count": len(world.updates.waiting),
    }
    if hook.url:
        info |= {"max_connections": hook.connections, "ip_address": "127.0.0.1"}
        if hook.error_date:
            info |= {"last_error_date": hook.error_date, "last_error_message": hook.error}
    if world.updates.allowed:
        info["allowed_updates"] = sorted(world.updates.allowed)
    return info
