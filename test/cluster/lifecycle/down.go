// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// stopGrace is how long a process of the node may take to end by itself.
const stopGrace = 10 * time.Second

// Down stops the cluster in the state folder and puts the machine back as it
// was. It is no error if none is up. Logs and the build cache stay.
func Down(ctx context.Context, state string, progress io.Writer) error {
	layout, err := NewLayout(state)
	if err != nil {
		return err
	}
	if _, err := os.Stat(layout.State); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	release, err := layout.lockState()
	if err != nil {
		return err
	}
	defer release()
	rec, err := layout.load()
	if errors.Is(err, ErrNotUp) {
		return nil
	}
	if err != nil {
		return err
	}
	c := &cluster{Layout: layout, o: Options{Mode: rec.Mode, Progress: progress}, rec: rec, now: time.Now}
	return c.tearDown(ctx)
}

// tearDown goes on after a failure: the more is gone, the less is left to be
// cleaned up by hand. The state is kept if anything could not be removed, so
// that it can be tried again.
func (c *cluster) tearDown(ctx context.Context) error {
	if c.rec == nil {
		return nil
	}
	var err error
	if c.rec.Machine != nil {
		err = c.stopNode(ctx)
	}
	if stopErr := c.stopRest(); stopErr != nil {
		err = errors.Join(err, stopErr)
	}
	if c.rec.Machine != nil {
		err = errors.Join(err, c.restoreMachine(ctx))
	}
	if err != nil {
		return fmt.Errorf("stopping the cluster in %s: %w", c.State, err)
	}
	return c.removeCluster()
}

// stopRest ends what still runs, last started first. Nothing is lost by killing
// a control plane: its data is deleted next.
func (c *cluster) stopRest() error {
	var failures []error
	for _, process := range slices.Backward(c.rec.running()) {
		if err := process.stop(0); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// stopNamed ends one process by itself, if it still runs.
func (c *cluster) stopNamed(name string) error {
	for _, process := range c.rec.running() {
		if process.Name == name {
			return process.stop(stopGrace)
		}
	}
	return nil
}
