// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-assent is the kubectl plugin of Assent: what approvers, the
// platform team and auditors use.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run(os.Args[1:], Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// run is the program without the process: it returns the exit code.
func run(args []string, streams Streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRootCommand(streams)
	root.SetArgs(args)
	return finish(root.ExecuteContext(ctx), streams)
}
