// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal_test

import (
	"fmt"
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/proposal"
)

// usualManifest is of a usual size: six arguments with patterns of their own
// and descriptions, of which three have types of the namespace.
func usualManifest(i int) *v1alpha1.ToolManifest {
	m := commandManifest()
	m.Name, m.UID = fmt.Sprintf("tool-%d", i), types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i))
	m.Spec.Description = fmt.Sprintf("Does what tool number %d does, and says at some length what that is.", i)
	m.Spec.Arguments, m.Spec.Command.Argv = nil, []string{"tool"}
	for n := range 6 {
		a := v1alpha1.Argument{Name: fmt.Sprintf("argument_%d", n), Type: "string", Required: n < 3, Description: fmt.Sprintf("Argument %d of tool %d.", n, i)}
		a.Pattern = fmt.Sprintf("[a-z%d]{1,16}(-[a-z0-9]+)?", n)
		if n%2 == 1 {
			a.Type = fmt.Sprintf("type-%d", n)
		}
		m.Spec.Arguments = append(m.Spec.Arguments, a)
		m.Spec.Command.Argv = append(m.Spec.Command.Argv, "--argument={"+a.Name+"}")
	}
	return m
}

func namespaceTools() proposal.Tools {
	var tools proposal.Tools
	for n := range 100 {
		id := types.UID(fmt.Sprintf("11111111-0000-0000-0000-%012d", n))
		tools.Types = append(tools.Types, v1alpha1.ArgumentType{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("type-%d", n), Namespace: namespace, UID: id, Generation: 1},
			Spec:       v1alpha1.ArgumentTypeSpec{Base: "string", ArgumentConstraints: v1alpha1.ArgumentConstraints{Pattern: "[a-z0-9-]+"}},
		})
	}
	return tools
}

// TestCompiler_HoldsAThousandManifestsInTwentyMebibytes counts everything that
// the operator keeps of a manifest that nobody calls: the informer's object
// (the cache drops managedFields), the contract, and the tool with its types in
// the policy set.
func TestCompiler_HoldsAThousandManifestsInTwentyMebibytes(t *testing.T) {
	const count, limit = 1000, 20 << 20
	shared := namespaceTools()
	c := &proposal.Compiler{RunnerImage: runner}
	compileOne := func(i int) (*v1alpha1.ToolManifest, policy.Tool) {
		m := usualManifest(i)
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
