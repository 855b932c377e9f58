# make test   everything that must hold, from nothing
# make demo   what tracekit shows, from nothing
# make four-ways   the README's picture of a GCN four ways (out/four-ways.svg)
# make verify the long proofs, by hand before a release: real scripts and every recipe through real captures
# make bench  reading and attribution against their peers, measured pace against a plain run's, frames of a timeline
# make sample the run in sample_traces anew, on a quiet machine with Cora under data/
# make test-hta   what HTA says of our columns against what it says of its own parse, in an environment of its own
# make bench-tui    how quick the terminal UI is; make screenshots writes the pictures of it in docs/images
# make gpu    a first run on a machine with a GPU and its own PyTorch, in ten minutes (WHEELS=folder of what it lacks)
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
WORKERS ?= 2
HTA ?= $(BIN)/python
# The tests start hundreds of processes, which would all compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

# Pages of the documentation that are made from the code.
.PHONY: pages
pages: $(VENV)/.dev
	$(BIN)/python -m docs.made

# Its notebooks, executed anew on the sample run.
.PHONY: notebooks
notebooks: $(VENV)/.verify
	$(BIN)/python -m docs.executed

# The site of the documentation, into site/; nothing is fetched for it but its builder.
.PHONY: docs
docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/.dev
	$(PIP) install --quiet -c constraints.txt -e '.[docs]'
	touch $@

# What goes to an index of packages, checked: nothing is uploaded.
.PHONY: dist
dist: $(VENV)/.dist
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

$(VENV)/.dist: pyproject.toml | $(VENV)/.made
	$(PIP) install --quiet -c constraints.txt build twine
	touch $@

# HTA pulls in a lot, all of JupyterLab among it.
.PHONY: test-hta
test-hta: .venv-hta/.made
	.venv-hta/bin/python -m pytest tests/hta -W ignore

.venv-hta/.made: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-hta
	.venv-hta/bin/python -m pip install --quiet -c constraints.txt -e '.[hta]' pytest hypothesis
	touch $@

.PHONY: test demo four-ways sample bench bench-tui screenshots verify verify-recipes gpu check format clean

test: check
	$(BIN)/python -m pytest -n $(WORKERS)

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

demo: $(VENV)/.demo
	$(BIN)/tracekit capture recipes/gcn_cora.py --variants eager,compiled --budget 30
	$(BIN)/tracekit report run.json

four-ways: $(VENV)/.demo
	mkdir -p out/four-ways
	$(BIN)/tracekit capture recipes/gcn_sampled.py --variants baseline,sampled,sampled-amp,baseline-compiled \
		--budget 30 -o out/four-ways/run.json
	$(BIN)/tracekit plot out/four-ways/run.json --kind measures -o out/four-ways.svg

sample: $(VENV)/.demo
	rm -rf out/sample
	mkdir -p out/sample
	$(BIN)/tracekit capture recipes/gcn_cora.py --variants eager,eager-norm,compiled,compiled-norm --steps 6 \
		-o out/sample/run.json
	rm -rf sample_traces/run.json sample_traces/run-*
	mv out/sample/* sample_traces

bench: $(VENV)/.dev
	$(BIN)/python -m tests.benchmarks --python $(HTA) --page docs/traces.md
	$(BIN)/python -m tests.benchmarks.pace
	$(BIN)/python -m tests.benchmarks.timeline

# Opted in by TRACEKIT_VERIFY; what each found is a table at the end.
verify: $(VENV)/.verify verify-recipes
	TRACEKIT_VERIFY=1 $(BIN)/python -m pytest tests/verify tests/capture tests/gpu tests/faces/test_hostile_names.py -n $(WORKERS)

verify-recipes: $(VENV)/.dev
	TRACEKIT_ALL_RECIPES=1 $(BIN)/python -m pytest tests/recipes -n $(WORKERS)
	$(BIN)/python tests/recipes/verify.py

# First frame, keys and frames of the terminal UI.
bench-tui: $(VENV)/.dev
	$(BIN)/python -m tests.benchmarks.tui

# The pictures of it in docs/images.
screenshots: $(VENV)/.dev
	$(BIN)/python -m tests.screenshots

# With the machine's own Python and PyTorch: nothing is installed.
gpu:
	$(PYTHON) -m tests.gpu $(if $(WHEELS),--wheels $(WHEELS)) $(if $(ONLY),--only $(ONLY))

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# One install at a time, and only when what it depends on has changed.
$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/.made
	$(PIP) install --quiet -c constraints.txt -e '.[capture,dev]'
	touch $@ $(VENV)/.demo

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/.made
	$(PIP) install --quiet -c constraints.txt -e '.[capture,plot]'
	touch $@

# Libraries that drive training: their scripts are skipped where they are absent.
$(VENV)/.verify: $(VENV)/.dev
	$(PIP) install --quiet -c constraints.txt -e '.[capture,dev,verify]'
	touch $@

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	touch $@

clean:
	rm -rf $(VENV) .venv-hta .mypy_cache .ruff_cache .pytest_cache .hypothesis
