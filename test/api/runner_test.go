// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"crypto/rand"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/execution"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/job"
)

// There is no kubelet here: the tests make the Pod of a Job as the Job
// controller would, get its token from the API server as the kubelet would,
// and speak with the execution endpoint as the runner would.

const executionHost = "assent-execution.assent-system.svc"

// in is the fixture for one row of a table: what goes wrong there is that
// row's, while namespace and operator are shared.
func (f *fixture) in(t *testing.T) *fixture {
	row := *f
	row.t = t
	return &row
}

// endpoint is the execution endpoint of the fixture's operator.
func (f *fixture) endpoint(change ...func(*execution.Server)) http.Handler {
	s := &execution.Server{
		Live: server.admin, Client: server.admin, Keys: f.shared.Keys, Contracts: f.shared.Contracts,
		ExpectedJob: f.shared.ExpectedJob, Hosts: []string{executionHost},
		Now: f.shared.Now, Epoch: f.shared.Epoch, Log: discard(), Past: f.shared.Past, Tracer: f.shared.Tracer,
	}
	for _, c := range change {
		c(s)
	}
	return s.Handler()
}

// dispatched is a call that was granted, with the Job that the commit point made.
func (f *fixture) dispatched(tool, arguments string) (*v1alpha1.ToolProposal, *batchv1.Job) {
	f.t.Helper()
	p := f.step(f.propose(tool, arguments))
	if got, want := outcome(p), "Dispatching/Granted"; got != want {
		f.t.Fatalf("got %s, want %s: %s", got, want, p.Status.Message)
	}
	return p, f.jobOf(p)
}

func (f *fixture) jobOf(p *v1alpha1.ToolProposal) *batchv1.Job {
	f.t.Helper()
	j := &batchv1.Job{}
	key := client.ObjectKey{Namespace: p.Status.Dispatch.JobNamespace, Name: p.Status.Dispatch.JobName}
	if err := server.admin.Get(f.ctx, key, j); err != nil {
		f.t.Fatalf("reading the Job of %s: %v", p.Name, err)
	}
	return j
}

// podFor is the Pod that the Job controller and the scheduler make.
func podFor(j *batchv1.Job) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: j.Namespace, GenerateName: j.Name + "-",
			Labels: j.Spec.Template.Labels, Annotations: j.Spec.Template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: *j.Spec.Template.Spec.DeepCopy(),
	}
	pod.Spec.NodeName = "node"
	return pod
}

func (f *fixture) startPod(j *batchv1.Job, change ...func(*corev1.Pod)) *corev1.Pod {
	f.t.Helper()
	pod := podFor(j)
	for _, c := range change {
		c(pod)
	}
	f.serviceAccount(pod.Spec.ServiceAccountName)
	f.create(pod)
	return pod
}

func (f *fixture) serviceAccount(name string) *corev1.ServiceAccount {
	f.t.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}
	if err := client.IgnoreAlreadyExists(server.admin.Create(f.ctx, sa)); err != nil {
		f.t.Fatalf("creating ServiceAccount %s: %v", name, err)
	}
	return sa
}

// token is a real token of the API server, of the Pod's ServiceAccount and
// bound to the Pod, or of the namespace's default ServiceAccount and bound to
// nothing. Without an audience it is one for the API server itself.
func (f *fixture) token(pod *corev1.Pod, audiences ...string) string {
	f.t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	account := "default"
	if pod != nil {
		account = pod.Spec.ServiceAccountName
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	}
	if err := server.admin.SubResource("token").Create(f.ctx, f.serviceAccount(account), request); err != nil {
		f.t.Fatalf("requesting a token: %v", err)
	}
	return request.Status.Token
}

// fakeRunner is a runner of one Pod: its token and its nonce.
type fakeRunner struct {
	f        *fixture
	endpoint http.Handler
	p        *v1alpha1.ToolProposal
	token    string
	pod      *corev1.Pod
	nonce    string
}

// runnerFor starts a Pod for the call's Job and is the runner in it.
func (f *fixture) runnerFor(p *v1alpha1.ToolProposal, change ...func(*corev1.Pod)) *fakeRunner {
	f.t.Helper()
	pod := f.startPod(f.jobOf(p), change...)
	return f.runnerIn(p, pod)
}

func (f *fixture) runnerIn(p *v1alpha1.ToolProposal, pod *corev1.Pod) *fakeRunner {
	f.t.Helper()
	return &fakeRunner{f: f, endpoint: f.endpoint(), p: p, pod: pod, token: f.token(pod, job.Audience), nonce: newNonce(f)}
}

func newNonce(f *fixture) string {
	f.t.Helper()
	nonce, err := attest.NewNonce(rand.Reader)
	if err != nil {
		f.t.Fatal(err)
	}
	return nonce
}

// post sends a body and returns status and answer.
func (r *fakeRunner) post(path string, body []byte, change ...func(*http.Request)) (int, []byte) {
	r.f.t.Helper()
	req := httptest.NewRequestWithContext(r.f.ctx, http.MethodPost, "https://"+executionHost+":8443"+path, bytes.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+r.token)
	req.Header.Set("Content-Type", "application/json")
	for _, c := range change {
		c(req)
	}
	w := httptest.NewRecorder()
	r.endpoint.ServeHTTP(w, req)
	answer, err := io.ReadAll(w.Result().Body)
	if err != nil {
		r.f.t.Fatal(err)
	}
	return w.Code, answer
}

func (r *fakeRunner) redeemBody() []byte {
	r.f.t.Helper()
	body, err := attest.Encode(attest.RedeemRequest{
		ProposalNamespace: r.p.Namespace, ProposalName: r.p.Name, ProposalUID: string(r.p.UID), Nonce: r.nonce,
	})
	if err != nil {
		r.f.t.Fatal(err)
	}
	return body
}

// redeem asks for the call and returns status and, with 200, the answer.
func (r *fakeRunner) redeem(change ...func(*http.Request)) (int, attest.RedeemResponse) {
	r.f.t.Helper()
	status, answer := r.post(execution.PathRedeem, r.redeemBody(), change...)
	if status != http.StatusOK {
		return status, attest.RedeemResponse{}
	}
	response, err := attest.DecodeRedeemResponse(answer)
	if err != nil {
		r.f.t.Fatalf("reading the answer: %v", err)
	}
	return status, response
}

// mustRedeem is redeem where the test is about what comes after.
func (r *fakeRunner) mustRedeem() attest.RedeemResponse {
	r.f.t.Helper()
	status, response := r.redeem()
	if status != http.StatusOK {
		r.f.t.Fatalf("redeeming: got %d, want 200", status)
	}
	return response
}

// report is a report of success that a test may change before it is signed.
func (r *fakeRunner) report(change ...func(*attest.Result)) attest.Result {
	result := attest.Result{
		ProposalUID: string(r.p.UID), PodUID: string(r.pod.UID), Fingerprint: r.p.Spec.Prepared.Fingerprint,
		Outcome: attest.OutcomeSucceeded, ExitCode: new(int32(0)), Stdout: "done",
		StdoutSHA256: repeat("a", 64), StderrSHA256: repeat("b", 64), StdoutBytes: 4,
		StartedAt: r.f.clock.Now().UTC().Truncate(time.Second),
	}
	for _, c := range change {
		c(&result)
	}
	return result
}

// deliver signs a report with the key of an answer and sends it.
func (r *fakeRunner) deliver(key attest.RedeemResponse, result attest.Result) int {
	r.f.t.Helper()
	signed, err := attest.SealResult(key.ResultKey, key.KeyID, result)
	if err != nil {
		r.f.t.Fatal(err)
	}
	body, err := attest.Encode(signed)
	if err != nil {
		r.f.t.Fatal(err)
	}
	status, _ := r.post(execution.PathResult, body)
	return status
}
