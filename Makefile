# Set-up happens on first use and again when the packages asked for change.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-slow test-ray check check-code format benchmark benchmark-stream benchmark-page benchmark-scale setup clean

demo: $(READY)  ## the main job on real handwritten digits
	$(BIN)/s2osc demo --out demo-results --force
	@echo "Here: $(BIN)/s2osc page --results demo-results"

# Each worker reads every test, so compiled ones are kept wherever Python is told not to.
# Their files are removed more often than they are read, so they lie in memory if there is enough.
ROOM := $(shell df -k --output=avail /dev/shm 2>/dev/null | awk 'NR == 2 && $$1 > 4000000 {print "TMPDIR=/dev/shm"}')
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(ROOM) $(BIN)/python -m pytest -n auto --dist loadfile

test: $(READY)  ## all quick tests
	@command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 || \
	  echo "no chromium: the browser tests of the report are left out"
	$(PYTEST) --no-loadscope-reorder

test-slow: $(READY)  ## the tests that take minutes
	$(PYTEST) -m slow

test-ray: $(READY)  ## the tests on Ray, which is installed for them
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ray,mlflow]'
	$(BIN)/python -m pytest -m slow tests/engine tests/service

check: check-code test  ## format, lint, types, import directions, tests

check-code: $(READY)  ## the same without the tests
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff format src tests benchmarks
	$(BIN)/ruff check --fix src tests benchmarks

benchmark: $(READY)  ## speed and memory: ratios within one run, and seconds of whole runs
	$(BIN)/python benchmarks/step_of_g.py
	$(BIN)/python benchmarks/scoring.py
	$(BIN)/python benchmarks/post_hoc.py
	$(BIN)/python benchmarks/grouping.py
	$(BIN)/python benchmarks/whole_runs.py --to benchmarks/whole-runs.json

benchmark-stream: $(READY)  ## seconds of a window of 6,000 digits; needs MNIST and two free cores
	$(BIN)/python benchmarks/stream_window.py

benchmark-page: $(READY)  ## how quick the page is with 10,000 and 100,000 items; needs chromium and free cores
	$(BIN)/python benchmarks/page.py --to benchmarks/page.json

benchmark-scale: $(READY)  ## how cost and memory grow from 10^4 to 10^7 vectors; half an hour, needs Ray, 6 GB of disk and free cores
	$(BIN)/python benchmarks/scale.py --ray 1,2 --to benchmarks/scale.json
	$(BIN)/python benchmarks/scale.py --show benchmarks/scale.json --figure docs/figures/scale.png

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench,demo,photos,onnx,page,dev]'
	touch $@

clean:
	rm -rf $(VENV) demo-results
