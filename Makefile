PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FUZZ_SECONDS ?= 20
BUDGET ?= 60
MODULE ?= metrics/intervals
STORED := paper fast
PAPER_ARGS ?= --tasks synthetic --settings pu --repetitions 1
SPEED_ARGS ?= peers
QUALITY_ARGS ?= methods --log quality.jsonl
CC ?= cc
CLANG ?= clang

# Empty is off: without bytecode every program that a test starts would compile the package.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install demo test test-quick slow slurm chaos snakemake browser docs paper reproduction check lint types fmt fuzz libfuzzer \
	hostile smoke dist speed quality clean golden coverage mutants

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# One stamp for each set of dependencies, so that the demo does not wait for linters.
# Python prefers extensions built for it alone, so older ones would hide those for every version.
$(VENV)/.core: $(BIN)/python pyproject.toml setup.py resvm_cli/data/_svmlight.c \
		resvm_cli/data/_numbers.c resvm_cli/svm/_blocks.c resvm_cli/arrays.h \
		resvm_cli/svm/smo.h resvm_cli/svm/smo_lanes.h
	rm -f resvm_cli/data/*.so resvm_cli/svm/*.so
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

paper: $(VENV)/.core ## one draw of the paper's synthetic task in a few seconds, and its report; PAPER_ARGS="--tasks ..."
	$(BIN)/python -m experiments.paper run --resume $(PAPER_ARGS) -o build/paper
	$(BIN)/python -m experiments.paper report build/paper

reproduction: $(VENV)/.core ## write the tables of docs/reproduction.md from the stored runs
	$(BIN)/python -m experiments.paper report $(STORED:%=docs/reproduction/results-%.jsonl) --page docs/reproduction.md

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

golden: $(VENV)/.test ## write tests/golden again; read the diff before you commit it
	$(BIN)/python -m tests.test_golden_outputs
	$(BIN)/python -m tests.test_refusals
	git --no-pager diff --stat tests/golden

# Measuring imports modules and writes files of its own, which these tests would notice.
UNMEASURED := tests/cli/test_app.py::test_a_command_imports_only_what_it_uses \
	tests/commands/test_tune_resuming.py::test_a_tuning_on_a_full_disk_is_a_writing_error

coverage: $(VENV)/.dev ## branch coverage by the tests and the programs that they start: ten minutes
	rm -rf build/coverage
	$(BIN)/coverage run -m pytest -n 4 --dist worksteal $(UNMEASURED:%=--deselect %)
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

# In a copy, as mutmut takes the module and the tests from pyproject.toml only.
mutants: $(VENV)/.dev ## change MODULE=metrics/intervals in many small ways, which tests/metrics must notice
	rm -rf build/mutants
	mkdir -p build/mutants
	cp -R resvm_cli tests sample_data docs experiments pyproject.toml build/mutants
	printf '[tool.mutmut]\nsource_paths = ["resvm_cli"]\nonly_mutate = ["resvm_cli/$(MODULE).py"]\n%s\n%s\n' \
		'tests_dir = ["tests/$(dir $(MODULE))"]' \
		'also_copy = ["tests", "sample_data", "docs", "experiments"]' >> build/mutants/pyproject.toml
	cd build/mutants && ../../$(BIN)/mutmut run --max-children 2
	cd build/mutants && ../../$(BIN)/mutmut results

smoke: demo

check: lint types test browser smoke ## lint, types, tests, pages, fuzz and demo
	$(MAKE) fuzz FUZZ_SECONDS=5
	$(MAKE) hostile BUDGET=15 SEED=1  # the same attacks every time

dist: $(BIN)/python ## build sdist and wheel, and try each in a clean environment
	sh packaging/build.sh $(BIN)/python

speed: $(VENV)/.bench ## measure speed: SPEED_ARGS="peers --only train", see experiments/README.md
	$(BIN)/python -m experiments.speed $(SPEED_ARGS)

quality: $(VENV)/.bench ## measure quality: QUALITY_ARGS="estimates --log FILE", see experiments/README.md
	$(BIN)/python -m experiments.quality $(QUALITY_ARGS)

clean: ## remove what was built
	rm -rf build dist .dist *.egg-info demo-output .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache \
		resvm_cli/data/*.so resvm_cli/svm/*.so $(VENV)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
