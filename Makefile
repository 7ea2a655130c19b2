# make help lists the targets.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
TOOLS := $(CURDIR)/.tools
LINT_VERSION := v2.15.0
LINT := $(TOOLS)/golangci-lint
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

.PHONY: help run build test lint cross unit tidy fuzz bench peers vuln clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## build Hark and run its demo
	@bin/hark demo

build: ## build bin/hark, without cgo
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/hark ./cmd/hark

test: tidy cross lint unit ## everything a change has to pass: tidy, builds, vet, lint, tests with -race, the plugin's
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory test-plugin; \
	else echo "npm is not installed: the tests of the OpenClaw plugin are left out"; fi

tidy: ## go.mod and go.sum say what the code imports
	$(GO) mod tidy -diff

cross: build ## it builds without cgo, here and for Windows and macOS
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 $(GO) build -o /dev/null ./cmd/hark
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 $(GO) build -o /dev/null ./cmd/hark

$(LINT):
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

lint: $(LINT) ## go vet and golangci-lint
	$(GO) vet ./...
	$(LINT) run ./...

# What searches long or stores much takes minutes with the race detector; the last line runs it without.
LONG := Model|Poison|FitsWhereItCan|CopiesOfOtherPrecision|BrokenHistories|WildHistories|SameHistoryAgain|SameMessagesAgain|MemoryIsNotCrowdedOut|LongHistoryInTheBackground|TurnBesideAnAcceptedHistory|OneHugeMessage|RepetitionsOverPages

unit: ## the tests, with the race detector, and the long ones and the program's stories without it
	$(GO) test -race -timeout 10m -skip '^Test($(LONG))$$' $$($(GO) list ./... | grep -v '/cmd/hark$$')
	$(GO) test -run '^(Test($(LONG))|TestBounds)$$' ./engine ./eval/cache
	$(GO) test ./cmd/hark

fuzz: ## every fuzz target for FUZZTIME (default 20s)
	@for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $${FUZZTIME:-20s} $$pkg; \
	  done; \
	done

bench: build ## measure speed and size at 10,000 and 100,000 messages
	@bin/hark bench --sizes $${SIZES:-10k,100k}

peers: build ## the same history for Hark, chromem-go + bleve and SQLite + sqlite-vec (needs Node and the network)
	cd eval/peers && npm ci --no-audit --no-fund && $(GO) run . -hark ../../bin/hark -n $${SIZE:-100k}

vuln: ## known vulnerabilities of what is imported (needs the network)
	$(GO) run golang.org/x/vuln/cmd/govulncheck@latest ./...

clean: ## remove what was built
	rm -rf bin dist

# The plugin for OpenClaw: make plugin, make test-plugin, make test-host.
-include plugin/host.mk

# Evaluation of recall: make eval, make eval-own, make golden.
-include eval/eval.mk
