// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/assent-dev/assent/internal/job"
	"github.com/assent-dev/assent/internal/runner"
)

// That its network is open is the one thing a runner says before it asks for
// its call, and so by the exit code alone. Whoever forges it changes the reason
// of a call that did not run, and nothing about one that may have.
func TestPod_ThatSaysItsNetworkIsOpen_IsBelievedOnlyBeforeTheCallWasRedeemed(t *testing.T) {
	if job.ExitNotIsolated != int(runner.ExitNotIsolated) {
		t.Fatalf("the controller looks for exit code %d, the runner ends with %d", job.ExitNotIsolated, runner.ExitNotIsolated)
	}
	for name, tc := range map[string]struct {
		redeem bool
		want   string
	}{
		"before the call was redeemed": {false, "Failed/EgressNotIsolated"},
		"after the call was redeemed":  {true, "Indeterminate/ResultLost"},
	} {
		t.Run(name, func(t *testing.T) {
			f := callFixture(t)
			p, _ := f.dispatched("restart", web)
			r := f.runnerFor(p)
			if tc.redeem {
				r.mustRedeem()
			}
			r.pod.Status.Phase = corev1.PodFailed
			r.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: job.ContainerName, Image: "runner", ImageID: "runner",
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: job.ExitNotIsolated}},
			}}
			f.mustWriteStatus(r.pod)
			f.completeJob(f.jobOf(p))
			if tc.redeem {
				f.clock.advance(f.shared.Settings().StartTimeout)
			}
			if got := outcome(f.step(p)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
