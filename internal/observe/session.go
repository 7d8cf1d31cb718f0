// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// SessionCalls reads the calls that name a session, open or ended. Calls of an
// earlier session of the same name are among them.
func SessionCalls(ctx context.Context, from client.Reader, namespace, session string) ([]v1alpha1.ToolProposal, error) {
	var list v1alpha1.ToolProposalList
	err := from.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{IndexSession: session})
	if err != nil {
		return nil, fmt.Errorf("listing the calls of session %s/%s: %w", namespace, session, err)
	}
	return list.Items, nil
}

// BatchCalls reads the calls that name a batch, of whatever session.
func BatchCalls(ctx context.Context, from client.Reader, namespace, batch string) ([]v1alpha1.ToolProposal, error) {
	var list v1alpha1.ToolProposalList
	err := from.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{IndexBatch: batch})
	if err != nil {
		return nil, fmt.Errorf("listing the calls of batch %s in namespace %s: %w", batch, namespace, err)
	}
	return list.Items, nil
}
