// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook is admission: the only place that knows who asked. It stamps
// requester and approver from the authenticated user, prepares calls, and
// seals what it stamped. Handlers have no side effects, so that a dry run
// shows exactly what a real create would store.
//
// It is a courtesy and a preparation point, not the gate: the controllers
// trust a stored object only as far as its seal.
package webhook

import (
	"context"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/proposal"
	"github.com/assent-dev/assent/internal/tracing"
)

// Config is what the handlers share.
type Config struct {
	// Cached reads from the informers, Live from the API server.
	Cached, Live client.Reader
	// Reviews creates SubjectAccessReviews.
	Reviews client.Writer
	// Keys returns the keys that are in force.
	Keys func() *attest.Keyring
	// Contracts compiles manifests.
	Contracts *proposal.Compiler
	// Now reads the clock, Random is a cryptographic source.
	Now    func() time.Time
	Random io.Reader
	// Epoch returns the operator's restore epoch.
	Epoch func() int64
	// MaxReceiptLifetime is the cluster's upper bound.
	MaxReceiptLifetime time.Duration
	// MaxPending is how many proposals of one requester may be open at once.
	MaxPending int
	// Rate limits how often a requester may ask; nil is without limit.
	Rate *Rate
	// SamePerson maps a username to the person behind it; nil is the username itself.
	SamePerson func(username string) string
	// Tracer is told of each admission; nil tells nobody.
	Tracer *tracing.Tracer
}

// Setup registers a handler for every kind.
func Setup(mgr ctrl.Manager, c *Config) error {
	for _, register := range []func() error{
		ctrl.NewWebhookManagedBy(mgr, &v1alpha1.ToolManifest{}).WithValidator(checker[*v1alpha1.ToolManifest](c.checkManifest)).Complete,
		ctrl.NewWebhookManagedBy(mgr, &v1alpha1.ArgumentType{}).WithValidator(checker[*v1alpha1.ArgumentType](checkArgumentType)).Complete,
		ctrl.NewWebhookManagedBy(mgr, &v1alpha1.ToolScope{}).WithValidator(checker[*v1alpha1.ToolScope](checkToolScope)).Complete,
		ctrl.NewWebhookManagedBy(mgr, &v1alpha1.ToolPolicy{}).WithValidator(checker[*v1alpha1.ToolPolicy](checkToolPolicy)).Complete,
		ctrl.NewWebhookManagedBy(mgr, &v1alpha1.ClusterToolPolicy{}).WithValidator(checker[*v1alpha1.ClusterToolPolicy](checkClusterToolPolicy)).Complete,
		ctrl.NewWebhookManagedBy(mgr, &v1alpha1.AgentSession{}).WithValidator(sessions{checkSession}).Complete,
	} {
		if err := register(); err != nil {
			return fmt.Errorf("registering a webhook: %w", err)
		}
	}
	p, r := &proposals{c}, &receipts{c}
	serve(mgr, kindProposal, "/mutate-assent-dev-v1alpha1-toolproposal", p.seal)
	serve(mgr, kindProposal, "/validate-assent-dev-v1alpha1-toolproposal", p.check)
	serve(mgr, kindReceipt, "/mutate-assent-dev-v1alpha1-approvalreceipt", r.seal)
	serve(mgr, kindReceipt, "/validate-assent-dev-v1alpha1-approvalreceipt", r.check)
	return nil
}

func serve[T any](mgr ctrl.Manager, kind, address string, answer func(context.Context, *request, *T) ([]byte, error)) {
	mgr.GetWebhookServer().Register(address, &endpoint[T]{kind: kind, log: mgr.GetLogger().WithName("webhook"), answer: answer})
}

// read reads one object that a client named. A name that no object can have is
// one that no object has: schemas are looked at after admission only.
func read(ctx context.Context, from client.Reader, key client.ObjectKey, into client.Object, how ...client.GetOption) error {
	if key.Name == "" || len(content.IsPathSegmentName(key.Name)) > 0 {
		return apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupVersion.Group}, key.Name)
	}
	return from.Get(ctx, key, into, how...)
}

// stamp draws what is new at each admission.
func (c *Config) stamp(namespace string) (proposal.Stamp, error) {
	id, err := attest.NewSealID(c.Random)
	if err != nil {
		return proposal.Stamp{}, fmt.Errorf("drawing a seal ID: %w", err)
	}
	return proposal.Stamp{Namespace: namespace, SealID: id, Epoch: c.Epoch(), Now: c.Now()}, nil
}
