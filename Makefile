# Two commands do everything on a fresh clone:
#   make demo   set up, then generate boards, show them and save them under demo/
#   make test   set up, then lint, type-check and run every test
# Both need only Python >= 3.11 and a C++20 compiler.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: demo test lint clean

demo: $(VENV)/.light
	@mkdir -p demo
	$(BIN)/maskoban generate -n 9 --seed 7 --out demo/boards.sok --picture demo/boards.png --animate demo/denoise.gif

test: $(VENV)/.full lint
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.full
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# What is compiled into the wheel: a change in any of these reinstalls the package.
NATIVE := CMakeLists.txt pyproject.toml $(wildcard native/*)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# The package alone, the way a user installs it (no torch).
$(VENV)/.light: $(VENV)/bin/python $(NATIVE) $(shell find src -name '*.py')
	$(BIN)/pip install --quiet -c constraints.txt .
	@touch $@

# The package with its extras, editable, for tests.
$(VENV)/.full: $(VENV)/bin/python $(NATIVE) constraints.txt
	$(BIN)/pip install --quiet -c constraints.txt "scikit-build-core>=0.10" "nanobind>=2.4" ninja cmake
	$(BIN)/pip install --quiet -c constraints.txt --no-build-isolation -e ".[train,dev,studio,report]"
	@touch $@

clean:
	rm -rf $(VENV) build dist demo
