// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"github.com/assent-dev/assent/internal/policy"
)

func TestReadiness_NeedsAPolicyEngineThatAnswersRightAndServing(t *testing.T) {
	broken := &policy.Store{Engine: func(cedar.PolicyIterator, types.EntityGetter, cedar.Request) (cedar.Decision, cedar.Diagnostic) {
		return cedar.Allow, cedar.Diagnostic{}
	}}
	fine := func() error { return nil }
	for name, tc := range map[string]struct {
		policies *policy.Store
		cert     func() error
		started  error
		want     string
	}{
		"all is well":         {policies: &policy.Store{}, cert: fine},
		"the engine is wrong": {policies: broken, cert: fine, want: "self-test of the policy engine"},
		"no certificate":      {policies: &policy.Store{}, cert: func() error { return errors.New("no certificate yet") }, want: "no certificate yet"},
		"not started":         {policies: &policy.Store{}, cert: fine, started: errors.New("not started"), want: "not started"},
	} {
		t.Run(name, func(t *testing.T) {
			err := readiness(tc.policies, tc.cert, func(*http.Request) error { return tc.started })(nil)
			if tc.want == "" {
				if err != nil {
					t.Errorf("not ready: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
