// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// runOnCluster replays the calls of a namespace as it would be with the drafts.
func (o *simulateOptions) runOnCluster(ctx context.Context, streams Streams) error {
	if err := o.checkOutput(); err != nil {
		return err
	}
	if len(o.files)+len(o.without) == 0 {
		return errors.New("nothing would change: name drafts with -f, or policies to leave out with --without")
	}
	drafts, err := loadDocuments(o.files, streams.In)
	if err != nil {
		return err
	}
	c, err := o.cluster.connect()
	if err != nil {
		return err
	}
	o.namespace = c.namespace
	drafts.keep(o.namespace)
	inForce, err := c.documents(ctx)
	if err != nil {
		return err
	}
	next, err := inForce.over(drafts, o.without)
	if err != nil {
		return err
	}
	before, err := o.assemble(inForce)
	if err != nil {
		return err
	}
	after, err := o.assemble(next)
	if err != nil {
		return err
	}
	return o.replayAll(after, before, streams)
}

// pageSize is how many objects are asked for at once.
const pageSize = 500

// documents reads what decides about the calls of the namespace, and the calls.
func (c *cluster) documents(ctx context.Context) (*documents, error) {
	d := &documents{seen: map[string]string{}}
	in := client.InNamespace(c.namespace)
	for _, read := range []func() error{
		func() error {
			return pages(ctx, c, &v1alpha1.ToolManifestList{}, func(l *v1alpha1.ToolManifestList) { d.Manifests = append(d.Manifests, l.Items...) }, in)
		},
		func() error {
			return pages(ctx, c, &v1alpha1.ArgumentTypeList{}, func(l *v1alpha1.ArgumentTypeList) { d.Types = append(d.Types, l.Items...) }, in)
		},
		func() error {
			return pages(ctx, c, &v1alpha1.ToolScopeList{}, func(l *v1alpha1.ToolScopeList) { d.Scopes = append(d.Scopes, l.Items...) }, in)
		},
		func() error {
			return pages(ctx, c, &v1alpha1.ToolPolicyList{}, func(l *v1alpha1.ToolPolicyList) { d.Policies = append(d.Policies, l.Items...) }, in)
		},
		func() error {
			return pages(ctx, c, &v1alpha1.ClusterToolPolicyList{}, func(l *v1alpha1.ClusterToolPolicyList) { d.ClusterPolicies = append(d.ClusterPolicies, l.Items...) })
		},
		func() error {
			return pages(ctx, c, &v1alpha1.AgentSessionList{}, func(l *v1alpha1.AgentSessionList) { d.Sessions = append(d.Sessions, l.Items...) }, in)
		},
		func() error {
			return pages(ctx, c, &v1alpha1.ToolProposalList{}, func(l *v1alpha1.ToolProposalList) { d.Proposals = append(d.Proposals, l.Items...) }, in)
		},
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// pages lists in parts: a namespace can hold more calls than one answer should.
func pages[L client.ObjectList](ctx context.Context, c client.Reader, list L, take func(L), opts ...client.ListOption) error {
	for {
		if err := c.List(ctx, list, append(opts, client.Limit(pageSize), client.Continue(list.GetContinue()))...); err != nil {
			return fmt.Errorf("reading the namespace: %w", serverError(err))
		}
		take(list)
		if list.GetContinue() == "" {
			return nil
		}
		next := list.GetContinue()
		if err := meta.SetList(list, nil); err != nil {
			return err
		}
		list.SetContinue(next)
	}
}

// over gives what would be in the cluster once the drafts were applied, without
// the policies that are to go.
func (d *documents) over(drafts *documents, without []string) (*documents, error) {
	next := &documents{
		Manifests:       overlay(d.Manifests, drafts.Manifests),
		Types:           overlay(d.Types, drafts.Types),
		Scopes:          overlay(d.Scopes, drafts.Scopes),
		Policies:        overlay(d.Policies, drafts.Policies),
		ClusterPolicies: overlay(d.ClusterPolicies, drafts.ClusterPolicies),
		Sessions:        overlay(d.Sessions, drafts.Sessions),
		Proposals:       overlay(d.Proposals, drafts.Proposals),
	}
	for _, key := range without {
		before := len(next.Policies) + len(next.ClusterPolicies)
		next.Policies = slices.DeleteFunc(next.Policies, func(p v1alpha1.ToolPolicy) bool { return p.Namespace+"/"+p.Name == key })
		next.ClusterPolicies = slices.DeleteFunc(next.ClusterPolicies, func(p v1alpha1.ClusterToolPolicy) bool { return "/"+p.Name == key })
		if len(next.Policies)+len(next.ClusterPolicies) == before {
			return nil, fmt.Errorf("there is no policy object %s to leave out; write NAMESPACE/NAME, or /NAME for a ClusterToolPolicy", key)
		}
	}
	return next, nil
}

// overlay puts drafts in the place of objects of the same name, and the rest of
// them behind.
func overlay[T any, PT namespaced[T]](objects, drafts []T) []T {
	out := slices.Clone(objects)
	for i := range drafts {
		draft := PT(&drafts[i])
		at := slices.IndexFunc(out, func(o T) bool {
			return PT(&o).GetNamespace() == draft.GetNamespace() && PT(&o).GetName() == draft.GetName()
		})
		if at < 0 {
			out = append(out, drafts[i])
		} else {
			out[at] = drafts[i]
		}
	}
	return out
}
