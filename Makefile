# Copyright The Assent Authors.
# SPDX-License-Identifier: Apache-2.0

# "make help" lists the targets. Everything is built from Go modules, the tools
# too: their versions are in hack/tools.mod and hack/lint/go.mod.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# Static programs everywhere. It also keeps one build cache: a package compiled
# with cgo is another one than without.
export CGO_ENABLED := 0
export GOFLAGS := -buildvcs=false $(GOFLAGS)

VERSION     ?= dev
FUZZ_TIME   ?= 20s
LONG_FUZZ   ?= 1m
BENCH_CALLS ?= 20
BENCH_LOAD  ?= 10000
KEEP        ?=

BIN     := $(CURDIR)/bin
CLUSTER := $(BIN)/assent-cluster
HELM    := $(BIN)/helm
export HELM

# Packages whose tests need nothing but Go. Those of test/api and test/fault
# need an API server, those of test/e2e a whole cluster.
UNIT = $$(go list ./... | grep -Ev '/test/(api|fault|e2e)(/|$$)')
# test/cluster is a module of its own. Its command assent-kube is Kubernetes
# itself, which is compiled only when a cluster is wanted.
CLUSTER_PACKAGES := ./lifecycle/... ./cmd/assent-cluster/...

# What "make generate" writes.
GENERATED := api/v1alpha1/zz_generated.deepcopy.go config/crd config/rbac/role.yaml config/webhook/manifests.yaml \
	charts/assent/files charts/assent-crds/templates docs/api.md

# Where markers for RBAC and webhooks stand.
MARKED := $(foreach folder,config controllers webhook execution cmd/assent,paths=./$(folder)/...)

##@ Build and test

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the operator, the runner and the kubectl plugin into bin/.
	go build -ldflags "-s -w -X main.version=$(VERSION)" -o $(BIN)/ ./cmd/assent ./cmd/assent-runner ./cmd/kubectl-assent

.PHONY: test
test: test-unit test-api test-e2e ## Run every test: unit, API and end to end.

.PHONY: test-unit
test-unit: $(HELM) ## Run the tests that need nothing but Go.
	go test $(UNIT)
	cd test/cluster && go test $(CLUSTER_PACKAGES)

.PHONY: test-api
test-api: $(CLUSTER) ## Run the API tests against a control plane started for them.
	$(CLUSTER) run --control-plane-only -- go test -count=1 -p 1 -timeout 30m ./test/api/... ./test/fault/...

.PHONY: test-e2e
test-e2e: images $(HELM) ## Run the end-to-end tests on the development cluster, or on the one KUBECONFIG names.
	hack/on-cluster.sh go test -count=1 -timeout 40m ./test/e2e/...

.PHONY: test-long
test-long: $(HELM) $(CLUSTER) ## Run the unit tests under the race detector with their long cases, every fault at every step, then fuzz each target for LONG_FUZZ (1m).
	CGO_ENABLED=1 ASSENT_LONG_TESTS=1 go test -race -timeout 90m $(UNIT)
	cd test/cluster && CGO_ENABLED=1 go test -race $(CLUSTER_PACKAGES)
	ASSENT_LONG_TESTS=1 $(CLUSTER) run --control-plane-only -- go test -count=1 -timeout 60m ./test/fault/...
	hack/fuzz.sh $(LONG_FUZZ)

.PHONY: fuzz-short
fuzz-short: ## Fuzz each target for FUZZ_TIME (20s).
	hack/fuzz.sh $(FUZZ_TIME)

.PHONY: bench
bench: $(BIN)/benchstat ## Run the benchmarks into dist/bench.txt; BASE=FILE compares with an earlier run.
	@mkdir -p dist
	go test -run '^$$' -bench . -benchmem -count 6 $(UNIT) | tee dist/bench.txt
	$(MAKE) bench-api
	$(MAKE) bench-cluster
	@$(BIN)/benchstat $(BASE) dist/bench.txt

.PHONY: bench-api
bench-api: $(CLUSTER) ## Measure admission, and BENCH_LOAD (10000) calls under load, against a control plane started for them.
	@mkdir -p dist
	$(CLUSTER) run --control-plane-only -- sh -ec "\
		go test -run '^$$' -bench . -benchtime 1x -timeout 60m ./test/api; \
		go test -run '^$$' -bench . -benchtime $(BENCH_LOAD)x -timeout 60m ./test/fault" | tee -a dist/bench.txt

.PHONY: bench-cluster
bench-cluster: images $(HELM) ## Compare how long calls take with bare Jobs on a cluster, BENCH_CALLS (20) times each.
	@mkdir -p dist
	$(if $(KEEP),KEEP=1) hack/on-cluster.sh go test -run '^$$' -bench . -benchtime $(BENCH_CALLS)x -timeout 60m ./test/e2e/ | tee -a dist/bench.txt

##@ Code

.PHONY: generate
generate: $(BIN)/controller-gen $(BIN)/crd-ref-docs ## Generate deepcopy, CRDs, RBAC, webhooks, chart files and docs/api.md.
	$(BIN)/controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...
	rm -rf dist/crd
	$(BIN)/controller-gen crd paths=./api/... output:crd:dir=dist/crd
	rm -f config/crd/*.yaml
	cp dist/crd/*.yaml config/crd/
	$(BIN)/controller-gen rbac:roleName=assent $(MARKED) output:rbac:dir=config/rbac
	$(BIN)/controller-gen webhook $(MARKED) output:webhook:dir=config/webhook
	go run ./hack/generate
	$(BIN)/crd-ref-docs --source-path=api/v1alpha1 --config=hack/api-docs.yaml --renderer=markdown --max-depth=20 --log-level=ERROR --output-path=docs/api.md

.PHONY: lint
lint: $(BIN)/golangci-lint ## Run golangci-lint, and kube-api-linter on api/.
	$(BIN)/golangci-lint run ./...
	cd test/cluster && $(BIN)/golangci-lint run --config ../../.golangci.yaml $(CLUSTER_PACKAGES)
	$(BIN)/golangci-lint run --config .golangci-kal.yaml ./api/...

.PHONY: verify
verify: generate lint chart ## Check that generated files are committed, formatting, vet, linters, import rules, modules and charts.
	@dirty="$$(git status --porcelain -- $(GENERATED))"; \
	if [ -n "$$dirty" ]; then echo "generated files are not committed: run make generate"; echo "$$dirty"; exit 1; fi
	@unformatted="$$(git ls-files '*.go' | xargs gofmt -l)"; \
	if [ -n "$$unformatted" ]; then echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	cd test/cluster && go vet $(CLUSTER_PACKAGES)
	go test ./hack/...
	hack/coverage.sh
	go mod tidy -diff
	cd test/cluster && go mod tidy -diff
	cd hack/lint && go mod tidy -diff

##@ Images and chart

.PHONY: images
images: ## Build the images into dist/images, without a container engine.
	go run ./hack/images -tag $(VERSION) -out dist/images $(if $(ONLY),-only $(ONLY)) $(if $(PUSH),-push $(PUSH))

.PHONY: chart
chart: $(HELM) ## Check the charts and package them into dist/charts.
	$(HELM) lint --strict charts/assent --values charts/assent/ci/values.yaml
	$(HELM) lint --strict charts/assent-crds
	@mkdir -p dist/charts
	$(HELM) package charts/assent charts/assent-crds --destination dist/charts

##@ Development cluster

.PHONY: cluster-up
cluster-up: $(CLUSTER) ## Start the development cluster. The first time this compiles Kubernetes.
	$(CLUSTER) up

.PHONY: cluster-down
cluster-down: $(CLUSTER) ## Stop the development cluster and remove every trace of it.
	$(CLUSTER) down

.PHONY: cluster-load
cluster-load: images $(CLUSTER) ## Build the images and load them into the development cluster.
	$(CLUSTER) load dist/images/*.tar

.PHONY: demo
demo: images $(HELM) ## Show real calls from proposal to result. KEEP=1 leaves the cluster running.
	$(if $(KEEP),KEEP=1) hack/on-cluster.sh go run ./test/demo/cmd/demo

.PHONY: clean
clean: ## Remove what was built. A running cluster stays.
	rm -rf $(BIN) dist

# Tools. Go rebuilds a tool only where its sources changed.

$(BIN)/controller-gen: hack/tools.mod
	go build -modfile=hack/tools.mod -o $@ sigs.k8s.io/controller-tools/cmd/controller-gen

$(BIN)/crd-ref-docs: hack/tools.mod
	go build -modfile=hack/tools.mod -o $@ github.com/elastic/crd-ref-docs

$(BIN)/benchstat: hack/tools.mod
	go build -modfile=hack/tools.mod -o $@ golang.org/x/perf/cmd/benchstat

$(HELM): hack/tools.mod
	@echo "compiling Helm, which takes some minutes the first time"
	go build -modfile=hack/tools.mod -o $@ helm.sh/helm/v4/cmd/helm

$(BIN)/golangci-lint: hack/lint/go.mod
	@echo "compiling golangci-lint, which takes some minutes the first time"
	go build -modfile=hack/lint/go.mod -o $@ sigs.k8s.io/kube-api-linter/cmd/golangci-lint-kube-api-linter

.PHONY: $(CLUSTER)
$(CLUSTER):
	cd test/cluster && go build -o $@ ./cmd/assent-cluster
