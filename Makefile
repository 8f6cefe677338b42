# `make help` lists the targets. Each target creates its environment first, in .venv.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
#: An index with CPU builds of torch, which are far smaller than the usual ones on Linux: make TORCH_INDEX=... demo
TORCH_INDEX ?=

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
REPORTS := build/reports
TORCH := $(shell sed -n 's/.*"torch==\([^"]*\)".*/\1/p' pyproject.toml)
PYTEST = $(BIN)/python -m pytest --junitxml=$(REPORTS)/$@.xml
#: The environment of `compat`, one for each pair of Python and torch.
COMPAT = build/compat/python$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')-$(TORCH)
#: The environment of `docs`, created again when pyproject.toml changes.
DOCS := build/docs
#: $(call requirements,EXTRA): prints what an extra of pyproject.toml needs, one requirement a line.
requirements = sed -n '/^$(1) = \[/,/^]/s/^ *"\([^"]*\)".*/\1/p' pyproject.toml
#: Installs the tools of package.json, again when it changes.
NODE_TOOLS = { [ node_modules/.ready -nt package.json ] \
	|| { npm install --loglevel=error && touch node_modules/.ready; }; }
STAGES := lint types web unit kernel notebooks browser
#: $(call when-present,FILES,COMMAND): a stage without its files says so in the summary instead of passing in silence.
when-present = $(if $(wildcard $(1)),$(2),mkdir -p $(REPORTS) && echo "no $(1)" | tee $(REPORTS)/$@.absent)
#: $(call missing,PROGRAMS): those of them that are not installed.
missing = $(strip $(foreach program,$(1),$(if $(shell command -v $(program)),,$(program))))
#: $(call when-installed,PROGRAMS,COMMAND): as when-present, for programs.
when-installed = $(if $(call missing,$(1)),mkdir -p $(REPORTS) && echo "no $(call missing,$(1))" \
	| tee $(REPORTS)/$@.absent,$(2))

##@ Two commands to begin with
.PHONY: demo
demo: recorder ## profile a small training run, execute the quickstart, write a page to open
	@$(BIN)/python scripts/demo.py

.PHONY: test
test: recorder ## all checks and tests; ends with what was skipped and why
	@rm -rf $(REPORTS); failed=; \
	for stage in $(STAGES); do \
		echo; echo "== $$stage"; began=$$SECONDS; \
		$(MAKE) --no-print-directory $$stage || failed="$$failed $$stage"; \
		echo "-- $$stage took $$((SECONDS - began)) s"; \
	done; \
	$(BIN)/python scripts/summary.py $(REPORTS) $$failed

.PHONY: recorder
recorder: $(READY) ## compile the native recorder, if it is missing and there is a compiler
	@$(BIN)/python -m mtprof_nb build --if-possible >/dev/null

##@ Notebooks
.PHONY: lab
lab: recorder ## open the quickstart in JupyterLab
	@$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) notebooks/01_quickstart.ipynb

.PHONY: outputs
outputs: recorder ## execute the tutorials and save their outputs
	@$(BIN)/python scripts/tutorials.py

.PHONY: pictures
pictures: recorder ## renew the pictures in docs/; needs chromium
	@$(BIN)/python scripts/pictures.py

##@ Parts of the tests
.PHONY: lint
lint: $(READY) ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

.PHONY: types
types: $(READY) ## mypy, strict
	@$(BIN)/mypy

.PHONY: web
web: ## types, rules and unit tests of the JavaScript; needs node and npm
	@$(call when-installed,node npm,$(NODE_TOOLS) && npm run --silent check && npm run --silent lint && npm test --silent)

.PHONY: unit
unit: recorder ## tests with hand-made traces and real runtimes
# One thread an op, or two workers and their thread pools would share the cores badly.
	@OMP_NUM_THREADS=1 $(PYTEST) -q -n 2 tests --ignore=tests/kernel --ignore=tests/browser

.PHONY: kernel
kernel: recorder ## tests that drive a real Jupyter kernel
	@$(call when-present,tests/kernel/test_*.py,$(PYTEST) -q tests/kernel)

.PHONY: notebooks
notebooks: recorder ## execute the tutorials and compare their outputs
	@$(call when-present,notebooks/*.ipynb,$(PYTEST) -q \
		--nbval --nbval-current-env --nbval-sanitize-with notebooks/sanitize.cfg notebooks)

.PHONY: browser
browser: recorder ## tests that drive a real JupyterLab in chromium
	@$(call when-present,tests/browser/test_*.py,$(PYTEST) -q tests/browser)

##@ Longer runs
.PHONY: bench
bench: recorder ## compare with other profilers, a quarter of an hour
	@$(BIN)/python -m benchmarks

.PHONY: bench-quick
bench-quick: recorder ## compare in four minutes, with a wider spread
	@$(BIN)/python -m benchmarks --quick

.PHONY: compat
compat: ## unit and kernel tests with another Python and torch: make compat PYTHON=python3.13 TORCH=2.15.0
	@[ $(COMPAT)/.ready -nt pyproject.toml ] || { echo "making the environment in $(COMPAT)" \
		&& $(PYTHON) -m venv --clear $(COMPAT) \
		&& $(COMPAT)/bin/pip install -q --disable-pip-version-check --no-deps "torch==$(TORCH)" \
			$(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) \
		&& $(call requirements,dev) | grep -v '^torch==' > $(COMPAT)/dev.txt \
		&& $(COMPAT)/bin/pip install -q --disable-pip-version-check "torch==$(TORCH)" -r $(COMPAT)/dev.txt -e . \
		&& touch $(COMPAT)/.ready; }
	@$(COMPAT)/bin/python -m mtprof_nb build --if-possible >/dev/null
	@failed=; export OMP_NUM_THREADS=1; \
	$(COMPAT)/bin/python -m pytest -q -n 2 tests --ignore=tests/kernel --ignore=tests/browser || failed=unit; \
	$(COMPAT)/bin/python -m pytest -q tests/kernel || failed="$$failed kernel"; \
	[ -z "$$failed" ] || { echo "failed: $$failed"; exit 1; }

.PHONY: soak
soak: recorder ## tests of faults, hostile input and long runs at full size
	@MTPROF_SOAK=1 OMP_NUM_THREADS=1 $(PYTEST) -s -m soak -o faulthandler_timeout=1800 tests

##@ Documentation
.PHONY: docs
docs: $(DOCS)/.ready ## build the documentation in build/site
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/python -m mkdocs build --strict --quiet
	@echo "open build/site/index.html"

$(DOCS)/.ready: pyproject.toml
	@echo "making the environment in $(DOCS)"
	@$(PYTHON) -m venv --clear $(DOCS)
	@$(call requirements,docs) > $(DOCS)/requirements.txt
	@$(DOCS)/bin/pip install -q --disable-pip-version-check -r $(DOCS)/requirements.txt
	@touch $@

##@ The work tree
.PHONY: fmt
fmt: $(READY) ## format, and fix what ruff and biome can fix
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .
	@$(if $(call missing,node npm),,$(NODE_TOOLS) && npm run --silent fmt)

.PHONY: clean
clean: ## remove the environment, caches and build results
	rm -rf $(VENV) node_modules build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find mtprof_nb tests scripts benchmarks notebooks -depth \
		\( -name __pycache__ -o -name .ipynb_checkpoints \) -exec rm -rf {} + 2>/dev/null || true

.PHONY: help
help: ## this list
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Torch first and alone, so that a CPU build satisfies the pin and nothing for a GPU is downloaded.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or later is needed: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "making the environment in $(VENV) (torch $(TORCH))"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/pip install -q --disable-pip-version-check --no-deps "torch==$(TORCH)" \
		$(if $(TORCH_INDEX),--index-url $(TORCH_INDEX))
	@$(BIN)/pip install -q --disable-pip-version-check -e ".[dev]"
	@touch $@
