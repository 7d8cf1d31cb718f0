// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "assent.dev", Version: "v1alpha1"}

var (
	// SchemeBuilder collects the functions that add this package's kinds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds this package's kinds to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ToolManifest{}, &ToolManifestList{},
		&ArgumentType{}, &ArgumentTypeList{},
		&ToolScope{}, &ToolScopeList{},
		&ToolPolicy{}, &ToolPolicyList{},
		&ClusterToolPolicy{}, &ClusterToolPolicyList{},
		&AgentSession{}, &AgentSessionList{},
		&ToolProposal{}, &ToolProposalList{},
		&ApprovalReceipt{}, &ApprovalReceiptList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
