// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/proposal"
)

// showOptions are the flags of kubectl assent show, and of approve, which
// shows the same before it asks.
type showOptions struct {
	clusterFlags

	keys string
}

// newShowCommand prints everything that there is to know about one call.
func newShowCommand(streams Streams) *cobra.Command {
	var o showOptions
	c := &cobra.Command{
		Use:   "show CALL",
		Short: "Show one call as an approver must see it",
		Long: "Show one call: who asks, the tool, the policy's answer, the exact arguments and effect, and the\n" +
			"fingerprint, which is computed here from what is shown. Characters that could hide or reorder text\n" +
			"are printed as \\uXXXX; nothing is shortened. Exit code 2 when the stored fingerprint or the seal\n" +
			"is not that of the content.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], streams) },
	}
	o.add(c)
	return c
}

func (o *showOptions) add(c *cobra.Command) {
	o.clusterFlags.add(c.Flags())
	c.Flags().StringVar(&o.keys, "keys", "", "file with the operator's public keys, to check the seal as well")
}

func (o *showOptions) run(ctx context.Context, name string, streams Streams) error {
	c, err := o.connect()
	if err != nil {
		return err
	}
	v, err := o.look(ctx, c, name)
	if err != nil {
		return err
	}
	if c.json {
		err = printObject(streams.Out, v)
	} else {
		err = v.render(streams.Out)
	}
	if err != nil {
		return err
	}
	return v.problem()
}

// look reads a call and computes what can be computed about it.
func (o *showOptions) look(ctx context.Context, c *cluster, name string) (*view, error) {
	p, err := c.proposal(ctx, name)
	if err != nil {
		return nil, err
	}
	v := &view{Proposal: p}
	// A proposal that was never prepared is shown as it is, without one.
	if v.Fingerprint, err = fingerprintOf(p); err == nil {
		v.FingerprintMatches = v.Fingerprint == p.Spec.Prepared.Fingerprint
	}
	if v.Seal, err = o.checkSeal(p); err != nil {
		return nil, err
	}
	m := &v1alpha1.ToolManifest{}
	err = c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: p.Spec.Tool}, m)
	switch {
	case err == nil:
		v.Manifest = m
	case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
		return nil, serverError(err)
	}
	return v, nil
}

// What show says about a seal.
const (
	sealUnchecked = "not checked: give the operator's public keys with --keys"
	sealVerified  = "verified"
	sealInvalid   = "INVALID: do not approve"
)

func (o *showOptions) checkSeal(p *v1alpha1.ToolProposal) (string, error) {
	if o.keys == "" {
		return sealUnchecked, nil
	}
	text, err := os.ReadFile(o.keys)
	if err != nil {
		return "", fmt.Errorf("reading the public keys: %w", err)
	}
	public, err := attest.ParsePublicKeysPEM(text)
	if err != nil {
		return "", fmt.Errorf("reading the public keys: %w", err)
	}
	ring, err := attest.NewVerifier(public...)
	if err != nil {
		return "", fmt.Errorf("reading the public keys: %w", err)
	}
	if _, problem := proposal.VerifySeal(ring, p); problem != nil {
		return sealInvalid, nil //nolint:nilerr // the problem is the answer
	}
	return sealVerified, nil
}

// problem refuses a call that is not what it says.
func (v *view) problem() error {
	switch {
	case !v.FingerprintMatches:
		return &ExitError{Code: exitRefused, Err: errors.New("the stored fingerprint is not that of the call")}
	case v.Seal == sealInvalid:
		return &ExitError{Code: exitRefused, Err: errors.New("the seal is not valid for the call")}
	}
	return nil
}
