// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// listOptions are the flags of kubectl assent list.
type listOptions struct {
	clusterFlags

	all     bool
	waiting bool
}

// newListCommand lists calls.
func newListCommand(streams Streams) *cobra.Command {
	var o listOptions
	c := &cobra.Command{
		Use:   "list",
		Short: "List calls, the oldest first",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), streams) },
	}
	o.add(c.Flags())
	c.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "list the calls of all namespaces")
	c.Flags().BoolVar(&o.waiting, "waiting", false, "list only calls that wait for people")
	return c
}

func (o *listOptions) run(ctx context.Context, streams Streams) error {
	c, err := o.connect()
	if err != nil {
		return err
	}
	var list v1alpha1.ToolProposalList
	var options []client.ListOption
	if !o.all {
		options = append(options, client.InNamespace(c.namespace))
	}
	if o.waiting {
		options = append(options, client.MatchingFields{"status.phase": string(v1alpha1.PhaseAwaitingApproval)})
	}
	if err := c.List(ctx, &list, options...); err != nil {
		return serverError(err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.ToolProposal) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if c.json {
		return printObject(streams.Out, list)
	}
	return printCalls(streams.Out, list.Items, o.all)
}

func printCalls(out io.Writer, calls []v1alpha1.ToolProposal, namespaces bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	row := func(namespace string, columns ...string) {
		if namespaces {
			columns = append([]string{namespace}, columns...)
		}
		for i, column := range columns {
			if i > 0 {
				_, _ = io.WriteString(w, "\t")
			}
			_, _ = io.WriteString(w, cmp.Or(escapeName(column), "-"))
		}
		_, _ = io.WriteString(w, "\n")
	}
	row("NAMESPACE", "NAME", "TOOL", "PHASE", "REASON", "REQUESTER", "APPROVALS", "CREATED", "FINGERPRINT")
	for i := range calls {
		p := &calls[i]
		requester, approvals, fingerprint := "", "", ""
		if p.Spec.Requester != nil {
			requester = p.Spec.Requester.Username
		}
		if p.Status.Approvals != nil {
			approvals = p.Status.Approvals.Summary
		}
		if p.Spec.Prepared != nil {
			fingerprint = p.Spec.Prepared.Fingerprint
		}
		row(p.Namespace, p.Name, p.Spec.Tool, string(p.Status.Phase), p.Status.Reason, requester, approvals,
			p.CreationTimestamp.UTC().Format(time.RFC3339), fingerprint)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the list: %w", err)
	}
	return nil
}
