// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package api tests admission, the controllers and the execution endpoint
// against a real API server. There is no controller manager and no kubelet:
// the tests step the reconcilers by hand, with a clock of their own, so that
// nothing waits and nothing races. "make test-api" starts the API server.
package api
