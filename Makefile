# The front door. Every target that needs it runs scripts/setup first, which is quick when nothing has changed.

PY := .venv/bin/python
OLD := $(shell sed -n 's/^transformers==//p' constraints-old.txt)

.PHONY: help setup demo test test-old lint bench bench-policies clean
.NOTPARALLEL:

help:  ## list these targets
	@sed -n 's/^\([a-z_-]*\):.*## /\1 - /p' $(MAKEFILE_LIST) | while IFS= read -r line; do \
		printf '  make %-14s %s\n' "$${line%% - *}" "$${line#* - }"; done

setup:  ## make .venv with everything in it and fetch the default model
	@bash scripts/setup

demo: setup  ## the main job: a real model answers from a long document
	@.venv/bin/hillinfer generate

# The main suite comes last, so that a run ends with its summary.
test: setup lint lint-rtl build/native/libqk_score.so test-old  ## lint, types, adapter tests on an older transformers, then all tests
	@$(PY) -m pytest

test-old: setup  ## the adapter tests on the older transformers alone
	@echo "adapter tests on transformers $(OLD):"
	@old=$$(bash scripts/setup-old-transformers) && \
		PYTHONPATH="$$old" HILLINFER_EXPECT_TRANSFORMERS=$(OLD) $(PY) -m pytest tests/integrations

lint: setup  ## ruff and strict mypy
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

bench: setup  ## every benchmark (30 minutes on a quiet machine); the figures that count in build/reports/bench.json
	@.venv/bin/hillinfer bench all $(if $(RESUME),--resume) $(if $(PARTS),--only $(PARTS))

bench-policies: setup build/reports/head-profile.json  ## all policies at equal budgets (40 minutes); table, plot and JSON in build/reports
	@.venv/bin/hillinfer bench policies --profile build/reports/head-profile.json

build/reports/head-profile.json: | setup  # what HeteroCache goes by
	@mkdir -p $(@D)
	@.venv/bin/hillinfer profile --output $@ --picture $(@:.json=.svg)

include hardware.mk

clean:  ## remove what the targets above made here (the model stays in the user's cache)
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis host/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
