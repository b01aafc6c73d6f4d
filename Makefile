# make setup | demo | test | lint | types | check | bench | soak | clean
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(not (3,11) <= sys.version_info[:2] <= (3,13))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q install -c constraints.txt
# Extras that the tests use beyond what the demo needs; `make test EXTRAS=dev,postgresql,torch` adds torch.
EXTRAS ?= dev,postgresql

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo test scenarios lint types contracts check bench soak clean

help: ## Show what can be made.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "nightrelay needs Python 3.11, 3.12 or 3.13 on PATH (or make PYTHON=/path/to/python)"; exit 3; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing pinned dependencies into $(VENV) (about a minute, once)"
	$(PIP) -e '.[local]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) -e '.[local,$(EXTRAS)]'
	@touch $@

setup: $(VENV)/.installed ## Make .venv and install what the product needs.

setup-dev: $(VENV)/.installed-dev ## Install what tests and lint need as well.

demo: setup ## Run the main job: a relay over three regions on this machine, then its report.
	$(BIN)/nightrelay demo

test: setup-dev ## Run the tests (unit, then scenarios).
	$(BIN)/python -m pytest

lint: setup-dev ## Check style and import contracts.
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports

types: setup-dev ## Check types.
	$(BIN)/mypy

check: lint types test ## What CI runs.

bench: setup-dev ## Run the benchmarks: ratios printed, JSON saved under benchmarks/results.
	$(BIN)/python -m benchmarks

soak: setup-dev ## Run the tests at the full sizes; JSON saved under benchmarks/results with the commit.
	NIGHTRELAY_SOAK=1 $(BIN)/python -m benchmarks.soak

clean: ## Remove what was made here.
	rm -rf $(VENV) .nightrelay .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist *.egg-info
