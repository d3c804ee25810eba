"""The settings file that ``goclaw init`` writes."""

from __future__ import annotations

from typing import Final

EXAMPLE: Final = """\
# Settings of goclaw_py. Every line that begins with a single # shows a default or an example.
# Environment variables win over this file: GOCLAW_<SECTION>__<KEY>, such as
# GOCLAW_LOG__LEVEL=debug; shorter ones are GOCLAW_LANE_MAIN (_SUBAGENT, _DELEGATE, _CRON),
# GOCLAW_TELEGRAM_TOKEN and GOCLAW_DATABASE_URL. Paths are relative to this file.

# ----- How many runs work at once, by lane. More lanes may be named.
[lanes]
# main = 2
# subagent = 4
# delegate = 100
# cron = 1

# ----- What happens to messages that find their session busy.
#       The same keys may stand in [agents.NAME.queue] and [channels.NAME.queue], where they win.
[queue]
# mode = "queue"          # queue, followup, interrupt, collect or steer
# capacity = 10           # waiting messages of one session
# drop = "old"            # which one goes when it is full: old or new
# debounce_ms = 800       # rapid messages become one; 0 is off
# max_concurrent = 1      # runs of one session; default 1 in direct chats, 3 in groups

# ----- Agents. "main" always exists. "offline" needs no key and says what it is.
[agents.main]
# model = "offline"       # or openai:gpt-4o, anthropic:claude-sonnet-5-5, python:module:callable
# fallback = ["anthropic:claude-sonnet-5-5"]   # asked where the model cannot answer
# temperature = 0.7       # 0 to 2; default the provider's
# thinking = "medium"     # off, low, medium or high; default the provider's
# system_prompt = "You are a helpful assistant."
# base_url = "https://example.com/v1"   # another server that speaks the provider's protocol
# api_key_env = "OPENAI_API_KEY"        # or api_key_file = "key.txt", or api_key = "..."
# workspace = "workspace" # its HEARTBEAT.md is there
# context_window = 128000
# max_concurrent = 4      # runs over all its sessions; default no limit
# instructions = ["AGENTS.md"]   # files of the workspace with what it is told
# headers = { X-Team = "blue" }
#
# What it may use up. A run that reaches one of these ends there.
# [agents.main.budget]
# turns = 30              # of one run: requests to the model, its subagents included
# tokens = 500000
# usd = 0.50              # as far as the model's price is known
# time = "10m"
# session_day = { tokens = 2000000 }   # of one conversation on one day (UTC): turns, tokens, usd
# day = { usd = 5 }       # of the agent on one day
#
# What it may do. Default: its own files, subagents, facts; it may send files to who asks.
# [agents.main.tools]
# allow = ["read_file", "list_files"]   # only these; or all of the default but some:
# deny = ["spawn_subagent"]
# delegates = ["*"]       # agents that it may give tasks to; "*" is all others
# send_to = ["telegram:12345"]   # chats that it may write to: channel[.account]:chat[:thread]
#
# Servers of more tools (Model Context Protocol): a program, or an address.
# [agents.main.mcp.files]
# command = ["my-server", "--stdio"]
# env = { MY_KEY = "..." }
# tools = ["search"]      # only these
# [agents.main.mcp.tickets]
# url = "https://tickets.example.com/mcp"
# headers = { Authorization = "Bearer ..." }
#
# Any program can answer, with the model "command": see docs/guide/agents.md.
# [agents.main.command]
# run = ["my-agent", "--quiet"]         # the prompt comes on its standard input
# timeout = "10m"

# ----- Channels. Talk to @BotFather to get a token.
# [channels.telegram]
# token = "123456789:AAexampleexampleexampleexampleexample"   # or token_file = "token.txt"
# enabled = true
# agent = "main"
# direct = "pairing"      # who may write: pairing, allowlist, open or disabled
# allow = [12345]         # sender ids that need no pairing
# groups = "allowlist"    # where the agent listens: groups below or allowed by "goclaw groups";
#                         # or open, disabled
# mention = true          # in groups it answers only where the bot is mentioned
# library = "python-telegram-bot"   # or aiogram
# streaming = "edit"      # how replies grow: edit, native (Telegram's own drafts) or off
# reactions = true        # marks on messages that wait or failed
# chat_gap_s = 1          # pace: seconds between messages of a chat, 0 is no limit
# group_per_minute = 20   # messages of a group
# account_per_second = 30 # messages over all chats
# webhook_url = "https://bot.example.org/telegram"   # instead of polling; see [web]
#
# A group and one of its topics with settings of their own:
# [channels.telegram.chats."-1001234567890"]
# agent = "main"
# mention = false
# [channels.telegram.chats."-1001234567890".threads."7"]
# queue = { mode = "collect" }
#
# A second bot:
# [channels.telegram.accounts.work]
# token = "987654321:AAexampleexampleexampleexampleexample"

# ----- Where webhooks are taken in, if a channel has one. Put a reverse proxy in front of it.
[web]
# host = "127.0.0.1"
# port = 8420

# ----- The database. Without url an embedded PostgreSQL starts by itself.
[database]
# url = "postgresql://user:password@host/goclaw"

[state]
# folder = "state"        # embedded database, socket

[runs]
# timeout = "30m"         # how long a run may work
# cancel_grace = "10s"    # how long a cancelled run may take to end
# outage_hold = "30m"     # how long messages wait for a model provider that is down; 0s: not
# deadline = "1d"         # from submission to end, waiting included; default none
# max_depth = 3           # how many runs may be above one: its parent, grandparent ...
# max_children = 8        # how many runs one may have asked for that are not done

[shutdown]
# wait = "30s"            # how long runs may go on when the gateway is asked to end

[log]
# level = "info"          # debug, info, warning or error
# format = "auto"         # auto, console or json
# file = "goclaw.log"     # default: standard error
"""
