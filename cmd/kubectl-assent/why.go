// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// newWhyCommand explains where a call stands.
func newWhyCommand(streams Streams) *cobra.Command {
	var o clusterFlags
	c := &cobra.Command{
		Use:   "why CALL",
		Short: "Explain where one call stands and why",
		Long: "Explain where one call stands: the last decision with its policies, what people decided and why\n" +
			"a receipt did not count, and how the call ended.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return why(cmd.Context(), &o, args[0], streams) },
	}
	o.add(c.Flags())
	return c
}

// explanation is what why knows.
type explanation struct {
	Phase    v1alpha1.Phase              `json:"phase"`
	Status   v1alpha1.ToolProposalStatus `json:"status"`
	Receipts []v1alpha1.ApprovalReceipt  `json:"receipts,omitempty"`
}

func why(ctx context.Context, o *clusterFlags, name string, streams Streams) error {
	c, err := o.connect()
	if err != nil {
		return err
	}
	p, err := c.proposal(ctx, name)
	if err != nil {
		return err
	}
	receipts, err := c.receipts(ctx, p)
	if err != nil {
		return err
	}
	if c.json {
		return printObject(streams.Out, explanation{p.Status.Phase, p.Status, receipts})
	}
	return explain(streams.Out, p, receipts)
}

func explain(w io.Writer, p *v1alpha1.ToolProposal, receipts []v1alpha1.ApprovalReceipt) error {
	s := &screen{width: 11}
	s.title(escapeName(p.Namespace + "/" + p.Name))
	s.name("phase", string(p.Status.Phase))
	s.name("reason", p.Status.Reason)
	if p.Status.Message != "" {
		s.line("message", escapeText(p.Status.Message))
	}
	(&view{Proposal: p}).renderDecision(s)
	for i := range receipts {
		explainReceipt(s, &receipts[i])
	}
	explainConditions(s, "Conditions", p.Status.Conditions)
	if r := p.Status.Result; r != nil {
		s.title("Result")
		s.name("outcome", r.Outcome)
		s.name("reason", r.Reason)
		if r.ExitCode != nil {
			s.line("exit code", fmt.Sprint(*r.ExitCode))
		}
		if r.HTTPStatus != nil {
			s.line("HTTP status", fmt.Sprint(*r.HTTPStatus))
		}
	}
	if _, err := io.WriteString(w, s.b.String()); err != nil {
		return fmt.Errorf("writing the explanation: %w", err)
	}
	return nil
}

func explainReceipt(s *screen, r *v1alpha1.ApprovalReceipt) {
	s.title("Receipt " + escapeName(r.Name))
	s.name("decision", string(r.Spec.Decision))
	if r.Spec.Approver != nil {
		s.name("approver", r.Spec.Approver.Username)
	}
	s.quote("it says", r.Spec.Reason)
	if r.Spec.ExpiresAt != nil {
		s.line("expires", r.Spec.ExpiresAt.UTC().Format(time.RFC3339))
	}
	for _, c := range r.Status.Conditions {
		s.line(escapeName(c.Type), conditionText(c))
	}
}

func explainConditions(s *screen, title string, conditions []metav1.Condition) {
	if len(conditions) == 0 {
		return
	}
	s.title(title)
	for _, c := range conditions {
		s.line(escapeName(c.Type), conditionText(c))
	}
}

func conditionText(c metav1.Condition) string {
	return fmt.Sprintf("%s (%s): %s", c.Status, escapeName(c.Reason), escapeText(c.Message))
}

// newCancelCommand withdraws a call.
func newCancelCommand(streams Streams) *cobra.Command {
	var o clusterFlags
	c := &cobra.Command{
		Use:   "cancel CALL",
		Short: "Withdraw one call, or stop it while it runs",
		Long: "Delete one call. It ends as Cancelled, its Job is stopped, and the object goes once that is\n" +
			"recorded. Approvers use deny, which leaves the call and says who stopped it.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return cancelCall(cmd.Context(), &o, args[0], streams) },
	}
	o.add(c.Flags())
	return c
}

func cancelCall(ctx context.Context, o *clusterFlags, name string, streams Streams) error {
	c, err := o.connect()
	if err != nil {
		return err
	}
	p, err := c.proposal(ctx, name)
	if err != nil {
		return err
	}
	if p.Status.Phase.Terminal() {
		return &ExitError{Code: exitRefused, Err: fmt.Errorf("the call has ended already: %s/%s", escapeName(string(p.Status.Phase)), escapeName(p.Status.Reason))}
	}
	if err := c.Delete(ctx, p, client.Preconditions{UID: &p.UID}); err != nil {
		return serverError(err)
	}
	if c.json {
		return printObject(streams.Out, p)
	}
	if _, err := fmt.Fprintf(streams.Out, "%s is being cancelled\n", escapeName(p.Name)); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}
