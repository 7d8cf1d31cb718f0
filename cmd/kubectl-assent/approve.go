// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// confirmed is how many characters of the fingerprint a person types: enough
// that no other call of the screen before has them too.
const confirmed = 8

// decideOptions are the flags of kubectl assent approve and deny.
type decideOptions struct {
	showOptions

	decision    v1alpha1.ReceiptDecision
	fingerprint string
	reason      string
}

// newApproveCommand approves exactly the call that it showed.
func newApproveCommand(streams Streams) *cobra.Command {
	o := decideOptions{decision: v1alpha1.ReceiptApproved}
	c := &cobra.Command{
		Use:   "approve CALL",
		Short: "Show one call and approve exactly what was shown",
		Long: "Show one call, ask for the beginning of its fingerprint, and create an ApprovalReceipt for exactly\n" +
			"the object and the fingerprint that were shown. With --fingerprint nothing is asked, and the call is\n" +
			"refused unless it has that fingerprint. Exit code 2 when it is refused, here or by the server.",
		Example: "  kubectl assent approve refund-7\n" +
			"  kubectl assent approve refund-7 --fingerprint 3f0c...",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], streams) },
	}
	o.add(c)
	return c
}

// newDenyCommand denies a call.
func newDenyCommand(streams Streams) *cobra.Command {
	o := decideOptions{decision: v1alpha1.ReceiptDenied}
	c := &cobra.Command{
		Use:   "deny CALL",
		Short: "Deny one call, or stop it while it runs",
		Long: "Create an ApprovalReceipt that denies one call. A waiting call ends; a granted or running one is\n" +
			"stopped. Exit code 2 when the server refuses the denial.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], streams) },
	}
	o.add(c)
	return c
}

func (o *decideOptions) add(c *cobra.Command) {
	o.showOptions.add(c)
	c.Flags().StringVar(&o.fingerprint, "fingerprint", "", "the whole fingerprint that the call must have; nothing is asked then")
	c.Flags().StringVar(&o.reason, "reason", "", "why, for the record")
}

func (o *decideOptions) run(ctx context.Context, name string, streams Streams) error {
	c, err := o.connect()
	if err != nil {
		return err
	}
	v, err := o.look(ctx, c, name)
	if err != nil {
		return err
	}
	if err := o.check(v, streams); err != nil {
		return err
	}
	r := o.receipt(v)
	if err := c.Create(ctx, r); err != nil {
		return serverError(err)
	}
	if c.json {
		return printObject(streams.Out, r)
	}
	_, err = fmt.Fprintln(streams.Out, o.done(r))
	return err
}

// check lets a person see what they approve. A denial needs no care of that
// kind: it is bound to the object, and no call is worse for it.
func (o *decideOptions) check(v *view, streams Streams) error {
	if o.fingerprint != "" && o.fingerprint != v.Fingerprint {
		return &ExitError{Code: exitRefused, Err: errors.New("the call has another fingerprint than the one given: show it and compare")}
	}
	if o.decision == v1alpha1.ReceiptDenied {
		return nil
	}
	if err := v.problem(); err != nil || o.fingerprint != "" {
		return err
	}
	if err := v.render(streams.Err); err != nil {
		return err
	}
	return confirm(v.Fingerprint, streams)
}

// confirm asks for the beginning of the fingerprint. A yes would be typed
// without looking.
func confirm(fingerprint string, streams Streams) error {
	if _, err := fmt.Fprintf(streams.Err, "\nTo approve exactly this call, type the first %d characters of its fingerprint: ", confirmed); err != nil {
		return fmt.Errorf("asking for the fingerprint: %w", err)
	}
	typed, err := bufio.NewReader(streams.In).ReadString('\n')
	if err != nil && typed == "" {
		return &ExitError{Code: exitRefused, Err: errors.New("not approved: nothing was typed")}
	}
	if strings.TrimSpace(typed) != fingerprint[:confirmed] {
		return &ExitError{Code: exitRefused, Err: errors.New("not approved: that is not how the fingerprint begins")}
	}
	return nil
}

// receipt is for the object and the call that were shown, and no others.
func (o *decideOptions) receipt(v *view) *v1alpha1.ApprovalReceipt {
	p := v.Proposal
	fingerprint := v.Fingerprint
	if o.decision == v1alpha1.ReceiptDenied && p.Spec.Prepared != nil {
		fingerprint = p.Spec.Prepared.Fingerprint
	}
	return &v1alpha1.ApprovalReceipt{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ApprovalReceipt"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, GenerateName: "receipt-"},
		Spec: v1alpha1.ApprovalReceiptSpec{
			ProposalRef: v1alpha1.ProposalReference{Name: p.Name, UID: p.UID},
			Fingerprint: fingerprint, Decision: o.decision, Reason: o.reason,
		},
	}
}

func (o *decideOptions) done(r *v1alpha1.ApprovalReceipt) string {
	text := fmt.Sprintf("%s by receipt %s", strings.ToLower(string(r.Spec.Decision)), escapeName(r.Name))
	if r.Spec.ExpiresAt != nil && r.Spec.Decision == v1alpha1.ReceiptApproved {
		text += ", which counts until " + r.Spec.ExpiresAt.UTC().Format(time.RFC3339)
	}
	return text
}
