// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Command assent-pause holds a Pod's namespaces open. It is the only process of
// the sandbox container, so it is PID 1 there and has to reap what is
// reparented to it when a Pod shares its process namespace.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for reapOne() {
		}
	}
}

// reapOne reports whether a finished child was collected.
func reapOne() bool {
	pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
	return err == nil && pid > 0
}
