// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers moves calls along: it gathers what a decision rests on,
// asks the pure code in internal/proposal what follows, and applies the
// answer. Nothing in it decides anything by itself. The commit point in
// commit.go is the only place of the project that creates Jobs.
package controllers

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/job"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/proposal"
	"github.com/assent-dev/assent/internal/tracing"
)

// Config is what the controllers share.
type Config struct {
	// Client reads from the informers and writes; Live reads from the API server.
	Client client.Client
	Live   client.Reader
	// Keys returns the keys that are in force.
	Keys func() *attest.Keyring
	// Contracts compiles manifests, Policies holds the set that is in force.
	Contracts *proposal.Compiler
	Policies  *policy.Store
	Journal   audit.Journal
	// Behind says whether policies exist that the set in force was not made of.
	Behind func(ctx context.Context, namespace string) (bool, error)
	Events *Events
	// Epoch returns the operator's restore epoch.
	Epoch func() int64
	// Restored says that the cluster or the log was put back to an earlier
	// state; empty when it was not. nil says nothing.
	Restored func(ctx context.Context) (string, error)
	// Drift says what differs from what was installed; empty when nothing does.
	Drift func() string
	Now   func() time.Time
	// Retention is how long an ended call is kept where its manifest does not say.
	Retention time.Duration
	// SamePerson maps a username to the person behind it; nil is the username itself.
	SamePerson func(username string) string
	// Settings are the operator's own share of every Job.
	Settings func() job.Settings
	// Past remembers which calls were fetched by a runner, and which ended.
	Past *observe.Past
	// Metrics are counted where they are not nil.
	Metrics *Metrics
	// Wake has waiting calls looked at again when policies change; nil does not.
	Wake *Wake
	// Tracer is told of the steps of calls; nil tells nobody.
	Tracer *tracing.Tracer

	appended appended
}
