// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds of the API group assent.dev.
//
// How they work together: a platform team describes a tool in a ToolManifest,
// with shared argument types in ArgumentType and the reach of its targets in
// ToolScope, and writes rules in ToolPolicy and ClusterToolPolicy. An agent
// creates a ToolProposal. Admission stamps who asked, prepares the exact call
// and seals both. Policy decides on that call; where a person is needed, an
// approver creates an ApprovalReceipt bound to the proposal's UID and
// fingerprint. An AgentSession carries what is known about the agent's run.
//
// No field uses x-kubernetes-preserve-unknown-fields: JSON travels as text,
// since kube-apiserver would change numbers, duplicate keys and ill-formed
// Unicode inside a structured value without saying so.
//
// +kubebuilder:object:generate=true
// +groupName=assent.dev
package v1alpha1
