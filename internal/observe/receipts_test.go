// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/observe"
)

// receiptStore answers lists of receipts as the API server does.
type receiptStore struct {
	client.Reader
	receipts []v1alpha1.ApprovalReceipt
	asked    []string
}

func (s *receiptStore) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	list, ok := into.(*v1alpha1.ApprovalReceiptList)
	if !ok {
		return fmt.Errorf("%T was asked for", into)
	}
	of := ""
	if o.FieldSelector != nil {
		of, _ = o.FieldSelector.RequiresExactMatch(observe.IndexReceiptProposal)
	}
	s.asked = append(s.asked, fmt.Sprintf("%d of %q", o.Limit, of))
	for _, r := range s.receipts {
		if of != "" && r.Spec.ProposalRef.Name != of {
			continue
		}
		if o.Limit > 0 && int64(len(list.Items)) == o.Limit {
			list.Continue = "more"
			return nil
		}
		list.Items = append(list.Items, r)
	}
	return nil
}

func TestShared_FindsAllReceiptsOfACall(t *testing.T) {
	for name, tc := range map[string]struct {
		others int
		asked  []string
	}{
		"where there are few, by one look at all":    {14, []string{`16 of ""`}},
		"where there are many, by a look at its own": {15, []string{`16 of ""`, `0 of "p"`}},
	} {
		t.Run(name, func(t *testing.T) {
			store := &receiptStore{}
			add := func(name, of string) {
				r := v1alpha1.ApprovalReceipt{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a"}}
				r.Spec.ProposalRef.Name = of
				store.receipts = append(store.receipts, r)
			}
			add("first", "p")
			for i := range tc.others {
				add(fmt.Sprint("other-", i), "q")
			}
			add("last", "p")
			p := &v1alpha1.ToolProposal{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "a"}}
			got, err := observe.Receipts(t.Context(), observe.Share(store), p)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, r := range got {
				names = append(names, r.Name)
			}
			if diff := cmp.Diff([]string{"first", "last"}, names); diff != "" {
				t.Errorf("receipts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.asked, store.asked); diff != "" {
				t.Errorf("lists (-want +got):\n%s", diff)
			}
		})
	}
}

func TestShared_PassesOnOtherListsOfReceipts(t *testing.T) {
	for name, opts := range map[string][]client.ListOption{
		"of another field":  {client.InNamespace("a"), client.MatchingFields{"spec.decision": "Approved"}},
		"of all namespaces": {client.MatchingFields{observe.IndexReceiptProposal: "p"}},
		"with a limit":      {client.InNamespace("a"), client.MatchingFields{observe.IndexReceiptProposal: "p"}, client.Limit(1)},
		"with a label":      {client.InNamespace("a"), client.MatchingFields{observe.IndexReceiptProposal: "p"}, client.MatchingLabels{"a": "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			store := &receiptStore{}
			if err := observe.Share(store).List(t.Context(), &v1alpha1.ApprovalReceiptList{}, opts...); err != nil {
				t.Fatal(err)
			}
			if len(store.asked) != 1 || store.asked[0] == `16 of ""` {
				t.Errorf("asked %v, want the list itself", store.asked)
			}
		})
	}
}
