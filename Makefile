# Every target first makes .venv (once) with tools/bootstrap.sh, so that these are all the commands a new machine needs.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help bootstrap demo test lint gpu-check clean

VENV := .venv
ifeq ($(XGPU_NO_VENV),1)
# A machine that has the dependencies already: run from the tree, with nothing installed.
PYTHON := $(or $(XGPU_PYTHON),python3)
export PYTHONPATH := $(CURDIR)/build/tree$(if $(PYTHONPATH),:$(PYTHONPATH))
# Otherwise the current folder comes first, where only a part of the package is.
export PYTHONSAFEPATH := 1
else
PYTHON := $(VENV)/bin/python
endif

help: ## say what there is
	@echo "make TARGET, with TARGET one of:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14
	@echo
	@echo "XGPU_PYTHON=PATH     the Python to use (otherwise any from 3.12 on that PATH or pyenv has)"
	@echo "XGPU_NO_VENV=1       install nothing; use XGPU_PYTHON (or python3) as it is, with the packages it has"
	@echo "XGPU_EXTRAS=a,b      the extras to install (otherwise test,lint, and cuda13 where there is an NVIDIA GPU)"
	@echo "XGPU_TEST_JOBS=N     how many tests run at once (otherwise one for each core, eight at most)"

bootstrap: ## make .venv with xgpu and everything for its tests
	@tools/bootstrap.sh $(VENV)

demo: bootstrap ## compile two JAX functions, show every level, run and check them
	@$(PYTHON) -m xgpu.tools.demo

test: bootstrap ## run the tests: pytest, then lit
	@tools/test.sh $(PYTHON)

lint: bootstrap ## check style, types and structure
	@tools/lint.sh $(PYTHON)

gpu-check: bootstrap ## run the emitters' test programs on the GPU and compare with XLA on the CPU
	@$(PYTHON) -m xgpu.tools.gpu_check

clean: ## remove the virtual environments and everything made by tests and builds
	rm -rf .venv .venv-min build .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
