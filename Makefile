# The two commands that matter are `make demo` and `make test`; the rest is what they are made of.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
APT := python3-venv git make bubblewrap gcc libc6-dev

.PHONY: demo test lint nightly bench clean needs sdk regen

demo: $(VENV)/.arena
	@$(BIN)/arena run --trusted --name demo-$$(date +%H%M%S) --bots bots/random/,bots/greedy/,bots/sweeper/,bots/avalanchist/,bots/knave/ --games all --format swiss

$(VENV)/.arena: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: PYTHON=python3.12 make ..."; exit 2; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "python3-venv is missing: apt-get install $(APT)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@
