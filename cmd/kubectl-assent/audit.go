// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/audit/verify"
)

// auditOptions are the flags that all audit commands have.
type auditOptions struct {
	key    string
	origin string
	output string
}

const (
	// maxKeyBytes and maxCheckpointBytes bound files that users name.
	maxKeyBytes        = 64 << 10
	maxCheckpointBytes = 16 << 20
	// auditRequestTimeout bounds one request to a log behind a web server.
	auditRequestTimeout = time.Minute
)

// newAuditCommand groups what can be done with the audit log. All of it needs
// the log's public files and keys only.
func newAuditCommand(streams Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "audit",
		Short: "Check and read the audit log",
		Long: "Check and read the audit log: a directory, or a URL behind which a web server shows it.\n" +
			"Only the public keys are needed; no cluster is asked, except by verify --cluster.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		newAuditVerifyCommand(streams), newAuditListCommand(streams),
		newAuditShowCommand(streams), newAuditProveCommand(streams),
	)
	return c
}

func (o *auditOptions) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.key, "key", "", "file with the public keys in PEM (required)")
	f.StringVar(&o.origin, "origin", "", "name that the log must have; without it, the log's own is taken")
	f.StringVarP(&o.output, "output", "o", "", "output format: json, or nothing for text")
	if err := c.MarkFlagRequired("key"); err != nil {
		panic(err) // the flag is defined two lines above
	}
}

// keys reads the public keys.
func (o *auditOptions) keys(streams Streams) (*attest.Keyring, error) {
	if o.output != "" && o.output != outputJSON {
		return nil, fmt.Errorf("output format must be json or empty, not %q", o.output)
	}
	text, err := readInput(o.key, maxKeyBytes+1, streams)
	if err != nil {
		return nil, fmt.Errorf("reading the keys: %w", err)
	}
	public, err := attest.ParsePublicKeysPEM(text)
	if err != nil {
		return nil, fmt.Errorf("reading the keys: %w", err)
	}
	return attest.NewVerifier(public...)
}

const outputJSON = "json"

// openLog returns the keys and the log at a location.
func (o *auditOptions) openLog(location string, streams Streams) (*attest.Keyring, verify.Source, error) {
	keys, err := o.keys(streams)
	if err != nil {
		return nil, nil, err
	}
	src, err := verify.OpenSource(location, &http.Client{Timeout: auditRequestTimeout})
	return keys, src, err
}

// auditVerifyOptions are the flags of kubectl assent audit verify.
type auditVerifyOptions struct {
	auditOptions
	checkpoint string
	save       string
	objects    string
	cluster    bool
	kubeconfig string
	joined     *joined
}

func newAuditVerifyCommand(streams Streams) *cobra.Command {
	var o auditVerifyOptions
	c := &cobra.Command{
		Use:   "verify DIR|URL --key FILE",
		Short: "Check a whole audit log",
		Long: "Check signatures, order, hash tree and completeness of a whole audit log. What is wrong is printed\n" +
			"with the first bad index, and the exit code is 2.\n\n" +
			"A log that was cut back to an earlier state looks whole by itself. To notice it, remember the\n" +
			"checkpoint of each check with --save, in a place that does not share the log's fate, and pass it\n" +
			"to the next one with --checkpoint. A file may hold several checkpoints, one after the other.\n\n" +
			"With --cluster, or with --objects and what \"kubectl get toolproposals -A -o json\" printed after the\n" +
			"log was copied, the calls are compared with the records: calls without a record and records without\n" +
			"a call are findings.",
		Example: "  kubectl assent audit verify /var/lib/assent/audit --key assent.pub\n" +
			"  kubectl assent audit verify https://audit.example.com/ --key assent.pub --checkpoint seen --save seen\n" +
			"  kubectl assent audit verify /var/lib/assent/audit --key assent.pub --cluster",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0], streams) },
	}
	o.addFlags(c)
	c.Flags().StringVar(&o.checkpoint, "checkpoint", "", "file with remembered checkpoints that the log must contain")
	c.Flags().StringVar(&o.objects, "objects", "", "file with the cluster's ToolProposals to compare with the log, or - for standard input")
	c.Flags().BoolVar(&o.cluster, "cluster", false, "compare the log with the ToolProposals of the cluster")
	c.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", "path of the kubeconfig file for --cluster")
	c.MarkFlagsMutuallyExclusive("objects", "cluster")
	c.Flags().StringVar(&o.save, "save", "", "file to remember this log's checkpoint in, when nothing is wrong")
	return c
}

func (o *auditVerifyOptions) run(c *cobra.Command, location string, streams Streams) error {
	keys, src, err := o.openLog(location, streams)
	if err != nil {
		return err
	}
	remembered, err := o.remembered(streams)
	if err != nil {
		return err
	}
	join := o.objects != "" || o.cluster
	records := completeness{}
	report, err := verify.Log(c.Context(), src, verify.Options{Keys: keys, Origin: o.origin, Remembered: remembered, Visit: func(index uint64, e *audit.Entry) error {
		if join {
			records.visit(index, e)
		}
		return nil
	}})
	if err != nil {
		return err
	}
	// With a log that is not whole, calls would be blamed for its damage.
	if join && report.OK() {
		if err := o.join(c.Context(), records, report, streams); err != nil {
			return err
		}
	}
	return o.conclude(report, streams.Out)
}

// join compares the records with the calls of an export or of a cluster.
func (o *auditVerifyOptions) join(ctx context.Context, records completeness, report *verify.Report, streams Streams) error {
	calls, err := o.readCalls(ctx, streams)
	if err != nil {
		return err
	}
	together := records.join(calls, report)
	o.joined = &together
	return nil
}

// conclude prints the report and remembers the checkpoint of a good log.
func (o *auditVerifyOptions) conclude(report *verify.Report, out io.Writer) error {
	if err := o.print(report, out); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if !report.OK() {
		return &ExitError{Code: exitRefused}
	}
	if o.save == "" {
		return nil
	}
	if err := os.WriteFile(o.save, report.Checkpoint, 0o600); err != nil {
		return fmt.Errorf("remembering the checkpoint: %w", err)
	}
	return nil
}

// remembered reads the checkpoints that an earlier look at the log kept.
func (o *auditVerifyOptions) remembered(streams Streams) ([][]byte, error) {
	if o.checkpoint == "" {
		return nil, nil
	}
	text, err := readInput(o.checkpoint, maxCheckpointBytes, streams)
	if err != nil {
		return nil, fmt.Errorf("reading the remembered checkpoint: %w", err)
	}
	return verify.SplitCheckpoints(text)
}

// verdict is what -o json prints about a log.
type verdict struct {
	OK       bool            `json:"ok"`
	FirstBad *verify.Finding `json:"firstBad"`
	*verify.Report
	Joined *joined `json:"joined,omitempty"`
}

func (o *auditVerifyOptions) print(r *verify.Report, out io.Writer) error {
	if o.output == outputJSON {
		return encodeLine(out, verdict{OK: r.OK(), FirstBad: r.FirstBad(), Report: r, Joined: o.joined})
	}
	p := printer{w: out}
	p.line("log          %s", printable(r.Origin))
	p.line("records      %d of %d verified", r.Verified, r.Size)
	p.line("root         %s", r.Root)
	p.line("writers      %d, with %d numbers left out by failed writes", r.Writers, r.Skipped)
	p.line("clock steps  %d", r.ClockSteps)
	p.line("remembered   %d checkpoints agree", r.Remembered)
	if j := o.joined; j != nil {
		p.line("calls        %d compared with their records, %d newer than the log, %d ended and gone", j.Calls-j.Newer, j.Newer, j.Gone)
	}
	for _, f := range r.Findings {
		p.line("finding      %s at index %d: %s", f.Reason, f.Index, printable(f.Detail))
	}
	if bad := r.FirstBad(); bad != nil {
		p.line("FAILED       first bad index %d: %s", bad.Index, bad.Reason)
	} else {
		p.line("OK")
	}
	return p.err
}

// printer keeps the first error of many writes.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// errNotWhole ends a command that has read a log with findings.
func errNotWhole(r *verify.Report) error {
	bad := r.FirstBad()
	return &ExitError{Code: exitRefused, Err: fmt.Errorf(
		"the log did not verify: %s at index %d; run kubectl assent audit verify", bad.Reason, bad.Index)}
}

// refusedProof turns what is wrong with a log or a proof into exit code 2.
func refusedProof(err error) error {
	for _, refused := range []error{
		verify.ErrNotIncluded, verify.ErrCheckpointKey, verify.ErrCheckpointOrigin,
		verify.ErrCheckpointSignature, verify.ErrCheckpointMalformed,
	} {
		if errors.Is(err, refused) {
			return &ExitError{Code: exitRefused, Err: err}
		}
	}
	if attest.ReasonOf(err) != "" {
		return &ExitError{Code: exitRefused, Err: err}
	}
	return err
}
