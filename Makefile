# The two commands that matter are `make demo` and `make test`; the rest is what they are made of.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
APT := apt-get install python3-venv git make bubblewrap gcc libc6-dev nodejs chromium
# Real processes with real deadlines share the cores, so there are never more than four runs at a time.
PYTEST := pytest --numprocesses=auto --maxprocesses=4 --dist=worksteal --durations=10
DEMO_BOTS := bots/random/,bots/greedy/,bots/sweeper/,bots/avalanchist/,bots/knave/

.PHONY: demo test lint coverage nightly fuzz bench sdk regen clean

# Two real tournaments of the shipped bots over all three games. They are trusted, so it runs without bwrap too.
demo: $(VENV)/.arena
	$(BIN)/arena run --trusted --bots $(DEMO_BOTS) --games all --format round-robin --rounds 1 --decks 8
	$(BIN)/arena run --trusted --bots $(DEMO_BOTS) --games all --format swiss --rounds 3 --decks 8

test: $(VENV)/.test
	@command -v bwrap >/dev/null || { echo "bwrap is missing, which the tests need: $(APT)"; exit 2; }
	@command -v cc >/dev/null || { echo "cc is missing, which the tests need: $(APT)"; exit 2; }
	@command -v node >/dev/null || { echo "node is missing, which the tests need: $(APT)"; exit 2; }
	@command -v chromium >/dev/null || { echo "chromium is missing, which the tests need: $(APT)"; exit 2; }
	$(if $(CI),,$(BIN)/python -m $(PYTEST) -m "not nightly")
	$(if $(CI),@$(MAKE) --no-print-directory coverage,)

# The same tests, slower: every line and branch of the layers that know no I/O, nine of ten of the rest.
PURE := arena/errors.py,arena/luck.py,arena/cards.py,arena/rules.py,arena/games/*,arena/records.py,arena/wire.py,arena/schedule/*,arena/rating/*,arena/verdict.py
coverage: $(VENV)/.test
	$(BIN)/python -m coverage erase
	$(BIN)/python -m $(PYTEST) -m "not nightly" --cov --cov-report=
	$(BIN)/python -m coverage report --include='$(PURE)' --fail-under=100
	$(BIN)/python -m coverage report --fail-under=90

lint: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict arena tests
	$(BIN)/lint-imports

nightly: $(VENV)/.test
	HYPOTHESIS_PROFILE=nightly $(BIN)/python -m $(PYTEST)

# What it finds is kept in FOUND; `-merge=1` of it into tests/fuzz/corpus makes tests of what is new.
RUNS ?= 10000000
FOUND := .fuzz
FUZZ := $(BIN)/python tests/fuzz/fuzz_wire.py -max_len=600 -timeout=10 -artifact_prefix=$(FOUND)/
fuzz: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group fuzz
	mkdir -p $(FOUND)/corpus
	$(FUZZ) -runs=$(RUNS) -print_final_stats=1 $(FOUND)/corpus tests/fuzz/corpus
	$(FUZZ) -merge=1 tests/fuzz/corpus $(FOUND)/corpus

bench: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	$(BIN)/arena bench decision
	$(BIN)/arena bench sandbox
	$(BIN)/arena bench readers
	$(BIN)/arena bench size --deals 1000000
	$(BIN)/arena bench rating
	$(BIN)/arena bench engine

# Bots carry a copy of the SDK, so that each folder is a whole bot.
sdk:
	@for bot in bots/*/arena_bot.py; do cp bots/sdk/python/arena_bot.py $$bot; done

regen: $(VENV)/.test
	$(BIN)/python -m pytest tests/test_playthroughs.py --regen

clean:
	rm -rf $(VENV) .fuzz .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/.arena: pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing: $(APT)"; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed, e.g. make PYTHON=python3.12"; exit 2; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "python3-venv is missing: $(APT)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.arena
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group test
	@touch $@
