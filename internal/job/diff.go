// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
)

// Options say what a particular cluster adds to Pods beyond what Kubernetes
// itself does. Each entry is a key, or a domain with a trailing slash that
// stands for all keys in it.
type Options struct {
	Labels      []string
	Annotations []string
	// Digests lists, for the digest (sha256:…) that an image is named by, the
	// digests under which a node may report the same image: those of the
	// images in a multi-platform index.
	Digests map[string][]string
}

// knownAnnotations are set on Pods by Kubernetes and by common network
// plugins. All of them record what was done; none asks for anything.
var knownAnnotations = []string{
	"kubernetes.io/limit-ranger",
	"cni.projectcalico.org/",
	"k8s.v1.cni.cncf.io/network-status",
	"k8s.ovn.org/pod-networks",
	"openshift.io/scc",
}

// knownLabels are set by Kubernetes at the binding of a Pod to a node.
var knownLabels = []string{"topology.kubernetes.io/zone", "topology.kubernetes.io/region"}

// Diff compares a live Pod with the Job that was built for it, whose UID must
// be set to that of the live Job. It returns the path of every difference, nil
// when there is none. Nobody may be given the call while there is one.
//
// Beside the spec it compares the owner, labels and annotations, and what the
// kubelet reports: a container that was restarted or that runs another image
// is a difference although the spec may have been put back since.
func Diff(expected *batchv1.Job, live *corev1.Pod) []string {
	return Options{}.Diff(expected, live)
}

// Diff is the function [Diff] for a cluster that adds more to Pods.
func (o Options) Diff(expected *batchv1.Job, live *corev1.Pod) []string {
	var c comparison
	c.metadata(expected, live, o)
	c.podSpec("spec", &expected.Spec.Template.Spec, &live.Spec)
	c.status(live, o)
	return c.differences
}

// DiffJSON is [Options.Diff] for a Pod as the API server sent it. A field of
// spec or metadata that this version of the API types does not have is a
// difference; decoding would have dropped it without a word.
func (o Options) DiffJSON(expected *batchv1.Job, pod []byte) (*corev1.Pod, []string, error) {
	var live corev1.Pod
	unknown, err := json.UnmarshalStrict(pod, &live)
	if err != nil {
		return nil, nil, fmt.Errorf("decoding the live Pod: %w", err)
	}
	differences := o.Diff(expected, &live)
	for _, u := range unknown {
		// A newer kubelet may report more than this version knows.
		if !strings.Contains(u.Error(), `"status.`) {
			differences = append(differences, u.Error())
		}
	}
	return &live, differences, nil
}

// DiffJob compares a live Job with the one that was built, for a Job that
// already exists under the name. The owner is part of it: a Job that only has
// the name is somebody else's.
func DiffJob(expected, live *batchv1.Job) []string {
	var c comparison
	if live.Namespace != expected.Namespace || live.Name != expected.Name {
		c.differ("metadata.name", "differs")
	}
	if live.DeletionTimestamp != nil {
		c.differ("metadata.deletionTimestamp", "is set")
	}
	if !slices.EqualFunc(expected.OwnerReferences, live.OwnerReferences, sameOwner) {
		c.differ("metadata.ownerReferences", "differ")
	}
	c.labelsAndAnnotations("metadata.labels", expected.Labels, live.Labels, func(string, string) bool { return true })
	c.labelsAndAnnotations("metadata.annotations", expected.Annotations, live.Annotations, func(string, string) bool { return true })
	c.jobSpec(&expected.Spec, live)
	return c.differences
}

func sameOwner(a, b metav1.OwnerReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID &&
		a.Controller != nil && b.Controller != nil && *a.Controller == *b.Controller
}

func (c *comparison) metadata(expected *batchv1.Job, live *corev1.Pod, opts Options) {
	if live.Namespace != expected.Namespace {
		c.differ("metadata.namespace", "differs")
	}
	if live.DeletionTimestamp != nil {
		c.differ("metadata.deletionTimestamp", "is set")
	}
	// A Pod's generation counts changes of its spec; binding it to a node is
	// none. A change that was taken back is a change.
	if live.Generation > 1 {
		c.differ("metadata.generation", "shows that the spec was changed after the Pod was created")
	}
	c.owner(expected, live)
	template := expected.Spec.Template.ObjectMeta
	c.labelsAndAnnotations("metadata.labels", template.Labels, live.Labels, func(key, value string) bool {
		return jobLabel(expected, key, value) || listed(knownLabels, key) || listed(opts.Labels, key)
	})
	c.labelsAndAnnotations("metadata.annotations", template.Annotations, live.Annotations, func(key, _ string) bool {
		return listed(knownAnnotations, key) || listed(opts.Annotations, key)
	})
}

func (c *comparison) owner(expected *batchv1.Job, live *corev1.Pod) {
	const path = "metadata.ownerReferences"
	if expected.UID == "" {
		c.differ(path, "cannot be compared: the expected Job was not given the live Job's UID")
		return
	}
	owner := metav1.GetControllerOf(live)
	if owner == nil || owner.APIVersion != "batch/v1" || owner.Kind != "Job" || owner.Name != expected.Name ||
		owner.UID != expected.UID || len(live.OwnerReferences) != 1 {
		c.differ(path, "must name the Job and nothing else")
	}
}

// jobLabel is one of the labels by which the Job controller finds its Pods.
func jobLabel(job *batchv1.Job, key, value string) bool {
	switch key {
	case batchv1.ControllerUidLabel, "controller-uid":
		return value == string(job.UID)
	case batchv1.JobNameLabel, "job-name":
		return value == job.Name
	default:
		return false
	}
}

// listed reports whether a list has the key or, with a trailing slash, its domain.
func listed(list []string, key string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		if strings.HasSuffix(entry, "/") {
			return strings.HasPrefix(key, entry)
		}
		return key == entry
	})
}

// status checks what the kubelet reports. It reports later than a runner can
// ask for its call, so that a container without a report is no difference:
// until then the generation shows that nothing has been changed.
func (c *comparison) status(live *corev1.Pod, opts Options) {
	switch live.Status.Phase {
	case "", corev1.PodPending, corev1.PodRunning:
	default:
		c.differ("status.phase", "shows that the Pod has ended")
	}
	if len(live.Status.EphemeralContainerStatuses) > 0 {
		c.differ("status.ephemeralContainerStatuses", "is set")
	}
	c.containers("status.initContainerStatuses", live.Spec.InitContainers, live.Status.InitContainerStatuses, opts)
	c.containers("status.containerStatuses", live.Spec.Containers, live.Status.ContainerStatuses, opts)
}

func (c *comparison) containers(path string, specs []corev1.Container, statuses []corev1.ContainerStatus, opts Options) {
	for i, s := range statuses {
		at := fmt.Sprintf("%s[%d]", path, i)
		spec := slices.IndexFunc(specs, func(k corev1.Container) bool { return k.Name == s.Name })
		if spec < 0 {
			c.differ(at+".name", "is not a container of the Pod")
			continue
		}
		if s.RestartCount != 0 {
			c.differ(at+".restartCount", "shows that the container was started again")
		}
		if s.ImageID != "" && !sameImage(specs[spec].Image, s.ImageID, opts) {
			c.differ(at+".imageID", "is not the image that was asked for")
		}
	}
}

// sameImage compares digests. An ID without the digest of an image, such as
// that of an image's configuration, cannot be compared and does not count. An
// image that was asked for by tag, which the operator must have been told to
// allow, can be any image.
func sameImage(asked, reported string, opts Options) bool {
	_, want, byDigest := strings.Cut(asked, "@")
	if !byDigest {
		return true
	}
	got := reported
	if i := strings.LastIndex(reported, "@"); i >= 0 {
		got = reported[i+1:]
	}
	return got == want || slices.Contains(opts.Digests[want], got)
}

// jobSpec compares a Job's spec, in which the API server has added its labels
// to the template.
func (c *comparison) jobSpec(want *batchv1.JobSpec, live *batchv1.Job) {
	c.runtimeClass = want.Template.Spec.RuntimeClassName != nil
	c.structureOf("spec", want, &live.Spec)
	c.labelsAndAnnotations("spec.template.metadata.labels", want.Template.Labels, live.Spec.Template.Labels, func(key, value string) bool {
		return jobLabel(live, key, value)
	})
	c.labelsAndAnnotations("spec.template.metadata.annotations", want.Template.Annotations, live.Spec.Template.Annotations, func(string, string) bool { return false })
}
