// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/tools/record"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
)

// tricky is a tool with arguments of the types that conditions go wrong with.
func tricky(m *v1alpha1.ToolManifest) {
	m.Spec.Arguments = []v1alpha1.Argument{
		{Name: "target", Type: "string", Required: true},
		{Name: "count", Type: "integer", Required: true},
		{Name: "who", Type: "object", Required: true, ArgumentConstraints: v1alpha1.ArgumentConstraints{Schema: `{"type":"object"}`}},
	}
	m.Spec.Command = nil
	m.Spec.HTTP = &v1alpha1.HTTPTemplate{
		Method: "POST", URL: "https://example.com/", Body: `{"target":"{target}","count":{count},"who":{who}}`,
		Headers: []v1alpha1.HTTPHeader{{Name: "Content-Type", Value: "application/json"}},
	}
}

// What is wrong with a policy must deny, whatever else permits, and everything
// that tells about the denial must name the policy. Cedar alone would permit
// each of the calls of the first rows.
func TestFaultyOrForbiddingPolicy_DeniesAndIsNamedEverywhere(t *testing.T) {
	const ofTool = "forbid (principal, action, resource == Tool::%q) when { %s };"
	for name, tc := range map[string]struct {
		condition string
		want      string
	}{
		"an attribute that is missing": {`context.invocation.arguments.tarjet == "x"`, "PolicyUnhealthy"},
		"in on a text":                 {`context.invocation.arguments.target in ["prod"]`, "PolicyUnhealthy"},
		"a bad address":                {`ip("300.0.0.1").isLoopback()`, "PolicyUnhealthy"},
		"a comparison of two types":    {`context.invocation.arguments.count == "5"`, "PolicyUnhealthy"},
		"an overflow":                  {`context.invocation.arguments.count + 9223372036854775807 > 0`, "PolicyError"},
		"an entity that is absent":     {`k8s::User::"nobody".name == "x"`, "PolicyError"},
		"a forbid that holds":          {`context.invocation.arguments.count == 5`, "Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.tool("tricky", tricky)
			f.policy("allow", permitAll)
			f.policy("guard", fmt.Sprintf(ofTool, "tricky", tc.condition))
			f.wantDenied(tc.want, f.namespace+"/guard#0")
		})
	}
}

// wantDenied proposes a call and looks for the policy in everything that tells
// of its end.
func (f *fixture) wantDenied(reason, id string) {
	f.t.Helper()
	recorder := record.NewFakeRecorder(8)
	f.shared.Events = &controllers.Events{Recorder: recorder}
	read := f.metrics(func() map[v1alpha1.Phase]int { return nil }, func() string { return "" })
	p := f.newProposal("tricky", `{"target":"x","count":5,"who":{}}`)
	if err := f.caller().Create(f.ctx, p); err != nil {
		f.t.Fatal(err)
	}
	p = f.step(p)
	f.wantOutcome(p, "Denied/"+reason)
	if d := p.Status.Decision; d == nil || d.Answer != "Deny" || d.Reason != reason || len(d.Policies) != 1 || d.Policies[0] != id {
		f.t.Errorf("the decision does not name %s: %s", id, jsonOf(f.t, d))
	}
	select {
	case event := <-recorder.Events:
		if !strings.HasPrefix(event, "Warning "+reason+" ") || !strings.Contains(event, id) {
			f.t.Errorf("the Event does not name reason and policy: %s", event)
		}
	default:
		f.t.Error("there is no Event")
	}
	want := fmt.Sprintf("assent_policy_decisions_total{answer=Deny,policy=%s,reason=%s} 1", id, reason)
	if got := strings.Join(read(), "\n"); !strings.Contains(got, want) {
		f.t.Errorf("the metrics lack %s:\n%s", want, got)
	}
	if n := len(f.jobs()); n != 0 {
		f.t.Errorf("there are %d Jobs", n)
	}
}

func TestPoliciesOfOneTextOrOfOneName_AreAllInForce(t *testing.T) {
	const forbid = `@id("same") forbid (principal, action, resource);`
	for name, tc := range map[string]struct {
		texts []string
		id    string
	}{
		"a forbid behind a permit in one text": {[]string{permitAll + forbid}, "/p0#1"},
		"a permit behind a forbid in one text": {[]string{forbid + permitAll}, "/p0#0"},
		"two objects with the same annotation": {[]string{`@id("same") permit (principal, action, resource);`, forbid}, "/p1#0"},
		"the same the other way round":         {[]string{forbid, `@id("same") permit (principal, action, resource);`}, "/p0#0"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.tool("tricky", tricky)
			for i, text := range tc.texts {
				f.create(f.newPolicy(fmt.Sprintf("p%d", i), text))
			}
			f.reloadPolicies()
			f.wantDenied("Forbidden", f.namespace+tc.id)
		})
	}
}

// An object that looks like an entity to Cedar's own JSON stays an object, and
// what was proposed is what runs.
func TestArgumentThatLooksLikeAnEntity_StaysData(t *testing.T) {
	const who = `{"__entity":{"id":"admin","type":"k8s::User"},"x":1}`
	f := newFixture(t)
	f.tool("tricky", tricky)
	f.policy("allow", `permit (principal, action, resource) when { context.invocation.argument_json.who like "*__entity*" };`)
	p := f.propose("tricky", `{"target":"x","count":5,"who":`+who+`}`)
	p = f.step(p)
	f.wantOutcome(p, granted)
	if got, want := p.Spec.Prepared.ArgsCanonicalJSON, `{"count":5,"target":"x","who":`+who+`}`; got != want {
		t.Errorf("arguments %s, want %s", got, want)
	}
	f.policy("admin", `permit (principal, action, resource) when { context.invocation.arguments.who == k8s::User::"admin" };`)
	p = f.step(f.propose("tricky", `{"target":"x","count":5,"who":`+who+`}`))
	f.wantOutcome(p, "Denied/PolicyUnhealthy")
}

func TestPolicyText_ThatIsABomb_IsRefused(t *testing.T) {
	f := newFixture(t)
	for name, text := range map[string]string{
		"a megabyte of brackets":  "permit (principal, action, resource) when { " + repeat("[", 1<<20),
		"brackets up to the size": "permit (principal, action, resource) when { " + repeat("[", 32<<10-50),
		"parentheses":             "permit (principal, action, resource) when { " + repeat("(", 32<<10-50),
		"negations":               "permit (principal, action, resource) when { " + repeat("!", 32<<10-50) + "true };",
	} {
		t.Run(name, func(t *testing.T) {
			err := server.admin.Create(f.ctx, f.newPolicy("bomb", text))
			if got := refusalOf(err); !strings.HasPrefix(got, "422 spec.cedar:") {
				t.Errorf("got %s, want 422 of spec.cedar", got)
			}
		})
	}
}
