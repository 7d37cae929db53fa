# Quarry. `make run` and `make test` do all set-up themselves on a bare Debian machine with Rust.
#
#   make run                  serve the demo chain that ships in the binary; no node needed
#   make run RPC=http://…     follow the archive node at this address (TESTNET_RPC=… for a second chain, or that one alone)
#   make test                 formatting, lints and all tests; at the end what is not tested here, and why
#   make simulate SEEDS=1000  long: simulated lives of chain, node and store (SEED=42 for one of them)
#   make kill KILLS=1000      long: the real program killed at random moments
#   make soak MINUTES=30      long: clients beside a chain that grows and reorganises
#   make dist                 the binary to install: all crates optimised together, which takes long
#   make lint | bench | load | demo-chain | clean
#
# ARGS="…" is handed to the program: make run ARGS="--listen 127.0.0.1:9000"

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# RocksDB takes minutes to compile: one target directory outside the tree, one profile for everything.
export CARGO_TARGET_DIR := $(or $(QUARRY_TARGET_DIR),$(if $(HOME),$(HOME)/.cache/quarry-target,$(CURDIR)/target))
export CARGO_NET_RETRY ?= 5
export CARGO_TERM_COLOR ?= auto
# It says something to this file alone; the program would tell that it names no option.
unexport QUARRY_TARGET_DIR
# Set-up comes before what it is for; cargo uses all cores by itself.
.NOTPARALLEL:

RPC ?=
TESTNET_RPC ?=
DATA_DIR ?= ./quarry-data
ARGS ?=
MINUTES ?= 30

CARGO := cargo
SETUP := bash tools/setup.sh
BIN := $(CARGO_TARGET_DIR)/release/quarry

.PHONY: help setup setup-build build dist run test lint fmt-check clippy deny test-rust simulate kill bench load soak \
	demo-chain clean

help: ## Show the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## Install what building and testing need: compiler, libclang, node, python, their packages, PostgreSQL
	@$(SETUP) all

setup-build:
	@$(SETUP) build

build: setup-build ## Build the release binary
	$(CARGO) build --release --locked --bin quarry

dist: setup-build ## Build the binary that is installed for good: slower to build, faster to answer
	$(CARGO) build --profile dist --locked --bin quarry

run: build ## Serve the demo chain, or with RPC=… or TESTNET_RPC=… follow a node
	@if [ -n "$(RPC)$(TESTNET_RPC)" ]; then \
		exec "$(BIN)" run $(if $(RPC),--mainnet-rpc "$(RPC)") $(if $(TESTNET_RPC),--testnet-rpc "$(TESTNET_RPC)") \
			--data-dir "$(DATA_DIR)" $(ARGS); \
	else \
		exec "$(BIN)" demo $(ARGS); \
	fi

test: setup lint test-rust ## Check formatting and lints, then run all tests

lint: setup-build fmt-check clippy deny ## Check formatting, lints and, where cargo-deny is installed, dependencies

fmt-check:
	@if $(CARGO) fmt --version >/dev/null 2>&1; then \
		echo '$(CARGO) fmt --check'; $(CARGO) fmt --check; \
	else \
		echo 'quarry: rustfmt is not installed, so formatting is not checked (rustup component add rustfmt)'; \
	fi

clippy:
	@if $(CARGO) clippy --version >/dev/null 2>&1; then \
		echo '$(CARGO) clippy --release --locked --all-targets -- -D warnings'; \
		$(CARGO) clippy --release --locked --all-targets -- -D warnings; \
	else \
		echo 'quarry: clippy is not installed, so lints are not checked (rustup component add clippy)'; \
	fi

# Advisories need a download, so they are left to `cargo deny check advisories` by hand.
deny:
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
		echo '$(CARGO) deny --offline check bans licenses sources'; \
		$(CARGO) deny --offline check bans licenses sources; \
	else \
		echo 'quarry: cargo-deny is not installed, so licences and sources are not checked'; \
	fi

# The tests find anvil through QUARRY_ANVIL, else where npm put it, and a client of Etherscan through QUARRY_EXPLORERS. What is skipped
# is told at the end, whatever came of the rest. QUARRY_STRICT_TIMES=1 holds a quiet machine to times that others need not keep.
test-rust:
	$(CARGO) build --release --locked --manifest-path tests/clients/explorers/Cargo.toml
	@export QUARRY_ANVIL="$${QUARRY_ANVIL:-$$($(SETUP) anvil)}"; \
	export QUARRY_EXPLORERS="$${QUARRY_EXPLORERS:-$(CARGO_TARGET_DIR)/release/quarry-explorers}"; \
	export QUARRY_SKIPPED="$$(mktemp)"; trap 'rm -f "$$QUARRY_SKIPPED"' EXIT; ended=0; \
	echo '$(CARGO) test --release --locked --no-fail-fast'; $(CARGO) test --release --locked --no-fail-fast || ended=$$?; \
	if [ -s "$$QUARRY_SKIPPED" ]; then \
		echo 'quarry: not tested on this machine, in whole or in part:'; sort -u "$$QUARRY_SKIPPED" | sed 's/^/quarry:   /'; \
	fi; \
	exit $$ended

# Every life is one seed; a failed one says with which it is lived again.
simulate: setup-build ## Live simulated lives of chain, node and store: SEEDS=1000 of them, or SEED=42 alone
	QUARRY_SEEDS="$(or $(SEEDS),100)" $(if $(SEED),QUARRY_SEED="$(SEED)") $(if $(FIRST_SEED),QUARRY_FIRST_SEED="$(FIRST_SEED)") \
		$(CARGO) test --release --locked --test sync -- --nocapture random_lives

kill: setup-build ## Kill the program at KILLS=1000 moments: backfill, tip, reorgs, imports, compaction; and cut its power
	QUARRY_KILLS="$(or $(KILLS),100)" $(CARGO) test --release --locked --test crash -- --nocapture

bench: setup-build ## Run the comparison benches (ARGS="--bench json" for one of them)
	$(CARGO) bench --locked $(ARGS)

load: setup-build ## Measure what expensive requests do to cheap ones, and a backfill to a node on the same machine
	$(CARGO) test --release --locked --test load -- --ignored --nocapture

soak: setup-build ## Serve clients for MINUTES=30 beside a chain that grows and reorganises; memory must come to rest
	QUARRY_SOAK_MINUTES=$(MINUTES) $(CARGO) test --release --locked --test load -- --nocapture clients

demo-chain: ## Rebuild demo/chain.jsonl.zst and what stands beside it from demo/scenario
	@$(SETUP) demo
	QUARRY_ANVIL="$${QUARRY_ANVIL:-$$($(SETUP) anvil)}" node demo/scenario/build.mjs

clean: ## Remove what was built and installed here; a store is never touched
	rm -rf tools/node_modules tools/python
	$(CARGO) clean --release -p quarry
	$(CARGO) clean --profile dist -p quarry
