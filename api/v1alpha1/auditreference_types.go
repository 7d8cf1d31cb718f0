// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// AuditReference points into the audit log.
type AuditReference struct {
	// index of the latest record about this call.
	// +optional
	Index *int64 `json:"index,omitempty"`
	// records are the indexes of all records about this call, by type.
	// +optional
	// +listType=atomic
	Records []AuditRecordReference `json:"records,omitempty"`
}

// AuditRecordReference points at one record.
type AuditRecordReference struct {
	// type of the record.
	// +required
	Type string `json:"type"`
	// index of the record.
	// +required
	Index int64 `json:"index"`
}
