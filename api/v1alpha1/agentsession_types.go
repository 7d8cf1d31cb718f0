// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SessionLimits bounds what a session may ask for.
type SessionLimits struct {
	// calls is how many calls the session may make in all.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Calls *int32 `json:"calls,omitempty"`
	// pending is how many calls may be open at once.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Pending *int32 `json:"pending,omitempty"`
	// perTool bounds the calls of single tools.
	// +optional
	// +listType=map
	// +listMapKey=tool
	// +kubebuilder:validation:MaxItems=64
	PerTool []ToolLimit `json:"perTool,omitempty"`
}

// ToolLimit bounds, or counts, the calls of one tool.
type ToolLimit struct {
	// tool is the name of the ToolManifest.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Tool string `json:"tool"`
	// calls is how many calls of the tool the session may make, or has made.
	// +required
	// +kubebuilder:validation:Minimum=0
	Calls int32 `json:"calls"`
}

// AgentSessionSpec is what a harness or a person vouches for about an agent's
// run. Agents must not be able to write it.
type AgentSessionSpec struct {
	// principal is the username that may make calls in this session.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Principal string `json:"principal"`
	// context is trusted context for policies, a JSON object as text: at most
	// 16 KiB, decoded strictly. Policies read it as context.session.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	Context string `json:"context,omitempty"`
	// expiresAt is when the session ends.
	// +required
	ExpiresAt metav1.Time `json:"expiresAt"`
	// limits bounds what the session may ask for.
	// +optional
	Limits *SessionLimits `json:"limits,omitempty"`
	// revoked ends the session now: its open calls are voided and its running
	// ones cancelled.
	// +optional
	Revoked bool `json:"revoked,omitempty"`
}

// AgentSessionStatus counts what the session did.
type AgentSessionStatus struct {
	// conditions hold Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation that conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// calls is how many calls the session has made.
	// +optional
	Calls int32 `json:"calls,omitempty"`
	// ledger says which calls the session has made. The operator's commit to a
	// call begins with its entry here.
	// +optional
	Ledger *SessionLedger `json:"ledger,omitempty"`
}

// MaxSessionCalls is how many calls one session can make, whatever its limits
// say: the ledger that keeps call IDs apart must fit into one object.
const MaxSessionCalls = 4096

// SessionLedger is what a session remembers about its calls, also of those
// whose objects are gone. It is written by compare-and-swap, so that of two
// calls that cannot both be made one is refused.
type SessionLedger struct {
	// claims has an entry for each call, in order: the first 24 hex digits of
	// the SHA-256 of its call ID, a slash, and the UID of its ToolProposal.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	// +kubebuilder:validation:items:MaxLength=64
	Claims []string `json:"claims,omitempty"`
	// tools counts the calls of each tool.
	// +optional
	// +listType=map
	// +listMapKey=tool
	// +kubebuilder:validation:MaxItems=4096
	Tools []ToolLimit `json:"tools,omitempty"`
	// iteration is the highest one that a call was made in.
	// +optional
	Iteration *int64 `json:"iteration,omitempty"`
	// keyID names the signing key that seal was made with.
	// +required
	// +kubebuilder:validation:MaxLength=64
	KeyID string `json:"keyID"`
	// seal authenticates the ledger, in hex: with one that somebody else wrote
	// the session carries no calls.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Seal string `json:"seal"`
}

// AgentSession is one run of an agent.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.spec.principal == oldSelf.spec.principal",message="the principal of a session is fixed"
// +kubebuilder:resource:shortName=as,categories=assent
// +kubebuilder:selectablefield:JSONPath=`.spec.principal`
// +kubebuilder:printcolumn:name="Principal",type=string,JSONPath=`.spec.principal`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Calls",type=integer,JSONPath=`.status.calls`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.expiresAt`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AgentSession struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is what every Kubernetes object has.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the session.
	// +required
	Spec AgentSessionSpec `json:"spec"`
	// status counts what it did.
	// +optional
	Status AgentSessionStatus `json:"status,omitempty"`
}

// AgentSessionList is a list of AgentSession.
// +kubebuilder:object:root=true
type AgentSessionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AgentSession `json:"items"`
}
