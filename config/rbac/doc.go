// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac declares every permission of the operator, in one place so that
// it can be reviewed at once. "make generate" turns the markers into role.yaml,
// and the chart installs exactly that. A permission that is not here does not
// exist: there is no access to Secrets or ConfigMaps outside the operator's own
// namespace, none to Pod logs, exec or attach, and no impersonate, bind or
// escalate.
//
// The contract and the rules, read only:
//
// +kubebuilder:rbac:groups=assent.dev,resources=toolmanifests;argumenttypes;toolscopes;toolpolicies;clustertoolpolicies;agentsessions,verbs=get;list;watch
// +kubebuilder:rbac:groups=assent.dev,resources=toolmanifests/status;argumenttypes/status;toolscopes/status;toolpolicies/status;clustertoolpolicies/status;agentsessions/status,verbs=update;patch
//
// Calls and receipts. Their specs are frozen for the operator as well: update
// is for the finalizer that keeps a dispatched call until its outcome is
// recorded, delete for those past their time to live, and the finalizers
// subresource for owner references that block deletion.
//
// +kubebuilder:rbac:groups=assent.dev,resources=toolproposals,verbs=get;list;watch;update;patch;delete
// +kubebuilder:rbac:groups=assent.dev,resources=approvalreceipts,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=assent.dev,resources=toolproposals/status;approvalreceipts/status,verbs=update;patch
// +kubebuilder:rbac:groups=assent.dev,resources=toolproposals/finalizers,verbs=update
//
// Execution: update of Jobs removes our finalizer once the outcome is recorded.
//
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
//
// An execution namespace counts only if its labels say so.
//
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
//
// Events on the objects above.
//
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
//
// The certificate authority of the webhooks is written into their
// configurations, and into no others. Names cannot restrict list and watch.
//
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations;mutatingwebhookconfigurations,verbs=get;list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations;mutatingwebhookconfigurations,resourceNames=assent,verbs=update;patch
//
// The operator's own namespace, which the markers call system: its signing key
// and certificates, its public keys, its leases.
//
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets;configmaps,verbs=get;list;watch;create;update;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,resources=leases,verbs=get;list;watch;create;update;patch
// +kubebuilder:rbac:groups="",namespace=system,resources=events,verbs=create;patch
package rbac
