# Everything a newcomer needs: `make demo` and `make test`. Both set up .venv first, with only Python and make present.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
NAME   ?=

# Compiled files are kept wherever this is set: the tests start Python many times.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := setup
.PHONY: setup demo test pytest check browser bench docs golden format clean

setup: $(STAMP)

$(STAMP): pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "demur needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12"; exit 2; }
	@if command -v uv >/dev/null 2>&1; then \
	  echo "setting up $(VENV) with uv"; \
	  uv venv --quiet --allow-existing --python "$(PYTHON)" $(VENV) && \
	  uv pip install --quiet --python $(BIN)/python --editable '.[all,duckdb,spark]' --group dev --group docs; \
	else \
	  echo "setting up $(VENV) with venv and pip (a minute or two)"; \
	  $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[all,duckdb,spark]' --group dev --group docs; \
	fi
	@touch $@

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
	@if command -v uv >/dev/null 2>&1; then uv pip install --quiet --python $(BIN)/python --group bench; \
	 else $(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench; fi
	$(BIN)/python -m benchmarks $(NAME)

docs: setup
	$(BIN)/python -m docs.generate
	$(BIN)/mkdocs build --quiet --strict

# Records again what every command gives (tests/golden), and lists the numbers that differ from those recorded.
golden: setup
	PYTHONPATH=tests $(BIN)/python -m golden

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) site demo-report .pytest_cache .mypy_cache .ruff_cache .hypothesis
