# The front door. Every target that needs it runs scripts/setup first, which is quick when nothing has changed.

PY := .venv/bin/python
OLD := $(shell sed -n 's/^transformers==//p' constraints-old.txt)

# How much of make test goes on at once.
JOBS ?= 2

.PHONY: help setup demo test checks test-old test-gpu lint bench bench-policies eval-small figures results clean

help:  ## list these targets
	@sed -n 's/^\([a-z_-]*\):.*## /\1 - /p' $(MAKEFILE_LIST) | while IFS= read -r line; do \
		printf '  make %-14s %s\n' "$${line%% - *}" "$${line#* - }"; done

setup:  ## make .venv with everything in it and fetch the default model
	@bash scripts/setup

demo: setup  ## the main job: a real model answers from a long document
	@.venv/bin/hillinfer generate

# The main suite comes last, so that a run ends with its summary.
test: setup  ## lint, types, adapter tests on an older transformers, then all tests
	@$(MAKE) --no-print-directory -j$(JOBS) --output-sync=target checks
	@$(PY) -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

# What does not need each other, and what the main suite would otherwise build while it waits.
checks: lint test-old lint-rtl build/native/libqk_score.so build/rtl/libqk_rtl.so

test-gpu: setup  ## the CUDA path on this machine's GPU (two minutes); skips where there is none
	@$(PY) -m pytest tests/gpu

test-old: setup  ## the adapter tests on the older transformers alone
	@echo "adapter tests on transformers $(OLD):"
	@old=$$(bash scripts/setup-old-transformers) && \
		PYTHONPATH="$$old" HILLINFER_EXPECT_TRANSFORMERS=$(OLD) \
		$(PY) -m pytest tests/integrations --deselect tests/integrations/test_memory_budget.py

lint: setup  ## ruff and strict mypy
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

bench: setup  ## every benchmark (40 minutes on a quiet machine); the figures that count in build/reports/bench.json
	@$(PY) -m pip install --quiet --no-deps optimum-quanto==0.2.7 || echo "without transformers' quantised cache"
	@.venv/bin/hillinfer bench all $(if $(RESUME),--resume) $(if $(PARTS),--only $(PARTS))

bench-policies: setup build/reports/head-profile.json  ## all policies at equal budgets (30 minutes); table, plot and JSON in build/reports
	@.venv/bin/hillinfer bench policies --profile build/reports/head-profile.json

eval-small: setup build/reports/head-profile.json  ## policies on retrieval and long text (45 minutes, goes on if killed); build/reports/eval-small.json
	@.venv/bin/hillinfer eval --small --profile build/reports/head-profile.json --output build/reports/eval-small.json

build/reports/head-profile.json: | setup  # what HeteroCache goes by
	@mkdir -p $(@D)
	@.venv/bin/hillinfer profile --output $@ --picture $(@:.json=.svg)

figures: setup  ## pictures of all that was measured (SVG and PNG in build/figures), and one page: build/reports/report.html
	@mkdir -p build/reports
	@test -e build/reports/trace.npz || .venv/bin/hillinfer simulate record --tokens 2048 --steps 64
	@test -e build/reports/timeline.json || \
		.venv/bin/hillinfer generate --trace build/reports/timeline.json --max-new-tokens 8 > /dev/null
	@test -e build/reports/timeline-simulated.json || \
		.venv/bin/hillinfer simulate run --method hillinfer --steps 4 --trace build/reports/timeline-simulated.json > /dev/null
	@.venv/bin/hillinfer report --pictures build/figures

results: setup  ## docs/results.md from docs/measured; FROM=build/reports keeps a run's reports there first (ONLY=decode,big some; COMMAND='…' made it)
	@$(PY) -m scripts.results $(if $(FROM),--from $(FROM)) $(if $(ONLY),--only $(ONLY)) $(if $(COMMAND),--command '$(COMMAND)')

include hardware.mk

clean:  ## remove what the targets above made here (the model stays in the user's cache)
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis host/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
