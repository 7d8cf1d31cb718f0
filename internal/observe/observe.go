// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe reads from the cluster what decisions rest on. Admission,
// the controllers and the execution endpoint must see the same things in the
// same way, so the reads are here once. Which reader to use, the informers' or
// a live one, is the caller's to say.
package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/proposal"
)

// VerbApprove is the virtual verb on toolmanifests that lets somebody decide
// on the calls of a tool.
const VerbApprove = "approve"

// VerbUse is the virtual verb on serviceaccounts that lets the author of a
// manifest have its calls run in that name.
const VerbUse = "use"

// Together does independent reads at the same time and returns when all have
// ended. A live list waits for the API server's own cache, each time anew.
func Together(reads ...func() error) error {
	errs := make([]error, len(reads))
	var all sync.WaitGroup
	for i, do := range reads {
		all.Go(func() { errs[i] = do() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Tools reads the argument types and scopes of a namespace.
func Tools(ctx context.Context, from client.Reader, namespace string) (proposal.Tools, error) {
	var types v1alpha1.ArgumentTypeList
	var scopes v1alpha1.ToolScopeList
	// What comes from the informers is read and never changed.
	err := Together(func() error {
		return from.List(ctx, &types, client.UnsafeDisableDeepCopy, client.InNamespace(namespace))
	}, func() error {
		return from.List(ctx, &scopes, client.UnsafeDisableDeepCopy, client.InNamespace(namespace))
	})
	if err != nil {
		return proposal.Tools{}, fmt.Errorf("listing argument types and tool scopes of namespace %s: %w", namespace, err)
	}
	return proposal.Tools{Types: types.Items, Scopes: scopes.Items}, nil
}

// Manifest reads a manifest; nil when there is none.
func Manifest(ctx context.Context, from client.Reader, namespace, name string) (*v1alpha1.ToolManifest, error) {
	m := &v1alpha1.ToolManifest{}
	err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, m)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that there is none is an answer here
	}
	if err != nil {
		return nil, fmt.Errorf("reading ToolManifest %s/%s: %w", namespace, name, err)
	}
	return m, nil
}

// Contract reads a manifest with its types and scopes and compiles it. The
// first error is that of the compiler, which says what is wrong with the
// manifest; the second is that of reading. Without a manifest all are nil.
func Contract(ctx context.Context, from client.Reader, compiler *proposal.Compiler, namespace, tool string) (c *contract.Contract, problem, err error) {
	var m *v1alpha1.ToolManifest
	var tools proposal.Tools
	err = Together(
		func() (err error) { m, err = Manifest(ctx, from, namespace, tool); return err },
		func() (err error) { tools, err = Tools(ctx, from, namespace); return err },
	)
	if err != nil || m == nil {
		return nil, nil, err
	}
	c, problem = compiler.Compile(m, tools)
	return c, problem, nil
}

// Session reads the session that a proposal names; nil when there is none.
func Session(ctx context.Context, from client.Reader, p *v1alpha1.ToolProposal) (*v1alpha1.AgentSession, error) {
	if p.Spec.SessionRef == nil {
		return nil, nil //nolint:nilnil // that there is none is an answer here
	}
	s := &v1alpha1.AgentSession{}
	err := from.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.Spec.SessionRef.Name}, s)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that there is none is an answer here
	}
	if err != nil {
		return nil, fmt.Errorf("reading AgentSession %s/%s: %w", p.Namespace, p.Spec.SessionRef.Name, err)
	}
	return s, nil
}

// accountPrefix begins the usernames of ServiceAccounts; namespace and name
// follow (Kubernetes documentation, "Authenticating").
const accountPrefix = "system:serviceaccount:"

// AccountProblem says why somebody is not who they were when they were
// authenticated: their ServiceAccount is gone, or is another one of the same
// name. It is empty for people, of whom the cluster keeps no object, and for
// authenticators that give no UID.
func AccountProblem(ctx context.Context, from client.Reader, who *v1alpha1.Identity) (string, error) {
	account, isAccount := strings.CutPrefix(who.Username, accountPrefix)
	namespace, name, ok := strings.Cut(account, ":")
	if !isAccount || !ok || who.UID == "" {
		return "", nil
	}
	now := &corev1.ServiceAccount{}
	err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, now)
	switch {
	case apierrors.IsNotFound(err):
		return "ServiceAccount " + account + " does not exist any more", nil
	case err != nil:
		return "", fmt.Errorf("reading ServiceAccount %s/%s: %w", namespace, name, err)
	case string(now.UID) != who.UID:
		return "ServiceAccount " + account + " was created anew since: let it ask or decide again", nil
	}
	return "", nil
}

// Receipts reads the receipts that name the proposal, in the order of their
// creation. Receipts for an earlier proposal of the same name are among them:
// they are judged, not hidden.
func Receipts(ctx context.Context, from client.Reader, p *v1alpha1.ToolProposal) ([]v1alpha1.ApprovalReceipt, error) {
	var list v1alpha1.ApprovalReceiptList
	err := from.List(ctx, &list, client.InNamespace(p.Namespace), client.MatchingFields{IndexReceiptProposal: p.Name})
	if err != nil {
		return nil, fmt.Errorf("listing receipts of proposal %s/%s: %w", p.Namespace, p.Name, err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.ApprovalReceipt) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return list.Items, nil
}

// MayApprove asks the API server whether somebody holds the verb approve on a
// manifest now.
func MayApprove(ctx context.Context, reviews client.Writer, namespace, tool string, who *v1alpha1.Identity) (bool, error) {
	ok, err := may(ctx, reviews, who, authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: VerbApprove,
		Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version,
		Resource: "toolmanifests", Name: tool,
	})
	if err != nil {
		return false, fmt.Errorf("asking whether the approver may approve calls of %s: %w", tool, err)
	}
	return ok, nil
}

// MayUse asks the API server whether somebody holds the verb use on a
// ServiceAccount now.
func MayUse(ctx context.Context, reviews client.Writer, namespace, name string, who *v1alpha1.Identity) (bool, error) {
	ok, err := may(ctx, reviews, who, authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: VerbUse, Version: "v1", Resource: "serviceaccounts", Name: name,
	})
	if err != nil {
		return false, fmt.Errorf("asking whether the author may use ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return ok, nil
}

func may(ctx context.Context, reviews client.Writer, who *v1alpha1.Identity, what authorizationv1.ResourceAttributes) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(who.Extra))
	for _, e := range who.Extra {
		extra[e.Key] = e.Values
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.Username, UID: who.UID, Groups: who.Groups, Extra: extra, ResourceAttributes: &what,
	}}
	if err := reviews.Create(ctx, review); err != nil {
		return false, err
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}

// TokenUser asks the API server whose token this is, and whether it was made
// for the audience. The second result is false for any token that is not.
func TokenUser(ctx context.Context, reviews client.Writer, token, audience string) (authenticationv1.UserInfo, bool, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{audience}}}
	if err := reviews.Create(ctx, review); err != nil {
		return authenticationv1.UserInfo{}, false, fmt.Errorf("reviewing a token: %w", err)
	}
	ok := review.Status.Authenticated && slices.Contains(review.Status.Audiences, audience)
	return review.Status.User, ok, nil
}
