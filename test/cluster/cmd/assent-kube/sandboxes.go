// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	criapi "k8s.io/cri-api/pkg/apis"
	criclient "k8s.io/cri-client/pkg"
)

// sandboxTimeout bounds one call to the container runtime, and the connection
// to it, when the node is being stopped.
const sandboxTimeout = 30 * time.Second

// removeSandboxes ends every Pod of the container runtime whose endpoint is the
// only argument. Going through the runtime, rather than killing processes, makes
// it call the network plugin's DEL and unmount what it mounted.
func removeSandboxes() int {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: remove-sandboxes unix:///path/to/containerd.sock")
		return 2
	}
	ctx := context.Background()
	runtime, err := criclient.NewRemoteRuntimeService(ctx, os.Args[1], sandboxTimeout, nil, false)
	if err != nil {
		fmt.Fprintf(os.Stderr, "connecting to the container runtime: %v\n", err)
		return 1
	}
	defer runtime.Close(ctx)
	removed, err := removeAll(ctx, runtime)
	fmt.Printf("removed %d sandboxes\n", removed)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// removeAll keeps going after a failure, so that one stuck Pod does not leave
// all others behind.
func removeAll(ctx context.Context, runtime criapi.PodSandboxManager) (int, error) {
	sandboxes, err := runtime.ListPodSandbox(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("listing sandboxes: %w", err)
	}
	var failures []error
	removed := 0
	for _, sandbox := range sandboxes {
		if err := runtime.StopPodSandbox(ctx, sandbox.Id); err != nil {
			failures = append(failures, fmt.Errorf("stopping sandbox %s: %w", sandbox.Id, err))
			continue
		}
		if err := runtime.RemovePodSandbox(ctx, sandbox.Id); err != nil {
			failures = append(failures, fmt.Errorf("removing sandbox %s: %w", sandbox.Id, err))
			continue
		}
		removed++
	}
	return removed, errors.Join(failures...)
}
