// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SessionAttributeType is the type of a session attribute, in Cedar's words.
// +kubebuilder:validation:Enum=String;Long;Boolean;Set<String>
type SessionAttributeType string

// The types a session attribute may have.
const (
	SessionString  SessionAttributeType = "String"
	SessionLong    SessionAttributeType = "Long"
	SessionBoolean SessionAttributeType = "Boolean"
	SessionStrings SessionAttributeType = "Set<String>"
)

// SessionAttribute declares one attribute of context.session that the policy
// text reads. A session whose value has another type is invalid context and
// denies the call.
type SessionAttribute struct {
	// name of the attribute in the session's trusted context.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name"`

	// type of the attribute.
	// +required
	Type SessionAttributeType `json:"type"`

	// required says that every session has it. A policy that reads an
	// attribute that is not required must test it with "has" first.
	// +optional
	Required bool `json:"required,omitempty"`
}

// PolicySpec is Cedar text and what it expects of sessions.
type PolicySpec struct {
	// cedar is the policy text: at most 32 KiB, brackets nested at most 64
	// deep, no templates.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	Cedar string `json:"cedar"`

	// sessionAttributes declares what the text reads from context.session.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	SessionAttributes []SessionAttribute `json:"sessionAttributes,omitempty"`
}

// PolicyProblem is one thing that is wrong with a policy text.
type PolicyProblem struct {
	// namespace whose tools the text was checked against; empty for syntax.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// policy is the ID of the policy, namespace/name#index; empty for syntax.
	// +optional
	Policy string `json:"policy,omitempty"`
	// line of the text, from 1; 0 when it is not known.
	// +optional
	Line int32 `json:"line,omitempty"`
	// column of the line, from 1; 0 when it is not known.
	// +optional
	Column int32 `json:"column,omitempty"`
	// message says what is wrong.
	// +required
	Message string `json:"message"`
}

// PolicyStatus says whether the text is in force.
type PolicyStatus struct {
	// conditions hold Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// policies is how many policies the text holds.
	// +optional
	Policies int32 `json:"policies,omitempty"`

	// problems lists what is wrong; while it is not empty, the calls that the
	// policies named here could match are denied.
	// +optional
	// +listType=atomic
	Problems []PolicyProblem `json:"problems,omitempty"`

	// warnings lists what is odd but harmless, such as a tool that does not
	// exist yet.
	// +optional
	// +listType=atomic
	Warnings []PolicyProblem `json:"warnings,omitempty"`
}

// ToolPolicy is Cedar text for the tools of its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tpol,categories=assent
// +kubebuilder:printcolumn:name="Policies",type=integer,JSONPath=`.status.policies`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ToolPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is what every Kubernetes object has.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the policy text.
	// +required
	Spec PolicySpec `json:"spec"`
	// status says whether the text is in force.
	// +optional
	Status PolicyStatus `json:"status,omitempty"`
}

// ToolPolicyList is a list of ToolPolicy.
// +kubebuilder:object:root=true
type ToolPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ToolPolicy `json:"items"`
}

// ClusterToolPolicy is Cedar text for the tools of every namespace. What it
// forbids no ToolPolicy can permit.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ctpol,categories=assent
// +kubebuilder:printcolumn:name="Policies",type=integer,JSONPath=`.status.policies`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterToolPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is what every Kubernetes object has.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the policy text.
	// +required
	Spec PolicySpec `json:"spec"`
	// status says whether the text is in force.
	// +optional
	Status PolicyStatus `json:"status,omitempty"`
}

// ClusterToolPolicyList is a list of ClusterToolPolicy.
// +kubebuilder:object:root=true
type ClusterToolPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterToolPolicy `json:"items"`
}
