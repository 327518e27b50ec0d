# Two commands set everything up: `make demo` and `make test`. Both are idempotent.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: help install demo test test-slow lint types clean

help:           ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Bellwether needs Python 3.11 or newer; say which with: make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Installing into $(VENV) (once; a minute or two) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

install: $(INSTALLED)   ## make the virtual environment

demo: $(INSTALLED)      ## five methods race on real handwritten digits
	@$(BIN)/bellwether demo

lint: $(INSTALLED)      ## check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)     ## check types
	$(BIN)/mypy

test: lint types        ## lint, types and the default test suite
	$(BIN)/pytest -n 2

test-slow: $(INSTALLED) ## the minutes-long tests on real data
	$(BIN)/pytest -n 2 -m slow

clean:          ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
