// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/assent-dev/assent/internal/job"
)

const jobUID = "c8a5a6f0-2f0e-4a8e-b8f1-5d4c3b2a1908"

// livePod is the Pod as a cluster shows it for the Job: with what the API
// server, the Job controller, admission, the scheduler and the kubelet add.
func livePod(t testing.TB, in job.Input) (*batchv1.Job, *corev1.Pod) {
	t.Helper()
	expected := mustBuild(t, in)
	expected.UID = jobUID
	template := expected.Spec.Template.DeepCopy()
	labels := maps.Clone(template.Labels)
	for _, key := range []string{"batch.kubernetes.io/controller-uid", "controller-uid"} {
		labels[key] = jobUID
	}
	for _, key := range []string{"batch.kubernetes.io/job-name", "job-name"} {
		labels[key] = expected.Name
	}
	labels["topology.kubernetes.io/zone"] = "zone-a"
	template.Annotations["cni.projectcalico.org/podIP"] = "10.0.0.7/32"
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: expected.Namespace, Name: expected.Name + "-x7k2p", UID: "pod", Generation: 1,
			Labels: labels, Annotations: template.Annotations,
			Finalizers: []string{"batch.kubernetes.io/job-tracking"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "batch/v1", Kind: "Job", Name: expected.Name, UID: jobUID,
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: template.Spec,
	}
	spec := &pod.Spec
	spec.NodeName = "node-1"
	spec.Priority, spec.PreemptionPolicy = new(int32(0)), new(corev1.PreemptLowerPriority)
	spec.PriorityClassName = "cluster-default"
	spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: "of-the-service-account"})
	for _, key := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(300))})
	}
	spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
		{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired},
		{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.NotRequired},
	}
	spec.Containers[0].ImagePullPolicy = corev1.PullAlways
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: job.ContainerName, Image: spec.Containers[0].Image, ImageID: spec.Containers[0].Image,
	}}}
	for _, c := range spec.InitContainers {
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, corev1.ContainerStatus{Name: c.Name, ImageID: c.Image})
	}
	return expected, pod
}

func TestDiff_AllowsWhatKubernetesAdds(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]job.Input{"command": commandInput(), "http": httpInput(), "mcp": mcpInput()} {
		if got := job.Diff(livePod(t, in)); got != nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestDiff_AllowsAPodWhoseStatusIsNotReportedYet(t *testing.T) {
	t.Parallel()
	expected, live := livePod(t, commandInput())
	live.Status = corev1.PodStatus{}
	if got := job.Diff(expected, live); got != nil {
		t.Errorf("%q", got)
	}
}

func TestDiff_ReportsEachChangeByItsPath(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   []string
	}{
		"another image": {
			func(p *corev1.Pod) { p.Spec.Containers[0].Image = testRunnerImage },
			[]string{"spec.containers[0].image: differs", "status.containerStatuses[0].imageID: is not the image that was asked for"},
		},
		"another command": {
			func(p *corev1.Pod) { p.Spec.Containers[0].Command[0] = "/bin/sh" },
			[]string{"spec.containers[0].command[0]: differs"},
		},
		"arguments": {
			func(p *corev1.Pod) { p.Spec.Containers[0].Args = []string{"x"} },
			[]string{"spec.containers[0].args: is set"},
		},
		"a sidecar": {
			func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "proxy"}) },
			[]string{"spec.containers: has 2 entries instead of 1"},
		},
		"an init container": {
			func(p *corev1.Pod) {
				p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "init"})
			},
			[]string{"spec.initContainers: has 2 entries instead of 1"},
		},
		"an ephemeral container": {
			func(p *corev1.Pod) {
				p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{}}
				p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{}}
			},
			[]string{"spec.ephemeralContainers: is set", "status.ephemeralContainerStatuses: is set"},
		},
		"another variable": {
			func(p *corev1.Pod) {
				c := &p.Spec.Containers[0]
				c.Env = append(c.Env, corev1.EnvVar{Name: "LD_PRELOAD", Value: "/tmp/x.so"})
			},
			[]string{"spec.containers[0].env: has 11 entries instead of 10"},
		},
		"another value of a variable": {
			func(p *corev1.Pod) { p.Spec.Containers[0].Env[0].Value = "https://elsewhere" },
			[]string{"spec.containers[0].env[0].value: differs"},
		},
		"variables from a ConfigMap": {
			func(p *corev1.Pod) { p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{}} },
			[]string{"spec.containers[0].envFrom: is set"},
		},
		"another secret": {
			func(p *corev1.Pod) { p.Spec.Containers[0].Env[9].ValueFrom.SecretKeyRef.Name = "other" },
			[]string{"spec.containers[0].env[9].valueFrom.secretKeyRef.name: differs"},
		},
		"a volume": {
			func(p *corev1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "host"}) },
			[]string{"spec.volumes: has 5 entries instead of 4"},
		},
		"a volume that became a host path": {
			func(p *corev1.Pod) {
				p.Spec.Volumes[2].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
			},
			[]string{"spec.volumes[2].hostPath: is set", "spec.volumes[2].emptyDir: is missing"},
		},
		"a token for another audience": {
			func(p *corev1.Pod) { p.Spec.Volumes[0].Projected.Sources[0].ServiceAccountToken.Audience = "api" },
			[]string{"spec.volumes[0].projected.sources[0].serviceAccountToken.audience: differs"},
		},
		"a larger emptyDir": {
			func(p *corev1.Pod) { p.Spec.Volumes[2].EmptyDir.SizeLimit = new(resource.MustParse("1Ti")) },
			[]string{"spec.volumes[2].emptyDir.sizeLimit: differs"},
		},
		"a writable runner": {
			func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts[1].ReadOnly = false },
			[]string{"spec.containers[0].volumeMounts[1].readOnly: differs"},
		},
		"more memory": {
			func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse("64Gi")
			},
			[]string{"spec.containers[0].resources.limits[memory]: differs"},
		},
		"no memory limit": {
			func(p *corev1.Pod) { delete(p.Spec.Containers[0].Resources.Limits, corev1.ResourceMemory) },
			[]string{"spec.containers[0].resources.limits: has 2 entries instead of 3"},
		},
		"another resource": {
			func(p *corev1.Pod) {
				l := p.Spec.Containers[0].Resources.Limits
				delete(l, corev1.ResourceMemory)
				l["example.com/gpu"] = resource.MustParse("1")
			},
			[]string{"spec.containers[0].resources.limits: has other keys"},
		},
		"a resize that restarts": {
			func(p *corev1.Pod) { p.Spec.Containers[0].ResizePolicy[1].RestartPolicy = corev1.RestartContainer },
			[]string{"spec.containers[0].resizePolicy[1]: would restart the container"},
		},
		"a pull policy of never": {
			func(p *corev1.Pod) { p.Spec.Containers[0].ImagePullPolicy = corev1.PullNever },
			[]string{"spec.containers[0].imagePullPolicy: differs"},
		},
		"another user": {
			func(p *corev1.Pod) { p.Spec.Containers[0].SecurityContext.RunAsUser = new(int64(0)) },
			[]string{"spec.containers[0].securityContext.runAsUser: differs"},
		},
		"a missing security context": {
			func(p *corev1.Pod) { p.Spec.SecurityContext = nil },
			[]string{"spec.securityContext: is missing"},
		},
		"a capability": {
			func(p *corev1.Pod) {
				p.Spec.Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_PTRACE"}
			},
			[]string{"spec.containers[0].securityContext.capabilities.add: is set"},
		},
		"the host's network": {
			func(p *corev1.Pod) { p.Spec.HostNetwork = true },
			[]string{"spec.hostNetwork: is set"},
		},
		"another service account": {
			func(p *corev1.Pod) { p.Spec.ServiceAccountName = "admin" },
			[]string{"spec.serviceAccountName: differs"},
		},
		"an automounted token": {
			func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = new(true) },
			[]string{"spec.automountServiceAccountToken: differs"},
		},
		"a runtime class": {
			func(p *corev1.Pod) { p.Spec.RuntimeClassName = new("other") },
			[]string{"spec.runtimeClassName: is set"},
		},
		"a node selector without a runtime class": {
			func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"node": "mine"} },
			[]string{"spec.nodeSelector: is set though the Pod has no runtime class"},
		},
		"a toleration that Kubernetes does not add": {
			func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "mine"}) },
			[]string{"spec.tolerations[2]: is not one that Kubernetes adds"},
		},
		"a host alias": {
			func(p *corev1.Pod) { p.Spec.HostAliases[0].IP = "10.6.6.6" },
			[]string{"spec.hostAliases[0].ip: differs"},
		},
		"a name server": {
			func(p *corev1.Pod) { p.Spec.DNSConfig = &corev1.PodDNSConfig{} },
			[]string{"spec.dnsConfig: is set"},
		},
		"another namespace": {
			func(p *corev1.Pod) { p.Namespace = "other" },
			[]string{"metadata.namespace: differs"},
		},
		"a Pod that is being deleted": {
			func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} },
			[]string{"metadata.deletionTimestamp: is set"},
		},
		"a spec that was changed and put back": {
			func(p *corev1.Pod) { p.Generation = 3 },
			[]string{"metadata.generation: shows that the spec was changed after the Pod was created"},
		},
		"a Pod without an owner": {
			func(p *corev1.Pod) { p.OwnerReferences = nil },
			[]string{"metadata.ownerReferences: must name the Job and nothing else"},
		},
		"a Pod of a Job of the same name": {
			func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" },
			[]string{"metadata.ownerReferences: must name the Job and nothing else"},
		},
		"a second owner": {
			func(p *corev1.Pod) { p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{UID: "x"}) },
			[]string{"metadata.ownerReferences: must name the Job and nothing else"},
		},
		"without the label of the network policy": {
			func(p *corev1.Pod) { delete(p.Labels, "assent.dev/run") },
			[]string{"metadata.labels[assent.dev/run]: is missing or differs"},
		},
		"with a label that another network policy may select": {
			func(p *corev1.Pod) { p.Labels["allow-egress"] = "all" },
			[]string{"metadata.labels[allow-egress]: is not expected"},
		},
		"with the label of another Job": {
			func(p *corev1.Pod) { p.Labels["batch.kubernetes.io/controller-uid"] = "other" },
			[]string{"metadata.labels[batch.kubernetes.io/controller-uid]: is not expected"},
		},
		"with an annotation that attaches a network": {
			func(p *corev1.Pod) { p.Annotations["k8s.v1.cni.cncf.io/networks"] = "mine" },
			[]string{"metadata.annotations[k8s.v1.cni.cncf.io/networks]: is not expected"},
		},
		"with an opt-out taken back": {
			func(p *corev1.Pod) { p.Annotations["sidecar.istio.io/inject"] = "true" },
			[]string{"metadata.annotations[sidecar.istio.io/inject]: is missing or differs"},
		},
		"a Pod that has ended": {
			func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
			[]string{"status.phase: shows that the Pod has ended"},
		},
		"a container that was started again": {
			func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 1 },
			[]string{"status.containerStatuses[0].restartCount: shows that the container was started again"},
		},
		"a container that runs another image": {
			func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = testRunnerImage },
			[]string{"status.containerStatuses[0].imageID: is not the image that was asked for"},
		},
		"an image that is known by its configuration only": {
			func(p *corev1.Pod) {
				p.Status.InitContainerStatuses[0].ImageID = "sha256:" + strings.Repeat("3", 64)
			},
			[]string{"status.initContainerStatuses[0].imageID: is not the image that was asked for"},
		},
		"the status of an unknown container": {
			func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Name = "other" },
			[]string{"status.containerStatuses[0].name: is not a container of the Pod"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expected, live := livePod(t, commandInput())
			tc.change(live)
			if diff := cmp.Diff(tc.want, job.Diff(expected, live)); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDiff_LacksNoPullSecretOfTheOperator(t *testing.T) {
	t.Parallel()
	in := commandInput()
	in.ImagePullSecrets = []string{"registry"}
	expected, live := livePod(t, in)
	if got := job.Diff(expected, live); got != nil {
		t.Fatalf("%q", got)
	}
	live.Spec.ImagePullSecrets = live.Spec.ImagePullSecrets[1:]
	if diff := cmp.Diff([]string{"spec.imagePullSecrets: lacks an entry"}, job.Diff(expected, live)); diff != "" {
		t.Error(diff)
	}
}

func TestDiff_AllowsWhatARuntimeClassAdds(t *testing.T) {
	t.Parallel()
	in := commandInput()
	in.Execution.RuntimeClassName = "gvisor"
	expected, live := livePod(t, in)
	live.Spec.NodeSelector = map[string]string{"sandbox": "gvisor"}
	live.Spec.Overhead = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	live.Spec.Tolerations = append(live.Spec.Tolerations, corev1.Toleration{Key: "sandbox"})
	if got := job.Diff(expected, live); got != nil {
		t.Errorf("%q", got)
	}
}

func TestDiff_NeedsTheUIDOfTheLiveJob(t *testing.T) {
	t.Parallel()
	expected, live := livePod(t, commandInput())
	expected.UID = ""
	live.OwnerReferences[0].UID = ""
	got := job.Diff(expected, live)
	if !slices.Contains(got, "metadata.ownerReferences: cannot be compared: the expected Job was not given the live Job's UID") {
		t.Errorf("%q", got)
	}
}

func TestOptions_AllowWhatOneClusterAdds(t *testing.T) {
	t.Parallel()
	expected, live := livePod(t, commandInput())
	live.Labels["team.example/owner"], live.Annotations["cni.example/address"] = "a", "b"
	platform := "sha256:" + strings.Repeat("4", 64)
	live.Status.ContainerStatuses[0].ImageID = "docker-pullable://registry.example/tools/restart@" + platform
	if got := job.Diff(expected, live); len(got) != 3 {
		t.Errorf("without options: %q", got)
	}
	opts := job.Options{
		Labels: []string{"team.example/"}, Annotations: []string{"cni.example/address"},
		Digests: map[string][]string{"sha256:" + strings.Repeat("1", 64): {platform}},
	}
	if got := opts.Diff(expected, live); got != nil {
		t.Errorf("with options: %q", got)
	}
	live.Labels["team.example.org/x"] = "a"
	if got := opts.Diff(expected, live); len(got) != 1 {
		t.Errorf("another domain: %q", got)
	}
}

func TestDiff_CannotCompareTheDigestOfATag(t *testing.T) {
	t.Parallel()
	in := commandInput()
	in.Effect.Command.Image = "registry.example/tools/restart:v1"
	expected, live := livePod(t, in)
	live.Status.ContainerStatuses[0].ImageID = testToolImage
	if got := job.Diff(expected, live); got != nil {
		t.Errorf("%q", got)
	}
}

// TestDiff_NoticesEveryFieldThatSomebodyCouldSet sets each field of the Pod's
// spec, one after the other, wherever it stands. What is not noticed must be
// on this list, and is there because Kubernetes sets it.
func TestDiff_NoticesEveryFieldThatSomebodyCouldSet(t *testing.T) {
	t.Parallel()
	allowed := regexp.MustCompile(`^spec\.(nodeName|priority|priorityClassName|preemptionPolicy|imagePullSecrets(\[0\]\.name)?` +
		`|tolerations\[.\]\.(operator|value|effect|tolerationSeconds)` +
		`|(initC|c)ontainers\[0\]\.(imagePullPolicy|resizePolicy(\[.\]\.resourceName)?))$`)
	expected, live := livePod(t, commandInput())
	checked := 0
	eachField("spec", reflect.ValueOf(&live.Spec).Elem(), func(path string, field reflect.Value) {
		before := reflect.New(field.Type()).Elem()
		before.Set(field)
		disturb(field)
		got := job.Diff(expected, live)
		field.Set(before)
		if allowed.MatchString(path) == (len(got) > 0) {
			t.Errorf("%s was set: %q", path, got)
		}
		checked++
	})
	if checked < 300 {
		t.Errorf("only %d fields were tried", checked)
	}
	if got := job.Diff(expected, live); got != nil {
		t.Fatalf("the Pod was not put back: %q", got)
	}
}

// eachField calls visit for every field of every structure in v.
func eachField(path string, v reflect.Value, visit func(string, reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		if _, ok := reflect.TypeAssert[resource.Quantity](v); ok {
			return
		}
		for i := range v.NumField() {
			at := path
			if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); name != "" {
				at += "." + name
				visit(at, v.Field(i))
			}
			eachField(at, v.Field(i), visit)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			eachField(path, v.Elem(), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachField(path+"["+string(rune('0'+i))+"]", v.Index(i), visit)
		}
	default:
	}
}

// disturb changes a value to another one that is not empty.
func disturb(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("IfNotPresent")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 7)
	case reflect.Pointer:
		was := v.Elem()
		v.Set(reflect.New(v.Type().Elem()))
		if was.IsValid() && was.Kind() != reflect.Struct {
			v.Elem().Set(was)
			disturb(v.Elem())
		}
	case reflect.Slice:
		grown := reflect.MakeSlice(v.Type(), v.Len()+1, v.Len()+1)
		reflect.Copy(grown, v)
		if r, ok := reflect.TypeAssert[*corev1.ContainerResizePolicy](grown.Index(v.Len()).Addr()); ok {
			r.RestartPolicy = corev1.NotRequired
		}
		v.Set(grown)
	case reflect.Map:
		grown := reflect.MakeMap(v.Type())
		for _, k := range v.MapKeys() {
			grown.SetMapIndex(k, v.MapIndex(k))
		}
		key := reflect.ValueOf("additional").Convert(v.Type().Key())
		grown.SetMapIndex(key, reflect.Zero(v.Type().Elem()))
		v.Set(grown)
	case reflect.Struct:
		if v.NumField() > 0 && v.Field(0).CanSet() {
			disturb(v.Field(0))
		}
	default:
	}
}

func TestDiffJSON_RefusesAFieldOfANewerAPI(t *testing.T) {
	t.Parallel()
	expected, live := livePod(t, commandInput())
	encode := func(change func(pod map[string]any)) []byte {
		raw, err := json.Marshal(live)
		if err != nil {
			t.Fatal(err)
		}
		var tree map[string]any
		if err := json.Unmarshal(raw, &tree); err != nil {
			t.Fatal(err)
		}
		change(tree)
		if raw, err = json.Marshal(tree); err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for name, tc := range map[string]struct {
		change func(map[string]any)
		want   []string
	}{
		"nothing is new":          {func(map[string]any) {}, nil},
		"a newer kubelet reports": {func(p map[string]any) { p["status"].(map[string]any)["newField"] = true }, nil},
		"the spec has a new field": {
			func(p map[string]any) { p["spec"].(map[string]any)["injectedCode"] = "x" },
			[]string{`unknown field "spec.injectedCode"`},
		},
		"a container has a new field": {
			func(p map[string]any) {
				p["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["newSource"] = "x"
			},
			[]string{`unknown field "spec.containers[0].newSource"`},
		},
	} {
		pod, got, err := job.Options{}.DiffJSON(expected, encode(tc.change))
		if err != nil || pod.Name != live.Name {
			t.Fatalf("%s: pod %v, error %v", name, pod, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, _, err := (job.Options{}).DiffJSON(expected, []byte(`{"spec":[]}`)); err == nil {
		t.Error("a document that is no Pod was decoded")
	}
}

func TestDiffJob_TellsOurJobFromOneThatHasItsName(t *testing.T) {
	t.Parallel()
	live := func() (*batchv1.Job, *batchv1.Job) {
		expected := mustBuild(t, commandInput())
		l := expected.DeepCopy()
		l.UID, l.ResourceVersion = jobUID, "7"
		l.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"batch.kubernetes.io/controller-uid": jobUID}}
		for _, key := range []string{"batch.kubernetes.io/controller-uid", "controller-uid"} {
			l.Spec.Template.Labels[key] = jobUID
		}
		l.Labels["argocd.example/instance"] = "x"
		return expected, l
	}
	if got := job.DiffJob(live()); got != nil {
		t.Fatalf("our own Job: %q", got)
	}
	for name, tc := range map[string]struct {
		change func(*batchv1.Job)
		want   []string
	}{
		"no owner":        {func(j *batchv1.Job) { j.OwnerReferences = nil }, []string{"metadata.ownerReferences: differ"}},
		"another owner":   {func(j *batchv1.Job) { j.OwnerReferences[0].UID = "x" }, []string{"metadata.ownerReferences: differ"}},
		"another name":    {func(j *batchv1.Job) { j.Name = "x" }, []string{"metadata.name: differs"}},
		"being deleted":   {func(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{} }, []string{"metadata.deletionTimestamp: is set"}},
		"another hash":    {func(j *batchv1.Job) { j.Annotations["assent.dev/template-hash"] = "x" }, []string{"metadata.annotations[assent.dev/template-hash]: is missing or differs"}},
		"more Pods":       {func(j *batchv1.Job) { j.Spec.Parallelism = new(int32(5)) }, []string{"spec.parallelism: differs"}},
		"a retry":         {func(j *batchv1.Job) { j.Spec.BackoffLimit = new(int32(1)) }, []string{"spec.backoffLimit: differs"}},
		"a TTL":           {func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = new(int32(1)) }, []string{"spec.ttlSecondsAfterFinished: is set"}},
		"another manager": {func(j *batchv1.Job) { j.Spec.ManagedBy = new("x") }, []string{"spec.managedBy: is set"}},
		"another image": {
			func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Image = "x" },
			[]string{"spec.template.spec.containers[0].image: differs"},
		},
		"another label": {
			func(j *batchv1.Job) { j.Spec.Template.Labels["x"] = "y" },
			[]string{"spec.template.metadata.labels[x]: is not expected"},
		},
		"another annotation": {
			func(j *batchv1.Job) { j.Spec.Template.Annotations["x"] = "y" },
			[]string{"spec.template.metadata.annotations[x]: is not expected"},
		},
		"another call": {
			func(j *batchv1.Job) { j.Labels["assent.dev/proposal-uid"] = "x" },
			[]string{"metadata.labels[assent.dev/proposal-uid]: is missing or differs"},
		},
	} {
		expected, l := live()
		tc.change(l)
		if diff := cmp.Diff(tc.want, job.DiffJob(expected, l)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestDiff_AcceptsAPodThatARealClusterRan compares what a cluster made of a
// Job of ours with that Job.
func TestDiff_AcceptsAPodThatARealClusterRan(t *testing.T) {
	t.Parallel()
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var expected batchv1.Job
	if err := json.Unmarshal(read("recorded-job.json"), &expected); err != nil {
		t.Fatal(err)
	}
	// The API server has added its labels to the template of the live Job.
	for _, key := range []string{"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"} {
		delete(expected.Spec.Template.Labels, key)
	}
	hash, err := job.TemplateHash(&batchv1.Job{Spec: withoutAdditions(expected.Spec)})
	if err != nil || hash != expected.Annotations["assent.dev/template-hash"] {
		t.Errorf("the API server changed the spec beyond the selector and labels: hash %s, %v", hash, err)
	}
	pod, got, err := job.Options{}.DiffJSON(&expected, read("recorded-pod.json"))
	if err != nil {
		t.Fatal(err)
	}
	// It was recorded after it had ended, which is the one thing not to like.
	if diff := cmp.Diff([]string{"status.phase: shows that the Pod has ended"}, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	pod.Status.Phase = corev1.PodRunning
	if got := job.Diff(&expected, pod); got != nil {
		t.Errorf("%q", got)
	}
}

func withoutAdditions(spec batchv1.JobSpec) batchv1.JobSpec {
	spec.Selector = nil
	return spec
}
