# Two commands for a fresh machine: `make demo` shows what coprlake does, `make test` checks it.
# Both set up everything they need in .venv; nothing but Python 3.11+ and make has to be there.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
KERNEL_CACHE := $(VENV)/bounds-checked-kernels
KERNEL_FOLDERS := src/coprlake/kernel.py,src/coprlake/bits/**,src/coprlake/tokens/**,src/coprlake/sketch/**,src/coprlake/predicate/**,src/coprlake/dpl/**,src/coprlake/text/**,src/coprlake/intake/**,src/coprlake/language/functions/text/text_scanning.py

.PHONY: help setup kafka demo test test-kernels test-jit test-no-jit test-bounds lint format benchmark paper clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/:/' | column -t -s:

setup: $(VENV)/.ready  ## make the virtual environment in .venv

$(VENV)/.ready: pyproject.toml constraints.txt scripts/make_venv.sh
	@PYTHON=$(PYTHON) sh scripts/make_venv.sh $(VENV)
	@touch $@

kafka: setup  ## fetch a Kafka broker and Spark's connector, for the tests
	@$(RUN) -m scripts.fetch_kafka

demo: setup  ## bring generated logs into a table, find needles, read it with DuckDB
	@$(RUN) -m benchmarks.demo

test: setup kafka  ## all tests: with the JIT, and beside that the kernels' without it and with bounds checks
	@$(MAKE) --no-print-directory -j2 test-jit test-kernels

test-kernels: setup  ## the kernels' tests in plain Python, then with bounds checks
	@$(MAKE) --no-print-directory test-no-jit
	@$(MAKE) --no-print-directory test-bounds

test-jit: setup kafka  ## the whole suite, compiled: Spark, its cluster and Kafka as well
	$(RUN) -m pytest --durations=5

test-no-jit: setup  ## the kernels' tests in plain Python, with coverage
	NUMBA_DISABLE_JIT=1 $(RUN) -m coverage run -m pytest -m kernels -q
	$(RUN) -m coverage report --include='$(KERNEL_FOLDERS)' --skip-covered --fail-under=90

test-bounds: setup  ## the kernels' tests with every array access checked
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(KERNEL_CACHE) $(RUN) -m pytest -m kernels -q

lint: setup  ## ruff and mypy
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

format: setup  ## let ruff format the code
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

benchmark: setup  ## the sketch in figures
	$(RUN) -m benchmarks.sketch

SIZE ?= quick
paper: setup  ## the paper's evaluation with today's peers; SIZE=full for the paper's own sizes
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[peers]'
	$(RUN) -m benchmarks.paper --size $(SIZE)

clean:  ## remove what was made
	rm -rf $(VENV) build dist .coverage .mypy_cache .ruff_cache .hypothesis
	find src benchmarks tests -name __pycache__ -prune -exec rm -rf {} +
