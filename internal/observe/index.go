// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

const (
	// IndexReceiptProposal finds receipts by the name of their proposal. It is
	// a selectable field of the CRD as well, so that live reads can use it.
	IndexReceiptProposal = "spec.proposalRef.name"
	// IndexOpenRequester finds proposals that have not ended by the username
	// of their requester. It exists in the informers only.
	IndexOpenRequester = "assent.dev/open-requester"
	// IndexTool finds proposals by tool; a selectable field of the CRD as well.
	IndexTool = "spec.tool"
	// IndexSession finds proposals by the name of their session; a selectable
	// field of the CRD as well.
	IndexSession = "spec.sessionRef.name"
	// IndexBatch finds proposals by the ID of their batch; a selectable field
	// of the CRD as well.
	IndexBatch = "spec.batch.id"
)

// RegisterIndexes adds the indexes to the informers.
func RegisterIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, i := range []struct {
		object client.Object
		field  string
		values client.IndexerFunc
	}{
		{&v1alpha1.ApprovalReceipt{}, IndexReceiptProposal, receiptProposal},
		{&v1alpha1.ToolProposal{}, IndexOpenRequester, openRequester},
		{&v1alpha1.ToolProposal{}, IndexTool, tool},
		{&v1alpha1.ToolProposal{}, IndexSession, session},
		{&v1alpha1.ToolProposal{}, IndexBatch, batch},
	} {
		if err := indexer.IndexField(ctx, i.object, i.field, i.values); err != nil {
			return fmt.Errorf("adding index %s: %w", i.field, err)
		}
	}
	return nil
}

func receiptProposal(o client.Object) []string {
	if r, ok := o.(*v1alpha1.ApprovalReceipt); ok {
		return []string{r.Spec.ProposalRef.Name}
	}
	return nil
}

func openRequester(o client.Object) []string {
	p, ok := o.(*v1alpha1.ToolProposal)
	if !ok || p.Status.Phase.Terminal() || p.Spec.Requester == nil {
		return nil
	}
	return []string{p.Spec.Requester.Username}
}

func tool(o client.Object) []string {
	if p, ok := o.(*v1alpha1.ToolProposal); ok {
		return []string{p.Spec.Tool}
	}
	return nil
}

func session(o client.Object) []string {
	if p, ok := o.(*v1alpha1.ToolProposal); ok && p.Spec.SessionRef != nil {
		return []string{p.Spec.SessionRef.Name}
	}
	return nil
}

func batch(o client.Object) []string {
	if p, ok := o.(*v1alpha1.ToolProposal); ok && p.Spec.Batch != nil {
		return []string{p.Spec.Batch.ID}
	}
	return nil
}
