// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo shows real calls from proposal to result on a real cluster, and
// checks each of them. It does what people and agents would do, with kubectl
// and nothing else, and exits 0 only if everything held.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	d, err := newDemo(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	if err := d.prepare(); err != nil {
		return err
	}
	for _, part := range []struct {
		title string
		run   func() error
	}{
		{"(a) a call that policy allows runs", d.allowed},
		{"(b) a call that policy forbids is denied", d.forbidden},
		{"(c) a call that needs a person waits, and runs once approved", d.approved},
		{"(d) receipts for another call, and by the requester, are refused", d.refusedReceipts},
		{"(e) arguments with a duplicate key are refused at admission", d.duplicateKey},
		{"(f) a receipt does not count for a proposal that was created again", d.recreated},
		{"(g) a request and an MCP tool run without a program of their own", d.servers},
		{"(h) the service saw exactly the calls that should have happened", d.ledger},
		{"(i) the audit log proves what happened", d.proofs},
	} {
		d.heading(part.title)
		if err := part.run(); err != nil {
			return fmt.Errorf("%s: %w", part.title, err)
		}
	}
	d.show()
	failed := d.table(time.Since(d.began))
	d.lookAround()
	if failed > 0 {
		return fmt.Errorf("%d checks did not hold", failed)
	}
	return nil
}
