// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// badScopes are scopes that cannot be read, each with the field that is wrong.
var badScopes = map[string]struct{ spec, field string }{
	"an address that is none":     {`{targets: [10.0.0.256]}`, "spec.targets[0]"},
	"a range with host bits":      {`{targets: [10.0.0.0/8, 10.0.0.1/8]}`, "spec.targets[1]"},
	"a name among the addresses":  {`{targets: [example.com]}`, "spec.targets[0]"},
	"a pattern inside a name":     {`{domains: [a.*.example.com]}`, "spec.domains[0]"},
	"an exclusion that says what": {`{targets: [10.0.0.0/8], exclude: ["10.0.0.0/33"]}`, "spec.exclude[0]"},
}

func TestToolScope_ThatCannotBeRead_IsRefusedNamingTheEntry(t *testing.T) {
	f := newFixture(t)
	for name, row := range badScopes {
		t.Run(name, func(t *testing.T) {
			err := server.admin.Create(f.ctx, f.scope("lab", row.spec))
			if got := refusalOf(err); !strings.HasPrefix(got, "422 ") || !strings.Contains(got, row.field+":InvalidScope") {
				t.Errorf("got %s, want 422 %s:InvalidScope (%v)", got, row.field, err)
			}
		})
	}
}

func TestToolScope_ThatCannotBeRead_IsNotReadyWhereAdmissionWasAbsent_NorAreItsTools(t *testing.T) {
	f := newFixture(t)
	m := f.manifest("scan", withArgument("type: scope_target"))
	f.create(m)
	f.withoutAdmission()
	for name, row := range badScopes {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			s := f.scope("lab", row.spec)
			f.create(s)
			f.wantReady(s, "False/InvalidScope", row.field)
			f.wantReady(m, "False/InvalidScope", "ToolScope/lab: "+row.field)
			f.mustDelete(s)
		})
	}
	good := f.scope("lab", `{targets: [10.0.0.0/8]}`)
	f.create(good)
	f.wantReady(good, "True/Ready", "can be used")
	f.wantReady(m, "True/Ready", "")
}

// A call that waits does not outlive the scope that it was prepared in.
func TestToolScope_ThatBecomesNarrower_EndsTheCallsOfTheWiderOne(t *testing.T) {
	f := newFixture(t)
	lab := f.scope("lab", `{targets: [10.0.0.0/8]}`)
	f.create(lab)
	m := f.manifest("scan", withArgument("type: scope_target"))
	m.Spec.HumanApproval = true
	f.create(m)
	f.policy("allow", permitAll)
	f.wantReady(m, "True/Ready", "")
	p := f.step(f.propose("scan", `{"v":"10.0.0.1"}`))
	f.wantOutcome(p, "AwaitingApproval/AwaitingApproval")
	f.decide(p, v1alpha1.ReceiptApproved, approver)
	lab.Spec.Exclude = []string{"10.0.0.0/24"}
	if err := server.admin.Update(f.ctx, lab); err != nil {
		t.Fatal(err)
	}
	f.wantOutcome(f.step(p), "Denied/ContractChanged")
	f.until("admission knows the narrower scope", func() bool {
		err := f.as(agent).Create(f.ctx, f.newProposal("scan", `{"v":"10.0.0.1"}`))
		return err != nil && strings.Contains(err.Error(), "stage scope")
	})
}
