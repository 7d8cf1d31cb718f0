// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels, annotations and finalizers that Assent writes. None of them is ever
// read to decide about a call: they exist for selection, for display and for
// keeping things until they may go.
const (
	// LabelProposalUID is on every Job and Pod of a call: the UID of its ToolProposal.
	LabelProposalUID = "assent.dev/proposal-uid"
	// LabelTool is on every Job and Pod of a call: the name of its ToolManifest.
	LabelTool = "assent.dev/tool"
	// LabelRun marks the Pods that the default-deny NetworkPolicy selects.
	LabelRun = "assent.dev/run"
	// LabelEgress is on every Pod of a call and names what the network lets it
	// reach. Pods that may reach the same share one NetworkPolicy.
	LabelEgress = "assent.dev/egress"
	// LabelExecutionNamespace, on the namespace that proposals are made in,
	// names the namespace its Jobs run in. It counts only if that namespace
	// carries LabelServes with the first one's name.
	LabelExecutionNamespace = "assent.dev/execution-namespace"
	// LabelServes, on an execution namespace, names the one namespace it serves.
	LabelServes = "assent.dev/serves"
	// FinalizerOutcome keeps a Job, and a ToolProposal that has been
	// dispatched, until the outcome of the call is recorded: a missing Job
	// then means that it was never created.
	FinalizerOutcome = "assent.dev/outcome"
	// FinalizerRecord keeps a deleted AgentSession until its end is in the
	// audit log.
	FinalizerRecord = "assent.dev/record"
	// AnnotationTemplateHash is the SHA-256 of the Job template that the
	// commit point built. It tells a Job of ours from one that only has its
	// name; the owner reference's UID must match as well.
	AnnotationTemplateHash = "assent.dev/template-hash"
	// AnnotationUnused, on a NetworkPolicy of calls, is the time (RFC 3339)
	// since when no tool wants it. The next call that needs the policy takes
	// the annotation off; if none does, the policy is deleted.
	AnnotationUnused = "assent.dev/unused-since"
	// AnnotationTraceParent, on a new ToolProposal, is the W3C traceparent of
	// whoever makes the call. The call's own trace links it.
	AnnotationTraceParent = "assent.dev/traceparent"
)
