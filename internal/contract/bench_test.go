// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/snapshot"
)

// tenArguments is a command manifest with ten arguments of different types.
func tenArguments(tb testing.TB) contract.Manifest {
	tb.Helper()
	return decode(tb, `{
		"version": "1.0.0", "riskTier": "high", "description": "Benchmark tool",
		"arguments": [
			{"name": "target", "type": "scope_target", "required": true},
			{"name": "mode", "type": "enum", "allowed": ["fast", "slow"], "required": true},
			{"name": "rate", "type": "integer", "min": 1, "max": 1000, "clamp": true, "default": 100},
			{"name": "port", "type": "port", "default": 443},
			{"name": "verbose", "type": "boolean", "default": "false"},
			{"name": "ratio", "type": "number", "min": 0, "max": 1, "default": "0.5"},
			{"name": "wait", "type": "duration", "default": "30s"},
			{"name": "list", "type": "path", "required": true},
			{"name": "label", "type": "string", "pattern": "[a-z][a-z0-9-]*", "required": true},
			{"name": "note", "type": "string", "required": true}
		],
		"command": {
			"image": "registry.example/tool`+digest+`",
			"argv": ["tool", "{flags}", "--rate={rate}", "--port", "{port}", "--verbose={verbose}", "--ratio={ratio}",
				"--wait={wait}s", "--list={list}", "--label={label}", "--note={note}", "--", "{target}"],
			"mappings": [{"name": "flags", "argument": "mode", "values": [{"value": "fast", "flags": "-T 5"}, {"value": "slow", "flags": "-T 1"}]}]
		}
	}`)
}

func benchScopes() map[string]contract.Scope {
	return map[string]contract.Scope{"lab": {Targets: []string{"10.0.0.0/8"}, Domains: []string{"*.example.com"}, Exclude: []string{"10.1.0.0/16"}}}
}

// tenArgumentCall is a call of about 1 KiB.
func tenArgumentCall(tb testing.TB) string {
	tb.Helper()
	text, err := json.Marshal(map[string]any{
		"target": "host.example.com", "mode": "fast", "rate": 250, "port": 8443, "verbose": true, "ratio": 0.25,
		"wait": "90s", "list": "lists/common.txt", "label": "nightly-scan", "note": strings.Repeat("every word counts; "[:17]+" ", 46),
	})
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// BenchmarkPrepare compares the whole preparation with snapshot.New on the same
// arguments, for ten texts of equal length and for ten arguments of all types.
func BenchmarkPrepare(b *testing.B) {
	texts, call := tenTexts(b)
	b.Run("texts", func(b *testing.B) { benchmarkPrepare(b, texts, call) })
	b.Run("mixed", func(b *testing.B) { benchmarkPrepare(b, tenArguments(b), tenArgumentCall(b)) })
}

func benchmarkPrepare(b *testing.B, m contract.Manifest, raw string) {
	c, err := contract.Compile(contract.Input{Name: "tool", Namespace: "default", Manifest: m, Scopes: benchScopes()})
	if err != nil {
		b.Fatal(err)
	}
	tree, err := snapshot.DecodeText(prepare(b, c, raw).ArgsCanonicalJSON)
	if err != nil {
		b.Fatal(err)
	}
	var ratios []float64
	b.ReportAllocs()
	for b.Loop() {
		whole := elapsed(func() error { _, err := c.Prepare("agent", raw); return err })
		part := elapsed(func() error { _, err := snapshot.New(tree); return err })
		ratios = append(ratios, float64(whole)/float64(part))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "Prepare/snapshot.New")
}

// tenTexts is a command with ten texts, and a call of about 1 KiB.
func tenTexts(tb testing.TB) (contract.Manifest, string) {
	tb.Helper()
	var arguments, argv, call []string
	for i := range 10 {
		name := fmt.Sprintf("argument%d", i)
		arguments = append(arguments, fmt.Sprintf(`{"name": %q, "type": "string", "required": true}`, name))
		argv = append(argv, fmt.Sprintf(`"--%s={%s}"`, name, name))
		call = append(call, fmt.Sprintf(`%q:%q`, name, strings.Repeat("word ", 17)+"end"))
	}
	m := decode(tb, `{"version": "1", "arguments": [`+strings.Join(arguments, ",")+`],
		"command": {"image": "`+image+`", "argv": ["tool", `+strings.Join(argv, ",")+`]}}`)
	return m, "{" + strings.Join(call, ",") + "}"
}

// elapsed times a few calls in a row, so that both sides of a ratio meet the
// same load.
func elapsed(call func() error) time.Duration {
	start := time.Now()
	for range 20 {
		if err := call(); err != nil {
			panic(err)
		}
	}
	return time.Since(start)
}

// BenchmarkCompile is the cost of a manifest that changed.
func BenchmarkCompile(b *testing.B) {
	m := tenArguments(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := contract.Compile(contract.Input{Name: "tool", Namespace: "default", Manifest: m, Scopes: benchScopes()}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMemory reports what a namespace with 1,000 manifests keeps.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		before := heap()
		contracts := make([]*contract.Contract, 1000)
		for i := range contracts {
			c, err := contract.Compile(contract.Input{Name: fmt.Sprintf("tool-%d", i), Namespace: "default", Manifest: tenArguments(b), Scopes: benchScopes()})
			if err != nil {
				b.Fatal(err)
			}
			contracts[i] = c
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB/1000-manifests")
		runtime.KeepAlive(contracts)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
