// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// waitOptions are the flags of kubectl assent wait.
type waitOptions struct {
	clusterFlags

	timeout time.Duration
}

// newWaitCommand waits for the end of a call.
func newWaitCommand(streams Streams) *cobra.Command {
	var o waitOptions
	c := &cobra.Command{
		Use:   "wait CALL",
		Short: "Wait until one call has ended",
		Long: "Wait until one call has ended and print how. Exit code 0 when it succeeded, 2 when it was denied,\n" +
			"expired, was cancelled or is invalid, 1 when it failed, its end is unknown or the time ran out.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], streams) },
	}
	o.add(c.Flags())
	c.Flags().DurationVar(&o.timeout, "timeout", 0, "how long to wait; 0 is without end")
	return c
}

func (o *waitOptions) run(ctx context.Context, name string, streams Streams) error {
	c, err := o.connect()
	if err != nil {
		return err
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	p, err := c.awaitEnd(ctx, name)
	if err != nil {
		return err
	}
	if c.json {
		err = printObject(streams.Out, p)
	} else {
		_, err = fmt.Fprintf(streams.Out, "%s/%s: %s\n", escapeName(string(p.Status.Phase)), escapeName(p.Status.Reason), escapeText(p.Status.Message))
	}
	if err != nil {
		return fmt.Errorf("writing the end: %w", err)
	}
	return endCode(p.Status.Phase)
}

// endCode is silent: how the call ended was printed.
func endCode(phase v1alpha1.Phase) error {
	switch phase {
	case v1alpha1.PhaseSucceeded:
		return nil
	case v1alpha1.PhaseDenied, v1alpha1.PhaseExpired, v1alpha1.PhaseCancelled, v1alpha1.PhaseInvalid:
		return &ExitError{Code: exitRefused}
	default:
		return &ExitError{Code: exitError}
	}
}

// awaitEnd follows one object, not a name: a call created anew is another.
func (c *cluster) awaitEnd(ctx context.Context, name string) (*v1alpha1.ToolProposal, error) {
	first, err := c.proposal(ctx, name)
	if err != nil || first.Status.Phase.Terminal() {
		return first, err
	}
	for {
		p, err := c.followOnce(ctx, first)
		if p != nil || err != nil {
			return p, err
		}
		// The server closed the watch, as it does now and then.
		p, err = c.proposal(ctx, name)
		switch {
		case err != nil:
			return nil, err
		case p.UID != first.UID:
			return nil, errors.New("the call was deleted and another has its name")
		case p.Status.Phase.Terminal():
			return p, nil
		}
		first = p
	}
}

func (c *cluster) followOnce(ctx context.Context, from *v1alpha1.ToolProposal) (*v1alpha1.ToolProposal, error) {
	w, err := c.Watch(ctx, &v1alpha1.ToolProposalList{}, &client.ListOptions{
		Namespace:     from.Namespace,
		FieldSelector: fields.OneTermEqualSelector("metadata.name", from.Name),
		Raw:           &metav1.ListOptions{ResourceVersion: from.ResourceVersion},
	})
	if err != nil {
		return nil, waitError(ctx, err)
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, waitError(ctx, ctx.Err())
		case event, open := <-w.ResultChan():
			if !open || event.Type == watch.Error {
				return nil, nil //nolint:nilnil // the watch ended before the call did: the caller begins another
			}
			p, ok := event.Object.(*v1alpha1.ToolProposal)
			switch {
			case !ok || p.UID != from.UID:
			case p.Status.Phase.Terminal():
				return p, nil
			case event.Type == watch.Deleted:
				return nil, errors.New("the call was deleted before it ended")
			}
		}
	}
}

func waitError(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errors.New("the call has not ended in time")
	}
	return serverError(err)
}
