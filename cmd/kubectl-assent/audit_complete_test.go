// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/audit/journal"
)

// about appends records about one call each.
type about struct {
	call string
	data audit.Data
}

func (l auditLog) writeAbout(t *testing.T, records ...about) {
	t.Helper()
	j, err := journal.Open(t.Context(), journal.Options{
		Dir: l.dir, Origin: auditOrigin, Keys: l.keys, Software: "test", Now: func() time.Time { return auditTime }, Timeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range records {
		if _, err := j.Append(t.Context(), audit.Record{
			ID: fmt.Sprintf("%032x", i), Time: auditTime, Data: r.data,
			Proposal: &attest.ObjectRef{Namespace: "agents", Name: r.call, UID: "uid-" + r.call},
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// endedCall is a denied call whose record has the index.
func endedCall(name string, index int64) v1alpha1.ToolProposal {
	return v1alpha1.ToolProposal{
		TypeMeta:   metav1.TypeMeta{APIVersion: "assent.dev/v1alpha1", Kind: "ToolProposal"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: name, UID: types.UID("uid-" + name)},
		Spec:       v1alpha1.ToolProposalSpec{Tool: "t", Arguments: "{}", CallID: name},
		Status: v1alpha1.ToolProposalStatus{
			Phase: v1alpha1.PhaseDenied,
			Audit: &v1alpha1.AuditReference{Index: &index, Records: []v1alpha1.AuditRecordReference{{Type: "Denied", Index: index}}},
		},
	}
}

// The log has the journal's own record at 0, then a denied call "kept" at 1 and
// one that is gone at 2, and a receipt of a call that has not ended at 3.
func TestAuditVerify_NamesCallsWithoutRecordsAndRecordsWithoutCalls(t *testing.T) {
	denied := audit.Denied{Reason: "Forbidden"}
	open := audit.RedeemRefused{Reason: "WrongPod"}
	with := func(p v1alpha1.ToolProposal, change func(*v1alpha1.ToolProposal)) v1alpha1.ToolProposal {
		change(&p)
		return p
	}
	waiting := with(endedCall("open", 3), func(p *v1alpha1.ToolProposal) {
		p.Status = v1alpha1.ToolProposalStatus{Phase: v1alpha1.PhaseAwaitingApproval}
	})
	for name, tc := range map[string]struct {
		calls []v1alpha1.ToolProposal
		want  []string
	}{
		"everything fits":             {calls: []v1alpha1.ToolProposal{endedCall("kept", 1), waiting}},
		"a call was removed":          {calls: []v1alpha1.ToolProposal{endedCall("kept", 1)}, want: []string{"RecordWithoutCall 3 agents/open"}},
		"a call was created anew":     {calls: []v1alpha1.ToolProposal{endedCall("kept", 1), with(waiting, func(p *v1alpha1.ToolProposal) { p.UID = "another" })}, want: []string{"RecordWithoutCall 3 agents/open"}},
		"a call newer than the log":   {calls: []v1alpha1.ToolProposal{endedCall("kept", 1), waiting, endedCall("new", 4)}},
		"a call without any record":   {calls: []v1alpha1.ToolProposal{endedCall("kept", 1), waiting, with(endedCall("other", 1), func(p *v1alpha1.ToolProposal) { p.Status.Audit = nil })}, want: []string{"CallWithoutRecord 4 agents/other"}},
		"a call with another's":       {calls: []v1alpha1.ToolProposal{endedCall("kept", 1), waiting, endedCall("other", 1)}, want: []string{"CallWithoutRecord 1 agents/other"}},
		"a call with another type":    {calls: []v1alpha1.ToolProposal{with(endedCall("kept", 1), func(p *v1alpha1.ToolProposal) { p.Status.Audit.Records[0].Type = "Redeemed" }), waiting}, want: []string{"CallWithoutRecord 1 agents/kept"}},
		"a call that ran and was not": {calls: []v1alpha1.ToolProposal{with(endedCall("kept", 1), hasRun), waiting}, want: []string{"CallWithoutRecord 4 agents/kept", "CallWithoutRecord 4 agents/kept", "CallWithoutRecord 4 agents/kept", "CallWithoutRecord 4 agents/kept"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newAuditLog(t, 1)
			l.writeAbout(t, about{"kept", denied}, about{"gone", denied}, about{"open", open})
			list := map[string]any{"apiVersion": "v1", "kind": "List", "items": tc.calls}
			text, err := json.Marshal(list)
			if err != nil {
				t.Fatal(err)
			}
			got := runWith(t, string(text), "audit", "verify", l.dir, "--key", l.key, "--objects", "-", "-o", "json")
			wantCode := 0
			if len(tc.want) > 0 {
				wantCode = 2
			}
			if got.Code != wantCode {
				t.Fatalf("exit code %d, want %d: %s%s", got.Code, wantCode, got.Out, got.Err)
			}
			var v struct {
				OK       bool
				Findings []struct {
					Reason, Detail string
					Index          uint64
				}
				Joined joined
			}
			if err := json.Unmarshal([]byte(got.Out), &v); err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, f := range v.Findings {
				call, _, _ := strings.Cut(strings.TrimPrefix(f.Detail, "call "), " ")
				found = append(found, fmt.Sprintf("%s %d %s", f.Reason, f.Index, call))
			}
			if diff := cmp.Diff(tc.want, found); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if v.OK != (len(tc.want) == 0) || v.Joined.Gone != 1 || v.Joined.Calls != uint64(len(tc.calls)) {
				t.Errorf("got %+v", v)
			}
		})
	}
}

// hasRun makes a call one that was granted and redeemed.
func hasRun(p *v1alpha1.ToolProposal) {
	p.Status.Dispatch = &v1alpha1.Dispatch{JobName: "j"}
	p.Status.RedeemedBy = &v1alpha1.Redemption{PodName: "p"}
}
