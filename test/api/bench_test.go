// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// noop is a pair of webhooks that allow everything: what any pair costs. They
// are served beside Assent's own, and change nothing unless they are given a
// patch.
type noop struct {
	asked atomic.Int64
	patch atomic.Pointer[[]byte]
	// recorded is the patch that Assent's own admission once answered with.
	recorded []byte
	hooks    hooks
}

const (
	noopMutate   = "/noop-mutate"
	noopValidate = "/noop-validate"
)

func (n *noop) handler() *admission.Webhook {
	return &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		n.asked.Add(1)
		return admission.Allowed("")
	})}
}

// patcher answers with the patch that it was given, made beforehand.
func (n *noop) patcher() *admission.Webhook {
	kind := admissionv1.PatchTypeJSONPatch
	return &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		n.asked.Add(1)
		r := admission.Allowed("")
		if patch := n.patch.Load(); patch != nil {
			r.Patch, r.PatchType = *patch, &kind
		}
		return r
	})}
}

// record makes the patch that turns a proposal into the one that Assent seals.
func (n *noop) record(b *testing.B) {
	b.Helper()
	sealed := benchProposal()
	if err := server.admin.Create(b.Context(), sealed, client.DryRunAll); err != nil {
		b.Fatal(err)
	}
	var err error
	n.recorded, err = json.Marshal([]map[string]any{
		{"op": "add", "path": "/metadata/finalizers", "value": sealed.Finalizers},
		{"op": "add", "path": "/spec/requester", "value": sealed.Spec.Requester},
		{"op": "add", "path": "/spec/prepared", "value": sealed.Spec.Prepared},
		{"op": "add", "path": "/spec/seal", "value": sealed.Spec.Seal},
	})
	if err != nil {
		b.Fatal(err)
	}
}

// load makes configurations like Assent's own for proposals, with other addresses.
func (n *noop) load(own hooks, base string) {
	n.hooks = hooks{mutating: own.mutating.DeepCopy(), validating: own.validating.DeepCopy()}
	n.hooks.mutating.Name, n.hooks.validating.Name = "assent-noop", "assent-noop"
	mutate, validate := base+noopMutate, base+noopValidate
	n.hooks.mutating.Webhooks = slices.DeleteFunc(n.hooks.mutating.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool {
		return w.Name != "toolproposals.mutate.assent.dev"
	})
	n.hooks.validating.Webhooks = slices.DeleteFunc(n.hooks.validating.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
		return w.Name != "toolproposals.validate.assent.dev"
	})
	n.hooks.mutating.Webhooks[0].ClientConfig.URL = &mutate
	n.hooks.validating.Webhooks[0].ClientConfig.URL = &validate
}

// The situations that are compared. A pair that answers with a patch of the
// same size as Assent's shows what of the difference is kube-apiserver's work
// on the larger object.
const (
	withNothing = iota
	withNoop
	withPatch
	withAssent
	situations
)

// enter puts one of the situations in force and waits until it is.
func (n *noop) enter(b *testing.B, which int) {
	b.Helper()
	ctx := b.Context()
	for _, h := range []*hooks{&n.hooks, &server.hooks} {
		if err := h.remove(ctx, server.admin); err != nil {
			b.Fatal(err)
		}
	}
	n.patch.Store(nil)
	if which == withPatch {
		n.patch.Store(&n.recorded)
	}
	var err error
	switch which {
	case withNoop, withPatch:
		err = n.hooks.install(ctx, server.admin)
	case withAssent:
		err = server.hooks.install(ctx, server.admin)
	}
	if err != nil {
		b.Fatal(err)
	}
	expected := int64(0)
	if which == withNoop || which == withPatch {
		expected = 2
	}
	for range 5000 {
		before := n.asked.Load()
		refused := probe(b.Context()) != nil
		asked := n.asked.Load() - before
		if refused == (which == withAssent) && asked == expected {
			return
		}
	}
	b.Fatal("kube-apiserver did not notice the webhooks")
}

// BenchmarkAdmission reports how much longer creating a proposal takes with
// Assent's admission than without any, over how much longer it takes with a
// pair of webhooks that does nothing. Creates are dry runs, so that etcd, which
// is the same for all, does not drown the difference.
//
//	go test -run '^$' -bench Admission -benchtime 1x ./test/api
func BenchmarkAdmission(b *testing.B) {
	if server == nil {
		b.Skip("needs an API server: run it by \"make test-api\"")
	}
	tool := &v1alpha1.ToolManifest{}
	benchTool(tool)
	if err := client.IgnoreAlreadyExists(server.admin.Create(b.Context(), tool)); err != nil {
		b.Fatal(err)
	}
	server.noop.record(b)
	defer func() { server.noop.enter(b, withAssent) }()
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			var took [situations][]time.Duration
			for range b.N {
				for range 3 {
					for which := range situations {
						server.noop.enter(b, which)
						took[which] = append(took[which], creates(b, clients)...)
					}
				}
			}
			for name, q := range map[string]float64{"p50": 0.50, "p99": 0.99} {
				base, plain, ours := quantile(took[withNothing], q), quantile(took[withNoop], q), quantile(took[withAssent], q)
				b.ReportMetric(float64(ours-base)/float64(plain-base), name+"-x-noop")
				b.ReportMetric(float64(quantile(took[withPatch], q)-base)/float64(plain-base), name+"-patch-x-noop")
				b.ReportMetric(float64(ours-base)/1e6, name+"-added-ms")
				b.ReportMetric(float64(plain-base)/1e6, name+"-noop-ms")
			}
		})
	}
}

// probe creates what Assent refuses and nobody else does.
func probe(ctx context.Context) error {
	p := benchProposal()
	p.Spec.Tool = "nothing"
	return server.admin.Create(ctx, p, client.DryRunAll)
}

func benchTool(m *v1alpha1.ToolManifest) {
	m.Name, m.Namespace = "bench", "default"
	m.Spec.Version = "1"
	m.Spec.Arguments = []v1alpha1.Argument{{Name: "target", Type: "string", Required: true}}
	m.Spec.Command = &v1alpha1.CommandTemplate{Image: testImage, Argv: []string{"tool", "{target}"}}
}

func benchProposal() *v1alpha1.ToolProposal {
	p := &v1alpha1.ToolProposal{Spec: v1alpha1.ToolProposalSpec{Tool: "bench", Arguments: `{"target":"web"}`, CallID: "c"}}
	p.Namespace, p.GenerateName = "default", "bench-"
	return p
}

// creates measures some hundred creates by that many clients at once.
func creates(b *testing.B, clients int) []time.Duration {
	b.Helper()
	each := max(512/clients, 8)
	out := make([]time.Duration, clients*each)
	var wait sync.WaitGroup
	for c := range clients {
		wait.Go(func() {
			for i := range each {
				begin := time.Now()
				if err := server.admin.Create(b.Context(), benchProposal(), client.DryRunAll); err != nil {
					b.Errorf("creating: %v", err)
				}
				out[c*each+i] = time.Since(begin)
			}
		})
	}
	wait.Wait()
	return out
}

func quantile(d []time.Duration, q float64) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[min(int(float64(len(d))*q), len(d)-1)]
}
