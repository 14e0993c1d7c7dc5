# Everything a contributor runs. Needs git, make and Python 3.11 or newer; the rest is installed into .venv.

.DEFAULT_GOAL := help
.SUFFIXES:
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# The first of these that is new enough and can make a virtual environment. Name another: make PYTHON=/path/to/python3
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3; do \
	"$$python" -c '$(USABLE)' >/dev/null 2>&1 && echo "$$python" && break; done)
USABLE = import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))

SEEDS ?= 10000
KILLS ?= 2000
UV_VERSION = 0.13.7

# A relative path, so that a folder with a space in its name works.
RUN = .venv/bin/python
READY = .venv/.ready
# Three for two cores: tests of crashes wait for most of their time.
PARALLEL = $(RUN) -m pytest -n 3 --dist worksteal
BENCHES = store meter history points web queues workflows sleeping scale pace clusters appstore

##@ Start

.PHONY: help
help: ## Show this list
	@colour=; [ -t 1 ] && [ -z "$$NO_COLOR" ] && colour=1; awk -v colour="$$colour" ' \
		BEGIN { bold = colour ? "\033[1m" : ""; cyan = colour ? "\033[36m" : ""; plain = colour ? "\033[0m" : ""; \
			print "Penstock: make TARGET" } \
		/^##@ / { print "\n" bold substr($$0, 5) plain } \
		/^[a-z-]+:.*## / { split($$0, part, /:.*## /); printf "  %s%-15s%s %s\n", cyan, part[1], plain, part[2] }' Makefile

.PHONY: demo-brand
demo-brand: $(READY) ## A virtual week of two brands, in one database and with a database for each service: SEED=1
	@$(RUN) -m penstock_systems.brand.demo

.PHONY: demo-rentals
demo-rentals: $(READY) ## Five virtual days of rental listings in a generated city: FLATS=3000 SEED=1 (or 1-5) DAYS=5
	@$(RUN) -m penstock_systems.rentals.demo

.PHONY: demo
demo: $(READY) ## Six virtual days of the App Store pipeline: APPS=3000 SEED=1 DAYS=6 WITHOUT=market
	@$(RUN) -m penstock_systems.appstore.demo

.PHONY: demo-reminders
demo-reminders: $(READY) ## Four virtual weeks of reminders over a change of clocks, with 20 kills: SEED=1
	@$(RUN) -m penstock_systems.reminders.demo

##@ Prove

.PHONY: test
test: lint ## Lint, types and the fixed set of tests on both cores: what has to pass before a commit
	@mkdir -p build; nice -n 5 $(RUN) -m mypy --strict >build/types.txt 2>&1 & types=$$!; \
	$(PARALLEL); tests=$$?; wait $$types || { cat build/types.txt; exit 1; }; exit $$tests

.PHONY: test-all
test-all: lint types types-based .venv/.docs ## Every case of every test on both stores, with new random examples, in an hour: SEED=1 repeats a run
	@PENSTOCK_EVERYTHING=1 $(PARALLEL) $(if $(SEED),--seed $(SEED))

.PHONY: check
check: lint types ## Lint, types and the rules of the house, in seconds: no behaviour is tested
	@$(RUN) -m pytest -q tests/test_tidy.py

.PHONY: lint
lint: $(READY) ## Ruff: rules and format
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .

.PHONY: types
types: $(READY) ## Mypy, strict, over src, tests, bench, examples and tools
	@$(RUN) -m mypy --strict

.PHONY: types-based
types-based: .venv/.basedpyright ## basedpyright over tests/typed, whose errors are expected, and the examples
	@.venv/bin/basedpyright

.PHONY: crash
crash: $(READY) ## Kill workers KILLS=2000 times on each store (STORE=sqlite: on one), restart the server, fail every statement once
	@PENSTOCK_RECORD=1 PENSTOCK_EVERYTHING=1 PENSTOCK_KILLS=$(KILLS) $(RUN) -m pytest tests/crash $(if $(STORE),-k $(STORE)); \
	ran=$$?; $(RUN) -m tests.long_runs; exit $$ran

.PHONY: simulate
simulate: $(READY) ## Run the seeded simulator over SEEDS=10000 histories, and on every planted bug
	@PENSTOCK_RECORD=1 $(RUN) -m tests.simulation --seeds $(SEEDS)
	@PENSTOCK_RECORD=1 PENSTOCK_EVERYTHING=1 $(RUN) -m pytest -q tests/simulation/test_mutants.py
	@$(RUN) -m tests.long_runs

.PHONY: mutate
mutate: .venv/.mutate ## Change the source in 150 places drawn from SEED=1 and count the changes that the tests catch, in half an hour
	@$(RUN) -m tools.mutate --seed $(or $(SEED),1)

##@ Measure

.PHONY: bench
bench: $(READY) ## Every benchmark at a brief size, under 20 minutes in all, and the page of them: docs/explain/benchmarks.md
	@$(RUN) bench/brief.py

.PHONY: bench-full
bench-full: $(addprefix bench-,$(BENCHES)) ## Every benchmark at full size, one after the other, for hours

.PHONY: bench-page
bench-page: $(READY) ## The page and the README's figures once more, of the reports that are in build/bench
	@$(RUN) bench/page.py

.PHONY: bench-store
bench-store: $(READY) ## How fast SQLite and PostgreSQL send, claim and settle, beside raw loops on each
	@$(RUN) bench/store.py

.PHONY: bench-rentals
bench-rentals: $(READY) ## Rows a second that connectors load, beside plain inserts and dlt (PENSTOCK_DLT=its python); memory of 50 sources
	@$(RUN) bench/rentals.py

.PHONY: bench-meter
bench-meter: $(READY) ## What measuring a statement costs, and how close its estimates are
	@$(RUN) bench/meter.py

.PHONY: bench-history
bench-history: $(READY) ## What it costs to keep a history of every message
	@$(RUN) bench/history.py

.PHONY: bench-queues
bench-queues: $(READY) ## Penstock beside Huey, DBOS, PgQueuer, Celery and others: enqueue, drain, idle latency
	@$(RUN) bench/queues.py

.PHONY: bench-workflows
bench-workflows: $(READY) ## Durable workflows of 1 and 5 steps beside DBOS and a raw bound, at 1, 100 and 1,000 at once
	@$(RUN) bench/workflows.py

.PHONY: bench-sleeping
bench-sleeping: $(READY) ## The memory of 10,000 and of 100,000 runs that sleep
	@$(RUN) bench/sleeping.py

.PHONY: bench-scale
bench-scale: $(READY) ## Throughput and latency of 1, 2, 4 and 8 worker processes on one PostgreSQL
	@$(RUN) bench/scale.py

.PHONY: bench-points
bench-points: $(READY) ## What a data point costs, beside a plain insert
	@$(RUN) bench/points.py

.PHONY: bench-web
bench-web: $(READY) ## How long the HTTP server takes to answer on a kept-alive connection, beside a raw loop
	@$(RUN) bench/web.py

.PHONY: bench-outbox
bench-outbox: $(READY) ## How fast an outbox carries messages between one, two and four pairs of databases, beside local sends
	@$(RUN) bench/outbox.py

.PHONY: bench-gateway
bench-gateway: $(READY) ## What the gateway adds to a chat, beside a bare Starlette proxy that makes the same two commits
	@$(RUN) bench/gateway.py

.PHONY: bench-clusters
bench-clusters: $(READY) ## How well markets are found, against the planted truth, for 5 seeds beside two baselines
	@$(RUN) bench/clusters.py

.PHONY: bench-appstore
bench-appstore: $(READY) ## The pipeline at full scale: rows of an idle cycle, plans, clustering, the price of a month, apps a second
	@$(RUN) bench/appstore.py

.PHONY: bench-reminders
bench-reminders: $(READY) ## A million reminders, 10,000 of them due in one minute, and a receiver that answers in 50 ms
	@$(RUN) bench/reminders.py

.PHONY: bench-dashboard
bench-dashboard: $(READY) ## Rows and milliseconds of every page over 5 million messages on both stores (ONLY=--brief: a 25th)
	@$(RUN) bench/dashboard.py $(ONLY)

.PHONY: screenshots
screenshots: $(READY) ## Every page of the dashboard in both themes, on a desktop and a phone, into build/screenshots; needs Chromium
	@$(RUN) -m tools.screenshots

.PHONY: soak
soak: $(READY) ## Constant work for HOURS=8 with a kill an hour: does processor time, memory or latency drift?
	@$(RUN) bench/soak.py $(if $(HOURS),--hours $(HOURS))

.PHONY: bench-pace
bench-pace: $(READY) ## The adaptive limiter against SERVICES=50 drawn services that ban, and as many others
	@$(RUN) bench/pace.py --services $(if $(filter command% environment%,$(origin SERVICES)),$(SERVICES),50)

##@ Read

.PHONY: docs
docs: .venv/.docs ## Build the documentation and the API reference into build/site; a broken link fails the build
	@NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict
	@echo "Built build/site. Open build/site/index.html in a browser."

.PHONY: try-docs
try-docs: $(READY) ## Follow two pages and run the demo as a stranger: the built wheel, an empty folder, a new venv
	@$(RUN) -m tools.trying

##@ Keep

.PHONY: format
format: $(READY) ## Put imports and layout right
	@$(RUN) -m ruff check --fix-only --quiet .
	@$(RUN) -m ruff format .

.PHONY: lock
lock: ## Remake requirements/*.lock from pyproject.toml and requirements/*.in (UPGRADE=1 also takes newer versions)
	@$(CHECK_PYTHON); "$$python" -m venv build/uv
	@$(PIP_CACHE); build/uv/bin/$(PIP) install uv==$(UV_VERSION)
	@build/uv/bin/python -m uv --no-cache pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --exclude-newer "7 days" --custom-compile-command "make lock" \
		--quiet $(if $(UPGRADE),--upgrade) --output-file requirements/dev.lock
	@build/uv/bin/python -m uv --no-cache pip compile requirements/mutate.in --no-deps --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --exclude-newer "7 days" --custom-compile-command "make lock" \
		--quiet $(if $(UPGRADE),--upgrade) --output-file requirements/mutate.lock
	@build/uv/bin/python -m uv --no-cache pip compile requirements/docs.in --constraints requirements/dev.lock \
		--universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --exclude-newer "7 days" --custom-compile-command "make lock" \
		--quiet $(if $(UPGRADE),--upgrade) --output-file requirements/docs.lock
	@build/uv/bin/python -m uv --no-cache pip compile requirements/basedpyright.in --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --exclude-newer "7 days" --custom-compile-command "make lock" \
		--quiet $(if $(UPGRADE),--upgrade) --output-file requirements/basedpyright.lock
	@echo "requirements/dev.lock, mutate.lock, docs.lock and basedpyright.lock are up to date."

.PHONY: dist
dist: $(READY) ## Build the wheel and the source archive into dist/
	@rm -rf dist
	@$(RUN) -m hatchling build -d dist

.PHONY: clean
clean: ## Remove everything that was made here, .venv too
	@rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find src tests bench examples tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# ---------------------------------------------------------------------------------------------------------------------

# pip complains on every call about a home it cannot write to.
PIP_CACHE = if [ ! -w "$${XDG_CACHE_HOME:-$${HOME:-/}}" ]; then export PIP_NO_CACHE_DIR=1; fi
PIP = python -m pip --disable-pip-version-check -qq

CHECK_PYTHON = python='$(PYTHON)'; \
	if [ -z "$$python" ]; then \
		echo "Penstock needs Python 3.11 or newer with its venv module; no python3.11 to python3.14 or python3 here has it." >&2; \
		echo "Install one (Debian, Ubuntu: apt install python3 python3-venv) or name it: make PYTHON=/path/to/python3" >&2; \
		exit 1; \
	fi; \
	if ! "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
		echo "Penstock needs Python 3.11 or newer; '$$python' is not. Name another: make PYTHON=/path/to/python3" >&2; \
		exit 1; \
	fi; \
	if ! "$$python" -c 'import venv, ensurepip' 2>/dev/null; then \
		echo "'$$python' cannot make a virtual environment. Install its venv module (Debian, Ubuntu: apt install python3-venv)." >&2; \
		exit 1; \
	fi

# The stamp comes last: an install that was interrupted is taken up again by the next make.
$(READY): pyproject.toml requirements/dev.lock
	@$(CHECK_PYTHON); echo "Installing into .venv with $$("$$python" --version)"; "$$python" -m venv .venv
	@$(PIP_CACHE); .venv/bin/$(PIP) install --require-hashes -r requirements/dev.lock
	@$(PIP_CACHE); .venv/bin/$(PIP) install --no-deps --no-build-isolation -e .
	@touch $(READY)

.venv/.mutate: $(READY) requirements/mutate.lock
	@$(PIP_CACHE); .venv/bin/$(PIP) install --require-hashes --no-deps -r requirements/mutate.lock
	@touch .venv/.mutate

.venv/.basedpyright: $(READY) requirements/basedpyright.lock
	@$(PIP_CACHE); .venv/bin/$(PIP) install --require-hashes -r requirements/basedpyright.lock
	@touch .venv/.basedpyright

.venv/.docs: $(READY) requirements/docs.lock
	@$(PIP_CACHE); .venv/bin/$(PIP) install --require-hashes -r requirements/docs.lock
	@touch .venv/.docs
