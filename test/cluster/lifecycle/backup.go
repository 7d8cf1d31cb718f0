// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"time"
)

// Backup copies what the cluster's store holds into a folder that does not
// exist yet. The control plane is down meanwhile and comes back at its address.
func Backup(ctx context.Context, state, to string, progress io.Writer) error {
	return withoutStore(ctx, state, progress, func(data string) error {
		return os.CopyFS(to, os.DirFS(data))
	})
}

// Restore puts the store back to what Backup copied. Whatever was stored since
// is gone, and resource versions go on from where they were then.
func Restore(ctx context.Context, state, from string, progress io.Writer) error {
	if _, err := os.Stat(from); err != nil {
		return fmt.Errorf("restoring the store: %w", err)
	}
	return withoutStore(ctx, state, progress, func(data string) error {
		if err := os.RemoveAll(data); err != nil {
			return err
		}
		if err := os.CopyFS(data, os.DirFS(from)); err != nil {
			return err
		}
		return os.Chmod(data, 0o700) //nolint:gosec // a folder
	})
}

// withoutStore stops the control plane, does something with the folder of the
// store, and starts the control plane again.
func withoutStore(ctx context.Context, state string, progress io.Writer, do func(data string) error) error {
	layout, err := NewLayout(state)
	if err != nil {
		return err
	}
	release, err := layout.lockState()
	if err != nil {
		return err
	}
	defer release()
	rec, err := layout.load()
	if err != nil {
		return err
	}
	if rec.Mode != ModeControlPlane {
		return errors.New("only a control plane without a node can be backed up and restored")
	}
	c := &cluster{Layout: layout, o: Options{Mode: rec.Mode, Progress: progress}, rec: rec, now: time.Now}
	for _, program := range []string{"kube-apiserver", "etcd"} {
		if err := c.stopNamed(program); err != nil {
			return err
		}
	}
	if err := do(layout.data("etcd")); err != nil {
		return fmt.Errorf("copying the store: %w", err)
	}
	return c.startAgain(ctx)
}

// startAgain starts the control plane at the address that it had.
func (c *cluster) startAgain(ctx context.Context) error {
	u, err := url.Parse(c.rec.Server)
	if err != nil {
		return fmt.Errorf("reading the server's address: %w", err)
	}
	host, text, err := net.SplitHostPort(u.Host)
	if err != nil {
		return fmt.Errorf("reading the server's address: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("reading the server's address: %w", err)
	}
	c.rec.Processes = nil
	return c.startServers(ctx, host, port)
}
