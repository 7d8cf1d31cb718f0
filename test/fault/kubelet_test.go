// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/job"
	"github.com/assent-dev/assent/internal/runner"
)

// kubelet makes the Pod of each Job that has none and runs the real runner for
// it, against the endpoint over HTTPS and the target over HTTP.
func (w *world) kubelet() {
	w.t.Helper()
	var jobs batchv1.JobList
	if err := admin.List(w.ctx, &jobs, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	for i := range jobs.Items {
		j := &jobs.Items[i]
		w.mu.Lock()
		begun := w.started[string(j.UID)]
		w.started[string(j.UID)] = true
		w.mu.Unlock()
		if !begun && j.DeletionTimestamp == nil {
			w.startPod(j)
		}
	}
}

func (w *world) startPod(j *batchv1.Job) {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: j.Namespace, GenerateName: j.Name + "-",
			Labels: j.Spec.Template.Labels, Annotations: j.Spec.Template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: *j.Spec.Template.Spec.DeepCopy(),
	}
	pod.Spec.NodeName = "node"
	w.create(pod)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences:      []string{job.Audience},
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "default"}}
	if err := admin.SubResource("token").Create(w.ctx, account, request); err != nil {
		w.t.Fatalf("requesting a token: %v", err)
	}
	token := filepath.Join(w.t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(request.Status.Token), 0o600); err != nil {
		w.t.Fatal(err)
	}
	config := w.runnerConfig(pod, token)
	w.active.Add(1)
	w.runners.Go(func() {
		defer w.active.Add(-1)
		w.run(config, pod)
	})
}

func (w *world) runnerConfig(pod *corev1.Pod, token string) runner.Config {
	w.t.Helper()
	endpoint, err := url.Parse(w.endpoint.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(w.endpoint.Certificate())
	tickets, err := attest.NewVerifier(keys.PublicKeys()...)
	if err != nil {
		w.t.Fatal(err)
	}
	of, _ := job.CallOf(&pod.Spec)
	return runner.Config{
		Endpoint: endpoint, Roots: roots, Tickets: tickets, PodUID: string(pod.UID), TokenFile: token, StartLimit: 20 * time.Second,
		Proposal: attest.ObjectRef{Namespace: of.Namespace, Name: of.Name, UID: pod.Labels[v1alpha1.LabelProposalUID]},
	}
}

// run is the container. When it has ended the Pod's status says so.
func (w *world) run(config runner.Config, pod *corev1.Pod) {
	r := &runner.Runner{
		Config: config, Random: rand.Reader, Now: w.Now, Resolver: net.DefaultResolver,
		Pause:     func(ctx context.Context, _ time.Duration) error { return runner.Pause(ctx, 20*time.Millisecond) },
		KillGrace: time.Second, Delivery: 20 * time.Second,
	}
	r.Run(w.ctx)
	pod.Status.Phase = corev1.PodSucceeded
	// The Pod may be gone with its Job; nothing depends on this.
	_ = admin.Status().Update(context.WithoutCancel(w.ctx), pod)
}

// serve passes a runner's request to the operator that serves now, with what
// goes wrong around it. A connection that breaks is what a runner sees of a
// process that ends.
func (w *world) serve(rw http.ResponseWriter, req *http.Request) {
	w.mu.Lock()
	o := w.serving
	w.mu.Unlock()
	if o == nil || !o.alive() {
		panic(http.ErrAbortHandler)
	}
	fault := w.faults.next("runner " + filepath.Base(req.URL.Path))
	switch fault {
	case crashBefore:
		o.die()
		panic(http.ErrAbortHandler)
	case overtaken:
		w.overtake()
	}
	answer := httptest.NewRecorder()
	o.handler.ServeHTTP(answer, req)
	switch {
	case fault == crashAfter:
		o.die()
		panic(http.ErrAbortHandler)
	case fault == lostReply, !o.alive():
		panic(http.ErrAbortHandler)
	}
	maps.Copy(rw.Header(), answer.Header())
	rw.WriteHeader(answer.Code)
	_, _ = rw.Write(answer.Body.Bytes())
}
