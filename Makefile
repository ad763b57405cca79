# Three commands do everything on a fresh clone:
#   make demo   set up, then generate boards, show them and save them under demo/
#   make play   set up, then build the page with the model and the solver inside, and serve it (needs npm)
#   make test   set up, then lint, type-check and run every test
# They need only Python >= 3.11 and a C++20 compiler.

PYTHON ?= python3

# Each has an environment of its own: one holds the package as users install it, the other the source itself.
DEMO := .venv-demo
DEV  := .venv
BIN  := $(DEV)/bin
MINIMUM := .venv-minimum

.PHONY: demo play test test-minimum lint fuzz clean

demo: $(DEMO)/.installed
	@mkdir -p demo
	$(DEMO)/bin/maskoban generate -n 9 --seed 4 --out demo/boards.sok --picture demo/boards.png --animate demo/denoise.gif

# The static site in public/, and a plain file server for it.
PORT ?= 8000
play: public/site.json
	@echo "Play at http://localhost:$(PORT)/ (Ctrl-C ends the server)"
	@$(DEMO)/bin/python -m http.server $(PORT) --bind 127.0.0.1 --directory public

public/site.json: $(DEMO)/.installed-site
	$(DEMO)/bin/maskoban site build public

test: $(DEV)/.installed lint
	$(BIN)/python -m pytest -n 2

# Every test with the lowest versions that pyproject.toml allows, of Python too.
test-minimum: $(MINIMUM)/.installed
	$(MINIMUM)/bin/python -m pytest -n 2

lint: $(DEV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Fuzzes the readers of level files, the HTTP API and the native core, which is built with AddressSanitizer and
# UndefinedBehaviorSanitizer, for so many minutes of CPU: make fuzz MINUTES=60 SEED=1
MINUTES ?= 3
SEED ?= 0
fuzz: $(DEV)/.installed build/sanitize/.built
	nice -n 19 $(BIN)/python -m tests.fuzz --minutes $(MINUTES) --seed $(SEED) --core build/sanitize

SANITIZE := -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
build/sanitize/.built: CMakeLists.txt $(wildcard native/*) | $(DEV)/.installed
	$(BIN)/cmake -S . -B $(@D) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DCMAKE_BUILD_TYPE=Sanitize \
	    -DCMAKE_CXX_FLAGS="$(SANITIZE)" -DPython_EXECUTABLE=$(abspath $(BIN)/python)
	$(BIN)/cmake --build $(@D)
	@touch $@

# What is compiled into the wheel: a change in any of these reinstalls the package.
NATIVE := CMakeLists.txt pyproject.toml constraints.txt $(wildcard native/*)
# What else is in it: code, weights, pages.
CONTENT := $(shell find src -type f -not -name '*.so' -not -name '*.pyc')

$(DEMO)/bin/python $(DEV)/bin/python:
	$(PYTHON) -m venv $(@D:/bin=)

# The package alone, the way a user installs it (no torch).
$(DEMO)/.installed: $(DEMO)/bin/python $(NATIVE) $(CONTENT)
	$(DEMO)/bin/pip install --quiet -c constraints.txt .
	@touch $@

# The same with what builds the site; installed alone, it compiles once.
$(DEMO)/.installed-site: $(DEMO)/bin/python $(NATIVE) $(CONTENT)
	$(DEMO)/bin/pip install --quiet -c constraints.txt ".[site]"
	@touch $@ $(DEMO)/.installed

# The package with its extras, editable, for tests.
$(DEV)/.installed: $(DEV)/bin/python $(NATIVE)
	$(BIN)/pip install --quiet -c constraints.txt "scikit-build-core>=0.10" "nanobind>=2.4" ninja cmake
	$(BIN)/pip install --quiet -c constraints.txt --no-build-isolation -e ".[train,dev,studio,report,bulk,rl]"
	@touch $@

$(MINIMUM)/bin/python:
	python3.11 -m venv $(MINIMUM)

# The same with the lowest versions. The build folder of its own keeps the two from sharing what they configured.
$(MINIMUM)/.installed: $(MINIMUM)/bin/python $(NATIVE) tests/minimum.py
	$(MINIMUM)/bin/python -m tests.minimum > $(MINIMUM)/constraints.txt
	$(MINIMUM)/bin/pip install --quiet -c $(MINIMUM)/constraints.txt scikit-build-core nanobind ninja cmake
	$(MINIMUM)/bin/pip install --quiet -c $(MINIMUM)/constraints.txt --no-build-isolation \
	    -C build-dir=build/minimum -e ".[train,dev,studio,report,bulk,rl]"
	@touch $@

clean:
	rm -rf $(DEMO) $(DEV) $(MINIMUM) build dist demo public
