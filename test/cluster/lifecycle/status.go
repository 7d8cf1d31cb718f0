// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"text/tabwriter"
)

// Status describes the cluster in the state folder, for people. The error is
// about looking, not about the cluster; up says whether everything runs and the
// API server is ready.
func Status(ctx context.Context, state string, out io.Writer) (up bool, err error) {
	layout, err := NewLayout(state)
	if err != nil {
		return false, err
	}
	rec, err := layout.load()
	if errors.Is(err, ErrNotUp) {
		fmt.Fprintln(out, err)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(table, "mode\t%s\nserver\t%s\nkubeconfig\t%s\n", rec.Mode, rec.Server, layout.Kubeconfig())
	running := map[string]bool{}
	for _, process := range rec.running() {
		running[process.Name] = true
	}
	for _, process := range rec.Processes {
		state := "runs"
		if !running[process.Name] {
			state = "has ended, see " + layout.Log(process.Name)
		}
		fmt.Fprintf(table, "%s\t%s (process %d)\n", process.Name, state, process.PID)
	}
	up = rec.healthy() && layout.answers(ctx, rec.Mode, table)
	return up, table.Flush()
}

// answers adds what the API server says of itself and of the node.
func (l Layout) answers(ctx context.Context, mode Mode, table io.Writer) bool {
	client, err := l.client()
	if err != nil {
		fmt.Fprintf(table, "API server\t%v\n", err)
		return false
	}
	ready := client.ready(ctx)
	fmt.Fprintf(table, "API server ready\t%t\n", ready)
	if mode == ModeNode {
		node := client.condition(ctx, "/api/v1/nodes/"+nodeName, "Ready")
		dns := client.condition(ctx, dnsDeployment, "Available")
		fmt.Fprintf(table, "node ready\t%t\nDNS available\t%t\n", node, dns)
		ready = ready && node && dns
	}
	return ready
}

// Kubectl replaces this process by the kubectl of the cluster.
func Kubectl(state string, args, env []string) error {
	layout, err := NewLayout(state)
	if err != nil {
		return err
	}
	if _, err := layout.load(); err != nil {
		return err
	}
	kept := env[:0:0]
	for _, entry := range env {
		if !strings.HasPrefix(entry, "KUBECONFIG=") {
			kept = append(kept, entry)
		}
	}
	kubectl := layout.bin("kubectl")
	err = syscall.Exec(kubectl, append([]string{kubectl}, args...), append(kept, "KUBECONFIG="+layout.Kubeconfig()))
	return fmt.Errorf("starting kubectl: %w", err)
}

// IsUp is true if a cluster was started in the state folder and all of its
// processes run.
func IsUp(state string) (bool, error) {
	layout, err := NewLayout(state)
	if err != nil {
		return false, err
	}
	rec, err := layout.load()
	if errors.Is(err, ErrNotUp) {
		return false, nil
	}
	return err == nil && rec.healthy(), err
}
