// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/proposal"
)

// checker is a validator of creates and updates that has no view on deletes: a
// webhook that is down must never block one.
type checker[T any] func(context.Context, T) (admission.Warnings, error)

// ValidateCreate checks the new object.
func (c checker[T]) ValidateCreate(ctx context.Context, o T) (admission.Warnings, error) {
	return c(ctx, o)
}

// ValidateUpdate checks the object as it would become.
func (c checker[T]) ValidateUpdate(ctx context.Context, _, o T) (admission.Warnings, error) {
	return c(ctx, o)
}

// ValidateDelete lets every delete pass.
func (c checker[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, nil }

// checkManifest refuses a manifest that can never compile, and one that gives
// its calls an identity that its author does not hold. One whose references
// are missing may be applied: what it refers to may come later.
func (c *Config) checkManifest(ctx context.Context, m *v1alpha1.ToolManifest) (admission.Warnings, error) {
	in, err := proposal.ContractInput(m, proposal.Tools{}, c.Contracts.RunnerImage, c.Contracts.AllowImageTags)
	if err != nil {
		return nil, invalid("ToolManifest", m.Name, refusal{Field: "spec", Reason: v1alpha1.ReasonInvalidEffect, Message: err.Error()})
	}
	_, err = contract.Compile(in)
	if err := compileRefusal("ToolManifest", m.Name, err); err != nil {
		return nil, err
	}
	return nil, c.checkServiceAccount(ctx, m)
}

// checkArgumentType refuses a type that no value could satisfy. A base that
// does not exist may come later.
func checkArgumentType(_ context.Context, t *v1alpha1.ArgumentType) (admission.Warnings, error) {
	types, err := proposal.ArgumentTypes([]v1alpha1.ArgumentType{*t})
	if err != nil {
		return nil, invalid("ArgumentType", t.Name, refusal{Field: "spec", Reason: v1alpha1.ReasonInvalidArgument, Message: err.Error()})
	}
	return nil, compileRefusal("ArgumentType", t.Name, contract.CheckType(t.Name, types))
}

// checkToolScope refuses a scope with entries that cannot be read.
func checkToolScope(_ context.Context, s *v1alpha1.ToolScope) (admission.Warnings, error) {
	scope, err := proposal.Scope(s)
	if err != nil {
		return nil, invalid("ToolScope", s.Name, refusal{Field: "spec", Reason: string(contract.ReasonInvalidScope), Message: err.Error()})
	}
	var problems contract.CompileErrors
	if err := contract.CheckScope(s.Name, scope); errors.As(err, &problems) {
		return nil, invalid("ToolScope", s.Name, refusalsOf(problems, func(contract.CompileReason) bool { return false })...)
	}
	return nil, err
}

// compileRefusal refuses what no other object can mend.
func compileRefusal(kind, name string, err error) error {
	var problems contract.CompileErrors
	if err == nil || !errors.As(err, &problems) {
		return err
	}
	refusals := refusalsOf(problems, mayComeLater)
	if len(refusals) == 0 {
		return nil
	}
	return invalid(kind, name, refusals...)
}

func refusalsOf(problems contract.CompileErrors, skip func(contract.CompileReason) bool) []refusal {
	var out []refusal
	for _, p := range problems {
		if !skip(p.Reason) {
			out = append(out, refusal{Field: p.Field, Reason: string(p.Reason), Message: p.Message})
		}
	}
	return out
}

// mayComeLater says whether another object can still mend the problem. Only
// the object itself is looked at, so that a cycle found here is a type that is
// based on itself.
func mayComeLater(r contract.CompileReason) bool {
	switch r {
	case contract.ReasonMissingReference, contract.ReasonScopeMissing, contract.ReasonScopeAmbiguous:
		return true
	default:
		return false
	}
}

// checkPolicy refuses text that does not parse or is too large or too deep.
// What does not fit the tools is told by the object's status instead, so that
// policies and manifests can be applied in any order.
func checkPolicy(kind, namespace, name string, spec v1alpha1.PolicySpec) error {
	_, problems := policy.Compile(proposal.PolicySource(namespace, name, spec), policy.DefaultLimits())
	var refusals []refusal
	for _, p := range problems {
		refusals = append(refusals, refusal{Field: "spec.cedar", Reason: v1alpha1.ReasonSyntaxError, Message: p.String()})
	}
	if len(refusals) > 0 {
		return invalid(kind, name, refusals...)
	}
	return nil
}

func checkToolPolicy(_ context.Context, p *v1alpha1.ToolPolicy) (admission.Warnings, error) {
	return nil, checkPolicy("ToolPolicy", p.Namespace, p.Name, p.Spec)
}

func checkClusterToolPolicy(_ context.Context, p *v1alpha1.ClusterToolPolicy) (admission.Warnings, error) {
	return nil, checkPolicy("ClusterToolPolicy", "", p.Name, p.Spec)
}
