PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FUZZ_SECONDS ?= 20
BUDGET ?= 60
MUTANTS ?= 500
BENCH_ARGS ?=
CC ?= cc
CLANG ?= clang

# Empty is off: without bytecode every program that a test starts would compile the package.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install demo test test-quick slow slurm chaos snakemake browser docs reproduction check lint types fmt fuzz libfuzzer \
	hostile smoke dist bench clean leaks coverage mutants

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# One stamp for each set of dependencies, so that the demo does not wait for linters.
# Python prefers extensions built for it alone, so older ones would hide those for every version.
$(VENV)/.core: $(BIN)/python pyproject.toml setup.py resvm_cli/files/_svmlight.c \
		resvm_cli/files/_numbers.c resvm_cli/svm/_blocks.c resvm_cli/arrays.h \
		resvm_cli/svm/smo.h resvm_cli/svm/smo_lanes.h
	rm -f resvm_cli/files/*.so resvm_cli/svm/*.so
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@
$(VENV)/.test: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@
$(VENV)/.bench: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@
$(VENV)/.dev: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

$(VENV)/.docs: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

install: $(VENV)/.core ## make a virtual environment in .venv and install resvm there

demo: $(VENV)/.core ## train, predict, score and inspect on sample_data/
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh sample_data/demo.sh

# More workers than cores: tests wait for programs and disks.
test: $(VENV)/.test ## run the tests
	$(BIN)/python -m pytest -n 4 --dist worksteal

test-quick: $(VENV)/.test ## run the quick tests, which start no program, in half a minute
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'quick and not slow'

slow: $(VENV)/.test ## run the tests that take minutes
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

slurm: $(VENV)/.test ## run the recipes of docs/cluster.md on the Slurm of SLURM_CONF, if there is one
	$(BIN)/python -m pytest -m slurm -rs

chaos: $(VENV)/.test ## end workers of a Dask cluster in every way, ten times each, under train and tune
	$(BIN)/python -m pytest -m chaos

snakemake: $(VENV)/.test ## run the Snakemake wrapper, with Snakemake in an environment of its own
	$(PYTHON) -m venv .dist/snakemake
	.dist/snakemake/bin/python -m pip install --quiet --disable-pip-version-check snakemake
	PATH="$$PATH:$(CURDIR)/.dist/snakemake/bin" $(BIN)/python -m pytest tests/test_snakemake.py -rs

browser: $(VENV)/.test ## open the pages in a headless Chromium, if one is on the PATH
	$(BIN)/python -m pytest -m browser -rs

docs: $(VENV)/.docs ## build the pages (build/docs/html) and the manual pages (build/docs/man); warnings are errors
	$(BIN)/python docs/write_reference.py --check
	$(BIN)/sphinx-build -q -W --keep-going -b html docs build/docs/html
	$(BIN)/sphinx-build -q -W --keep-going -b man docs build/docs/man

reproduction: $(VENV)/.core ## docs/reproduction/ and its tables from runs: PAPER="DIR DIR2" FAST=DIR
	$(BIN)/python docs/write_reproduction.py --paper $(PAPER) --fast $(FAST)

lint: $(VENV)/.dev ## ruff and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.dev ## mypy --strict
	$(BIN)/mypy

fmt: $(VENV)/.dev ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

FUZZED := svmlight numbers blocks
FUZZ_FLAGS := -std=c11 -g -O1 -ffp-contract=off -Wall -Wextra -Werror -fno-sanitize-recover=all

fuzz: $(FUZZED:%=fuzz_%) ## run the C code over mutated inputs under ASan and UBSan for FUZZ_SECONDS

fuzz_%:
	@mkdir -p build/fuzz
	$(CC) $(FUZZ_FLAGS) -fsanitize=address,undefined -o build/fuzz/$@ tests/fuzz/$@.c tests/fuzz/driver.c -lm
	build/fuzz/$@ $(FUZZ_SECONDS) tests/fuzz/corpus/$*

libfuzzer: $(FUZZED:%=libfuzzer_%) ## the same under libFuzzer, guided by coverage; needs clang

# what is new is kept in build/fuzz; an input that fails is written to build/fuzz/NAME-failed-*
libfuzzer_%:
	@mkdir -p build/fuzz/corpus-$*
	$(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer,address,undefined -o build/fuzz/$@ tests/fuzz/fuzz_$*.c -lm
	build/fuzz/$@ -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 -print_final_stats=1 \
		-artifact_prefix=build/fuzz/$*-failed- build/fuzz/corpus-$* tests/fuzz/corpus/$*

hostile: $(VENV)/.test ## mutated files, kills and faults against every command for BUDGET seconds
	$(BIN)/python -m tests.hostile $(BUDGET) $(SEED)

coverage: $(VENV)/.dev ## branch coverage of the package and its C code by the tests: half an hour
	$(BIN)/python -m tests.coverage

mutants: $(VENV)/.dev ## try MUTANTS one-line changes on the tests that reach them: hours
	$(BIN)/python -m tests.mutants $(MUTANTS)

leaks: $(VENV)/.test ## train and predict under Valgrind: no memory lost that grows with members
	$(BIN)/python -m tests.leaks

smoke: demo

check: lint types test browser smoke ## lint, types, tests, pages, fuzz and demo: what CI runs
	$(MAKE) fuzz FUZZ_SECONDS=5
	$(MAKE) hostile BUDGET=15 SEED=1  # the same attacks every time

dist: $(BIN)/python ## build sdist and wheel, and try each in a clean environment
	sh packaging/build.sh $(BIN)/python

bench: $(VENV)/.bench ## measure the speed of resvm beside its peers; BENCH_ARGS="--quick", see perf/
	$(BIN)/python -m perf $(BENCH_ARGS)

clean: ## remove what was built
	rm -rf build dist .dist *.egg-info demo-output .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache \
		resvm_cli/files/*.so resvm_cli/svm/*.so $(VENV)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
