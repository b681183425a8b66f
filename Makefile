PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: build check demo test fuzz compat soak bench release docs lint format clean install uninstall

build: $(BIN)/shiv
	$(BIN)/python build.py

demo: build
	sh examples/demo.sh dist/termsprawlctl

# What to run all the time, in under a minute: no process is started.
check: lint
	FUZZ_PROFILE=brief $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "unit and not slow" $(ARGS)

# Everything, in parallel: the tests mostly wait. `make test ARGS="tests/host -k monitor"` runs some of them.
test: build
	$(BIN)/python -m pytest -q -n auto --dist worksteal $(ARGS)

# The parsers and boundaries under hostile input, far longer than `make test` does it.
fuzz: build
	FUZZ_PROFILE=long $(BIN)/python -m pytest --timeout=1800 tests/fuzz

# Whether it holds: 100,000 calls, 200 agent runs, 200 terminals, with what they leave in memory. Some minutes.
soak: build
	PYTHONPATH=tests $(BIN)/python soak/soak.py dist/termsprawlctl
	PYTHONPATH=tests $(BIN)/python soak/soak_effects.py dist/termsprawlctl

# The suites with every Python and every tmux that can be had here, one after the other.
compat: build
	sh tests/counterparts/install.sh
	PYTHONPATH=tests $(BIN)/python tools/compat.py $(COMPAT)

bench: build
	PYTHONPATH=tests $(BIN)/python bench/bench.py dist/termsprawlctl

# dist/termsprawlctl and dist/SHA256SUMS of the last commit, built twice and tested.
release: $(BIN)/shiv
	$(BIN)/python tools/release.py

PREFIX ?= /usr/local
TARGET = $(DESTDIR)$(PREFIX)
BASH_COMPLETIONS = share/bash-completion/completions
ZSH_COMPLETIONS = share/zsh/site-functions
FISH_COMPLETIONS = share/fish/vendor_completions.d

dist/termsprawlctl:
	$(MAKE) build

# The built file as it is, so that `sudo make install` builds nothing as root.
install: dist/termsprawlctl
	for folder in bin share/man/man1 $(BASH_COMPLETIONS) $(ZSH_COMPLETIONS) $(FISH_COMPLETIONS); do \
	    install -d "$(TARGET)/$$folder"; done
	install -m 755 dist/termsprawlctl "$(TARGET)/bin/termsprawlctl"
	install -m 644 docs/termsprawlctl.1 "$(TARGET)/share/man/man1/termsprawlctl.1"
	umask 022; \
	    dist/termsprawlctl completion bash > "$(TARGET)/$(BASH_COMPLETIONS)/termsprawlctl" && \
	    dist/termsprawlctl completion zsh > "$(TARGET)/$(ZSH_COMPLETIONS)/_termsprawlctl" && \
	    dist/termsprawlctl completion fish > "$(TARGET)/$(FISH_COMPLETIONS)/termsprawlctl.fish"

uninstall:
	rm -f "$(TARGET)/bin/termsprawlctl" "$(TARGET)/share/man/man1/termsprawlctl.1" \
	    "$(TARGET)/$(BASH_COMPLETIONS)/termsprawlctl" "$(TARGET)/$(ZSH_COMPLETIONS)/_termsprawlctl" \
	    "$(TARGET)/$(FISH_COMPLETIONS)/termsprawlctl.fish"

docs: build
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/pictures.py

lint: $(BIN)/shiv
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

format: $(BIN)/shiv
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

clean:
	rm -rf $(VENV) build .pytest_cache .ruff_cache .hypothesis dist/termsprawlctl dist/SHA256SUMS

# Made from pyproject.toml's list alone, so that no packaging backend has to be fetched for it.
$(BIN)/shiv: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@
