// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/proposal"
)

// largeManifest has ten arguments of ten types, descriptions, patterns of their
// own, a mapping and a scope. It is decoded as an informer does it, so that no
// text in it is shared with another manifest.
func largeManifest(t *testing.T, i int) *v1alpha1.ToolManifest {
	t.Helper()
	text := strings.ReplaceAll(largeManifestText, "NUMBER", strconv.Itoa(i))
	var m v1alpha1.ToolManifest
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	// kubectl apply leaves the whole manifest behind.
	m.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: strings.Join(strings.Fields(text), "")}
	return &m
}

const largeManifestText = `{
	"apiVersion": "assent.dev/v1alpha1", "kind": "ToolManifest",
	"metadata": {
		"name": "tool-NUMBER", "namespace": "` + namespace + `", "uid": "00000000-0000-0000-0000-NUMBER", "generation": 1,
		"resourceVersion": "1NUMBER", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app.kubernetes.io/part-of": "tools"}
	},
	"spec": {
		"version": "1.0.0", "riskTier": "high", "argumentEncoding": "Typed", "scopeRef": {"name": "lab"},
		"description": "Does what tool number NUMBER does, and says at some length what that is.",
		"arguments": [
			{"name": "target", "type": "scope_target", "required": true, "description": "The host of tool NUMBER."},
			{"name": "mode", "type": "enum", "allowed": ["fast", "slow"], "required": true, "description": "How to do it."},
			{"name": "rate", "type": "integer", "min": 1, "max": 1000, "clamp": true, "default": 100},
			{"name": "port", "type": "port", "default": 443, "description": "The port of the host."},
			{"name": "verbose", "type": "boolean", "default": "false"},
			{"name": "ratio", "type": "number", "min": 0, "max": 1, "default": "0.5"},
			{"name": "wait", "type": "duration", "default": "30s"},
			{"name": "list", "type": "path", "required": true, "description": "The list of tool NUMBER."},
			{"name": "label", "type": "type-7", "pattern": "[a-z][a-z0-9-]{0,NUMBER}", "maxLength": 40, "required": true},
			{"name": "note_NUMBER", "type": "string", "required": true, "description": "What to write down about it."}
		],
		"command": {
			"image": "registry.example/tool-NUMBER@` + digest + `", "workingDir": "/work",
			"argv": ["tool", "{flags}", "--rate={rate}", "--port", "{port}", "--verbose={verbose}", "--ratio={ratio}",
				"--wait={wait}s", "--list={list}", "--label={label}", "--note={note_NUMBER}", "--", "{target}"],
			"mappings": [{"name": "flags", "argument": "mode", "values": [{"value": "fast", "flags": "-T 5"}, {"value": "slow", "flags": "-T 1"}]}]
		},
		"approval": {"timeout": "1h0m0s", "receiptLifetime": "15m0s", "requirements": [{"group": "operators", "count": 2}]},
		"execution": {"timeout": "5m0s", "cpu": "500m", "memory": "256Mi", "ephemeralStorage": "256Mi"},
		"output": {"format": "text"}
	},
	"status": {
		"observedGeneration": 1, "contractHash": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"conditions": [{"type": "Ready", "status": "True", "reason": "Compiled", "message": "the contract is complete", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}]
	}
}`

func namespaceTools() proposal.Tools {
	var tools proposal.Tools
	for n := range 100 {
		id := types.UID(fmt.Sprintf("11111111-0000-0000-0000-%012d", n))
		tools.Types = append(tools.Types, v1alpha1.ArgumentType{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("type-%d", n), Namespace: namespace, UID: id, Generation: 1},
			Spec:       v1alpha1.ArgumentTypeSpec{Base: "string", ArgumentConstraints: v1alpha1.ArgumentConstraints{Pattern: "[a-z0-9-]+"}},
		})
	}
	tools.Scopes = []v1alpha1.ToolScope{{
		ObjectMeta: metav1.ObjectMeta{Name: "lab", Namespace: namespace, UID: "22222222-0000-0000-0000-000000000000", Generation: 1},
		Spec:       v1alpha1.ToolScopeSpec{Targets: []string{"10.0.0.0/8"}, Domains: []string{"*.example.com"}, Exclude: []string{"10.1.0.0/16"}},
	}}
	return tools
}

// TestCompiler_HoldsAThousandManifestsInTwentyMebibytes counts everything that
// the operator keeps of a manifest that nobody calls: the informer's object
// (the cache drops managedFields), the contract, and the tool in the policy set.
func TestCompiler_HoldsAThousandManifestsInTwentyMebibytes(t *testing.T) {
	const count, limit = 1000, 20 << 20
	shared := namespaceTools()
	c := &proposal.Compiler{RunnerImage: runner}
	compileOne := func(i int) (*v1alpha1.ToolManifest, policy.Tool) {
		m := largeManifest(t, i)
		compiled, err := c.Compile(m, shared)
		if err != nil {
			t.Fatal(err)
		}
		return m, proposal.PolicyTool(namespace, compiled)
	}
	set, err := policy.NewSet(policy.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	// What is made once for all manifests is no manifest's.
	_, first := compileOne(count)
	set = set.WithTools(namespace, []policy.Tool{first})
	manifests := make([]*v1alpha1.ToolManifest, count)
	before := heap()
	tools := make([]policy.Tool, count)
	for i := range count {
		manifests[i], tools[i] = compileOne(i)
	}
	compiled := heap()
	set = set.WithTools(namespace, tools)
	tools = nil
	used := heap() - before
	runtime.KeepAlive(manifests)
	runtime.KeepAlive(tools)
	runtime.KeepAlive(c)
	runtime.KeepAlive(set)
	t.Logf("%d manifests take %.1f MiB, of which %.1f in the policy set", count, mebi(used), mebi(used-(compiled-before)))
	if used > limit {
		t.Errorf("%d manifests take %.1f MiB, want at most %.1f", count, mebi(used), mebi(limit))
	}
}

func mebi(n int64) float64 { return float64(n) / (1 << 20) }

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
