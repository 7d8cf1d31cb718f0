// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ArgumentConstraints narrows what a value of an argument may be. Which
// constraints apply depends on the type; one that does not apply is an error
// and makes the object not Ready.
type ArgumentConstraints struct {
	// allowed lists the only values that are accepted, compared byte for byte.
	// Required for the type enum.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=1024
	Allowed []string `json:"allowed,omitempty"`

	// pattern is an RE2 regular expression that the whole value must match:
	// it is always anchored at both ends, whether or not it says so.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Pattern string `json:"pattern,omitempty"`

	// min is the smallest value of a number, or the shortest duration in seconds. A
	// whole number, or a decimal number written as text.
	// +optional
	Min *intstr.IntOrString `json:"min,omitempty"`

	// max is the largest value of a number, or the longest duration in seconds. A
	// whole number, or a decimal number written as text.
	// +optional
	Max *intstr.IntOrString `json:"max,omitempty"`

	// clamp moves a number outside min and max to the nearer bound instead of
	// refusing it. It happens once, before anybody sees the call.
	// +optional
	Clamp bool `json:"clamp,omitempty"`

	// schemes lists the URL schemes that are accepted. Defaults to https.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=32
	Schemes []string `json:"schemes,omitempty"`

	// scopeCheck demands that the value lies inside the ToolScope. It is
	// always on for the type scope_target.
	// +optional
	ScopeCheck bool `json:"scopeCheck,omitempty"`

	// maxLength is the largest accepted length of a text, in bytes of UTF-8.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32768
	MaxLength *int32 `json:"maxLength,omitempty"`

	// allowLeadingDash accepts a value that starts with "-" where it becomes
	// an argv word of its own. Without it such a value is refused, since most
	// programs would read it as an option.
	// +optional
	AllowLeadingDash bool `json:"allowLeadingDash,omitempty"`

	// sensitive keeps the value out of logs, Events and audit records, which
	// then hold its digest.
	// +optional
	Sensitive bool `json:"sensitive,omitempty"`

	// schema is a JSON Schema 2020-12 document, as text, for the types object
	// and array. References to other documents are refused.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	Schema string `json:"schema,omitempty"`
}

// ArgumentTypeSpec defines a reusable argument type.
type ArgumentTypeSpec struct {
	// base is the type this one narrows: a built-in type or another
	// ArgumentType of the namespace. Chains may be 16 links long; a cycle
	// makes the type not Ready.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Base string `json:"base"`

	// description says what the type is for.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`

	ArgumentConstraints `json:",inline"`
}

// ArgumentTypeStatus says whether the type can be used.
type ArgumentTypeStatus struct {
	// conditions hold Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// ArgumentType is a reusable argument type: a base with added constraints.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=at,categories=assent
// +kubebuilder:printcolumn:name="Base",type=string,JSONPath=`.spec.base`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ArgumentType struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is what every Kubernetes object has.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the type.
	// +required
	Spec ArgumentTypeSpec `json:"spec"`
	// status says whether the type can be used.
	// +optional
	Status ArgumentTypeStatus `json:"status,omitempty"`
}

// ArgumentTypeList is a list of ArgumentType.
// +kubebuilder:object:root=true
type ArgumentTypeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ArgumentType `json:"items"`
}
