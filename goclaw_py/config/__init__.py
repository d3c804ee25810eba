"""Settings from file and environment."""

from goclaw_py.config.edits import as_in_gateway, with_values
from goclaw_py.config.load import find_file, load
from goclaw_py.config.models import LogFormat, LogLevel, Settings
from goclaw_py.config.policies import heartbeat_policy, job_profile, plans, switched_off
from goclaw_py.config.resolve import (
    ChannelAccount,
    accounts,
    api_key,
    knows_stop_words,
    openid_secret,
    option_error,
    queue_policy,
    source_token,
    web_token,
)
from goclaw_py.config.secrets import secret_files, secrets_in, setting_values
from goclaw_py.config.show import shown
from goclaw_py.core.errors import SettingErrors

__all__ = [
    "ChannelAccount",
    "LogFormat",
    "LogLevel",
    "SettingErrors",
    "Settings",
    "accounts",
    "api_key",
    "as_in_gateway",
    "find_file",
    "heartbeat_policy",
    "job_profile",
    "knows_stop_words",
    "load",
    "openid_secret",
    "option_error",
    "plans",
    "queue_policy",
    "secret_files",
    "secrets_in",
    "setting_values",
    "shown",
    "source_token",
    "switched_off",
    "web_token",
    "with_values",
]
