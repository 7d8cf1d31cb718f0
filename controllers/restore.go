// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/proposal"
)

// Watermark remembers, outside the cluster, how far the cluster's store had
// come: the resourceVersion of its latest state that a grant was checked
// against. A store that is behind it was put back to an earlier state, in which
// used receipts look fresh; then nothing is granted until the epoch is raised,
// by which every earlier seal and receipt is void.
//
// Resource versions of one kind are comparable numbers (KEP-5504). A backup
// that is restored with its revision raised above the mark is not recognised.
type Watermark struct {
	// Live reads from the API server.
	Live client.Reader
	// Path of the file that keeps the mark. It must not be part of what is
	// restored with the cluster.
	Path string
	// Epoch is the operator's restore epoch.
	Epoch int64
	Now   func() time.Time
	// Alarm records the first finding; nil does nothing. While it fails it is
	// tried again.
	Alarm func(ctx context.Context) error

	mu       sync.Mutex
	alarmed  bool
	loaded   bool
	mark     uint64
	stored   time.Time
	restored string
}

// storeEvery bounds how often the mark is written. After a crash it is behind
// by that much: a restore to within it is not recognised.
const storeEvery = time.Second

// Check compares the cluster with the mark and moves the mark on. It returns
// what is wrong, which stays until a restart with a higher epoch, or why it
// could not be found out.
func (w *Watermark) Check(ctx context.Context) (restored string, err error) {
	before, err := w.seen()
	if err != nil {
		return "", err
	}
	now, err := w.revision(ctx)
	if err != nil {
		return "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// Only what was seen before this read began must be behind it: a read that
	// began later may have come first and moved the mark on.
	if w.restored == "" && now < before {
		w.restored = w.behind(now, before)
	}
	if w.restored != "" {
		return w.restored, w.alarm(ctx)
	}
	w.mark = max(w.mark, now)
	if w.Now().Sub(w.stored) < storeEvery {
		return "", nil
	}
	w.stored = w.Now()
	return "", w.store()
}

// Look compares the cluster with the mark that is stored, and changes nothing:
// it is for the replicas that do not lead, which must not store marks of their
// own.
func (w *Watermark) Look(ctx context.Context) (restored string, err error) {
	stored := Watermark{Path: w.Path, Epoch: w.Epoch}
	if err := stored.load(); err != nil || stored.restored != "" {
		return stored.restored, err
	}
	now, err := w.revision(ctx)
	if err != nil {
		return "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.restored == "" && now < stored.mark {
		return w.behind(now, stored.mark), nil
	}
	return w.restored, nil
}

// revision is the resource version of the cluster's latest state.
func (w *Watermark) revision(ctx context.Context) (uint64, error) {
	var list v1alpha1.ToolProposalList
	// kube-apiserver goes through everything that a list could be of, whatever
	// its limit. The version is the same where nobody has calls.
	if err := w.Live.List(ctx, &list, client.InNamespace(metav1.NamespaceSystem), client.Limit(1)); err != nil {
		return 0, fmt.Errorf("reading the cluster's resource version: %w", err)
	}
	now, err := strconv.ParseUint(list.ResourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the cluster's resource version: %w", err)
	}
	return now, nil
}

func (w *Watermark) behind(now, before uint64) string {
	return fmt.Sprintf("the cluster is at resource version %d, which is before %d that was seen already: it was restored from a backup; "+
		"raise the operator's --epoch above %d to go on, which voids every earlier call and receipt", now, before, w.Epoch)
}

// restoredRecheck is how soon a call that is held is looked at again.
const restoredRecheck = 10 * time.Second

// holdRestored changes a step that would run a call, or say that it never ran,
// while the cluster is at an earlier state: it may have run in the state that
// was lost. What the step would stop is stopped all the same.
func (r *ProposalReconciler) holdRestored(ctx context.Context, p *v1alpha1.ToolProposal, step proposal.Step) (proposal.Step, error) {
	if r.Restored == nil || p.Status.RedeemedBy != nil || (!step.CreateJob && !step.Phase.Terminal()) {
		return step, nil
	}
	restored, err := r.Restored(ctx)
	if err != nil || restored == "" {
		return step, err
	}
	return proposal.Step{
		Phase: p.Status.Phase, Reason: v1alpha1.ReasonRestoreDetected, Message: restored,
		StopJob: step.StopJob, Recheck: restoredRecheck,
	}, nil
}

// seen is the mark as it is now.
func (w *Watermark) seen() (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.loaded {
		return w.mark, nil
	}
	err := w.load()
	return w.mark, err
}

func (w *Watermark) alarm(ctx context.Context) error {
	if w.alarmed || w.Alarm == nil {
		return nil
	}
	if err := w.Alarm(ctx); err != nil {
		return fmt.Errorf("recording that the cluster was restored: %w", err)
	}
	w.alarmed = true
	return nil
}

// load reads the mark. One of an earlier epoch counts for nothing any more.
func (w *Watermark) load() error {
	text, err := os.ReadFile(w.Path)
	if errors.Is(err, os.ErrNotExist) {
		w.loaded = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the watermark: %w", err)
	}
	var epoch int64
	var mark uint64
	if _, err := fmt.Sscanf(string(text), "%d %d\n", &epoch, &mark); err != nil {
		return fmt.Errorf("reading the watermark: %w", err)
	}
	switch {
	case epoch > w.Epoch:
		w.restored = fmt.Sprintf("the operator's --epoch is %d, but it was %d already: it must never be lowered", w.Epoch, epoch)
	case epoch == w.Epoch:
		w.mark = mark
	}
	w.loaded = true
	return nil
}

// store writes a new file and renames it, so that a crash leaves one of the two.
func (w *Watermark) store() error {
	f, err := os.CreateTemp(filepath.Dir(w.Path), ".watermark-*")
	if err != nil {
		return fmt.Errorf("writing the watermark: %w", err)
	}
	_, err = fmt.Fprintf(f, "%d %d\n", w.Epoch, w.mark)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("writing the watermark: %w", errors.Join(err, os.Remove(f.Name())))
	}
	if err := os.Rename(f.Name(), w.Path); err != nil {
		return fmt.Errorf("writing the watermark: %w", err)
	}
	return nil
}
