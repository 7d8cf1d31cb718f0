// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package execution

import (
	"errors"

	"github.com/go-logr/logr"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// callError is what went wrong with a request about a call that is known. Its
// text is that of the cause alone.
type callError struct {
	error
	proposal *v1alpha1.ToolProposal
}

func (e *callError) Unwrap() error { return e.error }

// about lets the log line about an error name the call.
func about(p *v1alpha1.ToolProposal, err error) error {
	if err == nil || p == nil {
		return err
	}
	return &callError{error: err, proposal: p}
}

// logFor is the log for lines about an error, which name its call by the words
// in which all other lines and records speak of it.
func (s *Server) logFor(err error) logr.Logger {
	var e *callError
	if !errors.As(err, &e) {
		return s.Log
	}
	return naming(s.Log, e.proposal)
}

func naming(log logr.Logger, p *v1alpha1.ToolProposal) logr.Logger {
	log = log.WithValues("namespace", p.Namespace, "name", p.Name, "uid", p.UID)
	if p.Spec.Prepared != nil {
		log = log.WithValues("fingerprint", p.Spec.Prepared.Fingerprint)
	}
	return log
}
