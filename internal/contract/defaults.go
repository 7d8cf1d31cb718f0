// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"time"

	"github.com/go-json-experiment/json"
)

// clone returns a copy that shares nothing, so that whoever changes a manifest
// later changes no contract. Empty lists become absent ones, as they are in
// what is stored.
func (m Manifest) clone() (Manifest, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return Manifest{}, hideInput(err)
	}
	return DecodeManifest(data)
}

// withDefaults returns the manifest with every default written out. It copies
// what it changes; the rest is shared and never written to.
func (m Manifest) withDefaults() Manifest {
	orText(&m.RiskTier, "medium")
	orText(&m.ArgumentEncoding, EncodingTyped)
	m.Approval = orNew(m.Approval)
	m.Approval.Timeout = orDuration(m.Approval.Timeout, DefaultApprovalTimeout)
	m.Approval.ReceiptLifetime = orDuration(m.Approval.ReceiptLifetime, DefaultReceiptLifetime)
	m.Execution = orNew(m.Execution)
	m.Execution.Timeout = orDuration(m.Execution.Timeout, DefaultTimeout)
	orText(&m.Execution.CPU, DefaultCPU)
	orText(&m.Execution.Memory, DefaultMemory)
	orText(&m.Execution.EphemeralStorage, DefaultEphemeralStorage)
	m.Output = orNew(m.Output)
	orText(&m.Output.Format, FormatText)
	if m.Command != nil {
		m.Command = orNew(m.Command)
		orText(&m.Command.WorkingDir, DefaultWorkingDir)
	}
	return m
}

// uncompiled drops what a contract keeps in its compiled form only: a manifest is
// most of what a tool costs in memory, and it would be there twice.
func (m Manifest) uncompiled() Manifest {
	m.Arguments, m.Command, m.HTTP, m.Secrets = nil, nil, nil, nil
	return m
}

func orText(field *string, fallback string) {
	if *field == "" {
		*field = fallback
	}
}

// orNew returns a shallow copy, or a new value.
func orNew[T any](p *T) *T {
	var v T
	if p != nil {
		v = *p
	}
	return &v
}

func orDuration(d *Duration, fallback time.Duration) *Duration {
	if d != nil {
		return d
	}
	v := Duration(fallback)
	return &v
}
