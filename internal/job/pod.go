// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// What the runner trusts, in its environment.
const (
	envCA         = "ASSENT_CA"
	envPublicKeys = "ASSENT_PUBLIC_KEYS"
)

const (
	// ContainerName is the container that the effect happens in.
	ContainerName = "call"
	// InstallerName is the init container that brings the runner.
	InstallerName = "runner"

	// runnerInImage is where the runner's own image holds it.
	runnerInImage = "/assent-runner"

	workVolume, workDir   = "work", "/work"
	tmpVolume, tmpDir     = "tmp", "/tmp"
	binVolume, binDir     = "assent-bin", "/assent/bin"
	tokenVolume, tokenDir = "assent-token", "/var/run/assent"
	apiVolume, apiDir     = "kube-api-access", "/var/run/secrets/kubernetes.io/serviceaccount"

	tokenFile = "token"
	// tokenSeconds is the shortest life that Kubernetes gives a token. The
	// kubelet renews it.
	tokenSeconds = 600

	// nobody is the user and group of every container. It owns nothing in any
	// image, and Pod Security asks for a user that is not root.
	nobody = 65532

	// stopSeconds is for stopping the program and delivering its result.
	stopSeconds = 30

	defaultServiceAccount = "default"
)

func podSpec(in Input) (*corev1.PodSpec, error) {
	sizes, err := sizesOf(in)
	if err != nil {
		return nil, err
	}
	spec := &corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: new(int64(stopSeconds)),
		ActiveDeadlineSeconds:         new(int64(in.ActiveDeadline().Seconds())),
		DNSPolicy:                     corev1.DNSClusterFirst,
		SchedulerName:                 corev1.DefaultSchedulerName,
		ServiceAccountName:            defaultServiceAccount,
		DeprecatedServiceAccount:      defaultServiceAccount,
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsUser:      new(int64(nobody)),
			RunAsGroup:     new(int64(nobody)),
			RunAsNonRoot:   new(true),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		ImagePullSecrets: pullSecrets(in.ImagePullSecrets),
		HostAliases:      hostAliases(in.Endpoint),
		Volumes:          []corev1.Volume{tokenProjection()},
	}
	if name := in.Execution.RuntimeClassName; name != "" {
		spec.RuntimeClassName = &name
	}
	call := container(ContainerName, in.RunnerImage, sizes)
	call.Command = []string{runnerInImage, "run"}
	call.Env = environment(in)
	call.VolumeMounts = []corev1.VolumeMount{{Name: tokenVolume, MountPath: tokenDir, ReadOnly: true}}
	if in.Effect.Command != nil {
		forCommand(in, spec, &call, sizes)
	}
	spec.Containers = []corev1.Container{call}
	return spec, nil
}

// forCommand makes the tool's image the Pod's, with the runner brought in by
// an init container, and gives the tool directories that it can write to.
func forCommand(in Input, spec *corev1.PodSpec, call *corev1.Container, sizes corev1.ResourceList) {
	installer := container(InstallerName, in.RunnerImage, sizes)
	installer.Command = []string{runnerInImage, "install", binDir}
	installer.VolumeMounts = []corev1.VolumeMount{{Name: binVolume, MountPath: binDir}}
	spec.InitContainers = []corev1.Container{installer}

	storage := sizes[corev1.ResourceEphemeralStorage]
	spec.Volumes = append(spec.Volumes,
		emptyDir(binVolume, resource.MustParse(runnerAllowance)),
		emptyDir(workVolume, storage),
		emptyDir(tmpVolume, storage),
	)
	call.Image = in.Effect.Command.Image
	call.Command = []string{binDir + runnerInImage, "run"}
	call.VolumeMounts = append(call.VolumeMounts,
		corev1.VolumeMount{Name: binVolume, MountPath: binDir, ReadOnly: true},
		corev1.VolumeMount{Name: workVolume, MountPath: workDir},
		corev1.VolumeMount{Name: tmpVolume, MountPath: tmpDir},
	)
	if name := in.Execution.ServiceAccountName; name != "" {
		spec.ServiceAccountName, spec.DeprecatedServiceAccount = name, name
		spec.Volumes = append(spec.Volumes, apiAccess())
		call.VolumeMounts = append(call.VolumeMounts, corev1.VolumeMount{Name: apiVolume, MountPath: apiDir, ReadOnly: true})
	}
}

func container(name, image string, sizes corev1.ResourceList) corev1.Container {
	return corev1.Container{
		Name:                     name,
		Image:                    image,
		ImagePullPolicy:          corev1.PullIfNotPresent,
		WorkingDir:               "/",
		TerminationMessagePath:   corev1.TerminationMessagePathDefault,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		// Requests equal limits, so that a call neither starves others nor is
		// the first to be evicted.
		Resources: corev1.ResourceRequirements{Limits: sizes.DeepCopy(), Requests: sizes.DeepCopy()},
		SecurityContext: &corev1.SecurityContext{
			RunAsUser:                new(int64(nobody)),
			RunAsGroup:               new(int64(nobody)),
			RunAsNonRoot:             new(true),
			Privileged:               new(false),
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}

func sizesOf(in Input) (corev1.ResourceList, error) {
	cpu, err := quantity("cpu", in.Execution.CPU)
	if err != nil {
		return nil, err
	}
	memory, err := quantity("memory", in.Execution.Memory)
	if err != nil {
		return nil, err
	}
	storage, err := quantity("ephemeralStorage", in.Execution.EphemeralStorage)
	if err != nil {
		return nil, err
	}
	if in.Effect.Command != nil {
		storage.Add(resource.MustParse(runnerAllowance))
	}
	return corev1.ResourceList{
		corev1.ResourceCPU:              cpu,
		corev1.ResourceMemory:           memory,
		corev1.ResourceEphemeralStorage: storage,
	}, nil
}

// environment is what assent-runner is configured with. Nothing in it comes
// from an agent, and secrets are references.
func environment(in Input) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "ASSENT_ENDPOINT", Value: in.Endpoint.URL},
		{Name: envCA, Value: in.Endpoint.CA},
		{Name: envPublicKeys, Value: in.Endpoint.PublicKeys},
		{Name: "ASSENT_PROPOSAL", Value: in.Proposal.Namespace + "/" + in.Proposal.Name},
		{Name: "ASSENT_PROPOSAL_UID", Value: string(in.Proposal.UID)},
		{Name: "ASSENT_FINGERPRINT", Value: in.Proposal.Fingerprint},
		{Name: "ASSENT_POD_UID", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.uid"},
		}},
		{Name: "ASSENT_TOKEN_FILE", Value: tokenDir + "/" + tokenFile},
		{Name: "ASSENT_START_TIMEOUT_SECONDS", Value: strconv.FormatInt(int64(in.StartTimeout.Seconds()), 10)},
	}
	if in.Execution.RequireIsolation {
		env = append(env, corev1.EnvVar{Name: "ASSENT_CANARY", Value: strings.Join(in.Canaries, ",")})
	}
	for _, s := range in.secrets() {
		env = append(env, corev1.EnvVar{Name: "ASSENT_SECRET_" + s.Name, ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: s.SecretName},
				Key:                  s.Key,
				Optional:             new(false),
			},
		}})
	}
	return env
}

func tokenProjection() corev1.Volume {
	return corev1.Volume{Name: tokenVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: new(corev1.ProjectedVolumeSourceDefaultMode),
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Audience: Audience, ExpirationSeconds: new(int64(tokenSeconds)), Path: tokenFile,
		}}},
	}}}
}

// apiAccess is the identity of a tool that has one, in the place and form in
// which Kubernetes clients look for it.
func apiAccess() corev1.Volume {
	return corev1.Volume{Name: apiVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: new(corev1.ProjectedVolumeSourceDefaultMode),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(tokenSeconds)), Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		},
	}}}
}

func emptyDir(name string, size resource.Quantity) corev1.Volume {
	limit := size.DeepCopy()
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}}
}

func hostAliases(e Endpoint) []corev1.HostAlias {
	u, err := url.Parse(e.URL)
	if err != nil {
		return nil
	}
	var out []corev1.HostAlias
	for _, a := range e.Addresses {
		out = append(out, corev1.HostAlias{IP: a, Hostnames: []string{u.Hostname()}})
	}
	return out
}
