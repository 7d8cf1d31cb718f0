// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/execution"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/job"
)

func callFixture(t *testing.T, change ...func(*v1alpha1.ToolManifest)) *fixture {
	t.Helper()
	f := newFixture(t)
	f.tool("restart", change...)
	f.policy("allow", permitAll)
	return f
}

const web = `{"target":"web"}`

func TestRedeem_GivesThePodExactlyTheDecidedCall(t *testing.T) {
	f := callFixture(t)
	p, j := f.dispatched("restart", web)
	r := f.runnerFor(p)
	answer := r.mustRedeem()
	var ticket attest.Ticket
	if err := server.keys.Verify(attest.KindTicket, answer.Ticket, p.Spec.Prepared.Fingerprint, &ticket); err != nil {
		t.Fatalf("verifying the ticket: %v", err)
	}
	if err := ticket.CheckFingerprint(); err != nil {
		t.Error(err)
	}
	got := map[string]string{
		"fingerprint": ticket.Fingerprint, "pod": ticket.PodUID, "job": ticket.JobUID, "proposal": ticket.Proposal.UID,
		"arguments": ticket.Call.ArgsCanonicalJSON, "nonce": ticket.NonceDigest,
	}
	want := map[string]string{
		"fingerprint": p.Spec.Prepared.Fingerprint, "pod": string(r.pod.UID), "job": string(j.UID), "proposal": string(p.UID),
		"arguments": p.Spec.Prepared.ArgsCanonicalJSON, "nonce": attest.NonceDigest(r.nonce),
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("ticket (-want +got):\n%s", diff)
	}
	p = f.reload(p)
	if got, want := outcome(p), "Running/Redeemed"; got != want || p.Status.RedeemedBy.PodUID != r.pod.UID {
		t.Errorf("got %s by %v, want %s by %s", got, p.Status.RedeemedBy, want, r.pod.UID)
	}
}

func TestRedeem_AnswersTheSameNonceWithTheSameTicket(t *testing.T) {
	f := callFixture(t)
	p, _ := f.dispatched("restart", web)
	r := f.runnerFor(p)
	first := r.mustRedeem()
	// On another replica, and past the deadline: the call has started.
	r.endpoint = f.endpoint()
	f.clock.advance(f.shared.Settings().StartTimeout * 2)
	if diff := gocmp.Diff(first, r.mustRedeem()); diff != "" {
		t.Errorf("the second answer differs (-first +second):\n%s", diff)
	}
}

// Each row is somebody or something that must not get the call. Whatever is
// refused leaves the proposal as it was.
func TestRedeem_RefusesEverybodyElse(t *testing.T) {
	f := callFixture(t)
	p, _ := f.dispatched("restart", web)
	r := f.runnerFor(p)
	another, _ := f.dispatched("restart", `{"target":"db"}`)
	stranger := f.startPod(f.jobOf(another))
	bare := f.startPod(f.jobOf(p), func(pod *corev1.Pod) { pod.OwnerReferences = nil })
	before := f.reload(p)

	bearer := func(token string) func(*http.Request) {
		return func(req *http.Request) { req.Header.Set("Authorization", "Bearer "+token) }
	}
	header := func(name, value string) func(*http.Request) {
		return func(req *http.Request) { req.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(req *http.Request) { req.Host = name } }
	method := func(m string) func(*http.Request) { return func(req *http.Request) { req.Method = m } }
	body := func(text string) func(*http.Request) {
		return func(req *http.Request) {
			req.Body, req.ContentLength = http.NoBody, 0
			if text != "" {
				replaced, err := http.NewRequestWithContext(req.Context(), req.Method, "/", strings.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				req.Body, req.ContentLength = replaced.Body, replaced.ContentLength
			}
		}
	}
	tampered := r.token[:len(r.token)-4] + "AAAA"
	for name, tc := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"no token":                    {func(req *http.Request) { req.Header.Del("Authorization") }, 401},
		"an empty token":              {header("Authorization", "Bearer "), 401},
		"a token without its scheme":  {header("Authorization", r.token), 401},
		"a token that is none":        {bearer("garbage"), 401},
		"a token with another sign":   {bearer(tampered), 401},
		"the API server's own token":  {bearer(f.token(r.pod)), 401},
		"a token of another audience": {bearer(f.token(r.pod, "somebody.else")), 401},
		"a token of no Pod":           {bearer(f.token(nil, job.Audience)), 401},
		"a token of another call":     {bearer(f.token(stranger, job.Audience)), 409},
		"a Pod that is not the Job's": {bearer(f.token(bare, job.Audience)), 409},
		"another host":                {host("example.com"), 421},
		"an address instead of host":  {host("127.0.0.1:8443"), 421},
		"no host":                     {host(""), 421},
		"GET":                         {method(http.MethodGet), 405},
		"PUT":                         {method(http.MethodPut), 405},
		"no content type":             {func(req *http.Request) { req.Header.Del("Content-Type") }, 415},
		"a form":                      {header("Content-Type", "application/x-www-form-urlencoded"), 415},
		"text":                        {header("Content-Type", "text/plain"), 415},
		"no body":                     {body(""), 400},
		"a body that is not JSON":     {body("nonce"), 400},
		"a body with more in it":      {body(strings.TrimSuffix(string(r.redeemBody()), "}") + `,"canary":1}`), 400},
		"a body with something after": {body(string(r.redeemBody()) + "{}"), 400},
		"a body with a key twice":     {body(strings.TrimSuffix(string(r.redeemBody()), "}") + `,"nonce":"` + r.nonce + `"}`), 400},
		"a body that is too long":     {body(strings.Repeat(" ", attest.MaxRedeemRequestBytes+1)), 413},
		"another object of the name":  {body(strings.Replace(string(r.redeemBody()), string(p.UID), "00000000-0000-0000-0000-000000000000", 1)), 409},
		"a call that does not exist":  {body(strings.Replace(string(r.redeemBody()), p.Name, "nothing", 1)), 409},
		"another call's name and UID": {body(strings.NewReplacer(p.Name, another.Name, string(p.UID), string(another.UID)).Replace(string(r.redeemBody()))), 409},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := r.post(execution.PathRedeem, r.redeemBody(), tc.change)
			if status != tc.want {
				t.Errorf("got %d, want %d", status, tc.want)
			}
			if got, want := strings.TrimSpace(string(answer)), http.StatusText(tc.want); got != want {
				t.Errorf("the answer tells strangers %q, want %q", got, want)
			}
		})
	}
	if diff := gocmp.Diff(before.Status, f.reload(p).Status); diff != "" {
		t.Errorf("a refusal changed the status:\n%s", diff)
	}
	r.mustRedeem()
}

func TestRedeem_AfterTheFirstPod_RefusesAnyOtherAndAnyOtherNonce(t *testing.T) {
	f := callFixture(t)
	p, _ := f.dispatched("restart", web)
	first, second := f.runnerFor(p), f.runnerFor(p)
	want := first.mustRedeem()
	if status, _ := second.redeem(); status != http.StatusConflict {
		t.Errorf("another Pod of the Job: got %d, want 409", status)
	}
	stolen := *first
	stolen.nonce = second.nonce
	if status, _ := stolen.redeem(); status != http.StatusConflict {
		t.Errorf("the same Pod with another nonce: got %d, want 409", status)
	}
	stolen = *second
	stolen.nonce = first.nonce
	if status, _ := stolen.redeem(); status != http.StatusConflict {
		t.Errorf("another Pod with the first one's nonce: got %d, want 409", status)
	}
	if diff := gocmp.Diff(want, first.mustRedeem()); diff != "" {
		t.Errorf("the first Pod does not get its ticket any more:\n%s", diff)
	}
}

// Each row changes what the grant rests on, between grant and redemption.
func TestRedeem_WhenTheGrantIsNoMore_IsRefused(t *testing.T) {
	f := callFixture(t)
	f.tool("edited")
	f.tool("removed")
	tools := map[string]string{"the contract changed": "edited", "the tool is gone": "removed"}
	for name, change := range map[string]func(*fixture, *v1alpha1.ToolProposal, *batchv1.Job){
		"the deadline passed": func(f *fixture, _ *v1alpha1.ToolProposal, _ *batchv1.Job) {
			f.clock.advance(f.shared.Settings().StartTimeout)
		},
		"the call has ended": func(f *fixture, p *v1alpha1.ToolProposal, _ *batchv1.Job) {
			p.Status.Phase = v1alpha1.PhaseCancelled
			f.mustWriteStatus(p)
		},
		"the proposal is being deleted": func(f *fixture, p *v1alpha1.ToolProposal, _ *batchv1.Job) {
			f.mustDelete(p)
		},
		"the contract changed": func(f *fixture, _ *v1alpha1.ToolProposal, _ *batchv1.Job) {
			f.editTool("edited", func(m *v1alpha1.ToolManifest) { m.Spec.Description = "another" })
		},
		"the tool is gone": func(f *fixture, _ *v1alpha1.ToolProposal, _ *batchv1.Job) {
			f.mustDelete(&v1alpha1.ToolManifest{ObjectMeta: metav1.ObjectMeta{Name: "removed", Namespace: f.namespace}})
		},
		"somebody removed the grant": func(f *fixture, p *v1alpha1.ToolProposal, _ *batchv1.Job) {
			p.Status.Dispatch = nil
			f.mustWriteStatus(p)
		},
		"somebody moved the deadline": func(f *fixture, p *v1alpha1.ToolProposal, _ *batchv1.Job) {
			p.Status.Dispatch.Deadline = metav1.NewTime(p.Status.Dispatch.Deadline.AddDate(1, 0, 0))
			f.mustWriteStatus(p)
		},
		"somebody named another Job": func(f *fixture, p *v1alpha1.ToolProposal, _ *batchv1.Job) {
			p.Status.Dispatch.TemplateHash = repeat("0", 64)
			f.mustWriteStatus(p)
		},
		"somebody took the Job's mark": func(f *fixture, _ *v1alpha1.ToolProposal, j *batchv1.Job) {
			j.Annotations[v1alpha1.AnnotationTemplateHash] = repeat("0", 64)
			f.mustUpdate(j)
		},
		"the call waits again": func(f *fixture, p *v1alpha1.ToolProposal, _ *batchv1.Job) {
			p.Status.Phase = v1alpha1.PhasePending
			f.mustWriteStatus(p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			p, j := f.dispatched(cmp.Or(tools[name], "restart"), web)
			r := f.runnerFor(p)
			change(f, p, j)
			if status, _ := r.redeem(); status != http.StatusConflict {
				t.Errorf("got %d, want 409", status)
			}
			if f.reload(p).Status.RedeemedBy != nil {
				t.Error("the call was redeemed")
			}
		})
	}
}

// Each row is one way in which the Pod is not what the commit point's Job
// makes. The API server itself has filled in the rest of it.
func TestRedeem_FromAPodThatSomebodyChanged_IsRefusedAsPodSpecDrift(t *testing.T) {
	f := callFixture(t)
	atCreation := map[string]func(*corev1.Pod){
		"a sidecar": func(pod *corev1.Pod) {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "sidecar", Image: testImage})
		},
		"an init container": func(pod *corev1.Pod) {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: "init", Image: testImage})
		},
		"a variable": func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "LD_PRELOAD", Value: "/x"})
		},
		"variables from a Secret": func(pod *corev1.Pod) {
			pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}
		},
		"another image":   func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "registry.example/other" },
		"another command": func(pod *corev1.Pod) { pod.Spec.Containers[0].Command = []string{"sh"} },
		"arguments":       func(pod *corev1.Pod) { pod.Spec.Containers[0].Args = []string{"-c"} },
		"a volume": func(pod *corev1.Pod) {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		},
		"a mount": func(pod *corev1.Pod) {
			c := &pod.Spec.Containers[0]
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: pod.Spec.Volumes[0].Name, MountPath: "/etc"})
		},
		"the host's network":         func(pod *corev1.Pod) { pod.Spec.HostNetwork = true },
		"a shared process namespace": func(pod *corev1.Pod) { pod.Spec.ShareProcessNamespace = new(true) },
		"privileges":                 func(pod *corev1.Pod) { pod.Spec.Containers[0].SecurityContext = nil },
		"another user":               func(pod *corev1.Pod) { pod.Spec.SecurityContext.RunAsUser = new(int64(1)) },
		"other resources":            func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{} },
		"a hook": func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh"}}}}
		},
		"another ServiceAccount": func(pod *corev1.Pod) {
			pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = "other", "other"
		},
		"an address for a name": func(pod *corev1.Pod) {
			pod.Spec.HostAliases = append(pod.Spec.HostAliases, corev1.HostAlias{IP: "192.0.2.1", Hostnames: []string{"x"}})
		},
		"an annotation": func(pod *corev1.Pod) { pod.Annotations["sidecar.istio.io/inject"] = "true" },
		"a label":       func(pod *corev1.Pod) { delete(pod.Labels, v1alpha1.LabelRun) },
	}
	for name, change := range atCreation {
		t.Run("created with "+name, func(t *testing.T) {
			f := f.in(t)
			p, _ := f.dispatched("restart", web)
			pod := f.startPod(f.jobOf(p), change)
			f.wantDrift(p, pod)
		})
	}
	later := map[string]func(*corev1.Pod){
		"another image": func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "registry.example/other" },
		"an annotation": func(pod *corev1.Pod) { pod.Annotations["dapr.io/enabled"] = "true" },
		"a deadline":    func(pod *corev1.Pod) { pod.Spec.ActiveDeadlineSeconds = new(int64(1)) },
	}
	for name, change := range later {
		t.Run("given later "+name, func(t *testing.T) {
			f := f.in(t)
			p, _ := f.dispatched("restart", web)
			pod := f.startPod(f.jobOf(p))
			change(pod)
			f.mustUpdate(pod)
			f.wantDrift(p, pod)
		})
	}
	t.Run("given another image and then its own back", func(t *testing.T) {
		f := f.in(t)
		p, _ := f.dispatched("restart", web)
		pod := f.startPod(f.jobOf(p))
		own := pod.Spec.Containers[0].Image
		for _, image := range []string{"registry.example/other", own} {
			pod.Spec.Containers[0].Image = image
			f.mustUpdate(pod)
		}
		f.wantDrift(p, pod)
	})
}

// wantDrift says that a Pod does not get the call, and that the call says why
// until it ends as PodSpecDrift.
func (f *fixture) wantDrift(p *v1alpha1.ToolProposal, pod *corev1.Pod) {
	f.t.Helper()
	if status, _ := f.runnerIn(p, pod).redeem(); status != http.StatusConflict {
		f.t.Errorf("got %d, want 409", status)
	}
	p = f.reload(p)
	if got, want := outcome(p), "Dispatching/PodSpecDrift"; got != want || p.Status.RedeemedBy != nil {
		f.t.Fatalf("got %s, want %s", got, want)
	}
	f.clock.advance(f.shared.Settings().StartTimeout)
	if got, want := outcome(f.step(p)), "Failed/PodSpecDrift"; got != want {
		f.t.Errorf("after the deadline: got %s, want %s", got, want)
	}
}

func (f *fixture) mustUpdate(o client.Object) {
	f.t.Helper()
	if err := server.admin.Update(f.ctx, o); err != nil {
		f.t.Fatalf("updating %T: %v", o, err)
	}
}

func (f *fixture) mustWriteStatus(o client.Object) {
	f.t.Helper()
	if err := server.admin.Status().Update(f.ctx, o); err != nil {
		f.t.Fatalf("writing the status of %T: %v", o, err)
	}
}

func (f *fixture) mustDelete(o client.Object) {
	f.t.Helper()
	if err := server.admin.Delete(f.ctx, o); err != nil {
		f.t.Fatalf("deleting %T: %v", o, err)
	}
}

func (f *fixture) editTool(name string, change func(*v1alpha1.ToolManifest)) {
	f.t.Helper()
	m := &v1alpha1.ToolManifest{}
	if err := server.admin.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, m); err != nil {
		f.t.Fatal(err)
	}
	change(m)
	f.mustUpdate(m)
}
