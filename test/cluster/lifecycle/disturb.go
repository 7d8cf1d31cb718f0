// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Pause stops a program of the cluster where it is, as a machine that hangs
// would. Its connections stay open and nothing in it moves until Resume.
func Pause(state, program string) error { return signalNamed(state, program, unix.SIGSTOP) }

// Resume lets a program go on that Pause has stopped.
func Resume(state, program string) error { return signalNamed(state, program, unix.SIGCONT) }

func signalNamed(state, program string, sig unix.Signal) error {
	layout, err := NewLayout(state)
	if err != nil {
		return err
	}
	rec, err := layout.load()
	if err != nil {
		return err
	}
	process, _, err := rec.named(program)
	if err != nil {
		return err
	}
	return process.signal(sig)
}

// named finds a running program and its place in the record.
func (r *record) named(program string) (Process, int, error) {
	running := r.running()
	names := make([]string, 0, len(running))
	for _, p := range running {
		if p.Name != program {
			names = append(names, p.Name)
			continue
		}
		for i := range r.Processes {
			if r.Processes[i] == p {
				return p, i, nil
			}
		}
	}
	return Process{}, 0, fmt.Errorf("no program %q of the cluster runs; there are %s", program, strings.Join(names, ", "))
}

// Restart kills a program of the node without warning and starts it again. It
// returns when the program has been started, not when it is ready. Programs
// that others could not do without meanwhile are refused.
func Restart(ctx context.Context, state, program string) error {
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
	specs := map[string]spec{
		"kubelet": layout.kubeletSpec(), "kube-proxy": layout.proxySpec(), policyAgent: layout.policyAgentSpec(),
	}
	s, ok := specs[program]
	if !ok {
		return fmt.Errorf("%q cannot be restarted by itself; kubelet, kube-proxy and %s can", program, policyAgent)
	}
	process, place, err := rec.named(program)
	if err != nil {
		return err
	}
	if err := process.stop(0); err != nil {
		return err
	}
	if rec.Processes[place], err = layout.start(ctx, s, false); err != nil {
		return err
	}
	return layout.save(rec)
}
