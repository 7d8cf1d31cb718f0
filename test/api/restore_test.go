// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/assent-dev/assent/controllers"
)

// The test cannot put etcd back. It puts the mark forward instead, which is the
// same to the operator: it has seen a later state than the cluster has.
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
