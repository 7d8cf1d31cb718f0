// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,verbs=get,resourceNames=assent-identity;assent-frozen;assent-status;assent-workloads;assent-execution-namespaces
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get,resourceNames=agentsessions.assent.dev;approvalreceipts.assent.dev;argumenttypes.assent.dev;clustertoolpolicies.assent.dev;toolmanifests.assent.dev;toolpolicies.assent.dev;toolproposals.assent.dev;toolscopes.assent.dev
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles;clusterrolebindings,verbs=get,resourceNames=assent

const (
	// driftInterval is how often what is installed is compared while it is as
	// it should be, and driftRetry while it is not.
	driftInterval = 10 * time.Second
	driftRetry    = time.Second
	// driftStale is how old a comparison may be that a grant rests on.
	driftStale = 3 * driftInterval
)

// Drift compares what enforces Assent's rules in the cluster with what was
// installed. Whoever takes a webhook away, exempts a namespace from it or
// loosens a kind gets no call granted until it is restored.
type Drift struct {
	// Live reads from the API server.
	Live client.Reader
	// Installed are the objects as they should be, without what the cluster
	// adds to them.
	Installed []*unstructured.Unstructured
	Now       func() time.Time

	mu      sync.Mutex
	found   string
	checked time.Time
}

// Problem says what differs; empty when nothing does. What was never compared,
// or not for a while, counts as different.
func (d *Drift) Problem() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.checked.IsZero():
		return "what enforces the rules has not been compared with what was installed yet"
	case d.Now().Sub(d.checked) > driftStale:
		return "what enforces the rules could not be compared with what was installed for a while"
	}
	return d.found
}

// Check compares once. An error means that it could not: the last answer stays
// until it is stale.
func (d *Drift) Check(ctx context.Context) error {
	found := ""
	for _, want := range d.Installed {
		problem, err := d.compare(ctx, want)
		if err != nil {
			return err
		}
		if problem != "" {
			found = problem
			break
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found, d.checked = found, d.Now()
	return nil
}

func (d *Drift) compare(ctx context.Context, want *unstructured.Unstructured) (string, error) {
	name := want.GetKind() + " " + want.GetName()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	err := d.Live.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		return name + " is missing", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	if live.GetDeletionTimestamp() != nil {
		return name + " is being deleted", nil
	}
	if path := difference(want, live); path != "" {
		return fmt.Sprintf("%s differs from what was installed at %s", name, path), nil
	}
	return "", nil
}

// Start compares again and again until the context ends.
func (d *Drift) Start(ctx context.Context) error {
	log := ctrl.LoggerFrom(ctx).WithName("drift")
	last := d.Problem()
	for {
		if err := d.Check(ctx); err != nil && !errors.Is(err, context.Canceled) {
			log.Error(err, "comparing what enforces the rules with what was installed")
		}
		problem := d.Problem()
		if problem != last {
			log.Info("what enforces the rules was compared with what was installed", "drift", problem)
			last = problem
		}
		wait := driftInterval
		if problem != "" {
			wait = driftRetry
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// NeedLeaderElection says that every replica compares: each may lead next.
func (d *Drift) NeedLeaderElection() bool { return false }
