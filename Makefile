# Everything a developer types. `make setup` is part of whatever needs it, and instant when nothing has changed.
VENV := .venv
BIN := $(VENV)/bin
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/streamjoin
INSTALLED := $(wildcard requirements*.lock) pyproject.toml .ci/setup
STAMP := $(VENV)/.installed-$(shell cat $(INSTALLED) | sha256sum | cut -c1-16)
COMPILE := env -u PIP_FIND_LINKS $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

# Tests start hundreds of processes; without bytecode each of them compiles hundreds of modules anew, a third of a second.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup fmt check unit test docs e2e image cluster-programs tested cluster-up cluster-down demo bench lock clean

help: ## Show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

setup: $(STAMP) ## Install the environment and the command `streamjoin` into .venv

$(STAMP):
	@.ci/setup $(VENV)
	@rm -f $(VENV)/.installed-*
	@touch $@

fmt: setup ## Format the code and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: setup ## Lint, types and import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	MYPY_CACHE_DIR=$(CACHE)/mypy $(BIN)/mypy
	PYTHONPATH=operator $(BIN)/lint-imports

unit: setup ## The quick tests: no Spark, no server, no root
	tests/run unit $(ARGS)

test: ## All checks and tests, those on a cluster included
	@$(MAKE) --no-print-directory -j2 tested cluster-programs # one core each: to install and check is the work of one

tested: check
	tests/run $(ARGS)

docs: setup ## Build the documentation into build/docs, check its links and run its examples
	$(BIN)/python docs/build --check
	$(BIN)/sphinx-build -W --keep-going -q -b html -c docs . build/docs
	$(BIN)/pytest -n 2 --dist loadgroup -m "not cluster" tests/docs $(ARGS)

e2e: setup ## The tests on a cluster: that of KUBECONFIG, or one made for them
	tests/cluster/e2e $(BIN)/pytest -m cluster $(ARGS)

image: ## Build the container image
	@docker/build

cluster-programs: # those that are made from source; tests that need one wait, and say where it cannot be made
	@[ -n "$$KUBECONFIG" ] || command -v kind >/dev/null || ! command -v go >/dev/null || tools/cluster/build >/dev/null || true

cluster-up: ## Bring up a Kubernetes on this machine; prints how to use it
	@tools/cluster/up

cluster-down: ## Remove it
	@tools/cluster/down

demo: setup ## Join real flights with real weather, as streams
	$(BIN)/python tools/demo.py

bench: setup ## Measure against other engines (minutes, needs a quiet machine)
	$(BIN)/python bench/run.py $(ARGS)

lock: setup ## Pin all dependencies again, with hashes
	printf 'setuptools>=77\nwheel\n' | $(COMPILE) --upgrade - -o requirements-build.lock
	$(COMPILE) --upgrade pyproject.toml --extra kubernetes -o requirements.lock
	$(COMPILE) --upgrade pyproject.toml --extra kubernetes --extra dev -c requirements.lock -o requirements-dev.lock

clean: ## Remove the environment and all caches
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
