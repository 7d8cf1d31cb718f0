// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// To track them makes each write of a status half as expensive again.
func TestProposal_HasNoManagersOfItsFields_HoweverOftenItIsWritten(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.policy("allow", permitAll)
	p := f.propose("restart", web)
	for _, at := range []string{"created", "granted", "labelled"} {
		switch at {
		case "granted":
			p = f.step(p)
		case "labelled":
			p.Labels = map[string]string{"team": "web"}
			if err := server.admin.Update(f.ctx, p); err != nil {
				t.Fatal(err)
			}
		}
		if p = f.reload(p); len(p.ManagedFields) != 0 {
			t.Errorf("%s: %s", at, jsonOf(t, p.ManagedFields))
		}
	}
	f.wantOutcome(p, "Dispatching/Granted")
}

func TestProposal_IsApplied_OnceAndAgainButNeverOtherwise(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	apply := func(team, arguments string, options ...client.PatchOption) (*v1alpha1.ToolProposal, error) {
		p := &v1alpha1.ToolProposal{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "applied"}}
		body := fmt.Sprintf(`{"apiVersion":"assent.dev/v1alpha1","kind":"ToolProposal","metadata":{"name":"applied","labels":{"team":%q}},"spec":{"tool":"restart","callID":"c","arguments":%q}}`, team, arguments)
		return p, server.admin.Patch(f.ctx, p, client.RawPatch(types.ApplyPatchType, []byte(body)), append(options, client.FieldOwner("ci"))...)
	}
	first, err := apply("a", web)
	if err != nil || first.Spec.Seal == "" || len(first.ManagedFields) != 0 {
		t.Fatalf("applying: %v, %s", err, jsonOf(t, first))
	}
	second, err := apply("a", web)
	if err != nil || jsonOf(t, second.Spec) != jsonOf(t, first.Spec) || second.UID != first.UID {
		t.Errorf("applying the same again: %v, %s", err, jsonOf(t, second))
	}
	if _, err := apply("b", web); refusalOf(err)[:3] != "409" {
		t.Errorf("applying another label: got %s, want 409", refusalOf(err))
	}
	if third, err := apply("b", web, client.ForceOwnership); err != nil || third.Labels["team"] != "b" || jsonOf(t, third.Spec) != jsonOf(t, first.Spec) {
		t.Errorf("applying another label by force: %v, %s", err, jsonOf(t, third))
	}
	const db = `{"target":"db"}`
	if _, err := apply("b", db); refusalOf(err)[:3] != "409" {
		t.Errorf("applying other arguments: got %s, want 409", refusalOf(err))
	}
	if _, err := apply("b", db, client.ForceOwnership); refusalOf(err)[:3] != "422" {
		t.Errorf("applying other arguments by force: got %s, want 422", refusalOf(err))
	}
}
