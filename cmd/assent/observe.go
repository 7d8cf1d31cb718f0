// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
	"github.com/assent-dev/assent/internal/audit"
)

// version is set when a release is built.
var version = "dev"

// watermarkFile keeps, beside the audit log, how far the cluster had come.
const watermarkFile = "cluster-revision"

// restored says whether the audit log or the cluster was put back to an earlier
// state.
func (op *operator) restored() func(context.Context) (string, error) {
	op.watermark = &controllers.Watermark{
		Live: op.reads, Path: filepath.Join(op.options.auditDir, watermarkFile), Epoch: op.options.epoch, Now: time.Now,
		Alarm: func(ctx context.Context) error {
			_, err := op.journal.Append(ctx, audit.Record{Time: time.Now(), Data: audit.IntegrityAlarm{Reason: v1alpha1.ReasonRestoreDetected}})
			return err
		},
	}
	return func(ctx context.Context) (string, error) {
		if restored := op.journal.wasRestored(); restored != "" {
			return restored, nil
		}
		return op.watermark.Check(ctx)
	}
}

// queue counts the calls that have not ended, from the informer.
func (op *operator) queue() map[v1alpha1.Phase]int {
	var list v1alpha1.ToolProposalList
	counts := map[v1alpha1.Phase]int{}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	// Nothing is changed in the objects, of which there may be many.
	if err := op.mgr.GetCache().List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return counts
	}
	for i := range list.Items {
		phase := list.Items[i].Status.Phase
		if phase == "" {
			phase = v1alpha1.PhasePending
		}
		if !phase.Terminal() {
			counts[phase]++
		}
	}
	return counts
}
