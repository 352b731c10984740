# Two commands matter: `make demo` runs the main job, `make test` passes the tests.
# Both make their own environment first; nothing needs to be installed beforehand.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Bytecode is written here once: with PYTHONDONTWRITEBYTECODE set, every start would compile anew.
INSTALL = $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable . && \
          $(BIN)/python -m compileall -q src

# The embedded model, 98 MB, fetched once. Without it the demo is scripted, and its tests are skipped.
WEIGHTS = STRETTO_MODELS_DIR=$(VENV)/models $(BIN)/stretto models pull smollm2 || \
          echo "The weights of the embedded model could not be fetched; what needs them is left out."

# A real CLI agent for the tests of `cli:`, against a fake API on loopback. 96 MB, where there is npm.
CLIS = npm install --silent --prefix $(VENV)/clis --omit=optional --ignore-scripts --no-audit \
       --no-fund @google/gemini-cli@0.61.0 >/dev/null 2>&1 || \
       echo "No CLI agent could be installed (npm); its tests are skipped."

# What builds the console, so that a test can compare what is committed with its source.
NODE_PACKAGES = npm ci --silent --prefix console --ignore-scripts --no-audit --no-fund >/dev/null 2>&1 || \
       echo "The console's packages could not be installed (npm); its build is not compared."

.PHONY: console demo test check format lint types rooms bench soak repeat lock clean

# Two runs of one recipe: by a script, which shows what good answers look like, and by a real model.
demo: $(VENV)/.run
	@echo "1. The model is scripted: its answers come from examples/research-and-brief.script.yaml."
	@$(BIN)/stretto run examples/research-and-brief.yaml -i topic="fugues and workflows" \
	  --model scripted:examples/research-and-brief.script.yaml
	@$(WEIGHTS)
	@if [ -f $(VENV)/models/SmolLM2-135M-Instruct.Q4_1.gguf ]; then \
	  echo; echo "2. The same recipe on the embedded model, which runs here without key or network."; \
	  STRETTO_MODELS_DIR=$(VENV)/models $(BIN)/stretto run examples/research-and-brief.yaml \
	    -i topic="tea" --model embedded; fi

# With PYTHONDONTWRITEBYTECODE set, every worker would prepare every module of tests anew, each time.
# Workers steal from the end of another's list, so that a module's server or browser starts once.
test: $(VENV)/.dev
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n auto --dist worksteal

check: $(VENV)/.dev lint types rooms test

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks scripts
	$(BIN)/ruff format --check src tests benchmarks scripts

types: $(VENV)/.dev
	$(BIN)/mypy

rooms: $(VENV)/.dev
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff format src tests benchmarks scripts
	$(BIN)/ruff check --fix src tests benchmarks scripts

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/values.py
	$(BIN)/python benchmarks/journal.py
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/models.py
	$(BIN)/python benchmarks/escape.py
	$(BIN)/python benchmarks/hostile_values.py
	$(BIN)/python benchmarks/merge_back.py
	$(BIN)/python benchmarks/server_load.py
	$(BIN)/python benchmarks/size.py

# Long: 300 kills and a full disk, 500 kills of writers, 100 of commands, 60 of recipes in recipes, 10,000 plans,
# all printed recipes on the embedded model.
soak: $(VENV)/.dev
	$(BIN)/python benchmarks/crash.py
	$(BIN)/python benchmarks/writer_kills.py
	$(BIN)/python benchmarks/command_kills.py
	$(BIN)/python benchmarks/goal_kills.py
	$(BIN)/python benchmarks/workflow_kills.py
	$(BIN)/python benchmarks/server_kills.py
	$(BIN)/python benchmarks/overlaps.py
	$(BIN)/python benchmarks/embedded.py

# Very long: the tests ten times in a fresh clone, beside a load.
repeat: $(VENV)/.dev
	$(BIN)/python benchmarks/repeated_tests.py

# The locks are universal: one file for every platform and Python that we support.
lock: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-emit-index-url --no-annotate pyproject.toml --extra local --extra serve --group build -o requirements/run.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-emit-index-url --no-annotate pyproject.toml --extra local --extra mcp --extra serve --extra otel --group build --group dev -o requirements/dev.lock

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Stretto needs Python 3.11 or newer: make PYTHON=python3.11 …")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements/run.lock pyproject.toml | $(VENV)/bin/python
	@echo "Installing Stretto into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements/run.lock
	@$(INSTALL)
	@touch $@

$(VENV)/.dev: requirements/dev.lock pyproject.toml | $(VENV)/bin/python
	@echo "Installing Stretto and its test tools into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.lock
	@sh scripts/system_packages.sh graphviz bubblewrap zsh fish 'chromium-headless-shell|chromium'
	@$(INSTALL)
	@$(WEIGHTS)
	@$(CLIS)
	@$(NODE_PACKAGES)
	@touch $@ $(VENV)/.run

# The console's files are committed: who installs Stretto needs no Node.
console:
	npm ci --prefix console --ignore-scripts --no-audit --no-fund
	npm run build --prefix console

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build
