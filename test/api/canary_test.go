// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
)

var errDisk = errors.New("the disk is full")

func refuseAll(audit.Record) error { return fmt.Errorf("%w: %w", audit.ErrUnavailable, errDisk) }

// canary is a secret that must be nowhere but where it was put.
const canary = "canaryinthecoalmine"

// watched collects everything that the operator says.
type watched struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *watched) add(source, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(&w.text, "%s: %s\n", source, text)
}

// check finds the canary in what was collected.
func (w *watched) check(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.Lines(w.text.String()) {
		if strings.Contains(line, canary) {
			t.Errorf("the secret is in %s", line)
		}
	}
}

// sources says how often each source said something, so that a source that is
// not listened to is noticed.
func (w *watched) sources() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]int{}
	for line := range strings.Lines(w.text.String()) {
		source, _, _ := strings.Cut(line, ":")
		out[source]++
	}
	return out
}

// stepWatched is step with a logger that is listened to, at a level far above
// the operator's own, which no flag raises. From 8 on client-go logs whole
// requests.
func (f *fixture) stepWatched(w *watched, p *v1alpha1.ToolProposal) *v1alpha1.ToolProposal {
	f.t.Helper()
	logger := funcr.NewJSON(func(line string) { w.add("log", line) }, funcr.Options{Verbosity: 7})
	ctx := ctrl.LoggerInto(f.ctx, logger)
	if _, err := f.proposals.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)}); err != nil {
		w.add("error", err.Error())
	}
	p = f.reload(p)
	w.add("status", jsonOf(f.t, p.Status))
	return p
}

// watchedJournal listens to records as they are written.
type watchedJournal struct {
	audit.Journal
	t *testing.T
	w *watched
}

func (j *watchedJournal) Append(ctx context.Context, r audit.Record) (uint64, error) {
	text, err := attest.Encode(r.Data)
	if err != nil {
		j.t.Errorf("encoding a record: %v", err)
	}
	j.w.add("record", string(text))
	return j.Journal.Append(ctx, r)
}

func (j *watchedJournal) AppendAll(ctx context.Context, records []audit.Record) ([]uint64, error) {
	return oneByOne(ctx, j, records)
}

func TestSecret_InSensitiveArgumentsAndOutputs_IsInNothingTheOperatorSays(t *testing.T) {
	f := newFixture(t)
	w := &watched{}
	recorder := record.NewFakeRecorder(100)
	f.shared.Events = &controllers.Events{Recorder: recorder}
	f.shared.Journal = &watchedJournal{f.shared.Journal, t, w}
	read := f.metrics(func() map[v1alpha1.Phase]int { return nil }, func() string { return "" })
	sensitive := func(m *v1alpha1.ToolManifest) {
		m.Spec.Arguments[0].Sensitive = true
		m.Spec.Output = &v1alpha1.Output{Sensitive: true}
	}
	f.tool("restart", sensitive)
	f.tool("change", sensitive, humanApproval)
	f.tool("forbidden", sensitive)
	f.tool("erroneous", sensitive)
	f.policy("rules", `permit (principal, action, resource);
		forbid (principal, action, resource == Tool::"forbidden") when { context.invocation.arguments.target like "canary*" };
		forbid (principal, action, resource == Tool::"erroneous") when { decimal(context.invocation.arguments.target) == decimal("1.0") };`)
	arguments := `{"target":"` + canary + `"}`

	// A call that runs, whose output is the secret, and one whose runner fails.
	for _, outcome := range []attest.Outcome{attest.OutcomeSucceeded, attest.OutcomeFailed} {
		p := f.stepWatched(w, f.propose("restart", arguments))
		runner := f.runnerFor(p)
		key := runner.mustRedeem()
		f.stepWatched(w, p)
		if status := runner.deliver(key, runner.report(func(r *attest.Result) {
			r.Outcome, r.Stdout, r.Stderr = outcome, canary, canary
			if outcome == attest.OutcomeFailed {
				r.Reason = "ExitCode"
			}
		})); status/100 != 2 {
			t.Fatalf("reporting: got %d", status)
		}
		if p = f.stepWatched(w, p); !p.Status.Phase.Terminal() {
			t.Fatalf("the call has not ended: %s", jsonOf(t, p.Status))
		}
	}
	// Calls that are denied, that wait, and whose record cannot be made.
	for _, tool := range []string{"forbidden", "erroneous", "change"} {
		f.stepWatched(w, f.propose(tool, arguments))
	}
	journal := f.shared.Journal
	f.shared.Journal = &recorderWithout{}
	f.stepWatched(w, f.propose("restart", arguments))
	f.shared.Journal = journal
	// A call whose contract changed: nobody knows any more what was sensitive.
	changed := f.propose("restart", arguments)
	m := &v1alpha1.ToolManifest{}
	if err := server.admin.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: "restart"}, m); err != nil {
		t.Fatal(err)
	}
	m.Spec.Version, m.Spec.Arguments[0].Sensitive = "2", false
	if err := server.admin.Update(f.ctx, m); err != nil {
		t.Fatal(err)
	}
	f.stepWatched(w, changed)
	// Calls that admission refuses.
	for _, bad := range []string{
		`{"target":"` + canary + `1"}`, `{"target":"x","` + canary + `":1}`, `{"target":["` + canary + `"]}`,
		`{"target":"` + canary + `","target":"x"}`, `{"target":"` + canary,
	} {
		err := f.as(agent).Create(f.ctx, f.newProposal("restart", bad))
		if err == nil {
			t.Fatalf("arguments %s were accepted", bad)
		}
		w.add("refusal", jsonOf(t, err.Error()))
	}
	f.hear(w, recorder, read)
	if w.sources()["refusal"] == 0 {
		t.Error("nothing was heard of refusals: the test proves nothing about them")
	}
	w.check(t)
}

// recorderWithout takes no record at all.
type recorderWithout struct{}

func (recorderWithout) Append(context.Context, audit.Record) (uint64, error) {
	return 0, refuseAll(audit.Record{})
}

func (recorderWithout) AppendAll(context.Context, []audit.Record) ([]uint64, error) {
	return nil, refuseAll(audit.Record{})
}
