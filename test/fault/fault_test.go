// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/audit"
)

// long says that everything is to be run, not only the short set.
func long() bool { return os.Getenv("ASSENT_LONG_TESTS") != "" }

const (
	// maxPasses bounds how often the controller looks at a call while no
	// runner is at work; after idlePasses without one, time must pass.
	maxPasses, idlePasses = 60, 10
	// patience bounds a call in real time, for a machine that is busy.
	patience = 2 * time.Minute
)

// overtake lets another replica look at every call once.
func (w *world) overtake() {
	second := w.newOperator()
	for _, key := range w.keys() {
		_ = second.step(key)
	}
}

func (w *world) keys() []types.NamespacedName {
	var list v1alpha1.ToolProposalList
	if err := admin.List(w.ctx, &list, client.InNamespace(w.namespace)); err != nil {
		w.t.Errorf("listing proposals: %v", err)
	}
	var out []types.NamespacedName
	for i := range list.Items {
		out = append(out, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return out
}

// follow runs one call to its end. An operator that a fault has ended is
// followed by a new one, as a Deployment would.
func (w *world) follow(p *v1alpha1.ToolProposal, frozen bool) *v1alpha1.ToolProposal {
	w.t.Helper()
	key := client.ObjectKeyFromObject(p)
	begun := time.Now()
	for pass := 0; pass < maxPasses && time.Since(begun) < patience; pass++ {
		o := w.operator(frozen)
		_ = o.step(key)
		w.kubelet()
		now := &v1alpha1.ToolProposal{}
		if err := admin.Get(w.ctx, key, now); err != nil {
			w.t.Fatal(err)
		}
		switch {
		case now.Status.Phase.Terminal():
			w.settle(key)
			return now
		case w.active.Load() > 0:
			// A runner is at work: no time passes but its own.
			pass = 0
			time.Sleep(10 * time.Millisecond) //nolint:forbidigo // it works in real time
		case pass > idlePasses:
			// Nothing moves by itself any more: time must.
			w.advance(time.Minute)
		}
	}
	w.t.Fatalf("%s did not end", p.Name)
	return nil
}

// settle looks at an ended call a few times more: nothing may change.
func (w *world) settle(key types.NamespacedName) {
	for range 3 {
		_ = w.operator(false).step(key)
		w.kubelet()
	}
	w.runners.Wait()
}

func (w *world) operator(frozen bool) *operator {
	w.mu.Lock()
	o := w.serving
	w.mu.Unlock()
	if o != nil && o.alive() {
		return o
	}
	o = w.newOperator()
	if frozen {
		o.frozen = map[types.NamespacedName]*v1alpha1.ToolProposal{}
	}
	w.mu.Lock()
	w.serving = o
	w.mu.Unlock()
	return o
}

func (w *world) wantSound() {
	w.t.Helper()
	w.mu.Lock()
	calls := w.calls
	w.mu.Unlock()
	lines := w.record.all()
	if broken := check(lines, calls); len(broken) > 0 {
		w.t.Errorf("%s", strings.Join(broken, "\n"))
		for i, l := range lines {
			w.t.Logf("%3d %s %s %s/%s %s", i, l.kind, l.detail, l.phase, l.reason, l.value)
		}
	}
}

// operations are those of a call to which nothing happens.
func operations(t *testing.T, how way, approval bool) []string {
	t.Helper()
	w := newWorldOf(t, how, approval)
	p := w.follow(w.propose(), false)
	w.wantSound()
	if got, want := string(p.Status.Phase)+"/"+p.Status.Reason, "Succeeded/Succeeded"; got != want {
		t.Fatalf("%s: got %s, want %s", how, got, want)
	}
	return w.faults.seen
}

// consents is whether people are asked, which adds writes.
var consents = map[string]bool{"allowed by policy": false, "approved by a person": true}

// Every operation of a call goes wrong once in every manner, for every way to
// have an effect. In the short set each operation does so in two of the four
// manners, and the ways take turns.
func TestCall_KeepsItsInvariantsWhateverGoesWrongOnce(t *testing.T) {
	for name, approval := range consents {
		if !approval && !long() {
			// The approved call makes all the writes of the other and more.
			continue
		}
		names := operations(t, overHTTP, approval)
		for _, how := range []way{overMCP, byCommand} {
			if diff := cmp.Diff(names, operations(t, how, approval)); diff != "" {
				t.Fatalf("a call %s does other things (-over HTTP +it):\n%s", how, diff)
			}
		}
		for i, operation := range names {
			for k, e := range effects {
				for n, how := range allWays {
					if !long() && (k%2 != i%2 || (i+k/2)%len(allWays) != n) {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/%s %d, %s", name, how, e, i+1, operation), func(t *testing.T) {
						t.Parallel()
						goesWrongOnce(t, how, approval, i+1, e)
					})
				}
			}
		}
	}
}

func goesWrongOnce(t *testing.T, how way, approval bool, at int, e effect) {
	t.Helper()
	w := newWorldOf(t, how, approval)
	w.faults.at, w.faults.effect = at, e
	p := w.follow(w.propose(), false)
	w.wantSound()
	// One fault never costs the call: it is resumed.
	if got, want := string(p.Status.Phase)+"/"+p.Status.Reason, "Succeeded/Succeeded"; got != want {
		t.Errorf("got %s, want %s: %s", got, want, p.Status.Message)
	}
}

// An informer that shows a call for ever as it was first must not let anything
// happen twice. Only the commit point acts on it, and that looks for itself.
func TestCall_WithAFrozenCache_IsGrantedOnce(t *testing.T) {
	for name, approval := range map[string]bool{"approved": true, "allowed": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, approval)
			p := w.propose()
			key := client.ObjectKeyFromObject(p)
			stale := w.newOperator()
			stale.frozen = map[types.NamespacedName]*v1alpha1.ToolProposal{}
			w.mu.Lock()
			w.serving = stale
			w.mu.Unlock()
			for range 20 {
				_ = stale.step(key)
				w.kubelet()
				w.advance(time.Second)
			}
			w.runners.Wait()
			stale.die()
			w.follow(p, false)
			w.wantSound()
			grants := 0
			for _, l := range w.record.all() {
				if l.kind == audited && l.detail == string(audit.TypeDispatched) {
					grants++
				}
			}
			if grants != 1 {
				t.Errorf("%d grants are recorded, want the one that was made", grants)
			}
		})
	}
}

// The proposal is decided on as the informer knows it. One that changed
// meanwhile is not the one that the grant is written for.
func TestCall_ThatChangedUnseen_IsNotGranted(t *testing.T) {
	for name, change := range map[string]func(*world, *v1alpha1.ToolProposal) error{
		"deleted": func(w *world, p *v1alpha1.ToolProposal) error { return admin.Delete(w.ctx, p) },
		"written by somebody": func(w *world, p *v1alpha1.ToolProposal) error {
			p.Labels = map[string]string{"seen": "no"}
			return admin.Update(w.ctx, p)
		},
		"gone, and another of its name": func(w *world, p *v1alpha1.ToolProposal) error {
			p.Finalizers = nil
			if err := admin.Update(w.ctx, p); err != nil {
				return err
			}
			if err := admin.Delete(w.ctx, p); err != nil {
				return err
			}
			other := w.sealed()
			other.GenerateName, other.Name = "", p.Name
			return admin.Create(w.ctx, other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, false)
			p := w.propose()
			key := client.ObjectKeyFromObject(p)
			stale := w.operator(true)
			if err := stale.read(w.ctx, admin, key, &v1alpha1.ToolProposal{}); err != nil {
				t.Fatal(err)
			}
			if err := change(w, w.get(p)); err != nil {
				t.Fatal(err)
			}
			if err := stale.step(key); err != nil {
				t.Errorf("a conflict is no error but a reason to look again: %v", err)
			}
			var jobs batchv1.JobList
			if err := admin.List(w.ctx, &jobs, client.InNamespace(w.namespace)); err != nil || len(jobs.Items) != 0 {
				t.Errorf("%d Jobs were made (%v), want none", len(jobs.Items), err)
			}
			if d := w.get(p).Status.Dispatch; d != nil {
				t.Error("a grant was written for an object that was not decided on")
			}
		})
	}
}

// Three replicas without a leader look at all calls in any order.
func TestReplicas_WithoutALeader_RunEachCallOnce(t *testing.T) {
	n := 50
	if long() {
		n = 500
	}
	w := newWorld(t, true)
	for range n {
		w.propose()
	}
	keys := w.keys()
	w.operator(false)
	var replicas sync.WaitGroup
	for i := range 3 {
		o := w.newOperator()
		random := rand.New(rand.NewPCG(1, uint64(i)))
		replicas.Go(func() {
			for range maxPasses {
				open := 0
				for _, k := range random.Perm(len(keys)) {
					if w.open(keys[k]) {
						open++
						_ = o.step(keys[k])
					}
				}
				if open == 0 {
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { replicas.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(20 * time.Millisecond):
			w.kubelet()
		}
	}
	w.runners.Wait()
	w.wantSound()
	succeeded := 0
	for _, l := range w.record.all() {
		if l.kind == effected {
			succeeded++
		}
	}
	if succeeded != n {
		t.Errorf("%d of %d calls had their effect", succeeded, n)
	}
}

func (w *world) open(key types.NamespacedName) bool {
	p := &v1alpha1.ToolProposal{}
	return admin.Get(w.ctx, key, p) == nil && !p.Status.Phase.Terminal()
}
