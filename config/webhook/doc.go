// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook declares the admission webhooks. "make generate" turns the
// markers into manifests.yaml, and the chart installs exactly that with the
// names of its own Service.
//
// What every one of them has in common, and why: failurePolicy Fail, since an
// object that was not stamped is worth nothing; matchPolicy Equivalent, so that
// no other served version slips past; no namespace or object selector, since
// whoever may write labels could exempt himself; sideEffects None, so that a
// dry run leaves no trace; no DELETE, so that an outage never keeps anybody
// from cleaning up. Mutating webhooks are not invoked again after others: a
// change that comes after the stamp breaks the seal, and the call is refused.
//
// +kubebuilder:webhookconfiguration:mutating=true,name=assent
// +kubebuilder:webhookconfiguration:mutating=false,name=assent
//
// What is stamped:
//
// +kubebuilder:webhook:mutating=true,path=/mutate-assent-dev-v1alpha1-toolproposal,name=toolproposals.mutate.assent.dev,groups=assent.dev,versions=v1alpha1,resources=toolproposals,verbs=create,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,admissionReviewVersions=v1,reinvocationPolicy=Never
// +kubebuilder:webhook:mutating=true,path=/mutate-assent-dev-v1alpha1-approvalreceipt,name=approvalreceipts.mutate.assent.dev,groups=assent.dev,versions=v1alpha1,resources=approvalreceipts,verbs=create,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,admissionReviewVersions=v1,reinvocationPolicy=Never
//
// What is checked:
//
// +kubebuilder:webhook:mutating=false,path=/validate-assent-dev-v1alpha1-toolmanifest,name=toolmanifests.validate.assent.dev,groups=assent.dev,versions=v1alpha1,resources=toolmanifests,verbs=create;update,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,admissionReviewVersions=v1
// +kubebuilder:webhook:mutating=false,path=/validate-assent-dev-v1alpha1-argumenttype,name=argumenttypes.validate.assent.dev,groups=assent.dev,versions=v1alpha1,resources=argumenttypes,verbs=create;update,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,admissionReviewVersions=v1
// +kubebuilder:webhook:mutating=false,path=/validate-assent-dev-v1alpha1-toolscope,name=toolscopes.validate.assent.dev,groups=assent.dev,versions=v1alpha1,resources=toolscopes,verbs=create;update,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,admissionReviewVersions=v1
// +kubebuilder:webhook:mutating=false,path=/validate-assent-dev-v1alpha1-toolpolicy,name=toolpolicies.validate.assent.dev,groups=assent.dev,versions=v1alpha1,resources=toolpolicies,verbs=create;update,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,admissionReviewVersions=v1
// +kubebuilder:webhook:mutating=false,path=/validate-assent-dev-v1alpha1-clustertoolpolicy,name=clustertoolpolicies.validate.assent.dev,groups=assent.dev,versions=v1alpha1,resources=clustertoolpolicies,verbs=create;update,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,admissionReviewVersions=v1
// +kubebuilder:webhook:mutating=false,path=/validate-assent-dev-v1alpha1-agentsession,name=agentsessions.validate.assent.dev,groups=assent.dev,versions=v1alpha1,resources=agentsessions,verbs=create;update,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,admissionReviewVersions=v1
// +kubebuilder:webhook:mutating=false,path=/validate-assent-dev-v1alpha1-toolproposal,name=toolproposals.validate.assent.dev,groups=assent.dev,versions=v1alpha1,resources=toolproposals,verbs=create,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,admissionReviewVersions=v1
// +kubebuilder:webhook:mutating=false,path=/validate-assent-dev-v1alpha1-approvalreceipt,name=approvalreceipts.validate.assent.dev,groups=assent.dev,versions=v1alpha1,resources=approvalreceipts,verbs=create,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,admissionReviewVersions=v1
package webhook
