// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Command assent-cluster runs the development cluster: a whole single-node
// Kubernetes, or only its API server for tests. It compiles Kubernetes from Go
// modules, so neither a container engine nor a registry is needed.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/test/cluster/lifecycle"
)

// exitError ends the command with a status of its own and no further message.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := root().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	if code, ok := errors.AsType[exitError](err); ok {
		os.Exit(int(code))
	}
	fmt.Fprintln(os.Stderr, "assent-cluster:", err)
	os.Exit(1)
}

// flags are shared by all commands.
type flags struct {
	state            string
	cache            string
	controlPlaneOnly bool
}

func (f *flags) mode() lifecycle.Mode {
	if f.controlPlaneOnly {
		return lifecycle.ModeControlPlane
	}
	return lifecycle.ModeNode
}

func root() *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:           "assent-cluster",
		Short:         "Run a Kubernetes cluster for development and tests on this machine",
		SilenceUsage:  true,
		SilenceErrors: true,
		// Lets "--state DIR kubectl ..." through, whose own flags are kubectl's.
		TraverseChildren: true,
	}
	cmd.PersistentFlags().StringVar(&f.state, "state", os.Getenv("ASSENT_STATE"),
		"folder that holds the cluster (default $ASSENT_STATE, else .cluster in the repository)")
	cmd.PersistentFlags().StringVar(&f.cache, "cache", os.Getenv("ASSENT_CLUSTER_CACHE"),
		"folder that keeps built programs (default $ASSENT_CLUSTER_CACHE, else .cluster/cache in the repository)")
	cmd.AddCommand(buildCommand(f), upCommand(f), downCommand(f), runCommand(f), loadCommand(f),
		statusCommand(f), kubectlCommand(f), userCommand(f))
	cmd.AddCommand(disturbCommands(f)...)
	cmd.AddCommand(backupCommands(f)...)
	return cmd
}

func addMode(cmd *cobra.Command, f *flags) {
	cmd.Flags().BoolVar(&f.controlPlaneOnly, "control-plane-only", false,
		"only etcd and kube-apiserver, on free loopback ports; needs no root")
}
