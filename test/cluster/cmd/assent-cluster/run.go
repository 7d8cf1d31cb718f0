// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/test/cluster/lifecycle"
)

func runCommand(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run -- COMMAND [ARGUMENTS...]",
		Short: "Start a cluster, run a command with KUBECONFIG set, stop the cluster",
		Long: "Start a cluster, run a command with KUBECONFIG and ASSENT_STATE set, stop the cluster and pass on the exit status.\n" +
			"A control plane gets a folder of its own unless --state names one. A cluster that was up before stays up.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, args)
		},
	}
	addMode(cmd, f)
	return cmd
}

func (f *flags) run(cmd *cobra.Command, args []string) error {
	// The processes of a control plane end with the thread that started them.
	runtime.LockOSThread()
	binaries, err := f.build(cmd)
	if err != nil {
		return err
	}
	state, temporary, err := f.runState()
	if err != nil {
		return err
	}
	wasUp, err := lifecycle.IsUp(state)
	if err != nil {
		return err
	}
	layout, err := lifecycle.Up(cmd.Context(), lifecycle.Options{
		State: state, Mode: f.mode(), Binaries: binaries, Attached: f.controlPlaneOnly, Progress: os.Stderr,
	})
	if err != nil {
		return err
	}
	runErr := runWith(context.WithoutCancel(cmd.Context()), layout, args)
	if wasUp {
		return runErr
	}
	if err := lifecycle.Down(context.WithoutCancel(cmd.Context()), state, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "assent-cluster:", err)
		return cmp.Or(runErr, error(exitError(1)))
	}
	if temporary && runErr == nil {
		return os.RemoveAll(state)
	}
	if temporary {
		fmt.Fprintf(os.Stderr, "assent-cluster: the logs are in %s\n", filepath.Dir(layout.Log("x")))
	}
	return runErr
}

// runState chooses the folder. Control planes are made for one command, so each
// gets its own and several can run at once.
func (f *flags) runState() (state string, temporary bool, err error) {
	folders, err := f.folders()
	if err != nil || !f.controlPlaneOnly || f.state != "" {
		return folders.state, false, err
	}
	if err := os.MkdirAll(folders.state, 0o700); err != nil {
		return "", false, err
	}
	state, err = os.MkdirTemp(folders.state, "run-")
	return state, true, err
}

// runWith runs the command in the foreground. Signals are the command's to act
// on: the cluster stays until it has ended.
func runWith(ctx context.Context, layout lifecycle.Layout, args []string) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	child := exec.CommandContext(ctx, args[0], args[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.Env = append(os.Environ(), "KUBECONFIG="+layout.Kubeconfig(), "ASSENT_STATE="+layout.State)
	if err := child.Start(); err != nil {
		return fmt.Errorf("starting the command: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- child.Wait() }()
	for {
		select {
		case received := <-signals:
			// The terminal has sent an interrupt to the command already.
			if received == syscall.SIGTERM {
				_ = child.Process.Signal(received)
			}
		case err := <-done:
			return status(err)
		}
	}
}

// status follows the shell: a command that a signal ended has 128 added to it.
func status(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if wait, ok := exit.Sys().(syscall.WaitStatus); ok && wait.Signaled() {
		return exitError(128 + int(wait.Signal()))
	}
	return exitError(exit.ExitCode())
}
