# Weir's commands. `make` alone lists them.
SHELL := /bin/bash
export PATH := $(PATH):/usr/local/go/bin:/usr/sbin:/sbin

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || cat VERSION 2>/dev/null || echo unknown)
GO_BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -X main.release=$(VERSION)'

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## build, then show ssh on a full line with and without Weir (needs root, two minutes)
	@[ "$$(id -u)" = 0 ] || { echo "make demo: the lab builds network namespaces and needs root: sudo make demo" >&2; exit 4; }
	bin/weir lab run ssh

.PHONY: build
build: ## build bin/weir
	@mkdir -p bin
	$(GO_BUILD) -o bin/weir ./cmd/weir

.PHONY: test
test: ## lint and run all tests on this kernel; as root they test the kernel itself (PKG= and RUN= narrow)
	@test/run

.PHONY: test-vm
test-vm: ## run the tests on other kernels, in virtual machines (KERNELS="6.1 7.3", PKG=, RUN=, CGROUP= narrow)
	@test/vm/matrix

.PHONY: kernels
kernels: ## run what .ci/run runs, on this kernel and in virtual machines, and write docs/KERNELS.md
	@PAGE=yes .ci/run

.PHONY: bench
bench: ## measure what each program costs a packet, and what apply costs a host
	go test -p 1 -run '^$$' -bench '$(or $(RUN),.)' -timeout 30m $(or $(PKG),./...)

.PHONY: lint
lint: ## gofmt, vet, staticcheck, and the rules of the house (imports, comments, licences)
	@unformatted=$$(gofmt -l .) && { [ -z "$$unformatted" ] || { echo "not as gofmt has it: $$unformatted" >&2; exit 1; }; }
	go vet ./...
	go tool staticcheck ./...
	go run ./internal/tools/rooms

.PHONY: generate
generate: ## build the BPF objects and all else that is generated (needs clang-14)
	go generate ./...

.PHONY: check-generated
check-generated: ## prove that what is committed is what generate builds
	@test/check-generated || { status=$$?; [ $$status = 77 ] || exit $$status; }

.PHONY: clean
clean: ## remove what was built here
	rm -rf bin
