# `make demo` shows what coprlake does, `make check` tests it quickly, `make test` tests all of it.
# They set up everything they need in .venv; only Python 3.11+ and make must be installed.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
KERNEL_CACHE := $(VENV)/bounds-checked-kernels
KERNEL_FOLDERS := src/coprlake/kernel.py,src/coprlake/bits/**,src/coprlake/tokens/**,src/coprlake/sketch/**,src/coprlake/predicate/**,src/coprlake/dpl/**,src/coprlake/text/**,src/coprlake/intake/**,src/coprlake/language/functions/text/text_scanning.py

JOBS ?= 2
SPARK := spark or kafka

.PHONY: help setup kafka demo docs check test test-quick test-slow test-spark test-pyspark test-jit test-kernels test-no-jit test-bounds lint format benchmark paper clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/:/' | column -t -s:

setup: $(VENV)/.ready  ## create the virtual environment in .venv
	@$(RUN) -m compileall -q src  # a start takes half as long, also where Python may not write bytecode itself

$(VENV)/.ready: pyproject.toml constraints.txt scripts/make_venv.sh
	@PYTHON=$(PYTHON) sh scripts/make_venv.sh $(VENV)
	@touch $@

kafka: setup  ## fetch a Kafka broker and Spark's connector, for the tests
	@$(RUN) -m scripts.fetch_kafka

demo: setup  ## ingest generated logs, search them, and query them with DuckDB
	@$(RUN) -m benchmarks.demo

docs: setup  ## build the documentation into site/; open site/index.html
	@NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --quiet --strict && echo "docs: site/index.html"

check: setup  ## lint and the quick tests, within 4 minutes; run it before every commit
	@WORKERS=$(JOBS) $(RUN) -m scripts.run_parts --at-once $(JOBS) lint test-quick

test: setup kafka  ## lint and all tests, within 30 minutes; CI runs it
	@$(RUN) -m scripts.run_parts --at-once $(JOBS) lint test-spark test-quick test-no-jit test-slow test-bounds

WORKERS ?= 0
test-quick: setup  ## the suite without Spark, Kafka and slow tests
	$(RUN) -m pytest -q -m 'not slow and not ($(SPARK))' -n $(WORKERS) --dist loadfile --durations=5

test-slow: setup  ## tests that take more than 5 seconds, without Spark and Kafka
	$(RUN) -m pytest -q -m 'slow and not ($(SPARK))' --durations=10

test-spark: setup kafka  ## tests with Spark, its cluster and Kafka
	$(RUN) -m pytest -q -m '$(SPARK)' --durations=10

VERSION ?= 4.0
test-pyspark: setup  ## the tests of jobs and the data source with another PySpark: VERSION=4.0
	$(RUN) -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(VENV)/pyspark-$(VERSION) 'pyspark==$(VERSION).*'
	PYTHONPATH=$(CURDIR)/$(VENV)/pyspark-$(VERSION) $(RUN) -m pytest -q tests/spark/test_spark_versions.py tests/spark/test_spark_source.py tests/spark/test_spark_jobs.py

test-jit: setup kafka  ## the whole suite in one process
	$(RUN) -m pytest --durations=10

test-kernels: setup  ## the kernels' tests in plain Python and with bounds checks
	@$(RUN) -m scripts.run_parts --at-once $(JOBS) test-no-jit test-bounds

test-no-jit: setup  ## the kernels' tests in plain Python, with coverage
	NUMBA_DISABLE_JIT=1 $(RUN) -m coverage run -m pytest -m kernels -q
	$(RUN) -m coverage report --include='$(KERNEL_FOLDERS)' --skip-covered --fail-under=90

test-bounds: setup  ## the kernels' tests with every array access checked
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(KERNEL_CACHE) $(RUN) -m pytest -m kernels -q

lint: setup  ## ruff and mypy
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

format: setup  ## format the code with ruff
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

benchmark: setup  ## measure the sketch
	$(RUN) -m benchmarks.sketch

SIZE ?= quick
paper: setup  ## repeat the paper's evaluation with current peers; SIZE=full for the paper's sizes
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[peers]'
	$(RUN) -m benchmarks.paper --size $(SIZE)

clean:  ## remove everything that was built
	rm -rf $(VENV) build dist .coverage .mypy_cache .ruff_cache .hypothesis
	find src benchmarks tests -name __pycache__ -prune -exec rm -rf {} +
