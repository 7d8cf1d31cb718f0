// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/snapshot"
)

// refusal is one thing that is wrong with a request.
type refusal struct {
	// Field of the object, Stage of the preparation (may be empty), Reason in
	// one word, Message that says what to change and quotes no argument.
	Field, Stage, Reason, Message string
}

// text puts stage and reason first, so that a client can find them without
// looking at the causes.
func (r refusal) text() string {
	if r.Stage == "" {
		return fmt.Sprintf("%s: %s", r.Reason, r.Message)
	}
	return fmt.Sprintf("stage %s: %s: %s", r.Stage, r.Reason, r.Message)
}

// invalid is an ordinary 422 Status with causes.
func invalid(kind, name string, refusals ...refusal) error {
	return status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, kind, name, refusals)
}

// forbidden is an ordinary 403 Status with causes.
func forbidden(kind, name string, refusals ...refusal) error {
	return status(http.StatusForbidden, metav1.StatusReasonForbidden, kind, name, refusals)
}

// tooMany is an ordinary 429 Status with causes.
func tooMany(kind, name string, r refusal) error {
	return status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, kind, name, []refusal{r})
}

func status(code int32, reason metav1.StatusReason, kind, name string, refusals []refusal) error {
	s := metav1.Status{
		Status: metav1.StatusFailure,
		Code:   code,
		Reason: reason,
		Details: &metav1.StatusDetails{
			Group: v1alpha1.GroupVersion.Group,
			Kind:  kind,
			Name:  name,
		},
	}
	for i, r := range refusals {
		if i > 0 {
			s.Message += "; "
		}
		s.Message += fmt.Sprintf("%s: %s", r.Field, r.text())
		s.Details.Causes = append(s.Details.Causes, metav1.StatusCause{
			Type: metav1.CauseType(r.Reason), Field: r.Field, Message: r.text(),
		})
	}
	return &apierrors.StatusError{ErrStatus: s}
}

// prepareRefusal maps an error of preparation to a refusal.
func prepareRefusal(tool string, err error) refusal {
	var e *snapshot.Error
	if !errors.As(err, &e) {
		return refusal{Field: "spec.arguments", Reason: "Internal", Message: fmt.Sprintf("the call of tool %s could not be prepared", tool)}
	}
	message := fmt.Sprintf("the call of tool %s was refused", tool)
	if e.Path != "" {
		message += fmt.Sprintf(" at argument %s", e.Path)
	}
	return refusal{Field: "spec.arguments", Stage: string(e.Stage), Reason: string(e.Reason), Message: message}
}
