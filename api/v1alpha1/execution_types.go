// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EgressRule is one destination that the call's Pod may reach.
type EgressRule struct {
	// cidr is a range of addresses outside the cluster's Pods.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	CIDR string `json:"cidr,omitempty"`
	// namespace is the name of a namespace whose Pods may be reached.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// podLabels narrows namespace to Pods with all of these labels.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// ports are the TCP ports that may be reached. At least one.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=65535
	Ports []int32 `json:"ports"`
}

// Execution bounds the Job that runs a call.
type Execution struct {
	// timeout is how long the call may run. Defaults to 5m, at most 24h.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// cpu is request and limit of the Pod's container, as a Kubernetes
	// quantity, as are memory and ephemeralStorage. Defaults to 500m.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	CPU string `json:"cpu,omitempty"`
	// memory of the container. Defaults to 256Mi.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Memory string `json:"memory,omitempty"`
	// ephemeralStorage of the container. Defaults to 256Mi.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	EphemeralStorage string `json:"ephemeralStorage,omitempty"`
	// runtimeClassName is the RuntimeClass of the Pod, for example gvisor.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RuntimeClassName string `json:"runtimeClassName,omitempty"`
	// serviceAccountName is the identity the tool itself has in the cluster.
	// The author of the manifest must hold the verb use on that
	// ServiceAccount. Without it the Pod has no token but the runner's.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// egress lists what the Pod may reach besides the execution endpoint.
	// Nothing when it is empty.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Egress []EgressRule `json:"egress,omitempty"`
	// allowDNS lets the Pod ask the cluster's DNS.
	// +optional
	AllowDNS bool `json:"allowDNS,omitempty"`
	// requireIsolation makes the runner prove that egress is enforced before
	// it asks for the call: a connection that no rule allows must fail.
	// +optional
	RequireIsolation bool `json:"requireIsolation,omitempty"`
	// ttlSecondsAfterFinished is how long proposal, receipts and Job are kept
	// after the call ended. Defaults to the operator's setting.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}
