// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/assent-dev/assent/api/v1alpha1"
)

const createReview = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1","operation":"CREATE",
"namespace":"agents","dryRun":true,"userInfo":{"username":"bot","groups":["b","a"],"extra":{"k":["v"]}},
"object":{"apiVersion":"assent.dev/v1alpha1","kind":"ToolProposal","metadata":{"generateName":"p-","creationTimestamp":"2026-03-04T05:06:07Z",
"managedFields":[{"manager":"m","time":"2026-03-04T05:06:07Z","fieldsV1":{"f:spec":{}}}]},"spec":{"tool":"t","arguments":"{}","callID":"c"}}}}`

// post sends one review to an endpoint that gives the answer.
func post(t *testing.T, contentType, body string, answer func(*request, *v1alpha1.ToolProposal) ([]byte, error)) *httptest.ResponseRecorder {
	t.Helper()
	e := &endpoint[v1alpha1.ToolProposal]{kind: kindProposal, log: logr.Discard(), answer: func(_ context.Context, req *request, p *v1alpha1.ToolProposal) ([]byte, error) {
		return answer(req, p)
	}}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/x", strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

func TestReview_TellsTheHandlerWhoCreatesWhat(t *testing.T) {
	var got *request
	var object *v1alpha1.ToolProposal
	w := post(t, "application/json", createReview, func(req *request, p *v1alpha1.ToolProposal) ([]byte, error) {
		got, object = req, p
		return []byte(`[{"op":"x"}]`), nil
	})
	want := &request{UID: "u-1", Operation: admissionv1.Create, Namespace: "agents", DryRun: true}
	want.UserInfo.Username, want.UserInfo.Groups = "bot", []string{"b", "a"}
	if diff := cmp.Diff(want, got, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Extra" }, cmp.Ignore())); diff != "" {
		t.Error(diff)
	}
	if v := got.UserInfo.Extra["k"]; len(v) != 1 || v[0] != "v" {
		t.Errorf("extra %v", got.UserInfo.Extra)
	}
	if object.GenerateName != "p-" || object.Spec.Tool != "t" || object.Spec.Arguments != "{}" || object.CreationTimestamp.IsZero() {
		t.Errorf("object %+v", object)
	}
	// "W3sib3AiOiJ4In1d" is the patch in base64.
	const answer = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u-1","allowed":true,"patchType":"JSONPatch","patch":"W3sib3AiOiJ4In1d"}}`
	if w.Code != http.StatusOK || w.Body.String() != answer || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestReview_RefusesWhatTheHandlerRefuses(t *testing.T) {
	because := invalid(kindProposal, "p-", refusal{Field: "spec.tool", Stage: "schema", Reason: "UnknownTool", Message: "there is none"})
	tests := map[string]struct {
		body string
		err  error
		want metav1.Status
	}{
		"a refusal keeps field, stage and reason": {createReview, because, metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
			Message: "spec.tool: stage schema: UnknownTool: there is none",
			Details: &metav1.StatusDetails{Group: "assent.dev", Kind: kindProposal, Name: "p-", Causes: []metav1.StatusCause{
				{Type: "UnknownTool", Field: "spec.tool", Message: "stage schema: UnknownTool: there is none"},
			}},
		}},
		"a failure is the server's": {createReview, errors.New("reading ToolManifest t: timeout"), metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
			Message: "Internal error occurred: reading ToolManifest t: timeout",
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: "reading ToolManifest t: timeout"}}},
		}},
		"a create without an object": {strings.Replace(createReview, `"object":{`, `"oldObject":{`, 1), nil, metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
			Message: "object: WrongType: the object does not have the form of its kind",
			Details: &metav1.StatusDetails{Group: "assent.dev", Kind: kindProposal, Causes: []metav1.StatusCause{
				{Type: "WrongType", Field: "object", Message: "WrongType: the object does not have the form of its kind"},
			}},
		}},
		"arguments that are no text": {strings.Replace(createReview, `"arguments":"{}"`, `"arguments":{"secret":1}`, 1), nil, metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
			Message: "spec.arguments: WrongType: the field has another type than the kind gives it",
			Details: &metav1.StatusDetails{Group: "assent.dev", Kind: kindProposal, Causes: []metav1.StatusCause{
				{Type: "WrongType", Field: "spec.arguments", Message: "WrongType: the field has another type than the kind gives it"},
			}},
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := post(t, "application/json", tc.body, func(*request, *v1alpha1.ToolProposal) ([]byte, error) { return nil, tc.err })
			var got admissionv1.AdmissionReview
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			want := &admissionv1.AdmissionResponse{UID: "u-1", Result: &tc.want}
			if diff := cmp.Diff(want, got.Response); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReview_LetsPassWhatIsNoCreate(t *testing.T) {
	for name, body := range map[string]string{
		"an update":     strings.Replace(createReview, "CREATE", "UPDATE", 1),
		"a delete":      strings.Replace(createReview, "CREATE", "DELETE", 1),
		"a subresource": strings.Replace(createReview, `"namespace"`, `"subResource":"status","namespace"`, 1),
	} {
		w := post(t, "application/json", body, func(*request, *v1alpha1.ToolProposal) ([]byte, error) {
			return nil, errors.New("asked")
		})
		const answer = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u-1","allowed":true}}`
		if w.Body.String() != answer {
			t.Errorf("%s: %s", name, w.Body)
		}
	}
}

// TestReview_FailsClosed counts on kube-apiserver taking any other status than
// 200 for a webhook that failed, and on failurePolicy Fail.
func TestReview_FailsClosed(t *testing.T) {
	tests := map[string]struct{ contentType, body, want string }{
		"another content type":    {"application/yaml", createReview, "an admission review is application/json\n"},
		"no JSON":                 {"application/json", `secret-argument`, "the body is no admission review\n"},
		"a member twice":          {"application/json", strings.Replace(createReview, `"uid":"u-1"`, `"uid":"u-1","uid":"u-2"`, 1), "the body is no admission review\n"},
		"another kind":            {"application/json", strings.Replace(createReview, "AdmissionReview", "Review", 1), "the body is no AdmissionReview of admission.k8s.io/v1\n"},
		"another version":         {"application/json", strings.Replace(createReview, "io/v1", "io/v1beta1", 1), "the body is no AdmissionReview of admission.k8s.io/v1\n"},
		"no request":              {"application/json", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, "the body is no AdmissionReview of admission.k8s.io/v1\n"},
		"more than is ever there": {"application/json", strings.Repeat(" ", maxReviewBytes+1), "the admission review is longer than 7340032 bytes\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := post(t, tc.contentType, tc.body, func(*request, *v1alpha1.ToolProposal) ([]byte, error) {
				t.Error("the handler was asked")
				return nil, nil
			})
			if w.Code != http.StatusBadRequest || w.Body.String() != tc.want {
				t.Errorf("%d %q, want %q", w.Code, w.Body, tc.want)
			}
		})
	}
}

func TestStamped_ReplacesTheWholeSpec(t *testing.T) {
	spec := &v1alpha1.ToolProposalSpec{Tool: "t", Arguments: `{}`, CallID: "c", Seal: "s"}
	const replace = `{"op":"replace","path":"/spec","value":{"tool":"t","arguments":"{}","callID":"c","seal":"s"}}`
	for want, metadata := range map[string][]member{
		"[" + replace + "]": nil,
		"[" + replace + `,{"op":"add","path":"/metadata/finalizers","value":["a","b"]},{"op":"add","path":"/metadata/managedFields","value":[]}]`: {
			{"finalizers", []string{"a", "b"}}, {"managedFields", []string{}},
		},
	} {
		got, err := stamped(spec, metadata...)
		if err != nil || string(got) != want {
			t.Errorf("%s (%v), want %s", got, err, want)
		}
	}
}
