// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ConsumedReceipt is a receipt that a grant rested on.
type ConsumedReceipt struct {
	// name of the ApprovalReceipt.
	// +required
	Name string `json:"name"`
	// uid of the ApprovalReceipt.
	// +required
	UID types.UID `json:"uid"`
	// approver who created it.
	// +required
	Approver string `json:"approver"`
}

// Dispatch is the grant: written once by the commit point, before the Job exists.
type Dispatch struct {
	// jobNamespace the Job runs in.
	// +required
	JobNamespace string `json:"jobNamespace"`
	// jobName of the Job.
	// +required
	JobName string `json:"jobName"`
	// jobUID of the Job, once it exists.
	// +optional
	JobUID types.UID `json:"jobUID,omitempty"`
	// templateHash is the SHA-256 of the Job's template, in hex.
	// +required
	TemplateHash string `json:"templateHash"`
	// time of the grant.
	// +required
	Time metav1.Time `json:"time"`
	// deadline after which the call cannot start and is given up.
	// +required
	Deadline metav1.Time `json:"deadline"`
	// receipts that the grant consumed.
	// +optional
	// +listType=atomic
	Receipts []ConsumedReceipt `json:"receipts,omitempty"`
	// keyID names the signing key that seal was made with.
	// +required
	// +kubebuilder:validation:MaxLength=64
	KeyID string `json:"keyID"`
	// seal authenticates the grant, in hex: a grant that somebody else wrote
	// into the status is none.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Seal string `json:"seal"`
}

// Redemption says which Pod fetched the call. It is written once.
type Redemption struct {
	// podName of the Pod.
	// +required
	PodName string `json:"podName"`
	// podUID of the Pod.
	// +required
	PodUID types.UID `json:"podUID"`
	// nodeName of the Pod.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// nonceDigest is the SHA-256 of the runner's nonce, in hex: the same
	// runner may fetch its ticket again, nobody else may.
	// +required
	NonceDigest string `json:"nonceDigest"`
	// ticketDigest is the SHA-256 of the ticket that the Pod was given, in hex.
	// +required
	// +kubebuilder:validation:MaxLength=64
	TicketDigest string `json:"ticketDigest"`
	// time of the redemption.
	// +required
	Time metav1.Time `json:"time"`
}

// Result is what the runner reported.
type Result struct {
	// outcome is Succeeded, Failed or TimedOut as the runner saw it.
	// +required
	Outcome string `json:"outcome"`
	// reason says why a call failed, in one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// exitCode of the program.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
	// httpStatus of the response.
	// +optional
	HTTPStatus *int32 `json:"httpStatus,omitempty"`
	// output is the program's standard output, its output file or the
	// response, at most 32 KiB.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Output string `json:"output,omitempty"`
	// errorOutput is the program's standard error, at most 4 KiB.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	ErrorOutput string `json:"errorOutput,omitempty"`
	// outputDigest is the SHA-256 of the whole output, in hex: of the file's
	// content where output is that.
	// +optional
	OutputDigest string `json:"outputDigest,omitempty"`
	// outputBytes is the length of the whole output.
	// +optional
	OutputBytes int64 `json:"outputBytes,omitempty"`
	// outputProblem says how an output breaks its format or schema that is kept
	// out of the status. It contains nothing of the output.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	OutputProblem string `json:"outputProblem,omitempty"`
	// truncated says that output or errorOutput is only the beginning.
	// +optional
	Truncated bool `json:"truncated,omitempty"`
	// mediaType of the response.
	// +optional
	MediaType string `json:"mediaType,omitempty"`
	// keyID names the signing key that seal was made with.
	// +required
	// +kubebuilder:validation:MaxLength=64
	KeyID string `json:"keyID"`
	// seal authenticates the report, in hex: a result that somebody else wrote
	// into the status is none.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Seal string `json:"seal"`
	// parsed is the output as JSON text, read by the manifest's output format.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Parsed string `json:"parsed,omitempty"`
	// durationMilliseconds is how long the call ran.
	// +optional
	DurationMilliseconds int64 `json:"durationMilliseconds,omitempty"`
	// time the result arrived.
	// +required
	Time metav1.Time `json:"time"`
}
