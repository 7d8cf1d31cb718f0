// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package execution is the endpoint that runners talk to. It is the only place
// that hands out tickets: a runner proves by a Pod-bound token which Pod it
// runs in, the live Pod must be the one that the commit point's Job makes, and
// one compare-and-swap on the proposal lets exactly one Pod have the call.
//
// Every replica serves it; none keeps state. Strangers learn nothing: what is
// refused is refused without a reason in the answer.
package execution

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/job"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/proposal"
	"github.com/assent-dev/assent/internal/tracing"
)

const (
	// PathRedeem and PathResult are the two resources there are.
	PathRedeem = "/v1alpha1/redeem"
	PathResult = "/v1alpha1/result"

	extraPodName = "authentication.kubernetes.io/pod-name"
	extraPodUID  = "authentication.kubernetes.io/pod-uid"

	// requestTime bounds one request, API server calls included.
	requestTime = 20 * time.Second
	// swapAttempts bounds how often a compare-and-swap is tried anew when
	// somebody else wrote to the proposal in between.
	swapAttempts = 5
)

// Server answers runners.
type Server struct {
	// Live reads from the API server, Client writes the proposal's status and
	// creates reviews.
	Live   client.Reader
	Client client.Client
	// Keys returns the keys that are in force.
	Keys func() *attest.Keyring
	// Contracts compiles manifests.
	Contracts *proposal.Compiler
	// ExpectedJob builds the Job that the commit point created for a call, with
	// the keys and certificates of the live one. It is the granted Job only if
	// it has the hash in the grant.
	ExpectedJob func(p *v1alpha1.ToolProposal, c *contract.Contract, live *batchv1.Job) (*batchv1.Job, error)
	// Hosts are the names that requests may be addressed to.
	Hosts []string
	Now   func() time.Time
	Epoch func() int64
	// Restored says that the cluster was put back to an earlier state, in which
	// a call may look as if it had not run; empty when it was not. nil says nothing.
	Restored func(ctx context.Context) (string, error)
	Log      logr.Logger
	// Past remembers which calls were fetched.
	Past *observe.Past
	// Tracer is told of requests about calls; nil tells nobody.
	Tracer *tracing.Tracer
}

// refusal is an answer that tells a runner that asking again is of no use.
type refusal struct {
	status int
	reason string
}

func (r *refusal) Error() string { return r.reason }

func refuse(status int, reason string) error { return &refusal{status: status, reason: reason} }

// Handler returns the HTTP handler of the endpoint.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+PathRedeem, s.handle(attest.MaxRedeemRequestBytes, s.redeem))
	mux.Handle("POST "+PathResult, s.handle(attest.MaxSignedResultBytes, s.result))
	return mux
}

// handle does what both resources have in common: it checks the envelope of
// the request, finds the Pod behind the token, and turns errors into answers.
func (s *Server) handle(limit int64, serve func(context.Context, *livePod, []byte) ([]byte, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithTimeout(req.Context(), requestTime)
		defer cancel()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		body, err := s.read(w, req, limit)
		if err != nil {
			s.answer(w, nil, err)
			return
		}
		pod, err := s.caller(ctx, req)
		if err != nil {
			s.answer(w, nil, err)
			return
		}
		answer, err := serve(ctx, pod, body)
		s.answer(w, answer, err)
	})
}

func (s *Server) read(w http.ResponseWriter, req *http.Request, limit int64) ([]byte, error) {
	host := req.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if !containsFold(s.Hosts, host) {
		return nil, refuse(http.StatusMisdirectedRequest, "addressed to another host")
	}
	if media, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, "not JSON")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, limit))
	if err != nil {
		return nil, refuse(http.StatusRequestEntityTooLarge, "body too long or cut short")
	}
	return body, nil
}

func containsFold(list []string, want string) bool {
	for _, s := range list {
		if strings.EqualFold(s, want) {
			return true
		}
	}
	return false
}

// livePod is a Pod as the API server knows it, and all that it said of it: the
// Go type drops fields of a newer API without a word.
type livePod struct {
	*corev1.Pod
	text []byte
}

func (s *Server) readPod(ctx context.Context, key client.ObjectKey) (*livePod, error) {
	whole := &unstructured.Unstructured{}
	whole.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	if err := s.Live.Get(ctx, key, whole); err != nil {
		return nil, err
	}
	pod := &livePod{Pod: &corev1.Pod{}}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole.Object, pod.Pod); err != nil {
		return nil, fmt.Errorf("decoding Pod %s: %w", key, err)
	}
	var err error
	if pod.text, err = whole.MarshalJSON(); err != nil {
		return nil, fmt.Errorf("encoding Pod %s: %w", key, err)
	}
	return pod, nil
}

// caller finds the live Pod that the request's token is bound to.
func (s *Server) caller(ctx context.Context, req *http.Request) (*livePod, error) {
	token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return nil, refuse(http.StatusUnauthorized, "no token")
	}
	user, ok, err := observe.TokenUser(ctx, s.Client, token, job.Audience)
	if err != nil {
		return nil, err
	}
	name, uid := one(user.Extra[extraPodName]), one(user.Extra[extraPodUID])
	namespace, _, isAccount := strings.Cut(strings.TrimPrefix(user.Username, "system:serviceaccount:"), ":")
	if !ok || !isAccount || name == "" || uid == "" {
		return nil, refuse(http.StatusUnauthorized, "token not valid for the execution endpoint or not bound to a Pod")
	}
	pod, err := s.readPod(ctx, client.ObjectKey{Namespace: namespace, Name: name})
	if err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, refuse(http.StatusUnauthorized, "the token's Pod does not exist")
		}
		return nil, err
	}
	if pod.UID != types.UID(uid) {
		return nil, refuse(http.StatusUnauthorized, "the token's Pod was replaced")
	}
	return pod, nil
}

func one[S ~[]string](values S) string {
	if len(values) != 1 {
		return ""
	}
	return values[0]
}

// answer writes an answer. What went wrong is logged here and nowhere else.
func (s *Server) answer(w http.ResponseWriter, body []byte, err error) {
	var r *refusal
	switch {
	case err == nil:
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(body)
	case errors.As(err, &r):
		s.logFor(err).Info("refused a runner's request", "status", r.status, "reason", r.reason)
		http.Error(w, http.StatusText(r.status), r.status)
	default:
		s.logFor(err).Error(err, "answering a runner's request")
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
	}
}
