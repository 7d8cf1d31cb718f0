// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/proposal"
)

// offlineOptions are the flags of commands that work on files in place of a
// cluster.
type offlineOptions struct {
	files       []string
	namespace   string
	runnerImage string
	allowTags   bool
	// policyObjects bounds the policies of a namespace, and of the cluster.
	policyObjects int
}

// offline is a namespace made of files: contracts and policies as the operator
// would have them.
type offline struct {
	documents *documents
	namespace string
	contracts map[string]*contract.Contract // by name of the manifest
	broken    map[string]error              // manifests that do not compile
	names     []string                      // of contracts, sorted
	limits    policy.Limits
	// hashes are those that the operator gave to contracts, by name of the
	// manifest: the image of its runner is part of them.
	hashes map[string]string
	set    *policy.Set
}

// load reads the files. Objects without a namespace belong to the namespace
// asked for, as with kubectl apply; those of other namespaces are left out.
func (o *offlineOptions) load(streams Streams) (*offline, error) {
	d, err := loadDocuments(o.files, streams.In)
	if err != nil {
		return nil, err
	}
	d.keep(o.namespace)
	return o.assemble(d)
}

// assemble makes contracts and policies of documents.
func (o *offlineOptions) assemble(d *documents) (*offline, error) {
	w := &offline{
		documents: d, namespace: o.namespace, contracts: map[string]*contract.Contract{}, broken: map[string]error{},
		limits: policy.Limits{Objects: o.policyObjects}, hashes: map[string]string{},
	}
	for i := range d.Manifests {
		m := &d.Manifests[i]
		if m.UID != "" && m.Status.ObservedGeneration == m.Generation {
			w.hashes[m.Name] = m.Status.ContractHash
		}
		c, err := o.compile(d, i)
		if err != nil {
			w.broken[m.Name] = err
			continue
		}
		w.contracts[m.Name] = c
		w.names = append(w.names, m.Name)
	}
	slices.Sort(w.names)
	return w, w.loadPolicies()
}

func (o *offlineOptions) compile(d *documents, manifest int) (*contract.Contract, error) {
	in, err := proposal.ContractInput(&d.Manifests[manifest], proposal.Tools{Types: d.Types, Scopes: d.Scopes}, o.runnerImage, o.allowTags)
	if err != nil {
		return nil, err
	}
	return contract.Compile(in)
}

// loadPolicies puts the policies in force, as the operator would: those that
// cannot be read deny, and are no reason to stop.
func (w *offline) loadPolicies() error {
	var sources []policy.Source
	for i := range w.documents.Policies {
		p := &w.documents.Policies[i]
		sources = append(sources, proposal.PolicySource(p.Namespace, p.Name, p.Spec))
	}
	for i := range w.documents.ClusterPolicies {
		p := &w.documents.ClusterPolicies[i]
		sources = append(sources, proposal.PolicySource("", p.Name, p.Spec))
	}
	compiled := make([]*policy.Compiled, 0, len(sources))
	for _, source := range sources {
		c, _ := policy.Compile(source, w.limits)
		compiled = append(compiled, c)
	}
	set, err := policy.NewSet(w.limits, compiled...)
	if err != nil {
		return err
	}
	w.set = set.WithTools(w.namespace, w.tools())
	return nil
}

// tools are the contracts as policies see them.
func (w *offline) tools() []policy.Tool {
	tools := make([]policy.Tool, 0, len(w.names))
	for _, name := range w.names {
		tool := proposal.PolicyTool(w.namespace, w.contracts[name])
		tool.ContractHash = w.hash(w.contracts[name])
		tools = append(tools, tool)
	}
	return tools
}

// hash is the contract's hash as the operator has it, or as it is here.
func (w *offline) hash(c *contract.Contract) string {
	return cmp.Or(w.hashes[c.Name()], c.Hash())
}

// contract finds the contract of a tool.
func (w *offline) contract(tool string) (*contract.Contract, error) {
	if c, ok := w.contracts[tool]; ok {
		return c, nil
	}
	if err, ok := w.broken[tool]; ok {
		return nil, fmt.Errorf("ToolManifest %s: %w", tool, err)
	}
	return nil, fmt.Errorf("there is no ToolManifest %s in namespace %s of the files", tool, w.namespace)
}

// sound returns an error if a manifest does not compile.
func (w *offline) sound() error {
	for i := range w.documents.Manifests {
		if err := w.broken[w.documents.Manifests[i].Name]; err != nil {
			return fmt.Errorf("ToolManifest %s: %w", w.documents.Manifests[i].Name, err)
		}
	}
	return nil
}

// keep gives objects without a namespace one, and drops those of others.
func (d *documents) keep(namespace string) {
	d.Manifests = inNamespace(d.Manifests, namespace)
	d.Types = inNamespace(d.Types, namespace)
	d.Scopes = inNamespace(d.Scopes, namespace)
	d.Policies = inNamespace(d.Policies, namespace)
	d.Sessions = inNamespace(d.Sessions, namespace)
	d.Proposals = inNamespace(d.Proposals, namespace)
}

// namespaced is a pointer to an object with a namespace.
type namespaced[T any] interface {
	*T
	GetName() string
	GetNamespace() string
	SetNamespace(string)
}

func inNamespace[T any, PT namespaced[T]](objects []T, namespace string) []T {
	var kept []T
	for i := range objects {
		p := PT(&objects[i])
		p.SetNamespace(cmp.Or(p.GetNamespace(), namespace))
		if p.GetNamespace() == namespace {
			kept = append(kept, objects[i])
		}
	}
	return kept
}
