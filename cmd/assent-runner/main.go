// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Command assent-runner carries out one call inside its Pod.
//
//	assent-runner [run]        redeem the call, carry it out, deliver its result
//	assent-runner install DIR  copy this binary to DIR/assent-runner
//
// run is configured by ASSENT_* environment variables that the Job's template
// sets; see docs/execution.md.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/assent-dev/assent/internal/runner"
)

// terminationLog is where Kubernetes reads a container's last words.
const terminationLog = "/dev/termination-log"

func main() {
	os.Exit(int(execute(os.Args[1:], os.Stderr)))
}

func execute(args []string, stderr io.Writer) runner.ExitCode {
	switch {
	case len(args) == 0, len(args) == 1 && args[0] == "run":
		ending := run()
		say(stderr, ending)
		lastWords(ending)
		return ending.Code
	case len(args) == 2 && args[0] == "install":
		return install(args[1], stderr)
	default:
		_, _ = fmt.Fprintln(stderr, "usage: assent-runner [run] | assent-runner install DIR")
		return runner.ExitUsage
	}
}

func run() runner.Ending {
	if err := runner.Harden(); err != nil {
		return badConfiguration(err)
	}
	config, err := runner.LoadConfig(os.Getenv, os.ReadFile)
	if err != nil {
		return badConfiguration(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	r := runner.Runner{
		Config:    config,
		Environ:   os.Environ(),
		Random:    rand.Reader,
		Now:       time.Now,
		Pause:     runner.Pause,
		Resolver:  &net.Resolver{PreferGo: true},
		KillGrace: runner.DefaultKillGrace,
		Delivery:  runner.DefaultDelivery,
	}
	return r.Run(ctx)
}

func badConfiguration(err error) runner.Ending {
	return runner.Ending{Code: runner.ExitUsage, Reason: runner.ReasonBadConfiguration, Err: err}
}

func install(dir string, stderr io.Writer) runner.ExitCode {
	self, err := os.Executable()
	if err == nil {
		err = runner.Install(self, dir)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "assent-runner: installing:", err)
		return runner.ExitUsage
	}
	return 0
}

// say writes one line for whoever reads the Pod's log. No value of the call
// and no secret is in it.
func say(w io.Writer, e runner.Ending) {
	line := "assent-runner: done"
	if e.Reason != "" {
		line = "assent-runner: " + string(e.Reason)
	}
	if e.Err != nil {
		line += ": " + e.Err.Error()
	}
	_, _ = fmt.Fprintln(w, line)
}

// lastWords leaves code and reason where a person finds them with kubectl
// describe. They are a hint: the tool could write the same file.
func lastWords(e runner.Ending) {
	f, err := os.OpenFile(terminationLog, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return // not in a container of Kubernetes
	}
	_, _ = fmt.Fprintf(f, `{"exit":%d,"reason":%q}`, e.Code, e.Reason)
	_ = f.Close()
}
