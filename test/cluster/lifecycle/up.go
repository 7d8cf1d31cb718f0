// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options says which cluster a command means and how to start it.
type Options struct {
	// State is the folder that holds everything of this cluster.
	State string
	Mode  Mode
	// Binaries are the results of Build.
	Binaries Binaries
	// Attached makes the processes end with this command, however it ends. The
	// caller has to have locked itself to its thread.
	Attached bool
	// Progress receives one line for each step.
	Progress io.Writer
}

// startTimeout bounds each single wait while a cluster starts.
const startTimeout = 90 * time.Second

// cluster is one cluster while a command starts or stops it.
type cluster struct {
	Layout
	o   Options
	rec *record
	now func() time.Time
}

// Up starts a cluster and returns when it can be used. If the same cluster is
// already up, it does nothing. If parts of it have died, the rest is stopped and
// all of it started again. What was started is stopped when Up fails; logs stay.
func Up(ctx context.Context, o Options) (Layout, error) {
	layout, err := NewLayout(o.State)
	if err != nil {
		return Layout{}, err
	}
	release, err := layout.lockState()
	if err != nil {
		return Layout{}, err
	}
	defer release()
	c := &cluster{Layout: layout, o: o, now: time.Now}
	done, err := c.reuse()
	if err != nil || done {
		return layout, err
	}
	err = c.up(ctx)
	if portTaken(err) {
		err = c.up(ctx)
	}
	return layout, err
}

// reuse is true if the cluster is already there as asked for.
func (c *cluster) reuse() (bool, error) {
	rec, err := c.load()
	if errors.Is(err, ErrNotUp) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if rec.healthy() && rec.Mode != c.o.Mode {
		return false, fmt.Errorf("a cluster of the other kind (%s) is up in %s: stop it with \"assent-cluster down\" or use another state folder", rec.Mode, c.State)
	}
	if rec.healthy() {
		return true, nil
	}
	c.say("the cluster in %s is incomplete (%d of %d processes run): starting it anew", c.State, len(rec.running()), len(rec.Processes))
	c.rec = rec
	return false, c.tearDown(context.Background())
}

func (c *cluster) up(ctx context.Context) error {
	err := c.startAll(ctx)
	if err == nil {
		return nil
	}
	if stopErr := c.tearDown(context.WithoutCancel(ctx)); stopErr != nil {
		return errors.Join(err, fmt.Errorf("stopping what had started: %w", stopErr))
	}
	return err
}

func (c *cluster) startAll(ctx context.Context) error {
	if err := c.create(); err != nil {
		return err
	}
	c.rec = &record{Mode: c.o.Mode, BootID: bootID()}
	if err := c.save(c.rec); err != nil {
		return err
	}
	if err := c.linkPrograms(); err != nil {
		return err
	}
	if c.o.Mode == ModeNode {
		if err := c.prepareNode(ctx); err != nil {
			return err
		}
	}
	if err := c.startControlPlane(ctx); err != nil {
		return err
	}
	if c.o.Mode == ModeNode {
		if err := c.startNode(ctx); err != nil {
			return err
		}
	}
	c.rec.Ready = true
	return c.save(c.rec)
}

// launch starts a process and records it at once, so that it is found again
// even if this command is killed right afterwards.
func (c *cluster) launch(ctx context.Context, s spec) (Process, error) {
	process, err := c.start(ctx, s, c.o.Attached)
	if err != nil {
		return Process{}, err
	}
	c.rec.Processes = append(c.rec.Processes, process)
	return process, c.save(c.rec)
}

// await waits until ready is true of p. It ends early, with the end of its log,
// when any process of the cluster dies: they all need each other.
func (c *cluster) await(ctx context.Context, p Process, what string, ready func(context.Context) bool) error {
	started := c.now()
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errNotReady)
	defer cancel()
	err := poll(ctx, func() (bool, error) {
		for _, process := range c.rec.Processes {
			if !process.Alive() {
				return false, c.startError(process, "ended while starting")
			}
		}
		return ready(ctx), nil
	})
	if errors.Is(err, errNotReady) {
		return c.startError(p, fmt.Sprintf("was not %s after %s", what, startTimeout))
	}
	if err != nil {
		return err
	}
	c.say("%-24s %s after %.1f s", p.Name, what, c.now().Sub(started).Seconds())
	return nil
}

var errNotReady = errors.New("not ready in time")

func (c *cluster) startError(p Process, reason string) error {
	return &StartError{Process: p.Name, Reason: reason, LogFile: c.Log(p.Name), LogTail: tail(c.Log(p.Name))}
}

// portTaken recognises that another program took the API server's port between
// its choice and its use.
func portTaken(err error) bool {
	start, ok := errors.AsType[*StartError](err)
	return ok && start.Process == "kube-apiserver" &&
		strings.Contains(start.LogTail, "address already in use")
}

func (c *cluster) say(format string, args ...any) {
	if c.o.Progress != nil {
		fmt.Fprintf(c.o.Progress, format+"\n", args...)
	}
}

// linkPrograms gives the cluster its own copy of the binary, which the build
// cache may drop meanwhile, under every name that the binary answers to.
func (c *cluster) linkPrograms() error {
	own := c.bin(filepath.Base(c.o.Binaries.Kube))
	if err := copyFile(c.o.Binaries.Kube, own); err != nil {
		return fmt.Errorf("placing the cluster's programs: %w", err)
	}
	for _, program := range kubePrograms {
		if err := os.Symlink(own, c.bin(program)); err != nil {
			return fmt.Errorf("placing the cluster's programs: %w", err)
		}
	}
	return nil
}

// copyFile uses a second name for the same file where that is possible.
func copyFile(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700) //nolint:gosec // a program
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		_ = target.Close()
		return err
	}
	return target.Close()
}
