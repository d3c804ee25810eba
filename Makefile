# `make run` and `make test` are all that a newcomer needs; each sets up what it uses.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STATE  ?=
ARGS   ?=

# Of two runs of the tests the second one need not compile them again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run tools test check check-deep chaos lint types layers lock schema-page bench bench-scheduler bench-inbox bench-gateway bench-telegram bench-agent bench-cron bench-jobs bench-heartbeat bench-api bench-dashboard bench-cluster bench-soak simulate chaos-cluster chaos-telegram clean

help:            ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 18

run: $(VENV)/.ready-run   ## start the gateway: embedded database, offline agent, console
	@$(BIN)/goclaw run

tools: $(VENV)/.ready     ## install what tests need and Python packages do not bring: a browser, checkers of deploy/
	@$(BIN)/python tests/tools/debian_tools.py

test: tools               ## run all tests
	@$(BIN)/python -m pytest -q -n auto --dist worksteal

check: lint types layers tools  ## everything CI runs: linters, types, architecture, tests with coverage
	@$(BIN)/python tests/tools/coverage_gate.py

check-deep: $(VENV)/.ready  ## the scheduler and its model through 24,000 random histories, on all processors
	@GOCLAW_HYPOTHESIS=deep $(BIN)/python -m pytest -q -n auto --dist worksteal tests/property

# For example: make simulate ARGS="--seeds 200 --seed 7"
simulate: $(VENV)/.ready  ## several gateways through 10,000 worlds of faults in virtual time
	@$(BIN)/python -m tests.simulation $(ARGS)

chaos: chaos-cluster chaos-telegram  ## both of these, for example with ARGS="--rounds 20 --seed 7"

chaos-cluster: $(VENV)/.ready  ## three real gateways, 50 rounds of kills, pauses, cuts and restarts
	@$(BIN)/python -m tests.chaos.cluster $(ARGS)

# For example: make chaos-telegram ARGS="--rounds 20 --library aiogram --seed 7"
chaos-telegram: $(VENV)/.ready  ## kill -9 under Telegram, 300 rounds; what people notice of it
	@$(BIN)/python -m tests.chaos $(ARGS)

lint: $(VENV)/.ready      ## ruff: style and mistakes
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.ready     ## mypy --strict
	@$(BIN)/mypy

layers: $(VENV)/.ready    ## import-linter: the levels of docs/architecture.md
	@$(BIN)/lint-imports

lock: $(VENV)/.ready      ## resolve constraints.txt anew, without a machine's own index settings
	@env -u PIP_FIND_LINKS PIP_CONFIG_FILE=/dev/null $(BIN)/pip-compile -q --upgrade --strip-extras --all-extras --allow-unsafe \
	  --no-header --no-annotate --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options \
	  -o constraints.txt pyproject.toml

schema-page: $(VENV)/.ready  ## write docs/schema.md from the migrations
	@$(BIN)/python -m tests.tools.schema_page

bench: bench-scheduler bench-inbox bench-gateway bench-telegram bench-agent bench-cron bench-jobs bench-heartbeat bench-api bench-dashboard  ## measure everything; prints medians and what was wanted

# For example: make bench-scheduler ARGS="dispatch --quick"
bench-scheduler: $(VENV)/.ready  ## measure the scheduler; ARGS=--help tells what can be chosen
	@$(BIN)/python -m bench.scheduler $(ARGS)

bench-inbox: $(VENV)/.ready-bench  ## measure the inbox beside other queues on PostgreSQL
	@$(BIN)/python -m bench.inbox $(ARGS)

bench-gateway: $(VENV)/.ready  ## measure a whole gateway process
	@$(BIN)/python -m bench.gateway $(ARGS)

bench-telegram: $(VENV)/.ready  ## measure how much a gateway process answers through Telegram
	@$(BIN)/python -m bench.telegram $(ARGS)

bench-agent: $(VENV)/.ready  ## measure the agent loop beside bare pydantic-ai
	@$(BIN)/python -m bench.agent $(ARGS)

bench-cron: $(VENV)/.ready-bench  ## measure the next occurrence of cron expressions beside other libraries
	@$(BIN)/python -m bench.cron $(ARGS)

bench-jobs: $(VENV)/.ready-bench  ## measure how punctually jobs run, beside APScheduler, and what 100,000 of them cost
	@$(BIN)/python -m bench.jobs $(ARGS)

bench-heartbeat: $(VENV)/.ready-bench  ## measure what beats cost, how late they are with 1,000 agents, and that no token leaks
	@$(BIN)/python -m bench.heartbeat $(ARGS)

bench-api: $(VENV)/.ready-bench  ## measure what lists of the HTTP API cost with 100,000 rows
	@$(BIN)/python -m bench.api $(ARGS)

bench-dashboard: tools    ## measure how soon pages show, what open dashboards cost, what pages weigh
	@$(BIN)/python -m bench.dashboard $(ARGS)

bench-cluster: $(VENV)/.ready-bench  ## measure take-over, stops, throughput and leases of several gateways, and large tables
	@$(BIN)/python -m bench.cluster $(ARGS)

bench-soak: $(VENV)/.ready-bench  ## whether a gateway keeps its size; ARGS="virtual" or ARGS="real --minutes 30"
	@$(BIN)/python -m bench.soak $(or $(ARGS),virtual)

clean:           ## remove the environment and caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*

# The stamps make the second call instant. Running needs half of what developing needs.
$(VENV)/.base:
	@$(PYTHON) -c 'import sys; (3, 11) <= sys.version_info < (3, 15) or sys.exit("goclaw_py needs Python 3.11 to 3.14, this is " + sys.version.split()[0])'
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "Python lacks its venv module; on Debian: apt install python3-venv"; exit 1; }
	@echo "setting up $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt uv
	@touch $@

# uv is quick but does not read pip's settings (a private index), so pip is the second try.
define install
UV_SYSTEM_CERTS=1 $(BIN)/uv pip install -q --compile-bytecode --python $(BIN)/python -c constraints.txt --build-constraints constraints.txt -e '$(1)' \
  || PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '$(1)'
endef

$(VENV)/.ready-run: pyproject.toml constraints.txt | $(VENV)/.base
	@$(call install,.)
	@touch $@

$(VENV)/.ready: pyproject.toml constraints.txt | $(VENV)/.base
	@$(call install,.[dev])
	@touch $@ $(VENV)/.ready-run

# A comma would end the argument of a call.
FOR_BENCH := .[dev,bench]
$(VENV)/.ready-bench: pyproject.toml constraints.txt | $(VENV)/.base
	@$(call install,$(FOR_BENCH))
	@touch $@ $(VENV)/.ready $(VENV)/.ready-run
