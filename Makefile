# `make run` and `make test` are all that newcomers need; each target installs what it uses.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STATE  ?=
ARGS   ?=

# Write compiled files, so that the second test run need not compile the tests again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run tools test check check-deep faults chaos lint types layers lock sbom dist docs screenshots schema-page vendor bench bench-scheduler bench-inbox bench-gateway bench-telegram bench-agent bench-cron bench-jobs bench-heartbeat bench-api bench-dashboard bench-responses bench-large bench-cluster bench-soak bench-start compare golden simulate chaos-cluster chaos-telegram chaos-kills clean ledger

help:            ## show this help
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 18

run: $(VENV)/.ready-run   ## start the gateway: embedded database, offline agent, console
	@$(BIN)/goclaw run; code=$$?; [ $$code -lt 128 ] || [ ! -t 0 ] || stty sane; exit $$code

tools: $(VENV)/.ready     ## install test tools that are not Python packages: a browser, and validators for deploy/
	@$(BIN)/python tests/tools/debian_tools.py

# Compiled modules are kept, whatever the shell says: each process would compile them again.
test check: export PYTHONDONTWRITEBYTECODE =

test: tools               ## run the quick tests, and a few with real processes
	@$(BIN)/python -m pytest -q -m "not slow" -n auto --dist worksteal

check: lint types layers tools  ## run everything that CI runs: linters, types, layers, all tests with coverage
	@HYPOTHESIS_PROFILE=thorough $(BIN)/python tests/tools/coverage_gate.py

check-deep: $(VENV)/.ready  ## compare the scheduler with its model in 32,000 random histories, on all CPUs
	@HYPOTHESIS_PROFILE=deep $(BIN)/python -m pytest -q -n auto --dist worksteal tests/property

# For example: make faults ARGS="--count 50 --only goclaw_py/schedule/jobs --seed 7"
faults: $(VENV)/.ready  ## plant 400 small faults in the product, one at a time; list those that no test finds
	@$(BIN)/python -m tests.tools.faults $(ARGS)

ledger: $(VENV)/.ready    ## measure what things cost, print what has changed, and write docs/costs.md
	@$(BIN)/python -m tests.ledger --write

vendor: $(VENV)/.ready    ## fetch the files of others that the dashboard ships (needs npm), and check their digests
	@$(BIN)/python -m tests.tools.vendor $(ARGS)

# For example: make simulate ARGS="--seeds 200 --seed 7"
simulate: $(VENV)/.ready  ## simulate clusters of gateways in 10,000 random fault scenarios, in virtual time
	@$(BIN)/python -m tests.simulation $(ARGS)

chaos: chaos-cluster chaos-telegram chaos-kills  ## run all chaos tests, for example with ARGS="--seed 7"

chaos-cluster: $(VENV)/.ready  ## run three real gateways through 50 rounds of kills, pauses, network cuts and restarts
	@$(BIN)/python -m tests.chaos.cluster $(ARGS)

# For example: make chaos-telegram ARGS="--rounds 20 --library aiogram --seed 7"
chaos-telegram: $(VENV)/.ready  ## kill -9 a Telegram gateway in 300 rounds; check what users notice
	@$(BIN)/python -m tests.chaos $(ARGS)

# For example: make chaos-kills ARGS="--kills 100 --nodes 2 --seed 7"
chaos-kills: $(VENV)/.ready  ## kill -9 one and two gateways 500 times each during runs that pay; check that nothing is done or paid twice
	@$(BIN)/python -m tests.chaos.kills $(ARGS)

lint: $(VENV)/.ready      ## run ruff: style and common mistakes
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.ready     ## check types with mypy --strict
	@$(BIN)/mypy

layers: $(VENV)/.ready    ## check the layers of docs/architecture.md with import-linter
	@$(BIN)/lint-imports

# Developers install by constraints.txt, which pip takes for a checkout only without hashes. What a
# gateway runs on (and what builds it) is in deploy/requirements.txt too, in the same versions and with
# hashes: the image, a service and releases install from it.
PIP_COMPILE = env -u PIP_FIND_LINKS PIP_CONFIG_FILE=/dev/null $(BIN)/pip-compile -q --strip-extras --allow-unsafe \
  --no-header --no-annotate --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options
lock: $(VENV)/.ready      ## update constraints.txt and deploy/requirements.txt, ignoring local package index settings
	@$(PIP_COMPILE) --upgrade --all-extras -o constraints.txt pyproject.toml
	@$(PIP_COMPILE) --upgrade --extra otel --build-deps-for wheel --generate-hashes -c constraints.txt -o deploy/requirements.txt pyproject.toml

sbom: $(VENV)/.ready      ## write dist/sbom.cdx.json: all packages of a gateway and their licences (CycloneDX)
	@$(BIN)/python -m tests.tools.sbom

dist: $(VENV)/.ready      ## build the files of a release into dist/, with SBOM and checksums
	@rm -rf dist
	@$(BIN)/python -m hatchling build
	@cp deploy/requirements.txt dist
	@$(BIN)/python -m tests.tools.sbom
	@cd dist && sha256sum * > SHA256SUMS

docs: $(VENV)/.ready-docs  ## build the documentation site, with search, into build/docs; a dead link is an error
	@rm -rf build/docs
	@$(BIN)/sphinx-build -q -W --keep-going -c docs/site . build/docs
	@echo "open build/docs/index.html"

screenshots: tools        ## make the pictures of the guides from a running gateway, into docs/pictures
	@$(BIN)/python -m tests.tools.pictures $(ARGS)

schema-page: $(VENV)/.ready  ## generate docs/schema.md from the migrations
	@$(BIN)/python -m tests.tools.schema_page

bench: bench-scheduler bench-inbox bench-gateway bench-start bench-telegram bench-agent bench-cron bench-jobs bench-heartbeat bench-api bench-dashboard  ## run all benchmarks; print medians and targets

# For example: make bench-scheduler ARGS="dispatch --quick"
bench-scheduler: $(VENV)/.ready  ## measure the scheduler; ARGS=--help lists the options
	@$(BIN)/python -m bench.scheduler $(ARGS)

bench-inbox: $(VENV)/.ready-bench  ## measure the inbox, compared with other PostgreSQL queues
	@$(BIN)/python -m bench.inbox $(ARGS)

bench-gateway: $(VENV)/.ready  ## measure a whole gateway process
	@$(BIN)/python -m bench.gateway $(ARGS)

bench-start: $(VENV)/.ready  ## measure start, first answer and memory of a gateway with Telegram and a model
	@$(BIN)/python -m bench.start $(ARGS)

bench-telegram: $(VENV)/.ready  ## measure the throughput of a gateway process with Telegram
	@$(BIN)/python -m bench.telegram $(ARGS)

bench-agent: $(VENV)/.ready  ## measure the agent loop, compared with plain pydantic-ai
	@$(BIN)/python -m bench.agent $(ARGS)

bench-cron: $(VENV)/.ready-bench  ## measure cron expressions, compared with other libraries
	@$(BIN)/python -m bench.cron $(ARGS)

bench-jobs: $(VENV)/.ready-bench  ## measure the punctuality of jobs, compared with APScheduler, and the cost of 100,000 jobs
	@$(BIN)/python -m bench.jobs $(ARGS)

bench-heartbeat: $(VENV)/.ready-bench  ## measure cost and delay of heartbeats with 1,000 agents; check for leaked tokens
	@$(BIN)/python -m bench.heartbeat $(ARGS)

bench-api: $(VENV)/.ready-bench  ## measure lists of the HTTP API with 100,000 rows
	@$(BIN)/python -m bench.api $(ARGS)

bench-responses: tools    ## measure how soon a gateway answers while a model sends it 1 to 100 MB
	@$(BIN)/python -m bench.responses $(ARGS)

bench-dashboard: tools    ## measure load time and size of pages, and the cost of open dashboards
	@$(BIN)/python -m bench.dashboard $(ARGS)

bench-large: tools        ## measure the dashboard over 1,000,000 runs, 100,000 jobs and 10,000 sessions
	@$(BIN)/python -m bench.large $(ARGS)

bench-cluster: $(VENV)/.ready-bench  ## measure failover, cancellation, throughput and leases of a cluster, and large tables
	@$(BIN)/python -m bench.cluster $(ARGS)

bench-soak: $(VENV)/.ready-bench  ## check for memory growth; ARGS="virtual" or ARGS="real --minutes 30"
	@$(BIN)/python -m bench.soak $(or $(ARGS),virtual)

# For example: make compare WITH=HEAD~20 ROUNDS=3 ONLY=telegram,jobs, or QUICK=1 to try it
compare: $(VENV)/.ready-bench  ## compare speed, start, memory and counters with another commit, in turns
	@$(BIN)/python -m bench.compare "$(WITH)" $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(ONLY),--only "$(ONLY)") $(if $(QUICK),--quick)

# For example: make golden WITH=HEAD~1, before and after moving code about
golden: $(VENV)/.ready-bench  ## compare all that people read (commands, help, API, pages, chats) with another commit
	@$(BIN)/python -m bench.golden $(WITH)

clean:           ## remove the environment and caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*

# Stamp files make the second call instant. Running needs fewer packages than development.
$(VENV)/.base:
	@$(PYTHON) -c 'import sys; (3, 11) <= sys.version_info < (3, 15) or sys.exit("goclaw_py needs Python 3.11 to 3.14, this is " + sys.version.split()[0])'
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "Python lacks its venv module; on Debian: apt install python3-venv"; exit 1; }
	@echo "setting up $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)
	@echo "  installing uv, which installs the rest"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt uv
	@touch $@

# uv is fast but ignores pip's settings (such as a private index), so pip is the fallback.
define install
UV_SYSTEM_CERTS=1 $(BIN)/uv pip install -q --compile-bytecode --python $(BIN)/python -c constraints.txt --build-constraints constraints.txt -e '$(1)' \
  || PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '$(1)'
endef

$(VENV)/.ready-run: pyproject.toml constraints.txt | $(VENV)/.base
	@echo "  installing goclaw and its dependencies"
	@$(call install,.)
	@touch $@

$(VENV)/.ready: pyproject.toml constraints.txt | $(VENV)/.base
	@echo "  installing goclaw, its dependencies and the tools of developers"
	@$(call install,.[dev])
	@touch $@ $(VENV)/.ready-run

$(VENV)/.ready-docs: pyproject.toml constraints.txt | $(VENV)/.base
	@echo "  installing what builds the documentation site"
	@$(call install,.[docs])
	@touch $@ $(VENV)/.ready-run

# In a variable, because a comma would end the argument of call.
FOR_BENCH := .[dev,bench]
$(VENV)/.ready-bench: pyproject.toml constraints.txt | $(VENV)/.base
	@echo "  installing what benchmarks compare with"
	@$(call install,$(FOR_BENCH))
	@touch $@ $(VENV)/.ready $(VENV)/.ready-run
