// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/proposal"
)

// checkServiceAccount refuses a manifest whose calls would run as a
// ServiceAccount that whoever writes the manifest may not use: writing a
// manifest must not be a way to rights that one does not hold. Whoever changes
// the spec of such a manifest decides what is done in that name, and is asked
// the same; labels, annotations and finalizers are anybody's.
func (c *Config) checkServiceAccount(ctx context.Context, m *v1alpha1.ToolManifest) error {
	if m.Spec.Execution == nil || m.Spec.Execution.ServiceAccountName == "" {
		return nil
	}
	req, err := admission.RequestFromContext(ctx)
	if err != nil {
		return fmt.Errorf("reading the admission request: %w", err)
	}
	if same, err := sameSpec(&req, m); err != nil || same {
		return err
	}
	refused := func(message string) error {
		return forbidden("ToolManifest", m.Name, refusal{
			Field: "spec.execution.serviceAccountName", Reason: v1alpha1.ReasonServiceAccountNotUsable, Message: message,
		})
	}
	name := m.Spec.Execution.ServiceAccountName
	namespace, err := observe.ExecutionNamespace(ctx, c.Live, req.Namespace)
	if err != nil {
		return refused(fmt.Sprintf("the namespace that the calls run in cannot be told: %v", err))
	}
	allowed, err := observe.MayUse(ctx, c.Reviews, namespace, name, proposal.IdentityOf(req.UserInfo))
	if err != nil {
		return err
	}
	if !allowed {
		return refused(fmt.Sprintf("%s may not use ServiceAccount %s of namespace %s: ask for the verb %s on it, or leave the field out",
			req.UserInfo.Username, name, namespace, observe.VerbUse))
	}
	return nil
}

// sameSpec says whether an update leaves the spec as it was.
func sameSpec(req *admission.Request, m *v1alpha1.ToolManifest) (bool, error) {
	if req.Operation != admissionv1.Update {
		return false, nil
	}
	old := &v1alpha1.ToolManifest{}
	if err := json.Unmarshal(req.OldObject.Raw, old); err != nil {
		return false, fmt.Errorf("reading the ToolManifest as it was: %w", err)
	}
	return apiequality.Semantic.DeepEqual(old.Spec, m.Spec), nil
}
