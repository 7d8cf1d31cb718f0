// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package job

// rule says how one field of a live object may relate to the built one.
type rule int

const (
	// same: the live value must equal the built one. Structures are compared
	// by the rules of their own fields.
	same rule = iota + 1
	// absent: Build never sets the field and nothing may set it.
	absent
	// assigned: Kubernetes sets the field and no effect depends on it.
	assigned

	// pullPolicyRule: admission may turn IfNotPresent into Always. The image
	// is named by digest, so both start the same one.
	pullPolicyRule
	// pullSecretsRule: admission adds those of the ServiceAccount. They say
	// how an image is fetched, not which.
	pullSecretsRule
	// tolerationsRule: admission adds tolerations for conditions of nodes, and
	// those of the runtime class.
	tolerationsRule
	// runtimeClassRule: admission sets the field from the runtime class, so
	// it may be set only where one was asked for.
	runtimeClassRule
	// resizePolicyRule: defaulting adds the policy not to restart on resize.
	resizePolicyRule
)

// rules holds a rule for every field of every structure that a Pod of ours
// contains. A field without a rule, because a new version of Kubernetes
// brought it, must be empty; a test fails until somebody has thought about it.
//
// Structures that no Pod of ours contains need no table: the field that would
// lead to them is absent.
var rules = map[string]map[string]rule{
	"PodSpec": {
		"Volumes": same, "InitContainers": same, "Containers": same, "EphemeralContainers": absent,
		"RestartPolicy": same, "TerminationGracePeriodSeconds": same, "ActiveDeadlineSeconds": same,
		"DNSPolicy": same, "DNSConfig": absent,
		"ServiceAccountName": same, "DeprecatedServiceAccount": same, "AutomountServiceAccountToken": same,
		"HostNetwork": absent, "HostPID": absent, "HostIPC": absent, "HostUsers": absent,
		"ShareProcessNamespace": absent, "SecurityContext": same,
		"ImagePullSecrets": pullSecretsRule,
		"Hostname":         absent, "Subdomain": absent, "SetHostnameAsFQDN": absent, "HostnameOverride": absent,
		"HostAliases": same, "EnableServiceLinks": same,
		// Placement: which node runs the Pod changes nothing about the Pod.
		"NodeName": assigned, "Priority": assigned, "PriorityClassName": assigned, "PreemptionPolicy": assigned,
		"SchedulerName": same, "Affinity": absent, "TopologySpreadConstraints": absent,
		"SchedulingGates": absent, "SchedulingGroup": absent,
		"NodeSelector": runtimeClassRule, "Tolerations": tolerationsRule, "Overhead": runtimeClassRule,
		"RuntimeClassName": same,
		"ReadinessGates":   absent, "OS": absent, "ResourceClaims": absent, "Resources": absent,
		"EvictionResponders": absent,
	},
	"Container": {
		"Name": same, "Image": same, "Command": same, "Args": absent, "WorkingDir": same, "Ports": absent,
		"EnvFrom": absent, "Env": same, "Resources": same, "ResizePolicy": resizePolicyRule,
		"RestartPolicy": absent, "RestartPolicyRules": absent,
		"VolumeMounts": same, "VolumeDevices": absent,
		"LivenessProbe": absent, "ReadinessProbe": absent, "StartupProbe": absent, "Lifecycle": absent,
		"TerminationMessagePath": same, "TerminationMessagePolicy": same,
		"ImagePullPolicy": pullPolicyRule, "SecurityContext": same,
		"Stdin": absent, "StdinOnce": absent, "TTY": absent,
	},
	"ResourceRequirements": {"Limits": same, "Requests": same, "Claims": absent},
	"EnvVar":               {"Name": same, "Value": same, "ValueFrom": same},
	"EnvVarSource": {
		"FieldRef": same, "SecretKeyRef": same,
		"ResourceFieldRef": absent, "ConfigMapKeyRef": absent, "FileKeyRef": absent,
	},
	"ObjectFieldSelector":  {"APIVersion": same, "FieldPath": same},
	"SecretKeySelector":    {"LocalObjectReference": same, "Key": same, "Optional": same},
	"LocalObjectReference": {"Name": same},
	"VolumeMount": {
		"Name": same, "ReadOnly": same, "MountPath": same,
		"RecursiveReadOnly": absent, "SubPath": absent, "SubPathExpr": absent, "MountPropagation": absent,
		"BindMountOptions": absent,
	},
	"SecurityContext": {
		"Capabilities": same, "Privileged": same, "RunAsUser": same, "RunAsGroup": same, "RunAsNonRoot": same,
		"ReadOnlyRootFilesystem": same, "AllowPrivilegeEscalation": same, "SeccompProfile": same,
		"SELinuxOptions": absent, "WindowsOptions": absent, "ProcMount": absent, "AppArmorProfile": absent,
	},
	"Capabilities":   {"Add": absent, "Drop": same},
	"SeccompProfile": {"Type": same, "LocalhostProfile": absent},
	"PodSecurityContext": {
		"RunAsUser": same, "RunAsGroup": same, "RunAsNonRoot": same, "SeccompProfile": same,
		"SELinuxOptions": absent, "WindowsOptions": absent, "SupplementalGroups": absent,
		"SupplementalGroupsPolicy": absent, "FSGroup": absent, "FSGroupChangePolicy": absent, "Sysctls": absent,
		"AppArmorProfile": absent, "SELinuxChangePolicy": absent,
	},
	"HostAlias": {"IP": same, "Hostnames": same},
	"Volume":    {"Name": same, "VolumeSource": same},
	"VolumeSource": {
		"EmptyDir": same, "Projected": same,
		"HostPath": absent, "GCEPersistentDisk": absent, "AWSElasticBlockStore": absent, "GitRepo": absent,
		"Secret": absent, "NFS": absent, "ISCSI": absent, "Glusterfs": absent, "PersistentVolumeClaim": absent,
		"RBD": absent, "FlexVolume": absent, "Cinder": absent, "CephFS": absent, "Flocker": absent,
		"DownwardAPI": absent, "FC": absent, "AzureFile": absent, "ConfigMap": absent, "VsphereVolume": absent,
		"Quobyte": absent, "AzureDisk": absent, "PhotonPersistentDisk": absent, "PortworxVolume": absent,
		"ScaleIO": absent, "StorageOS": absent, "CSI": absent, "Ephemeral": absent, "Image": absent,
	},
	"EmptyDirVolumeSource":  {"Medium": absent, "SizeLimit": same, "Mode": absent},
	"ProjectedVolumeSource": {"Sources": same, "DefaultMode": same, "DefaultUser": absent},
	"VolumeProjection": {
		"ServiceAccountToken": same, "ConfigMap": same, "DownwardAPI": same,
		"Secret": absent, "ClusterTrustBundle": absent, "PodCertificate": absent,
	},
	"ServiceAccountTokenProjection": {"Audience": same, "ExpirationSeconds": same, "Path": same, "User": absent},
	"ConfigMapProjection":           {"LocalObjectReference": same, "Items": same, "Optional": absent},
	"KeyToPath":                     {"Key": same, "Path": same, "Mode": absent, "User": absent},
	"DownwardAPIProjection":         {"Items": same},
	"DownwardAPIVolumeFile": {
		"Path": same, "FieldRef": same, "ResourceFieldRef": absent, "Mode": absent, "User": absent,
	},
	"JobSpec": {
		"Parallelism": same, "Completions": same, "ActiveDeadlineSeconds": same, "BackoffLimit": same,
		"ManualSelector": same, "CompletionMode": same, "Suspend": same, "PodReplacementPolicy": same,
		"PodFailurePolicy": absent, "SuccessPolicy": absent, "BackoffLimitPerIndex": absent,
		"MaxFailedIndexes": absent, "TTLSecondsAfterFinished": absent, "ManagedBy": absent, "Scheduling": absent,
		// The API server sets it to the Job's own UID where manualSelector is false.
		"Selector": assigned,
		"Template": same,
	},
	"PodTemplateSpec": {
		// Compared apart, because controllers and admission add labels.
		"ObjectMeta": assigned,
		"Spec":       same,
	},
}
