// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
	"github.com/assent-dev/assent/execution"
	"github.com/assent-dev/assent/internal/audit"
)

// Here etcd is not put back. The mark is put forward instead, which is the same
// to the operator: it has seen a later state than the cluster has.
func TestClusterThatWasRestored_GrantsNothingUntilTheEpochIsRaised(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.policy("allow", permitAll)
	path := filepath.Join(t.TempDir(), "cluster-revision")
	start := func(epoch int64) {
		w := &controllers.Watermark{Live: server.admin, Path: path, Epoch: epoch, Now: f.clock.Now}
		f.shared.Restored, f.shared.Epoch = w.Check, func() int64 { return epoch }
	}
	start(0)
	if got, want := outcome(f.step(f.propose("restart", `{"target":"web"}`))), "Dispatching/Granted"; got != want {
		t.Fatalf("before: got %s, want %s", got, want)
	}
	start(0)
	if got, want := outcome(f.step(f.propose("restart", `{"target":"web"}`))), "Dispatching/Granted"; got != want {
		t.Fatalf("after a restart: got %s, want %s", got, want)
	}
	if err := os.WriteFile(path, []byte("0 9000000000000000000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	start(0)
	p := f.propose("restart", `{"target":"web"}`)
	for range 3 {
		if got, want := outcome(f.step(p)), "Pending/RestoreDetected"; got != want {
			t.Errorf("restored: got %s, want %s", got, want)
		}
	}
	if n := len(f.jobs()); n != 2 {
		t.Errorf("a restored cluster granted a call: %d Jobs, want 2", n)
	}
	start(1)
	if got, want := outcome(f.step(p)), "Invalid/Unsealed"; got != want {
		t.Errorf("a call of the earlier epoch: got %s, want %s", got, want)
	}
	w := &controllers.Watermark{Live: server.admin, Path: path, Epoch: 1, Now: f.clock.Now}
	if restored, err := w.Check(f.ctx); restored != "" || err != nil {
		t.Errorf("in the new epoch: got %q, %v, want nothing", restored, err)
	}
	start(0)
	w = &controllers.Watermark{Live: server.admin, Path: path, Epoch: 0, Now: f.clock.Now}
	if restored, err := w.Check(f.ctx); restored == "" || err != nil {
		t.Errorf("with the epoch lowered again: got %q, %v, want a finding", restored, err)
	}
}

func TestWatermark_ThatCannotBeRead_IsAnError(t *testing.T) {
	f := newFixture(t)
	path := filepath.Join(t.TempDir(), "cluster-revision")
	for name, text := range map[string]string{"empty": "", "no numbers": "a b\n"} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, fmt.Append(nil, text), 0o600); err != nil {
				t.Fatal(err)
			}
			w := &controllers.Watermark{Live: server.admin, Path: path, Now: f.clock.Now}
			if restored, err := w.Check(f.ctx); err == nil {
				t.Errorf("got %q and no error", restored)
			}
		})
	}
}

// controlPlane is an API server of one test's own, whose etcd can be put back.
type controlPlane struct {
	t       *testing.T
	program string
	state   string
}

// ownControlPlane starts one and lets the test's fixtures use it.
func ownControlPlane(t *testing.T) *controlPlane {
	t.Helper()
	program, err := filepath.Abs(filepath.Join(repository, "bin", "assent-cluster"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); server == nil || errors.Is(err, fs.ErrNotExist) {
		t.Skip("needs bin/assent-cluster to start an API server of its own: run it by \"make test-api\"")
	}
	c := &controlPlane{t: t, program: program, state: filepath.Join(t.TempDir(), "state")}
	t.Cleanup(func() { c.do("down") })
	kubeconfig := c.do("up", "--control-plane-only")
	t.Setenv("KUBECONFIG", strings.TrimSpace(kubeconfig))
	// Its admission serves until the fixtures are cleared.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(cancel)
	own, err := start(ctx)
	if err != nil {
		t.Fatalf("preparing the API server: %v", err)
	}
	shared := server
	t.Cleanup(func() { server = shared })
	server = own
	return c
}

func (c *controlPlane) do(args ...string) string {
	c.t.Helper()
	cmd := exec.Command(c.program, append([]string{"--state", c.state}, args...)...)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("assent-cluster %s: %v\n%s", args[0], err, problems.String())
	}
	return string(out)
}

// etcd is put back to a time at which one call waited, approved, one had been
// granted a moment ago, and one did not exist. All three have run since. What
// the operator remembers outside of the cluster is all that says so.
func TestEtcdThatWasRestored_RunsNothingTwice(t *testing.T) {
	plane := ownControlPlane(t)
	f := newFixture(t)
	log := f.record()
	path := filepath.Join(t.TempDir(), "cluster-revision")
	var watermark *controllers.Watermark
	restart := func(epoch int64) {
		watermark = &controllers.Watermark{Live: server.admin, Path: path, Epoch: epoch, Now: f.clock.Now, Alarm: func(ctx context.Context) error {
			_, err := log.Append(ctx, audit.Record{Time: f.clock.Now(), Data: audit.IntegrityAlarm{Reason: v1alpha1.ReasonRestoreDetected}})
			return err
		}}
		f.shared = f.restarted()
		f.shared.Restored, f.shared.Epoch = watermark.Check, func() int64 { return epoch }
		f.proposals = &controllers.ProposalReconciler{Config: f.shared}
		server.epoch.Store(epoch)
	}
	restart(0)
	f.tool("restart")
	f.tool("change", humanApproval)
	f.policy("allow", permitAll)
	approved := f.step(f.propose("change", `{"target":"web"}`))
	receipt := newReceipt(approved)
	if err := f.as(approver).Create(f.ctx, receipt); err != nil {
		t.Fatal(err)
	}
	granted, _ := f.dispatched("restart", `{"target":"db"}`)
	backup := filepath.Join(t.TempDir(), "backup")
	plane.do("backup", backup)

	run := func(p *v1alpha1.ToolProposal) {
		if ending := f.run(p); ending.Code != 0 {
			t.Fatalf("running %s: %v", p.Name, ending.Err)
		}
		f.step(f.reload(p))
		if p = f.step(f.reload(p)); !p.Status.Phase.Terminal() {
			t.Fatalf("%s has not ended: %s", p.Name, outcome(p))
		}
	}
	run(f.step(approved))
	run(granted)
	later, _ := f.dispatched("restart", `{"target":"later"}`)
	run(later)
	f.clock.advance(2 * time.Second)
	f.dispatched("restart", `{"target":"mark"}`)

	plane.do("restore", backup)
	records := len(log.all())
	f.wantOutcome(f.reload(approved), "AwaitingApproval/AwaitingApproval")
	f.wantOutcome(f.reload(granted), "Dispatching/Granted")
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("operator restarted: %v", restarted), func(t *testing.T) {
			if restarted {
				restart(0)
			}
			f := f.in(t)
			fresh := f.propose("restart", `{"target":"new"}`)
			got := map[string]string{
				"approved": outcome(f.step(approved)), "fresh": outcome(f.step(f.step(fresh))),
				"granted, with its Job": outcome(f.step(granted)),
			}
			want := map[string]string{
				"approved": "Pending/RestoreDetected", "fresh": "Pending/RestoreDetected", "granted, with its Job": "Dispatching/Granted",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			runner := f.runnerFor(granted)
			runner.endpoint = f.endpoint(func(s *execution.Server) { s.Restored = watermark.Look })
			if status, _ := runner.redeem(); status != 503 {
				t.Errorf("a Pod of the granted call: got %d, want 503", status)
			}
			if n := len(f.jobs()); n != 1 {
				t.Errorf("%d Jobs, want the one of the backup", n)
			}
		})
	}
	t.Run("the granted call past its deadline, and without its Job", func(t *testing.T) {
		restart(0)
		f := f.in(t)
		f.clock.advance(f.shared.Settings().StartTimeout)
		if got, want := outcome(f.step(granted)), "Dispatching/RestoreDetected"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		f.step(granted)
		if n := len(f.jobs()); n != 0 {
			t.Errorf("%d Jobs, want none", n)
		}
	})
	want := []string{"IntegrityAlarm", "IntegrityAlarm", "IntegrityAlarm"}
	if diff := cmp.Diff(want, log.types()[records:]); diff != "" {
		t.Errorf("records, one of each operator (-want +got):\n%s", diff)
	}
	restart(1)
	f.checkNextEpoch(approved, granted, receipt)
}

// checkNextEpoch looks at what becomes of everything once an operator was told
// to go on.
func (f *fixture) checkNextEpoch(approved, granted *v1alpha1.ToolProposal, receipt *v1alpha1.ApprovalReceipt) {
	f.t.Helper()
	got := map[string]string{"approved": outcome(f.step(approved)), "granted": outcome(f.step(granted))}
	want := map[string]string{"approved": "Invalid/Unsealed", "granted": "Indeterminate/RestoreDetected"}
	if diff := cmp.Diff(want, got); diff != "" {
		f.t.Errorf("calls of the earlier epoch (-want +got):\n%s", diff)
	}
	f.step(approved)
	f.wantVerdict(receipt, "Valid=False/NotAwaitingApproval Consumed=False/NotConsumed ")
	again := f.step(f.propose("change", `{"target":"web"}`))
	f.wantOutcome(again, "AwaitingApproval/AwaitingApproval")
	f.decide(again, v1alpha1.ReceiptApproved, approver)
	f.wantOutcome(f.step(again), "Dispatching/Granted")
	if ending := f.run(f.reload(again)); ending.Code != 0 {
		f.t.Errorf("running a call of the new epoch: %v", ending.Err)
	}
}
