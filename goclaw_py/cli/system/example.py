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
# cron = 1                 # of all gateways on the database together, unless it is written as
#                          # { size = 1, scope = "node" }

# ----- What happens to messages that find their session busy.
#       The same keys may stand in [agents.NAME.queue] and [channels.NAME.queue], where they win.
[queue]
# mode = "queue"          # queue, followup, interrupt, collect or steer
# capacity = 10           # waiting messages of one session
# drop = "old"            # which one goes when it is full: old or new
# debounce_ms = 800       # rapid messages become one; 0 is off
# turn_messages = 50      # at most so many; the rest is the next turn
# turn_chars = 100_000
# max_concurrent = 1      # runs of one session; default 1 in direct chats, 3 in groups
# stop_words = true       # "stop", "cancel" and the like, alone in a message, stop what runs

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
# Where its heartbeat differs from [heartbeat] below: the same keys.
# [agents.main.heartbeat]
# interval = "30m"
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
# context_messages = 50   # and is told so many of the messages before that; 0: none
# stop = "own"            # what a member of a group may stop: own runs, or "anyone"'s; owners and
#                         # admins of the group stop everything
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

# ----- Jobs. Where nothing is set they are as the profile says, and each may differ.
[scheduler]
# profile = "goclaw"      # or caco, oxydra, halo, herdctl: see docs/guide/profiles.md
# enabled = true          # false: no job runs
# timezone = "UTC"        # of jobs and people that have none, such as Europe/Berlin
# max_jobs = 50           # of each owner, by chats and models; operators have no limit
# default_prompt = ""     # what a job without a prompt says
# min_interval = "1s"     # the least time between two runs of a job
# on_short = "reject"     # or clamp: a schedule that is too frequent is slowed down
# anchor = "completion"   # an interval counts from the end of a run; or grid, or start
# first_run = "after_interval"   # or immediate
# retries = 3             # of a run that failed
# retry_on = "transient"  # or any: after which failures
# retry_after_effects = false  # true: also after calls of tools that change something
# error_retry = "0s"      # after a failure the next run is at the next multiple of this, if earlier
# backoff = []            # or ["30s", "1m", "5m"]: how long runs are put off after failures
# auto_disable_after = 0  # failures in a row that switch a job off; 0: none do
# misfire = "once"        # what was missed is made up for once; or skip
# misfire_grace = "60s"   # later than this is missed
# on_busy = "queue"       # if conversation or agent is busy: queue, skip or delay:<seconds>
# busy_delay = "1h"       # with on_busy = "delay"
# session = "job"         # a job's conversation: its own, fresh for each run, or main, the chat's
# delete_after_run = true # jobs that run once, when they went well
# history_keep = 200      # runs in the log of a job
# history_on_delete = "keep"   # or delete
# run_timeout = "30m"
# turns = 10              # model requests of a run; 0: no limit
# usd = 0.50              # what a run may cost; 0: no limit
# jitter = 0              # percent of the interval by which a run may be later, up to 10
# stagger = false         # true: equal schedules do not run all at once
# max_per_agent = 0       # jobs of one agent at once; 0: no limit
# tools_in_runs = false   # true: a run of a job may make jobs
#
# Where jobs may get their work from: rows of the table work_items, or issues of GitHub.
# [sources.chores]
# kind = "table"
# queue = "chores"        # default the name of the source
# forgotten_after = "1d"  # what was taken so long ago and never ended is free again
# [sources.bugs]
# kind = "github"
# repo = "owner/name"
# token_env = "GITHUB_TOKEN"   # or token_file, or token; it reads and writes issues
# label = "goclaw"        # issues with it are work
# claim_label = "in-progress"
# failed_label = "failed"
# close = false           # true: when the work went well
# base_url = "https://api.github.com"

# ----- Heartbeats: every agent looks at its HEARTBEAT.md now and then, and writes only if
#       something is not well. Nothing is asked of a model while nothing stands in there.
#       The same keys may stand in [agents.NAME.heartbeat], where they win.
[heartbeat]
# enabled = true
# interval = "30m"        # "0" is off
# active_hours = { start = "08:00", end = "22:00", timezone = "Europe/Berlin" }   # default always
# target = "last"         # the chat in which somebody last spoke to the agent; or telegram or
#                         # telegram.work: the last one there; or telegram:12345[:thread]; or none
# last_scope = "any"      # or direct: groups are never the last chat
# ack_max_chars = 300     # HEARTBEAT_OK with no more text than this says that all is well
# ack_position = "anywhere"   # or edges: it has to stand at the beginning or the end
# lane = "cron"
# model = "openai:gpt-4o-mini"   # default the agent's own
# [heartbeat.budget]      # 0 is no limit
# turns = 10              # of one beat: requests to the model, its subagents included
# tokens = 500000         # default no limit
# usd = 0.50
# day = { usd = 1, tokens = 200000 }   # of an agent on one day (UTC); tokens without known price

# ----- One address for webhooks, if a channel has one, and for the HTTP API, if it is switched on.
#       Put a reverse proxy in front of it.
[web]
# host = "127.0.0.1"      # any other needs a token for the API
# port = 8420
# api = false             # true: not only on the socket in the state folder
# token_env = "API_TOKEN"   # or token_file = "api-token.txt", or token = "..."
# hosts = ["bot.example.org"]   # names by which it is called, beside localhost

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
# wait = "30s"            # how long runs may go on at the end; default as the profile says

[log]
# level = "info"          # debug, info, warning or error
# format = "auto"         # auto, console or json
# file = "goclaw.log"     # default: standard error
"""
