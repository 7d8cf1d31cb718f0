// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/base64"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxReviewBytes is more than any review of a call or receipt has:
// kube-apiserver accepts objects of 3 MiB.
const maxReviewBytes = 7 << 20

// endpoint answers the admission reviews of one kind. Every call passes two of
// them, one to be sealed and one to be looked at again, so that a review is
// read once and a patch is written without comparing two texts of the object.
type endpoint[T any] struct {
	kind string
	log  logr.Logger
	// answer looks at an object that is being created. It returns a JSON patch
	// or nothing, or says why the object is refused.
	answer func(ctx context.Context, req *request, o *T) (patch []byte, err error)
}

// request is what a review says beside the object.
type request struct {
	UID         types.UID                 `json:"uid"`
	Operation   admissionv1.Operation     `json:"operation"`
	SubResource string                    `json:"subResource"`
	DryRun      bool                      `json:"dryRun"`
	Namespace   string                    `json:"namespace"`
	UserInfo    authenticationv1.UserInfo `json:"userInfo"`
}

type review struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Request    *struct {
		request `json:",inline"`
		Object  jsontext.Value `json:"object"`
	} `json:"request"`
}

const (
	reviewAPIVersion = "admission.k8s.io/v1"
	reviewKind       = "AdmissionReview"
)

// ServeHTTP answers one review. What cannot be read is answered without a
// review, which kube-apiserver takes for a webhook that failed: the webhooks
// fail closed.
func (e *endpoint[T]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req, object, err := readReview(r)
	if err != nil {
		e.log.Error(err, "an admission review could not be read", "path", r.URL.Path)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := e.review(r.Context(), req, object)
	if err == nil {
		w.Header().Set("Content-Type", "application/json")
		_, err = w.Write(answer)
	}
	if err != nil {
		e.log.Error(err, "an admission review could not be answered", "path", r.URL.Path)
	}
}

func readReview(r *http.Request) (*request, jsontext.Value, error) {
	if t := r.Header.Get("Content-Type"); t != "application/json" {
		return nil, nil, errors.New("an admission review is application/json")
	}
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), maxReviewBytes)) + bytes.MinRead)
	if _, err := body.ReadFrom(io.LimitReader(r.Body, maxReviewBytes+1)); err != nil {
		return nil, nil, fmt.Errorf("reading the admission review: %w", err)
	}
	if body.Len() > maxReviewBytes {
		return nil, nil, fmt.Errorf("the admission review is longer than %d bytes", maxReviewBytes)
	}
	var in review
	// The library's errors quote what they do not understand.
	if json.Unmarshal(body.Bytes(), &in) != nil {
		return nil, nil, errors.New("the body is no admission review")
	}
	if in.APIVersion != reviewAPIVersion || in.Kind != reviewKind || in.Request == nil {
		return nil, nil, fmt.Errorf("the body is no %s of %s", reviewKind, reviewAPIVersion)
	}
	return &in.Request.request, in.Request.Object, nil
}

// review lets everything pass but creates, which are for the handler.
func (e *endpoint[T]) review(ctx context.Context, req *request, object jsontext.Value) ([]byte, error) {
	if req.Operation != admissionv1.Create || req.SubResource != "" {
		return allowed(req.UID, nil), nil
	}
	patch, err := e.ask(ctx, req, object)
	if err == nil {
		return allowed(req.UID, patch), nil
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return refused(req.UID, status)
	}
	e.log.Error(err, "an admission review failed", "namespace", req.Namespace)
	return refused(req.UID, apierrors.NewInternalError(err))
}

func (e *endpoint[T]) ask(ctx context.Context, req *request, object jsontext.Value) ([]byte, error) {
	o := new(T)
	// kube-apiserver holds the object against its schema only afterwards.
	if err := json.Unmarshal(object, o); err != nil {
		return nil, invalid(e.kind, "", misfit(err))
	}
	return e.answer(ctx, req, o)
}

// misfit names the field that has another type than the kind gives it. What
// the field holds is not told.
func misfit(err error) refusal {
	r := refusal{Field: "object", Reason: "WrongType", Message: "the object does not have the form of its kind"}
	if e, ok := errors.AsType[*json.SemanticError](err); ok && e.JSONPointer != "" {
		r.Field = strings.ReplaceAll(strings.TrimPrefix(string(e.JSONPointer), "/"), "/", ".")
		r.Message = "the field has another type than the kind gives it"
	}
	return r
}

// allowed writes the answer that nearly every review gets.
func allowed(uid types.UID, patch []byte) []byte {
	b := make([]byte, 0, base64.StdEncoding.EncodedLen(len(patch))+len(uid)+192)
	b = append(b, `{"kind":"`+reviewKind+`","apiVersion":"`+reviewAPIVersion+`","response":{"uid":`...)
	// It fails for text that is not UTF-8 only, and writes it all the same.
	b, _ = jsontext.AppendQuote(b, string(uid))
	b = append(b, `,"allowed":true`...)
	if patch != nil {
		b = append(b, `,"patchType":"`+admissionv1.PatchTypeJSONPatch+`","patch":"`...)
		b = append(base64.StdEncoding.AppendEncode(b, patch), '"')
	}
	return append(b, `}}`...)
}

func refused(uid types.UID, why apierrors.APIStatus) ([]byte, error) {
	status := why.Status()
	return stdjson.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: reviewAPIVersion, Kind: reviewKind},
		Response: &admissionv1.AdmissionResponse{UID: uid, Result: &status},
	})
}

// member is a part of an object's metadata that a patch puts in place.
type member struct {
	name  string
	value any
}

// stamped is the patch that puts the whole spec in place, which is less work
// for kube-apiserver than several members of it, and members of the metadata.
func stamped(spec any, metadata ...member) ([]byte, error) {
	text, err := stdjson.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the stamped spec: %w", err)
	}
	patch := make([]byte, 0, len(text)+256)
	patch = append(patch, `[{"op":"replace","path":"/spec","value":`...)
	patch = append(patch, text...)
	for _, m := range metadata {
		value, err := stdjson.Marshal(m.value)
		if err != nil {
			return nil, fmt.Errorf("encoding metadata.%s: %w", m.name, err)
		}
		// It replaces what is there (RFC 6902 section 4.1).
		patch = append(patch, `},{"op":"add","path":"/metadata/`+m.name+`","value":`...)
		patch = append(patch, value...)
	}
	return append(patch, `}]`...), nil
}
