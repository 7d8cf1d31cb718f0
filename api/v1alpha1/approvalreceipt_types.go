// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ReceiptDecision is what an approver decided.
// +kubebuilder:validation:Enum=Approved;Denied
type ReceiptDecision string

// The decisions of a receipt.
const (
	ReceiptApproved ReceiptDecision = "Approved"
	ReceiptDenied   ReceiptDecision = "Denied"
)

// ProposalReference names one proposal, and no other of the same name.
type ProposalReference struct {
	// name of the ToolProposal in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// uid of the ToolProposal: a receipt never counts for a re-created one.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`
}

// ApprovalReceiptSpec is one person's decision on one call. It is frozen once
// it is stored.
type ApprovalReceiptSpec struct {
	// proposalRef names the proposal.
	// +required
	ProposalRef ProposalReference `json:"proposalRef"`
	// fingerprint of the call that the approver saw.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Fingerprint string `json:"fingerprint"`
	// decision is Approved or Denied.
	// +required
	Decision ReceiptDecision `json:"decision"`
	// reason says why, for the record.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// approver is who created the receipt. Stamped.
	// +optional
	Approver *Identity `json:"approver,omitempty"`
	// expiresAt is when the receipt stops counting. Stamped.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// seal is the DSSE envelope over what was stamped. Stamped.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	Seal string `json:"seal,omitempty"`
}

// ApprovalReceiptStatus says whether the receipt counted.
type ApprovalReceiptStatus struct {
	// conditions hold Valid and Consumed.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation that conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// ApprovalReceipt is one person's decision on one call.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.spec == oldSelf.spec",message="an ApprovalReceipt is frozen: create a new one instead"
// +kubebuilder:resource:shortName=ar,categories=assent
// +kubebuilder:selectablefield:JSONPath=`.spec.proposalRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.proposalRef.uid`
// +kubebuilder:printcolumn:name="Proposal",type=string,JSONPath=`.spec.proposalRef.name`
// +kubebuilder:printcolumn:name="Decision",type=string,JSONPath=`.spec.decision`
// +kubebuilder:printcolumn:name="Approver",type=string,JSONPath=`.spec.approver.username`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.expiresAt`
// +kubebuilder:printcolumn:name="Consumed",type=string,JSONPath=`.status.conditions[?(@.type=="Consumed")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ApprovalReceipt struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is what every Kubernetes object has.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the decision.
	// +required
	Spec ApprovalReceiptSpec `json:"spec"`
	// status says whether it counted.
	// +optional
	Status ApprovalReceiptStatus `json:"status,omitempty"`
}

// ApprovalReceiptList is a list of ApprovalReceipt.
// +kubebuilder:object:root=true
type ApprovalReceiptList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ApprovalReceipt `json:"items"`
}
