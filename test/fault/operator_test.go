// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
	"github.com/assent-dev/assent/execution"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/job"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/proposal"
)

// effect is what a fault does to one operation.
type effect string

const (
	crashBefore effect = "the operator ends before"
	crashAfter  effect = "the operator ends after"
	lostReply   effect = "the answer is lost"
	overtaken   effect = "another replica is faster"
)

var effects = []effect{crashBefore, crashAfter, lostReply, overtaken}

var (
	errDead = errors.New("this operator has ended")
	errLost = errors.New("the answer was lost")
)

// faults counts operations and makes one of them go wrong.
type faults struct {
	mu sync.Mutex
	// at is the operation that goes wrong, counted from 1; none with 0.
	at     int
	effect effect
	// seen names the operations so far.
	seen []string
}

// next says what happens to the operation that is about to begin.
func (f *faults) next(name string) effect {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, name)
	if len(f.seen) == f.at {
		return f.effect
	}
	return ""
}

// operator is one process: dead once a fault has ended it.
type operator struct {
	w         *world
	mu        sync.Mutex
	dead      bool
	proposals *controllers.ProposalReconciler
	handler   http.Handler
	// frozen makes its cache show every proposal as it saw it first.
	frozen map[types.NamespacedName]*v1alpha1.ToolProposal
}

func (w *world) newOperator() *operator {
	w.t.Helper()
	o := &operator{w: w}
	shared := o.config(o.client())
	shared.Past = &observe.Past{} // what a process knows dies with it
	o.proposals = &controllers.ProposalReconciler{Config: shared}
	// Policies are loaded beside the call, so their status is not part of it.
	loader := o.config(admin)
	loader.Policies = shared.Policies
	policies := &controllers.PolicyReconciler{Config: loader}
	shared.Behind = policies.Behind
	if _, err := policies.Reconcile(w.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: w.namespace, Name: "policies"}}); err != nil {
		w.t.Errorf("loading policies: %v", err)
	}
	server := &execution.Server{
		Live: admin, Client: shared.Client, Keys: shared.Keys, Contracts: shared.Contracts,
		ExpectedJob: shared.ExpectedJob, Hosts: []string{"127.0.0.1"}, Now: w.Now, Epoch: shared.Epoch, Past: shared.Past, Log: logr.Discard(),
	}
	o.handler = server.Handler()
	return o
}

func (o *operator) config(c client.Client) *controllers.Config {
	return &controllers.Config{
		Client: c, Live: admin, Keys: func() *attest.Keyring { return keys },
		Contracts: &proposal.Compiler{RunnerImage: runnerImage}, Policies: &policy.Store{}, Journal: journal{o.w},
		Epoch: func() int64 { return 0 }, Drift: func() string { return "" },
		Now: o.w.Now, Retention: 24 * time.Hour,
		Settings: func() job.Settings {
			return job.Settings{RunnerImage: runnerImage, StartTimeout: 10 * time.Minute, Endpoint: job.Endpoint{
				URL: "https://assent-execution.assent-system.svc:8443", CA: "-----BEGIN CERTIFICATE-----\n",
				PublicKeys: string(attest.EncodePublicKeysPEM(keys.PublicKeys()...)),
				Namespace:  "assent-system", PodLabels: map[string]string{"app.kubernetes.io/name": "assent"}, Port: 8443,
			}}
		},
	}
}

// journal keeps the audit records of a world in its record.
type journal struct{ w *world }

// Append implements audit.Journal.
func (j journal) Append(_ context.Context, r audit.Record) (uint64, error) {
	l := line{kind: audited, detail: string(r.Type()), fingerprint: r.Fingerprint}
	if r.Proposal != nil {
		l.proposal = types.UID(r.Proposal.UID)
	}
	if e, ok := r.Data.(audit.PolicyEvaluated); ok {
		l.allowed = e.Commit && (e.Decision == audit.Decision(policy.Allow) || e.Decision == audit.Decision(policy.NeedsApproval) && len(e.Receipts) > 0)
	}
	j.w.record.add(l)
	return uint64(len(j.w.record.all())), nil
}

// AppendAll implements audit.Journal.
func (j journal) AppendAll(ctx context.Context, records []audit.Record) ([]uint64, error) {
	var indexes []uint64
	for _, r := range records {
		index, err := j.Append(ctx, r)
		if err != nil {
			return indexes, err
		}
		indexes = append(indexes, index)
	}
	return indexes, nil
}

func (o *operator) alive() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.dead
}

func (o *operator) die() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead = true
}

// step is one reconciliation; it says whether it went well.
func (o *operator) step(key types.NamespacedName) error {
	if !o.alive() {
		return errDead
	}
	_, err := o.proposals.Reconcile(o.w.ctx, ctrl.Request{NamespacedName: key})
	return err
}

// client writes to the API server unless a fault is in the way, and records
// what was accepted.
func (o *operator) client() client.Client {
	return interceptor.NewClient(admin, interceptor.Funcs{
		Get: o.read,
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if isReview(obj) {
				return c.Create(ctx, obj, opts...)
			}
			return o.write(ctx, "create", obj, func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return o.write(ctx, "update", obj, func() error { return c.Update(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return o.write(ctx, "delete", obj, func() error { return c.Delete(ctx, obj, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return o.write(ctx, "update "+sub, obj, func() error { return c.SubResource(sub).Update(ctx, obj, opts...) })
		},
	})
}

// read serves a frozen cache where there is one.
func (o *operator) read(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	p, ok := obj.(*v1alpha1.ToolProposal)
	if !ok || o.frozen == nil {
		return c.Get(ctx, key, obj, opts...)
	}
	o.mu.Lock()
	old := o.frozen[key]
	o.mu.Unlock()
	if old == nil {
		if err := c.Get(ctx, key, obj, opts...); err != nil {
			return err
		}
		o.mu.Lock()
		o.frozen[key] = p.DeepCopy()
		o.mu.Unlock()
		return nil
	}
	old.DeepCopyInto(p)
	return nil
}

// write carries out one write with what goes wrong around it.
func (o *operator) write(_ context.Context, verb string, obj client.Object, do func() error) error {
	if !o.alive() {
		return errDead
	}
	fault := o.w.faults.next(verb + " " + nameOf(obj))
	switch fault {
	case crashBefore:
		o.die()
		return errDead
	case overtaken:
		// Another replica looks at everything first and does what it finds.
		o.w.overtake()
	}
	if err := do(); err != nil {
		return err
	}
	o.w.record.add(lineOf(verb, obj))
	switch fault {
	case crashAfter:
		o.die()
		return errDead
	case lostReply:
		return errLost
	}
	return nil
}

func nameOf(obj client.Object) string {
	gvk, err := admin.GroupVersionKindFor(obj)
	if err != nil {
		return "?"
	}
	return gvk.Kind
}

func isReview(obj client.Object) bool {
	name := nameOf(obj)
	return name == "SubjectAccessReview" || name == "TokenReview"
}

func lineOf(verb string, obj client.Object) line {
	switch o := obj.(type) {
	case *batchv1.Job:
		if verb == "create" {
			return line{kind: jobMade, proposal: types.UID(o.Labels[v1alpha1.LabelProposalUID]), detail: verb + " Job"}
		}
	case *v1alpha1.ToolProposal:
		l := line{kind: written, proposal: o.UID, detail: verb + " ToolProposal", phase: string(o.Status.Phase), reason: o.Status.Reason}
		if o.Spec.Prepared != nil {
			l.fingerprint = o.Spec.Prepared.Fingerprint
		}
		if d := o.Status.Dispatch; d != nil {
			l.grant = d.Seal
			for _, r := range d.Receipts {
				l.receipts = append(l.receipts, r.UID)
			}
		}
		if r := o.Status.RedeemedBy; r != nil {
			l.redeemer = r.PodUID
		}
		return l
	}
	return line{kind: other, detail: verb + " " + nameOf(obj)}
}
