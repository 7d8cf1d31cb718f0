// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac declares the permissions that the operator needs to run at all;
// those of its controllers are declared beside them. "make generate" turns all
// of these markers into role.yaml, and the chart installs exactly that. A
// permission that is not there does not exist: there is no access to Secrets or
// ConfigMaps outside the operator's own namespace, none to Pod logs, exec or
// attach, and no impersonate, bind or escalate.
//
// Owner references that block deletion need the finalizers subresource on
// clusters that enforce it.
//
// +kubebuilder:rbac:groups=assent.dev,resources=toolproposals/finalizers,verbs=update
//
// The certificate authority of the webhooks is written into their
// configurations, and into no others. Names cannot restrict list and watch.
//
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations;mutatingwebhookconfigurations,verbs=get;list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations;mutatingwebhookconfigurations,resourceNames=assent,verbs=update
//
// The operator's own namespace, which the markers call system: its signing key
// and certificates, its public keys, its lease, and the address of its own
// execution endpoint. Secrets are watched there for the rotation of
// certificates.
//
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups="",namespace=system,resources=configmaps,verbs=get;create;update
// +kubebuilder:rbac:groups="",namespace=system,resources=services,resourceNames=assent-execution;assent-webhook,verbs=get
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,resources=leases,verbs=get;create;update
package rbac
