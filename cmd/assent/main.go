// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Command assent is the operator: admission, controllers and the execution
// endpoint in one process.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func main() {
	o, err := parseOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	logger := zap.New()
	ctrl.SetLogger(logger)
	// What the libraries below log becomes lines of the same form.
	klog.SetLogger(logger.WithName("klog"))
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		ctrl.Log.Error(err, "the operator stops")
		os.Exit(1)
	}
}
