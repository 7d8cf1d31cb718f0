// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ToolScopeSpec says where scope-checked arguments may point. An empty scope
// allows nothing: no list here ever means everything.
type ToolScopeSpec struct {
	// targets lists IP addresses and CIDR ranges. A range asked for must lie
	// wholly inside one of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=64
	Targets []string `json:"targets,omitempty"`

	// domains lists host names and patterns such as *.example.com, which
	// matches every name below example.com but not example.com itself.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=255
	Domains []string `json:"domains,omitempty"`

	// exclude lists addresses, ranges, host names and patterns that are
	// refused whatever the other lists say. A range that touches one of them
	// is refused whole.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=255
	Exclude []string `json:"exclude,omitempty"`
}

// ToolScopeStatus says whether the scope can be used.
type ToolScopeStatus struct {
	// conditions hold Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// ToolScope is the reach of scope-checked arguments.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ts,categories=assent
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ToolScope struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is what every Kubernetes object has.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is in reach.
	// +required
	Spec ToolScopeSpec `json:"spec"`
	// status says whether the scope can be used.
	// +optional
	Status ToolScopeStatus `json:"status,omitempty"`
}

// ToolScopeList is a list of ToolScope.
// +kubebuilder:object:root=true
type ToolScopeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ToolScope `json:"items"`
}
