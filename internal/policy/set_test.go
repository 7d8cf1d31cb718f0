// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/policy"
)

func compiled(t testing.TB, namespace, name, text string) *policy.Compiled {
	t.Helper()
	c, problems := policy.Compile(policy.Source{Namespace: namespace, Name: name, Text: text}, policy.Limits{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return c
}

func mustSet(t testing.TB, limits policy.Limits, c ...*policy.Compiled) *policy.Set {
	t.Helper()
	set, err := policy.NewSet(limits, c...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func keys(set *policy.Set, namespace string) []string {
	var all []string
	for _, c := range set.Sources(namespace) {
		all = append(all, c.Key().String())
	}
	return all
}

func TestNewSet_RefusesTheSameObjectTwice(t *testing.T) {
	t.Parallel()
	one, two := compiled(t, "team", "p", permitAll), compiled(t, "team", "p", "forbid (principal, action, resource);")
	want := "policy team/p is given twice; name each object once"
	if _, err := policy.NewSet(policy.Limits{}, one, two); err == nil || err.Error() != want {
		t.Errorf("NewSet = %v, want %s", err, want)
	}
	if _, err := mustSet(t, policy.Limits{}).WithNamespace("team", two, one); err == nil || err.Error() != want {
		t.Errorf("WithNamespace = %v, want %s", err, want)
	}
	want = `policy team/p does not belong to namespace "other"`
	if _, err := mustSet(t, policy.Limits{}).WithNamespace("other", one); err == nil || err.Error() != want {
		t.Errorf("WithNamespace = %v, want %s", err, want)
	}
}

func TestSet_NeverChanges(t *testing.T) {
	t.Parallel()
	a, b := compiled(t, "team", "a", permitAll), compiled(t, "team", "b", permitAll+permitAll)
	forbid := compiled(t, "team", "a", "forbid (principal, action, resource);")
	first := mustSet(t, policy.Limits{}, b)
	added := first.With(a)
	replaced := added.With(forbid)
	removed := replaced.Without(policy.Key{Namespace: "team", Name: "b"})
	steps := []struct {
		set  *policy.Set
		keys []string
		size int
		want policy.Reason
	}{
		{first, []string{"team/b"}, 2, policy.ReasonPermitted},
		{added, []string{"team/a", "team/b"}, 3, policy.ReasonPermitted},
		{replaced, []string{"team/a", "team/b"}, 3, policy.ReasonForbidden},
		{removed, []string{"team/a"}, 1, policy.ReasonForbidden},
	}
	digests := map[string]int{}
	for i, step := range steps {
		if diff := cmp.Diff(step.keys, keys(step.set, "team")); diff != "" {
			t.Errorf("step %d: sources (-want +got):\n%s", i, diff)
		}
		if got := step.set.Len(); got != step.size {
			t.Errorf("step %d: Len() = %d, want %d", i, got, step.size)
		}
		if got := step.set.Decide(small(), policy.Options{}); got.Reason != step.want {
			t.Errorf("step %d: %+v, want %s", i, got, step.want)
		}
		if other, ok := digests[step.set.Digest("team")]; ok {
			t.Errorf("steps %d and %d have the same digest", other, i)
		}
		digests[step.set.Digest("team")] = i
	}
}

func TestSet_DigestSaysWhatIsInForceInANamespace(t *testing.T) {
	t.Parallel()
	set := mustSet(t, policy.Limits{}, compiled(t, "team", "a", permitAll))
	digest := set.Digest("team")
	if got := set.With(compiled(t, "other", "a", permitAll)).Digest("team"); got != digest {
		t.Error("a policy of another namespace changes the digest")
	}
	if got := set.WithTools("team", []policy.Tool{payTool()}).Digest("team"); got != digest {
		t.Error("a tool changes the digest")
	}
	if got := set.With(compiled(t, "", "a", permitAll)).Digest("team"); got == digest {
		t.Error("a policy of the cluster does not change the digest")
	}
	if set.Digest("other") == digest || set.Digest("other") != mustSet(t, policy.Limits{}).Digest("third") {
		t.Error("namespaces without policies do not share one digest")
	}
	if set.Digest("") == digest {
		t.Error("the cluster has the digest of a namespace")
	}
	if d := set.Decide(small(), policy.Options{}); d.SetDigest != digest {
		t.Errorf("decision carries %s, want %s", d.SetDigest, digest)
	}
}

func TestSet_StaysAsItIsWhenNothingChanges(t *testing.T) {
	t.Parallel()
	set := mustSet(t, policy.Limits{}, compiled(t, "team", "a", permitAll), compiled(t, "team", "b", permitAll))
	if got := set.With(compiled(t, "team", "a", permitAll)); got != set {
		t.Error("With of an unchanged object makes another set")
	}
	same, err := set.WithNamespace("team", compiled(t, "team", "b", permitAll), compiled(t, "team", "a", permitAll))
	if err != nil || same != set {
		t.Errorf("WithNamespace of unchanged objects makes another set, or fails: %v", err)
	}
	other, err := set.WithNamespace("team", compiled(t, "team", "b", permitAll), compiled(t, "team", "c", permitAll))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"team/b", "team/c"}, keys(other, "team")); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}

func TestSet_DeniesWhenTooMuchIsInForce(t *testing.T) {
	t.Parallel()
	limits := policy.Limits{Objects: 2}
	set := mustSet(t, limits, compiled(t, "team", "a", permitAll), compiled(t, "team", "b", permitAll))
	if got := set.Decide(small(), policy.Options{}); got.Answer != policy.Allow {
		t.Errorf("at the limit: %+v, want Allow", got)
	}
	third := set.With(compiled(t, "team", "c", permitAll))
	want := policy.Decision{
		Answer: policy.Deny, Reason: policy.ReasonPolicySetTooLarge,
		Message:   "3 policy objects are in force where 2 are the limit; merge or delete some",
		SetDigest: third.Digest("team"),
	}
	if diff := cmp.Diff(want, third.Decide(small(), policy.Options{})); diff != "" {
		t.Errorf("beyond the limit (-want +got):\n%s", diff)
	}
	elsewhere := set.With(compiled(t, "other", "a", permitAll)).With(compiled(t, "other", "b", permitAll)).With(compiled(t, "", "a", permitAll))
	if got := elsewhere.Decide(small(), policy.Options{}); got.Answer != policy.Allow {
		t.Errorf("objects elsewhere count: %+v, want Allow", got)
	}
	cluster := set.With(compiled(t, "", "a", permitAll)).With(compiled(t, "", "b", permitAll)).With(compiled(t, "", "c", permitAll))
	if got := cluster.Decide(small(), policy.Options{}); got.Reason != policy.ReasonPolicySetTooLarge {
		t.Errorf("too many cluster policies: %+v, want PolicySetTooLarge", got)
	}
}

func TestSet_AppliesClusterPoliciesEverywhere(t *testing.T) {
	t.Parallel()
	set := mustSet(t, policy.Limits{}, compiled(t, "team", "a", permitAll), compiled(t, "", "no-shells", `
		forbid (principal, action, resource) when { context.invocation.resolved has argv && context.invocation.resolved.argv.contains("sh") };`))
	call := small()
	if got := set.Decide(call, policy.Options{}); got.Answer != policy.Allow {
		t.Errorf("without a shell: %+v, want Allow", got)
	}
	call.Effect.Argv = []string{"sh", "-c", "x"}
	want := verdict{policy.Deny, policy.ReasonForbidden, []string{"/no-shells#0"}}
	if diff := cmp.Diff(want, verdictOf(set.Decide(call, policy.Options{}))); diff != "" {
		t.Errorf("with a shell (-want +got):\n%s", diff)
	}
	call.Tool.Namespace = ""
	if got := set.Decide(call, policy.Options{}); got.Reason != policy.ReasonForbidden {
		t.Errorf("a tool without a namespace: %+v, want Forbidden", got)
	}
	if info, ok := set.Describe("/no-shells#0"); !ok || info.Source != (policy.Key{Name: "no-shells"}) {
		t.Errorf("Describe = %+v, %t", info, ok)
	}
}

// permutations calls visit with every order of n things.
func permutations(n int, visit func([]int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var walk func(int)
	walk = func(k int) {
		if k == n {
			visit(order)
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			walk(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	walk(0)
}

// Whatever order GitOps applies things in, the end is the same.
func TestSet_EndsTheSameInEveryOrder(t *testing.T) {
	t.Parallel()
	broken, _ := policy.Compile(policy.Source{Namespace: "other", Name: "torn", Text: "permit"}, policy.Limits{})
	tools := []policy.Tool{}
	steps := []func(*policy.Set, *[]policy.Tool) *policy.Set{
		func(s *policy.Set, _ *[]policy.Tool) *policy.Set {
			return s.With(compiled(t, "team", "pay", `permit (principal, action == Action::"tool_call::pay", resource) when { context.invocation.arguments.amount < 10 };`))
		},
		func(s *policy.Set, _ *[]policy.Tool) *policy.Set {
			return s.With(compiled(t, "team", "fetch", `permit (principal, action == Tool::Fetch::Action::"run", resource) when { context.invocation.arguments.ulr like "x" };`))
		},
		func(s *policy.Set, _ *[]policy.Tool) *policy.Set {
			return s.With(compiled(t, "", "all", `forbid (principal, action, resource) when { resource.risk_tier == "critical" };`))
		},
		func(s *policy.Set, _ *[]policy.Tool) *policy.Set { return s.With(broken) },
		func(s *policy.Set, known *[]policy.Tool) *policy.Set {
			*known = append(*known, payTool())
			return s.WithTools("team", *known)
		},
		func(s *policy.Set, known *[]policy.Tool) *policy.Set {
			*known = append(*known, fetchTool())
			return s.WithTools("team", *known)
		},
	}
	var first string
	permutations(len(steps), func(order []int) {
		set, known := mustSet(t, policy.Limits{}), append([]policy.Tool(nil), tools...)
		for _, i := range order {
			set = steps[i](set, &known)
		}
		state := fmt.Sprint(lines(set.Problems("team")), lines(set.Problems("other")), lines(set.Report(policy.Key{Name: "all"}).Problems),
			set.Digest("team"), set.Decide(small(), policy.Options{}))
		if first == "" {
			first = state
		}
		if state != first {
			t.Fatalf("order %v ends in\n%s\nthe first one in\n%s", order, state, first)
		}
	})
}

// A manifest that changes costs the policies that mention it: what was found
// out about the others is kept.
func TestSet_KeepsVerdictsThatStillHold(t *testing.T) {
	t.Parallel()
	set := setOf(t, `permit (principal, action == Action::"tool_call::pay", resource) when { context.invocation.arguments.amuont < 10 };`,
		`permit (principal, action == Tool::Fetch::Action::"run", resource) when { context.invocation.arguments.ulr like "x" };`)
	set = set.WithTools("team", []policy.Tool{payTool(), fetchTool()})
	if got := set.Problems("team"); len(got) != 2 {
		t.Fatalf("problems = %v, want two", got)
	}
	fixed := payTool()
	fixed.Arguments = append(fixed.Arguments, policy.Argument{Name: "amuont", Kind: "integer", Required: true})
	if got := set.WithTools("team", []policy.Tool{fixed, fetchTool()}).Problems("team"); len(got) != 1 {
		t.Errorf("after the manifest changed: %v, want one", got)
	}
	if got := set.Problems("team"); len(got) != 2 {
		t.Errorf("the older set: %v, want two", got)
	}
	if got := set.WithTools("team", []policy.Tool{fetchTool()}).Problems("team"); len(got) != 2 || got[0].Severity != policy.SeverityWarning {
		t.Errorf("after the manifest was deleted: %v, want a warning and an error", lines(got))
	}
}

func TestStore_GivesWhatWasPutIn(t *testing.T) {
	t.Parallel()
	var store policy.Store
	grow := func(s *policy.Set) *policy.Set { return s.With(compiled(t, "team", "a", permitAll)) }
	if store.Update(grow) || store.Load() != nil {
		t.Error("a store that is not loaded was updated")
	}
	store.Replace(mustSet(t, policy.Limits{}))
	if got := store.Decide(small(), policy.Options{}); got.Reason != policy.ReasonNoPolicyPermits {
		t.Errorf("empty: %+v, want NoPolicyPermits", got)
	}
	if !store.Update(grow) {
		t.Error("the store was not updated")
	}
	if got := store.Decide(small(), policy.Options{}); got.Answer != policy.Allow {
		t.Errorf("updated: %+v, want Allow", got)
	}
}

func TestStore_LosesNoUpdate(t *testing.T) {
	t.Parallel()
	var store policy.Store
	store.Replace(mustSet(t, policy.Limits{}))
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			c := compiled(t, "team", fmt.Sprint("p", i), permitAll)
			store.Update(func(s *policy.Set) *policy.Set { return s.With(c) })
		})
	}
	wg.Wait()
	if got := store.Load().Len(); got != 50 {
		t.Errorf("%d policies, want 50", got)
	}
}

// Evaluations go on while the set is swapped, and each of them sees one set: the
// pair of policies is swapped together, and together they never allow.
func TestStore_SwapsUnderEvaluations(t *testing.T) {
	t.Parallel()
	const swaps = 1000
	evaluations := int64(100_000)
	if testing.Short() {
		evaluations = 2000
	}
	pair := [2]*policy.Set{
		mustSet(t, policy.Limits{}, compiled(t, "team", "a", permitAll), compiled(t, "team", "b", "forbid (principal, action, resource);")),
		mustSet(t, policy.Limits{}, compiled(t, "team", "a", "forbid (principal, action, resource);"), compiled(t, "team", "b", permitAll)),
	}
	var store policy.Store
	store.Replace(pair[0].WithTools("team", []policy.Tool{payTool()}))
	var done atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			call := small()
			for done.Add(1) <= evaluations {
				if d := store.Decide(call, policy.Options{}); d.Reason != policy.ReasonForbidden || len(d.Policies) != 1 {
					t.Errorf("decision = %+v, want one forbid", d)
					return
				}
			}
		})
	}
	for i := range swaps {
		store.Replace(pair[i%2].WithTools("team", []policy.Tool{payTool(), fetchTool()}))
		store.Update(func(s *policy.Set) *policy.Set { return s.With(compiled(t, "other", fmt.Sprint("p", i%7), permitAll)) })
		runtime.Gosched()
	}
	wg.Wait()
}
