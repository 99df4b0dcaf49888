# Everything a newcomer needs: `make demo` and `make test`. Both set up .venv first, with only Python and make present.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
NAME   ?=
UV     := $(shell command -v uv 2>/dev/null)
INSTALL := $(if $(UV),uv pip install --quiet --compile-bytecode --python $(BIN)/python,$(BIN)/python -m pip install --quiet --disable-pip-version-check)

# Compiled files are kept wherever this is set: the tests start Python many times.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := setup
.PHONY: setup lock demo test pytest check browser bench fuzz docs golden sbom release-check format clean

setup: $(STAMP)

# Everything comes in the versions of the lock, and only if its hash is right. Where an index lacks one of them, and only then, the
# ranges of pyproject.toml do.
LACKING := no matching distribution|could not find a version|no solution found|not found in the package registry
$(STAMP): pyproject.toml requirements-dev.lock Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "demur needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12"; exit 2; }
	@echo "setting up $(VENV) with $(if $(UV),uv,venv and pip (a minute or two))"
	@$(if $(UV),uv venv --quiet --allow-existing --python "$(PYTHON)" $(VENV),$(PYTHON) -m venv $(VENV))
	@if $(INSTALL) --require-hashes --requirement requirements-dev.lock 2>$(VENV)/install.log; then \
	  $(INSTALL) --no-deps --no-build-isolation --editable .; \
	else \
	  cat $(VENV)/install.log >&2; \
	  grep -qiE '$(LACKING)' $(VENV)/install.log && ! grep -qi hash $(VENV)/install.log && \
	  echo "the index lacks a version of requirements-dev.lock: taking the ranges of pyproject.toml" && \
	  $(INSTALL) --upgrade 'pip>=25.1' && $(INSTALL) --editable '.[all,duckdb,spark]' --group dev --group docs; \
	fi
	@touch $@

# Writes the lock again, with the newest versions that the ranges allow; needs uv.
lock:
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --extra all --extra duckdb --extra spark --group dev --group docs --group build \
	  pyproject.toml --output-file requirements-dev.lock

demo: setup
	@$(BIN)/demur demo -o demo-report/index.html

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# `make test` checks style and types beside the tests; `make test NAME=returns` runs the tests of a folder, or of several.
test: setup browser
ifeq ($(strip $(NAME)),)
	@$(MAKE) --no-print-directory -j 2 check pytest
else
	@$(MAKE) --no-print-directory pytest
	@echo "only the tests of $(NAME) were run; make test runs all of them and checks style and types"
endif

pytest: setup
	$(BIN)/python -m pytest -n auto $(addprefix tests/,$(NAME))

# The tests of the pages drive a real browser; where there is none and none can be installed, they are skipped.
browser:
	@command -v chromium-headless-shell >/dev/null 2>&1 || command -v chromium >/dev/null 2>&1 || \
	  command -v chromium-browser >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 || [ -n "$$DEMUR_CHROMIUM" ] || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && echo "installing chromium for the tests of the pages" && \
	    export DEBIAN_FRONTEND=noninteractive && apt-get update -qq >/dev/null 2>&1 && \
	    { apt-get install -y -qq --no-install-recommends chromium-headless-shell >/dev/null 2>&1 || \
	      apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1; }; } || \
	  echo "no Chromium here, and none could be installed: tests of the pages will be skipped (install chromium to run them)"

bench: setup
	@$(INSTALL) --upgrade 'pip>=25.1' && $(INSTALL) --group bench
	$(BIN)/python -m benchmarks $(NAME)

# Feeds every reader spoilt inputs; `make fuzz ARGS="--minutes 60 --seed 5 --only parquet"`. What fails is in fuzz-findings.
fuzz: setup
	PYTHONPATH=tests $(BIN)/python -m fuzz $(ARGS)

docs: setup
	$(BIN)/python -m docs.generate --figures
	$(BIN)/zensical build --clean --strict

# Records again what every command gives (tests/golden), and lists the numbers that differ from those recorded.
golden: setup
	PYTHONPATH=tests $(BIN)/python -m golden

# What runs at a user's, with versions and licences, in CycloneDX.
sbom: setup
	$(BIN)/python tools/sbom.py sbom.cdx.json

# All that is checked before a release. Takes about 45 minutes: tests, docs, packages, fuzzing, speed, the README in a clean clone.
release-check: test docs sbom
	@$(INSTALL) --upgrade 'pip>=25.1' && $(INSTALL) --group bench --group release
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tools/environments.py --extras
	PYTHONPATH=tests $(BIN)/python -m fuzz --minutes 10
	$(BIN)/python tools/release_check.py

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) site demo-report fuzz-findings sbom.cdx.json .pytest_cache .mypy_cache .ruff_cache .hypothesis
