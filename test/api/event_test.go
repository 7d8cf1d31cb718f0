// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
	"github.com/assent-dev/assent/execution"
	"github.com/assent-dev/assent/internal/attest"
)

// Each call is looked at again several times at each of its stages.
func TestEvents_TellEachTransitionOnce(t *testing.T) {
	f := newFixture(t)
	recorder := record.NewFakeRecorder(100)
	f.shared.Events = &controllers.Events{Recorder: recorder}
	f.tool("change", humanApproval)
	f.tool("forbidden")
	f.policy("rules", permitAll+` forbid (principal, action, resource == Tool::"forbidden");`)
	again := func(p *v1alpha1.ToolProposal) *v1alpha1.ToolProposal {
		for range 3 {
			p = f.step(p)
		}
		return p
	}
	again(f.propose("forbidden", web))
	p := again(f.propose("change", web))
	f.decide(p, v1alpha1.ReceiptApproved, approver)
	p = again(p)
	runner := f.runnerFor(p)
	key := runner.mustRedeem()
	again(p)
	if status := runner.deliver(key, runner.report(func(*attest.Result) {})); status != http.StatusOK {
		t.Fatalf("reporting: got %d", status)
	}
	f.wantOutcome(again(p), "Succeeded/Succeeded")
	close(recorder.Events)
	var got []string
	for e := range recorder.Events {
		got = append(got, e)
	}
	want := []string{
		"Warning Forbidden forbidden by policy " + f.namespace + "/rules#1",
		"Normal AwaitingApproval 0 of 1 approvals",
		"Normal Succeeded the tool reported success",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
}

// The recorder joins Events that say the same about the same object.
func TestEvents_OfTheSame_AreCountedInOneObject(t *testing.T) {
	f := newFixture(t)
	f.tool("change", humanApproval)
	before := f.propose("change", web)
	after := before.DeepCopy()
	after.Status.Phase, after.Status.Reason, after.Status.Message = v1alpha1.PhaseExpired, v1alpha1.ReasonApprovalTimeout, "nobody decided"
	recorder := controllers.NewEvents(f.ctx, server.admin)
	for range 3 {
		recorder.Transition(before, after)
	}
	var got []string
	want := []string{"ToolProposal/" + before.Name + " Warning ApprovalTimeout nobody decided assent 3"}
	for range 200 {
		var all corev1.EventList
		if err := server.admin.List(f.ctx, &all, client.InNamespace(f.namespace)); err != nil {
			t.Fatal(err)
		}
		got = nil
		for _, e := range all.Items {
			got = append(got, fmt.Sprintf("%s/%s %s %s %s %s %d", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Type, e.Reason, e.Message, e.Source.Component, e.Count))
		}
		if slices.Equal(want, got) {
			return
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // Events are written in the background
	}
	t.Errorf("Events (-want +got):\n%s", cmp.Diff(want, got))
}

// lines collects log lines as JSON objects.
type lines struct{ said []map[string]any }

func (l *lines) add(line string) {
	var object map[string]any
	if err := json.Unmarshal([]byte(line), &object); err == nil {
		l.said = append(l.said, object)
	}
}

func (l *lines) wantCall(t *testing.T, p *v1alpha1.ToolProposal, keys ...string) {
	t.Helper()
	if len(l.said) == 0 {
		t.Fatal("nothing was logged")
	}
	for _, line := range l.said {
		got := map[string]any{}
		for k, v := range line {
			if slices.Contains(keys, k) {
				got[k] = v
			}
		}
		want := map[string]any{"uid": string(p.UID), "fingerprint": p.Spec.Prepared.Fingerprint}
		if slices.Contains(keys, "name") {
			want["name"], want["namespace"] = p.Name, p.Namespace
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("line %v (-want +got):\n%s", line, diff)
		}
	}
}

func TestLogLines_AboutACallNameItsUIDAndFingerprint(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.policy("allow", permitAll)
	p, _ := f.dispatched("restart", web)
	t.Run("of the execution endpoint", func(t *testing.T) {
		said := &lines{}
		f := f.in(t)
		first, second := f.runnerFor(p), f.runnerFor(p)
		key := first.mustRedeem()
		second.endpoint = f.endpoint(func(s *execution.Server) { s.Log = funcr.NewJSON(said.add, funcr.Options{}) })
		if status, _ := second.redeem(); status != http.StatusConflict {
			t.Fatalf("a second Pod: got %d, want 409", status)
		}
		if status := second.deliver(key, second.report()); status != http.StatusConflict {
			t.Fatalf("a report of a second Pod: got %d, want 409", status)
		}
		said.wantCall(t, p, "uid", "fingerprint", "name", "namespace")
	})
	t.Run("of the controllers", func(t *testing.T) {
		said := &lines{}
		f := f.in(t)
		log := f.record()
		log.fail = refuseAll
		waiting := f.propose("restart", web)
		// The name is a value that controller-runtime adds.
		ctx := ctrl.LoggerInto(f.ctx, funcr.NewJSON(said.add, funcr.Options{}))
		if _, err := f.proposals.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(waiting)}); err != nil {
			t.Fatal(err)
		}
		said.wantCall(t, waiting, "uid", "fingerprint")
	})
}
