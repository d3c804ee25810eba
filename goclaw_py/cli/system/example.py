"""The settings file that ``goclaw init`` writes."""

from __future__ import annotations

from typing import Final

EXAMPLE: Final = """\
# Settings of goclaw_py. Commented lines show defaults or examples; remove the # to use one.
# Environment variables override this file: GOCLAW_<SECTION>__<KEY>, such as
# GOCLAW_LOG__LEVEL=debug. Short forms: GOCLAW_LANE_MAIN (_SUBAGENT, _DELEGATE, _CRON),
# GOCLAW_TELEGRAM_TOKEN and GOCLAW_DATABASE_URL. Paths are relative to this file.

# ----- Lanes: how many runs are in progress at once. You can add lanes of your own.
[lanes]
# main = 2
# subagent = 4
# delegate = 100
# cron = 1                 # shared by all gateways on the database; for one gateway:
#                          # { size = 1, scope = "node" }

# ----- Queue: what happens to messages that arrive while their session is busy.
#       [agents.NAME.queue] and [channels.NAME.queue] have the same keys and override these.
[queue]
# mode = "queue"          # queue, followup, interrupt, collect or steer
# capacity = 10           # waiting messages per session
# drop = "old"            # which message to drop when the queue is full: old or new
# debounce_ms = 800       # messages within this time are merged into one; 0 disables it
# turn_messages = 50      # maximum messages per turn; the rest goes to the next turn
# turn_chars = 100_000    # maximum characters per turn
# max_concurrent = 1      # runs per session; default 1 in direct chats, 3 in groups
# stop_words = true       # a message that is only "stop", "cancel" or the like stops the run

# ----- Agents. "main" always exists. The model "offline" needs no API key and only replies with
#       a fixed text.
[agents.main]
# model = "offline"       # or openai:gpt-4o, anthropic:claude-sonnet-5-5, python:module:callable
# fallback = ["anthropic:claude-sonnet-5-5"]   # used when the model cannot answer
# temperature = 0.7       # 0 to 2; default: the provider's
# thinking = "medium"     # off, low, medium or high; default: the provider's
# system_prompt = "You are a helpful assistant."
# base_url = "https://example.com/v1"   # another server with the API of the provider
# api_key_env = "OPENAI_API_KEY"        # or api_key_file = "key.txt", or api_key = "..."
# workspace = "workspace" # folder of the agent, with its HEARTBEAT.md
# context_window = 128000 # tokens
# max_concurrent = 4      # runs in all its sessions; default: no limit
# instructions = ["AGENTS.md"]   # files in the workspace that are added to the system prompt
# headers = { X-Team = "blue" }
#
# Budget: a run that reaches one of these limits ends.
# [agents.main.budget]
# turns = 30              # per run: requests to the model, including those of subagents
# tokens = 500000
# usd = 0.50              # needs a model with a known price
# time = "10m"
# session_day = { tokens = 2000000 }   # per session and day (UTC): turns, tokens, usd
# day = { usd = 5 }       # per agent and day
#
# The heartbeat of this agent. The same keys as in [heartbeat] below, which they override.
# [agents.main.heartbeat]
# interval = "30m"
#
# Tools of the agent. Default: its own files, subagents, facts, and sending files to the chat.
# [agents.main.tools]
# allow = ["read_file", "list_files"]   # only these tools
# deny = ["spawn_subagent"]             # or: the default tools without these
# delegates = ["*"]       # agents that it may delegate tasks to; "*" is all others
# send_to = ["telegram:12345"]   # chats that it may write to: channel[.account]:chat[:thread]
#
# MCP servers with more tools (Model Context Protocol): a program or a URL.
# [agents.main.mcp.files]
# command = ["my-server", "--stdio"]
# env = { MY_KEY = "..." }
# tools = ["search"]      # only these tools
# [agents.main.mcp.tickets]
# url = "https://tickets.example.com/mcp"
# headers = { Authorization = "Bearer ..." }
#
# The program that answers, for the model "command": see docs/guide/agents.md.
# [agents.main.command]
# run = ["my-agent", "--quiet"]         # reads the prompt from standard input
# timeout = "10m"

# ----- Channels. Talk to @BotFather to get a token.
# [channels.telegram]
# token = "123456789:AAexampleexampleexampleexampleexample"   # or token_file = "token.txt"
# enabled = true
# agent = "main"
# direct = "pairing"      # who may write in direct chats: pairing, allowlist, open or disabled
# allow = [12345]         # sender ids that need no approval
# groups = "allowlist"    # allowlist: only groups listed below or allowed with "goclaw groups";
#                         # or open (all groups), or disabled
# mention = true          # in groups, answer only messages that mention the bot
# context_messages = 50   # earlier messages that the agent gets with a mention; 0: none
# stop = "own"            # runs that group members may stop: own (only theirs) or anyone (all);
#                         # owners and group admins may always stop all
# library = "python-telegram-bot"   # or aiogram
# streaming = "edit"      # show partial replies: edit, native (drafts of Telegram) or off
# reactions = true        # mark messages that wait or failed with a reaction
# chat_gap_s = 1          # rate limit: seconds between messages in a chat; 0: no limit
# group_per_minute = 20   # rate limit: messages per minute in a group
# account_per_second = 30 # rate limit: messages per second in all chats
# webhook_url = "https://bot.example.org/telegram"   # instead of polling; see [web]
#
# Settings of one group, and of one of its topics:
# [channels.telegram.chats."-1001234567890"]
# agent = "main"
# mention = false
# [channels.telegram.chats."-1001234567890".threads."7"]
# queue = { mode = "collect" }
#
# A second bot:
# [channels.telegram.accounts.work]
# token = "987654321:AAexampleexampleexampleexampleexample"

# ----- Jobs. Defaults come from the profile; a job can override these settings.
[scheduler]
# profile = "goclaw"      # or caco, oxydra, halo, herdctl: see docs/guide/profiles.md
# enabled = true          # false: no job runs
# timezone = "UTC"        # default time zone of jobs and people, such as Europe/Berlin
# max_jobs = 50           # per owner, for jobs from chats and models; operators have no limit
# default_prompt = ""     # prompt of jobs that have none
# min_interval = "1s"     # minimum time between two runs of a job
# on_short = "reject"     # schedules below min_interval: reject, or clamp (slow down)
# anchor = "completion"   # intervals count from the end of a run; or grid, or start
# first_run = "after_interval"   # first run of an interval: after_interval or immediate
# retries = 3             # retries of a failed run
# retry_on = "transient"  # failures to retry: transient or any
# retry_after_effects = false  # true: also retry runs that called tools with side effects
# error_retry = "0s"      # after a failure, run at the next multiple of this, if earlier
# backoff = []            # delays after failures in a row, such as ["30s", "1m", "5m"]
# auto_disable_after = 0  # disable a job after this many failures in a row; 0: never
# misfire = "once"        # missed runs: once (catch up with one run) or skip
# misfire_grace = "60s"   # a run later than this counts as missed
# on_busy = "queue"       # if the session or agent is busy: queue, skip or delay:<seconds>
# busy_delay = "1h"       # with on_busy = "delay"
# session = "job"         # session of runs: job (one per job), fresh (one per run), main (the chat)
# delete_after_run = true # delete jobs that run once, after a successful run
# history_keep = 200      # past runs to keep per job
# history_on_delete = "keep"   # history of deleted jobs: keep or delete
# run_timeout = "30m"     # maximum duration of a run
# turns = 10              # model requests per run; 0: no limit
# usd = 0.50              # maximum cost per run; 0: no limit
# jitter = 0              # random delay of a run, in percent of the interval, up to 10
# stagger = false         # true: spread jobs with the same schedule
# max_per_agent = 0       # concurrent jobs per agent; 0: no limit
# tools_in_runs = false   # true: runs of jobs may create jobs
#
# Work sources of jobs: rows of the table work_items, or GitHub issues.
# [sources.chores]
# kind = "table"
# queue = "chores"        # default: the name of the source
# forgotten_after = "1d"  # release work that was claimed this long ago and never finished
# [sources.bugs]
# kind = "github"
# repo = "owner/name"
# token_env = "GITHUB_TOKEN"   # or token_file, or token; needs to read and write issues
# label = "goclaw"        # issues with this label are work
# claim_label = "in-progress"  # label of claimed issues
# failed_label = "failed"      # label of issues whose run failed
# close = false           # true: close an issue after a successful run
# base_url = "https://api.github.com"

# ----- Heartbeat: every agent checks the items in its HEARTBEAT.md regularly, and sends a message
#       only if something needs attention. While HEARTBEAT.md is empty, no model is asked.
#       [agents.NAME.heartbeat] has the same keys and overrides these.
[heartbeat]
# enabled = true
# interval = "30m"        # "0": off
# active_hours = { start = "08:00", end = "22:00", timezone = "Europe/Berlin" }  # default: always
# target = "last"         # where alerts go: last (the chat in which somebody last wrote to the
#                         # agent), telegram or telegram.work (the last chat there),
#                         # telegram:12345[:thread], or none
# last_scope = "any"      # which chats count as last: any, or direct (no groups)
# ack_max_chars = 300     # HEARTBEAT_OK with at most this much other text means: no alert
# ack_position = "anywhere"   # or edges: HEARTBEAT_OK counts only at the beginning or end
# lane = "cron"
# model = "openai:gpt-4o-mini"   # default: the model of the agent
# [heartbeat.budget]      # 0: no limit
# turns = 10              # per heartbeat run: requests to the model, including subagents
# tokens = 500000         # default: no limit
# usd = 0.50
# day = { usd = 1, tokens = 200000 }   # per agent and day (UTC); tokens if the price is unknown

# ----- Web server, for webhooks of channels and for the HTTP API and web pages, if enabled.
#       Use a reverse proxy in front of it.
[web]
# host = "127.0.0.1"      # with any other, the API needs a token
# port = 8420
# api = false             # true: serve the API here, and not only on the local socket
# token_env = "API_TOKEN"   # or token_file = "api-token.txt", or token = "..."
# hosts = ["bot.example.org"]   # host names of this server, besides localhost

# ----- Database. Without url, an embedded PostgreSQL is started.
[database]
# url = "postgresql://user:password@host/goclaw"

[state]
# folder = "state"        # contains the embedded database and the local socket

[runs]
# timeout = "30m"         # maximum duration of a run
# cancel_grace = "10s"    # time that a cancelled run has to end
# outage_hold = "30m"     # how long to hold messages while the model provider is down; 0s: off
# deadline = "1d"         # maximum time from submission to end, including waiting; default: none
# max_depth = 3           # maximum nesting of subagent runs (parents above a run)
# max_children = 8        # maximum unfinished runs that one run has started

[shutdown]
# wait = "30s"            # time that runs have to finish at shutdown; default: by profile

[log]
# level = "info"          # debug, info, warning or error
# format = "auto"         # auto, console or json
# file = "goclaw.log"     # default: standard error
"""
