// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestContextReads_MissesNothing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want reads
	}{
		"no condition":                     {``, 0},
		"no context":                       {`when { principal has name && resource.risk_tier == "low" }`, 0},
		"approval":                         {`when { context.has_human_approval }`, readApproval},
		"the approved fingerprint":         {`unless { context has approved_fingerprint }`, readApproval},
		"the session":                      {`when { context has session && context.session.team == "x" }`, 0},
		"a name that nothing has":          {`when { context has x || context.invocation has x }`, 0},
		"arguments":                        {`when { context.invocation.arguments.n > 3 }`, readArguments},
		"arguments as texts":               {`when { context["invocation"]["argument_json"] has n }`, readArgumentJSON},
		"lengths":                          {`when { context.invocation has argument_lengths }`, readArgumentLengths},
		"addresses":                        {`when { context has invocation.argument_addresses.ip }`, readArgumentAddresses},
		"the canonical text":               {`when { context.invocation.args_canonical_json == "{}" }`, readCanonical},
		"the contract":                     {`when { context.invocation.contract == {} }`, readContract},
		"the effect":                       {`when { context.invocation.resolved.kind == "http" }`, readResolved},
		"the fingerprint":                  {`when { context.approved_fingerprint == context.invocation.fingerprint }`, readApproval | readFingerprint},
		"that there is an invocation":      {`when { context has invocation }`, 0},
		"two conditions":                   {`when { context.has_human_approval } unless { context.invocation has contract }`, readApproval | readContract},
		"the whole context":                {`when { context == {} }`, readsAll},
		"the whole invocation":             {`when { context.invocation == {} }`, readsAll},
		"the context under another name":   {`when { {a: context}.a has invocation }`, readsAll},
		"the invocation in a set":          {`when { [context.invocation].contains({}) }`, readsAll},
		"a choice of contexts":             {`when { (if principal == resource then context else context).invocation has contract }`, readsAll},
		"the whole behind something known": {`when { context.has_human_approval && context == {} && context.has_human_approval }`, readsAll},
		"the whole as an operand of in":    {`when { principal in [principal] && (principal is Tool in context.invocation) }`, readsAll},
		"the same names elsewhere":         {`when { {invocation: {contract: 1}}.invocation.contract == 1 }`, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, problems := Compile(Source{Namespace: "team", Name: "p", Text: "permit (principal, action, resource) " + tc.text + ";"}, Limits{})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if got := c.statements[0].reads; got != tc.want {
				t.Errorf("reads = %b, want %b", got, tc.want)
			}
		})
	}
}

// record names a record of the context, often in a way that hides which.
func (g generator) record() string {
	path := pick(g, "context", "context", "context.invocation", "context.invocation", "context.invocation.arguments",
		"context.invocation.argument_json", "context.invocation.argument_lengths", "context.invocation.argument_addresses",
		"context.invocation.contract", "context.invocation.resolved", "context.invocation.resolved.mcp_arguments", "context.session")
	path = strings.ReplaceAll(path, ".invocation", pick(g, ".invocation", `["invocation"]`))
	return fmt.Sprintf(pick(g, "%s", "%s", "%s", "{a: %s}.a", "(if resource has version then %[1]s else %[1]s)"), path)
}

func (g generator) reading() string {
	member := func() string {
		return pick(g, "invocation", "session", "has_human_approval", "approved_fingerprint", "arguments", "argument_json",
			"argument_lengths", "argument_addresses", "args_canonical_json", "contract", "resolved", "fingerprint", "n", "l", "ip",
			"hash", "kind", "argv", "argv_json", "http_host", "mcp_arguments", "team", "none")
	}
	switch g.IntN(7) {
	case 0, 1:
		return g.record() + " has " + member()
	case 5:
		return pick(g, "context.has_human_approval", `context.approved_fingerprint == "f"`)
	case 2:
		return g.record() + " has invocation." + member()
	case 3:
		return g.record() + " == " + pick(g, "{}", "{invocation: {}}", `{fingerprint: "f"}`, `{invocation: {fingerprint: "f"}}`,
			`{invocation: {}, has_human_approval: false, approved_fingerprint: ""}`, g.record())
	case 4:
		return "[" + g.record() + "].contains(" + pick(g, "{}", g.record()) + ")"
	default:
		return g.record() + "." + member() + " == " + pick(g, `"f"`, `"{}"`, `true`, `""`, g.record())
	}
}

func (g generator) readingCall() Call {
	call := g.call()
	call.Tool.Arguments = []Argument{{Name: "n", Kind: "integer"}, {Name: "l", Kind: "array"}, {Name: "ip", Kind: "ip_address"}}
	call.ArgsCanonicalJSON = pick(g, `{}`, `{"n":1}`, `{"ip":"10.0.0.1","l":[1,1],"n":7}`)
	call.Tool.EffectKind = pick(g, EffectCommand, EffectHTTP, EffectMCP)
	call.Tool.MCPArguments = []Argument{{Name: "n", Kind: "integer"}}
	call.Effect = EffectView{Kind: call.Tool.EffectKind, Argv: []string{"a"}, MCPArgumentsJSON: `{"n":1}`}
	call.Approved = g.IntN(3) == 0
	return call
}

// checkNarrow compares the decision on the whole request with the one on what
// the policies read of it, to the last word.
func checkNarrow(t *testing.T, seed uint64) (left reads, d Decision) {
	t.Helper()
	g := generator{rand.New(rand.NewPCG(seed, 3))}
	call := g.readingCall()
	var text strings.Builder
	for range 1 + g.IntN(3) {
		fmt.Fprintf(&text, "%s (%s, action, resource) %s { %s };\n", pick(g, "permit", "permit", "forbid"), g.principal(),
			pick(g, "when", "unless"), pick(g, "", "!")+"("+g.reading()+")"+pick(g, "", " && "+g.reading(), " || "+g.reading()))
	}
	source := text.String()
	c, problems := Compile(Source{Namespace: "team", Name: "p", Text: source}, Limits{})
	if len(problems) > 0 {
		t.Fatal(problems, source)
	}
	set, err := NewSet(Limits{}, c)
	if err != nil {
		t.Fatal(err)
	}
	answer := func(narrow bool) (reads, Decision) {
		r, err := newRequest(&call, newToolTypes(&call.Tool))
		if err != nil {
			t.Fatal(err)
		}
		relevant, others := set.relevant("team", r)
		if narrow {
			r.narrow(relevant)
		}
		e := &evaluator{request: r, policies: relevant, others: others, fingerprint: call.Fingerprint}
		return readsAll &^ r.read, e.answer(&call)
	}
	_, want := answer(false)
	left, got := answer(true)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("seed %d (-whole +narrow):\n%s%s", seed, diff, source)
	}
	return left, got
}

func TestNarrow_CannotBeObserved(t *testing.T) {
	t.Parallel()
	left, seen := map[reads]int{}, map[Reason]int{}
	for seed := range uint64(5000) {
		l, d := checkNarrow(t, seed)
		for part := reads(1); part < readsAll; part <<= 1 {
			left[part] += int(l & part / part)
		}
		seen[d.Reason]++
	}
	// A request that is always whole would agree, and so would one that no
	// policy asks anything.
	for part := reads(1); part < readsAll; part <<= 1 {
		if left[part] < 500 {
			t.Errorf("part %b was left out %d times only", part, left[part])
		}
	}
	for _, reason := range []Reason{ReasonPermitted, ReasonForbidden, ReasonNoPolicyPermits, ReasonPolicyError, ReasonApprovalRequired} {
		if seen[reason] < 20 {
			t.Errorf("%s came up %d times only: %v", reason, seen[reason], seen)
		}
	}
}

func FuzzNarrow_CannotBeObserved(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { checkNarrow(t, seed) })
}
