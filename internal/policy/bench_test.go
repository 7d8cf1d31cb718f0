// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
)

// The set of the benchmarks: 500 tools with 20 policies each, in 500 objects.
const (
	benchTools    = 500
	benchPolicies = 20
)

func benchTool(i int) Tool {
	return Tool{
		Namespace: "team", Name: fmt.Sprintf("tool-%03d", i), Version: "1", ContractHash: fmt.Sprint(i), RiskTier: "low", EffectKind: EffectCommand,
		Arguments: []Argument{{Name: "amount", Kind: "integer", Required: true}, {Name: "to", Kind: "string", Required: true}},
	}
}

// benchSource gives the policies of one tool, of the kind that people write:
// who, how much, to whom, and with which words of the command.
func benchSource(tool, edition int, conditions ...string) Source {
	if len(conditions) == 0 {
		conditions = []string{
			`principal in k8s::Group::"system:authenticated" && context.invocation.arguments.amount < 1%[1]d && context.invocation.arguments.to like "some*" && resource.risk_tier == "low"`,
			`principal in k8s::Group::"team-%[1]d" && context.invocation.arguments.amount < 1000 && context.has_human_approval`,
			`context has session && context.session has tenant && context.invocation.resolved.argv.contains("--tenant=%[1]d")`,
			`context.invocation.arguments.to like "blocked-%[1]d-*" || context.invocation.resolved.argv.containsAny(["--force", "-f%[1]d"])`,
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "// edition %d\n", edition)
	for i := range benchPolicies {
		effect := "permit"
		if i%4 == 3 {
			effect = "forbid"
		}
		fmt.Fprintf(&b, "%s (principal, action == Action::\"tool_call::tool-%03d\", resource == Tool::\"tool-%03d\")\nwhen { %s };\n",
			effect, tool, tool, fmt.Sprintf(conditions[i%len(conditions)], i))
	}
	return Source{
		Namespace: "team", Name: fmt.Sprintf("policies-%03d", tool), Text: b.String(),
		SessionAttributes: []SessionAttribute{{Name: "tenant", Type: AttributeString}},
	}
}

func benchCall(tool int) Call {
	return Call{
		Tool: benchTool(tool), Principal: Principal{Username: "system:serviceaccount:team:agent", Groups: []string{"system:authenticated"}},
		ArgsCanonicalJSON: `{"amount":5,"to":"somebody"}`, Fingerprint: "f",
		Effect: EffectView{Kind: EffectCommand, Argv: []string{"pay", "--to", "somebody"}, Image: "i", WorkingDir: "/work"},
	}
}

func benchSet(tb testing.TB, conditions ...string) *Set {
	tb.Helper()
	var compiled []*Compiled
	var tools []Tool
	for i := range benchTools {
		c, problems := Compile(benchSource(i, 0, conditions...), Limits{})
		if len(problems) > 0 {
			tb.Fatal(problems)
		}
		compiled, tools = append(compiled, c), append(tools, benchTool(i))
	}
	set, err := NewSet(Limits{}, compiled...)
	if err != nil {
		tb.Fatal(err)
	}
	set = set.WithTools("team", tools)
	if problems := set.Problems("team"); len(problems) > 0 {
		tb.Fatal(problems)
	}
	return set
}

// plainSets are what cedar-go alone would be given: all policies, and those of
// one tool.
func plainSets(set *Set, tool int) (all, own *cedar.PolicySet) {
	all, own = cedar.NewPolicySet(), cedar.NewPolicySet()
	name := fmt.Sprintf("team/policies-%03d#", tool)
	for _, c := range set.Sources("team") {
		for _, s := range c.statements {
			all.Add(cedar.PolicyID(s.id), s.policy)
			if strings.HasPrefix(s.id, name) {
				own.Add(cedar.PolicyID(s.id), s.policy)
			}
		}
	}
	return all, own
}

// median runs something several times and gives the median of the times.
func median(rounds int, run func()) time.Duration {
	times := make([]time.Duration, rounds)
	for i := range times {
		start := time.Now()
		run()
		times[i] = time.Since(start)
	}
	slices.Sort(times)
	return times[rounds/2]
}

// BenchmarkDecide_AgainstPlainCedar measures one decision against cedar-go alone,
// in turns within one run, so that a busy machine slows down all alike. cedar-go
// gets its request and entities ready made; a decision makes them.
func BenchmarkDecide_AgainstPlainCedar(b *testing.B) {
	b.Run("usual conditions", func(b *testing.B) { compareWithPlain(b, benchSet(b)) })
	b.Run("shortest conditions", func(b *testing.B) {
		compareWithPlain(b, benchSet(b, "context.invocation.arguments.amount < 1%[1]d", "context.invocation.arguments.amount < 2%[1]d",
			"context.invocation.arguments.amount < 3%[1]d", "context.invocation.arguments.amount > 3%[1]d"))
	})
}

// entitiesOf are the entities of a request as cedar-go usually gets them.
func entitiesOf(r *request) types.EntityMap {
	principal, _ := r.Get(r.principal.UID)
	resource, _ := r.Get(r.resource)
	return types.EntityMap{r.principal.UID: principal, r.resource: resource}
}

func compareWithPlain(b *testing.B, set *Set) {
	b.Helper()
	call := benchCall(123)
	all, own := plainSets(set, 123)
	r, err := newRequest(&call, newToolTypes(&call.Tool))
	if err != nil {
		b.Fatal(err)
	}
	request, entities := r.evaluation(false, ""), entitiesOf(r)
	for range b.N {
		var decide, plainOwn []time.Duration
		for range 5 {
			decide = append(decide, median(101, func() { set.Decide(call, Options{}) }))
			plainOwn = append(plainOwn, median(101, func() { cedar.Authorize(own, entities, request) }))
		}
		plainAll := median(11, func() { cedar.Authorize(all, entities, request) })
		b.ReportMetric(float64(slices.Min(decide).Nanoseconds()), "ns/decision")
		b.ReportMetric(float64(plainAll)/float64(slices.Min(decide)), "times-faster-than-all")
		b.ReportMetric(float64(slices.Min(decide))/float64(slices.Min(plainOwn)), "times-own-policies")
	}
	if d := set.Decide(call, Options{}); d.Answer != Allow {
		b.Fatalf("decision = %+v", d)
	}
}

// BenchmarkSet_SwapOneObject measures the replacement of one object in a set of
// 10,000 policies, with all that a decision needs afterwards.
func BenchmarkSet_SwapOneObject(b *testing.B) {
	set := benchSet(b)
	var editions []*Compiled
	for i := range 64 {
		c, _ := Compile(benchSource(123, i+1), Limits{})
		editions = append(editions, c)
	}
	call := benchCall(123)
	b.ResetTimer()
	for i := range b.N {
		set = set.With(editions[i%len(editions)])
	}
	b.StopTimer()
	if d := set.Decide(call, Options{}); d.Answer != Allow {
		b.Fatalf("decision = %+v", d)
	}
}

// BenchmarkSet_ChangeOneTool measures what a changed manifest costs: the types
// are taken over, and only its policies are validated anew.
func BenchmarkSet_ChangeOneTool(b *testing.B) {
	set := benchSet(b)
	tools := make([]Tool, benchTools)
	for i := range tools {
		tools[i] = benchTool(i)
	}
	b.ResetTimer()
	for i := range b.N {
		tools[123].Version = fmt.Sprint(i)
		tools[123].Arguments = slices.Concat(benchTool(123).Arguments, []Argument{{Name: fmt.Sprint("extra", i), Kind: "string"}})
		set = set.WithTools("team", tools)
		if problems := set.Problems("team"); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}

// BenchmarkCompile measures one object of 20 policies.
func BenchmarkCompile(b *testing.B) {
	source := benchSource(1, 0)
	for range b.N {
		Compile(source, Limits{})
	}
}
