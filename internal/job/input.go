// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/assent-dev/assent/internal/contract"
)

// Input is everything a Job is built from. The same input gives the same Job,
// so that the expected Job can be built again wherever it is needed.
type Input struct {
	// Namespace the Job runs in.
	Namespace string
	// SealID is the ID of the proposal's seal. The Job's name derives from it.
	SealID   string
	Proposal Proposal
	// Tool is the name of the ToolManifest.
	Tool string

	Effect contract.Effect
	// Execution are the manifest's settings with defaults applied.
	Execution contract.Execution

	// RunnerImage is the image of assent-runner, by digest.
	RunnerImage string
	Endpoint    Endpoint
	// Canaries are addresses ip:port that answer in an open network and that
	// no egress rule allows. Needed where the manifest requires isolation.
	Canaries []string
	// StartTimeout is how long the Pod may take to start and redeem its call.
	StartTimeout time.Duration
	// ImagePullSecrets name Secrets in Namespace.
	ImagePullSecrets []string
	// DNS are the cluster's name servers, for the NetworkPolicy of calls whose
	// manifest allows them; without any, the Pods that most distributions use.
	DNS []networkingv1.NetworkPolicyPeer
}

// Proposal identifies the ToolProposal that the Job serves.
type Proposal struct {
	Namespace string
	Name      string
	UID       types.UID
	// Fingerprint of the call, in hex. The Pod carries it, so that its runner
	// accepts no ticket for another call.
	Fingerprint string
}

// Endpoint is the execution service as the Pod sees it.
type Endpoint struct {
	// URL is https://host:port.
	URL string
	// CA and PublicKeys are PEM.
	CA         string
	PublicKeys string
	// Addresses of the host in URL. Where they are set the Pod finds the host
	// without asking a name server, which it may not be allowed to do.
	Addresses []string
	// Namespace, PodLabels and Port select the Pods behind the service, for
	// the NetworkPolicy. Port is that of the Pods, not of the Service.
	Namespace string
	PodLabels map[string]string
	Port      int32
}

// ExitNotIsolated is the exit code of a runner whose network was open though
// it must not be. It says so before it asks for its call.
const ExitNotIsolated = 76

const (
	// deliveryAllowance is the time for stopping a program and delivering its
	// result, beyond the effect's own time.
	deliveryAllowance = 3 * time.Minute
	// runnerAllowance of ephemeral storage is for the injected runner, so that
	// the manifest's figure is all the tool's.
	runnerAllowance = "64Mi"
)

// EffectDeadline is how long after the grant the effect must have ended: the
// time to start and the effect's own. A ticket's deadline is the grant's time
// plus this, or earlier.
func (in Input) EffectDeadline() time.Duration {
	return in.StartTimeout + in.timeout()
}

// ActiveDeadline is how long after its creation Kubernetes ends the Job: long
// enough that a runner which keeps its own deadline can still report.
func (in Input) ActiveDeadline() time.Duration {
	return in.EffectDeadline() + deliveryAllowance
}

func (in Input) timeout() time.Duration {
	if in.Execution.Timeout == nil {
		return 0
	}
	return time.Duration(*in.Execution.Timeout)
}

var (
	imageByDigest  = regexp.MustCompile(`^[^@\s]+@sha256:[0-9a-f]{64}$`)
	hexFingerprint = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// check refuses inputs from which no useful or no safe Job could be built.
func (in Input) check() error {
	var errs []error
	require := func(ok bool, field, rule string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s %s", field, rule))
		}
	}
	require(in.Namespace != "", "namespace", "must be set")
	require(in.SealID != "", "sealID", "must be set")
	require(in.Tool != "", "tool", "must be set")
	require(in.Proposal.Namespace != "" && in.Proposal.Name != "" && in.Proposal.UID != "", "proposal", "must have namespace, name and UID")
	require(hexFingerprint.MatchString(in.Proposal.Fingerprint), "proposal.fingerprint", "must be 64 lower-case hex digits")
	require(imageByDigest.MatchString(in.RunnerImage), "runnerImage", "must be a reference by digest, NAME@sha256:…")
	require(in.timeout() > 0, "execution.timeout", "must be resolved and positive")
	require(in.StartTimeout >= time.Second, "startTimeout", "must be at least a second")
	require(!in.Execution.RequireIsolation || len(in.Canaries) > 0, "canaries", "are needed because the manifest requires isolation; configure the operator with one")
	for _, c := range in.Canaries {
		_, err := netip.ParseAddrPort(c)
		require(err == nil, "canaries", "must be ip:port")
	}
	errs = append(errs, in.Endpoint.check(), in.checkEffect())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("building a Job: %w", err)
	}
	return nil
}

func (e Endpoint) check() error {
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return errors.New("endpoint.url must be https://host:port")
	}
	if e.CA == "" || e.PublicKeys == "" {
		return errors.New("endpoint.ca and endpoint.publicKeys must be set")
	}
	for _, a := range e.Addresses {
		if _, err := netip.ParseAddr(a); err != nil {
			return errors.New("endpoint.addresses must be IP addresses")
		}
	}
	return nil
}

func (in Input) checkEffect() error {
	if in.Effect.Kind() == "" {
		return errors.New("effect must be exactly one of command, http and mcp")
	}
	if c := in.Effect.Command; c != nil && c.Image == "" {
		return errors.New("effect.command.image must be set")
	}
	if in.Effect.Command == nil && in.Execution.ServiceAccountName != "" {
		return errors.New("execution.serviceAccountName has a meaning for command effects only; remove it from the manifest")
	}
	return nil
}

// secrets are the Secrets that exactly this effect names, each once.
func (in Input) secrets() []contract.ResolvedSecret {
	var out []contract.ResolvedSecret
	add := func(s contract.ResolvedSecret) {
		if !slices.ContainsFunc(out, func(o contract.ResolvedSecret) bool { return o.Name == s.Name }) {
			out = append(out, s)
		}
	}
	switch e := in.Effect; {
	case e.Command != nil:
		for _, v := range e.Command.Env {
			if v.Secret != nil {
				add(*v.Secret)
			}
		}
	case e.HTTP != nil:
		for _, s := range e.HTTP.Secrets {
			add(s)
		}
	case e.MCP != nil:
		for _, s := range e.MCP.Secrets {
			add(s)
		}
	}
	return out
}

// AsIn returns the input with the certificates and the public keys that a live
// Job was made with: they change while an operator runs, and each replica hears
// of it at a time of its own. A Job is not believed on their account. Built from
// this input it is the granted one only if it has the grant's hash.
func (in Input) AsIn(live *batchv1.Job) Input {
	in.Endpoint.CA = cmp.Or(runnerEnv(live, envCA), in.Endpoint.CA)
	in.Endpoint.PublicKeys = cmp.Or(PublicKeysOf(live), in.Endpoint.PublicKeys)
	return in
}

// PublicKeysOf are the keys, in PEM, that the runner of a Job takes tickets from.
func PublicKeysOf(live *batchv1.Job) string { return runnerEnv(live, envPublicKeys) }

func runnerEnv(live *batchv1.Job, name string) string {
	for _, c := range live.Spec.Template.Spec.Containers {
		i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name })
		if c.Name == ContainerName && i >= 0 {
			return c.Env[i].Value
		}
	}
	return ""
}

// quantity parses one of the manifest's sizes.
func quantity(field, text string) (resource.Quantity, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() <= 0 {
		return resource.Quantity{}, fmt.Errorf("building a Job: execution.%s must be a positive Kubernetes quantity", field)
	}
	// The API server rounds like this, and the live Pod is compared with ours.
	q.RoundUp(resource.Milli)
	return q, nil
}
