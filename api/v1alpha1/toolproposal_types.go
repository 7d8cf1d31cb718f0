// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SessionReference names an AgentSession.
type SessionReference struct {
	// name of the AgentSession in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// BatchReference says that a call is one of several made together.
type BatchReference struct {
	// id of the batch, unique within the session or, without one, the requester.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`
	// size is how many calls the batch has.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	Size int32 `json:"size"`
}

// ToolProposalSpec is the call an agent asks for, and what admission stamped.
// It is frozen once it is stored.
type ToolProposalSpec struct {
	// tool is the name of the ToolManifest to call.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Tool string `json:"tool"`
	// arguments is a JSON object, as text: at most 64 KiB, decoded strictly.
	// +required
	// +kubebuilder:validation:MaxLength=65536
	Arguments string `json:"arguments"`
	// callID is the agent's own name for the call. Outcomes are correlated by
	// it; it is unique within a session.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	CallID string `json:"callID"`
	// sessionRef names the AgentSession the call belongs to.
	// +optional
	// +structType=atomic
	SessionRef *SessionReference `json:"sessionRef,omitempty"`
	// iteration is the number of the agent's turn. It never goes backwards
	// within a session.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Iteration *int64 `json:"iteration,omitempty"`
	// batch says that the call is one of several made together.
	// +optional
	// +structType=atomic
	Batch *BatchReference `json:"batch,omitempty"`
	// reason says why the agent wants this, for the approver. It is the
	// agent's claim and takes no part in any decision.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// requester is who created the proposal. Stamped.
	// +optional
	// +structType=atomic
	Requester *Identity `json:"requester,omitempty"`
	// prepared is the frozen call. Stamped.
	// +optional
	// +structType=atomic
	Prepared *PreparedCall `json:"prepared,omitempty"`
	// seal is the DSSE envelope over what was stamped. Stamped.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	Seal string `json:"seal,omitempty"`
}

// Phase is where a call stands. A terminal phase never changes.
// +kubebuilder:validation:Enum=Pending;AwaitingApproval;Dispatching;Running;Succeeded;Failed;Denied;Expired;Cancelled;Invalid;Indeterminate
type Phase string

const (
	// PhasePending means that no decision has been made yet.
	PhasePending Phase = "Pending"
	// PhaseAwaitingApproval means that people must approve.
	PhaseAwaitingApproval Phase = "AwaitingApproval"
	// PhaseDispatching means that the call was granted and its Job is being
	// created or started.
	PhaseDispatching Phase = "Dispatching"
	// PhaseRunning means that the runner has redeemed the call: its effect may
	// have begun.
	PhaseRunning Phase = "Running"
	// PhaseSucceeded means that the call ran and reported success. Terminal.
	PhaseSucceeded Phase = "Succeeded"
	// PhaseFailed means that the call ran and failed, or that it certainly
	// never started. Terminal.
	PhaseFailed Phase = "Failed"
	// PhaseDenied means that policy or a person said no. Terminal.
	PhaseDenied Phase = "Denied"
	// PhaseExpired means that nobody decided in time. Terminal.
	PhaseExpired Phase = "Expired"
	// PhaseCancelled means that the call was withdrawn before it ended. Terminal.
	PhaseCancelled Phase = "Cancelled"
	// PhaseInvalid means that the stored object cannot be trusted or no longer
	// fits its contract. Terminal.
	PhaseInvalid Phase = "Invalid"
	// PhaseIndeterminate means that the effect may or may not have happened.
	// It is never retried. Terminal.
	PhaseIndeterminate Phase = "Indeterminate"
)

// Terminal reports whether the phase never changes again.
func (p Phase) Terminal() bool {
	switch p {
	case PhaseSucceeded, PhaseFailed, PhaseDenied, PhaseExpired, PhaseCancelled, PhaseInvalid, PhaseIndeterminate:
		return true
	case PhasePending, PhaseAwaitingApproval, PhaseDispatching, PhaseRunning:
		return false
	}
	return false
}

// Decision is the policy's last answer.
type Decision struct {
	// answer is Allow, NeedsApproval or Deny.
	// +required
	// +kubebuilder:validation:Enum=Allow;NeedsApproval;Deny
	Answer string `json:"answer"`
	// reason is one word for why.
	// +required
	Reason string `json:"reason"`
	// policies are the IDs of the policies that determined the answer.
	// +optional
	// +listType=atomic
	Policies []string `json:"policies,omitempty"`
	// nearMisses are the IDs of policies that match the call but whose
	// condition was false.
	// +optional
	// +listType=atomic
	NearMisses []string `json:"nearMisses,omitempty"`
	// errors are the evaluation errors, each with its policy's ID.
	// +optional
	// +listType=atomic
	Errors []string `json:"errors,omitempty"`
	// policySetDigest identifies the set of policies that answered.
	// +optional
	PolicySetDigest string `json:"policySetDigest,omitempty"`
	// time of the answer.
	// +required
	Time metav1.Time `json:"time"`
}

// Approvals counts the receipts that count.
type Approvals struct {
	// summary is valid receipts over needed ones, such as 1/2.
	// +optional
	Summary string `json:"summary,omitempty"`
	// approvers are the people whose receipts count now.
	// +optional
	// +listType=atomic
	Approvers []string `json:"approvers,omitempty"`
}

// ToolProposalStatus is where the call stands. It is display: what may happen
// next is derived anew each time from the spec, its seal, the receipts and
// the policies, and from the grant, which only ever moves forward.
type ToolProposalStatus struct {
	// phase is where the call stands.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// reason is one word for why.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is a sentence for people. It never quotes argument values.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
	// conditions hold Decided, Approved, Dispatched and Completed.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation that conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// decision is the policy's last answer.
	// +optional
	// +structType=atomic
	Decision *Decision `json:"decision,omitempty"`
	// approvals counts the receipts that count.
	// +optional
	// +structType=atomic
	Approvals *Approvals `json:"approvals,omitempty"`
	// expiresAt is when the wait for approval ends.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// dispatch is the grant.
	// +optional
	// +structType=atomic
	Dispatch *Dispatch `json:"dispatch,omitempty"`
	// redeemedBy says which Pod fetched the call.
	// +optional
	// +structType=atomic
	RedeemedBy *Redemption `json:"redeemedBy,omitempty"`
	// result is what the runner reported.
	// +optional
	// +structType=atomic
	Result *Result `json:"result,omitempty"`
	// completionTime is when the call ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// audit points into the audit log.
	// +optional
	// +structType=atomic
	Audit *AuditReference `json:"audit,omitempty"`
}

// What freezes a proposal compares its spec only where its status is the same.
// A write to the one never changes the other: kube-apiserver sees to that where
// there is a status subresource. Comparing specs would otherwise be most of what
// rules cost at each of the operator's writes.

// ToolProposal is one call that an agent asks for.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="has(self.status) != has(oldSelf.status) || (has(self.status) && self.status != oldSelf.status) || self.spec == oldSelf.spec",message="a ToolProposal is frozen: create a new one instead"
// +kubebuilder:resource:shortName=tp,categories=assent
// +kubebuilder:selectablefield:JSONPath=`.spec.tool`
// +kubebuilder:selectablefield:JSONPath=`.spec.callID`
// +kubebuilder:selectablefield:JSONPath=`.spec.sessionRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.batch.id`
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Tool",type=string,JSONPath=`.spec.tool`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Requester",type=string,JSONPath=`.spec.requester.username`
// +kubebuilder:printcolumn:name="Approvals",type=string,JSONPath=`.status.approvals.summary`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Fingerprint",type=string,priority=1,JSONPath=`.spec.prepared.fingerprint`
// +kubebuilder:printcolumn:name="Expires",type=string,priority=1,JSONPath=`.status.expiresAt`
// +kubebuilder:printcolumn:name="Job",type=string,priority=1,JSONPath=`.status.dispatch.jobName`
type ToolProposal struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is what every Kubernetes object has.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the call.
	// +required
	Spec ToolProposalSpec `json:"spec"`
	// status is where the call stands.
	// +optional
	Status ToolProposalStatus `json:"status,omitempty"`
}

// ToolProposalList is a list of ToolProposal.
// +kubebuilder:object:root=true
type ToolProposalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ToolProposal `json:"items"`
}
