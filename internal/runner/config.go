// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/attest"
)

// Environment variables that the Job's template sets. None of them holds any
// part of the call's arguments.
const (
	// EnvEndpoint is the https URL of the execution service, without a path.
	EnvEndpoint = "ASSENT_ENDPOINT"
	// EnvCA is the certificate authority of the execution service: PEM, or
	// the path of a file with it.
	EnvCA = "ASSENT_CA"
	// EnvPublicKeys are the keys that tickets are verified with: PEM, or the
	// path of a file with it.
	EnvPublicKeys = "ASSENT_PUBLIC_KEYS"
	// EnvProposal is namespace/name of the ToolProposal.
	EnvProposal = "ASSENT_PROPOSAL"
	// EnvProposalUID is its UID.
	EnvProposalUID = "ASSENT_PROPOSAL_UID"
	// EnvFingerprint is the fingerprint of the decided call. When it is set,
	// a ticket for any other call is refused even if it is signed.
	EnvFingerprint = "ASSENT_FINGERPRINT"
	// EnvPodUID is the UID of the runner's own Pod.
	EnvPodUID = "ASSENT_POD_UID"
	// EnvTokenFile is the path of the token for the execution service.
	EnvTokenFile = "ASSENT_TOKEN_FILE"
	// EnvStartTimeout is for how many seconds redeeming is tried.
	EnvStartTimeout = "ASSENT_START_TIMEOUT_SECONDS"
	// EnvCanary lists addresses ip:port, separated by commas, that must not
	// be reachable. The call is asked for only when none is.
	EnvCanary = "ASSENT_CANARY"
)

// Config is what a runner needs to know to ask for its call.
type Config struct {
	Endpoint   *url.URL
	Roots      *x509.CertPool
	Tickets    *attest.Keyring
	Proposal   attest.ObjectRef
	PodUID     string
	TokenFile  string
	Canaries   []netip.AddrPort
	StartLimit time.Duration
	// Fingerprint is empty where the Pod does not carry one.
	Fingerprint string
}

// LoadConfig reads the configuration from an environment. Errors name the
// variable and what is wrong with it.
func LoadConfig(getenv func(string) string, readFile func(string) ([]byte, error)) (Config, error) {
	l := loader{getenv: getenv, readFile: readFile}
	c := Config{
		Proposal:    l.proposal(),
		PodUID:      l.required(EnvPodUID),
		TokenFile:   l.required(EnvTokenFile),
		Fingerprint: getenv(EnvFingerprint),
		Endpoint:    l.endpoint(),
		Roots:       l.roots(),
		Tickets:     l.tickets(),
		StartLimit:  l.seconds(EnvStartTimeout, DefaultStartTimeout),
		Canaries:    l.addresses(EnvCanary),
	}
	if err := errors.Join(l.errs...); err != nil {
		return Config{}, fmt.Errorf("reading the runner's configuration: %w", err)
	}
	return c, nil
}

type loader struct {
	getenv   func(string) string
	readFile func(string) ([]byte, error)
	errs     []error
}

func (l *loader) fail(variable, rule string) {
	l.errs = append(l.errs, fmt.Errorf("%s %s", variable, rule))
}

func (l *loader) required(variable string) string {
	v := l.getenv(variable)
	if v == "" {
		l.fail(variable, "must be set")
	}
	return v
}

// pem is the variable's text where it is PEM, else the file that it names.
func (l *loader) pem(variable string) []byte {
	v := l.required(variable)
	if v == "" || strings.HasPrefix(v, "-----BEGIN ") {
		return []byte(v)
	}
	data, err := l.readFile(v)
	if err != nil {
		l.fail(variable, "names a file that cannot be read")
	}
	return data
}

func (l *loader) proposal() attest.ObjectRef {
	namespace, name, ok := strings.Cut(l.required(EnvProposal), "/")
	if !ok || namespace == "" || name == "" {
		l.fail(EnvProposal, "must be namespace/name")
	}
	return attest.ObjectRef{Namespace: namespace, Name: name, UID: l.required(EnvProposalUID)}
}

func (l *loader) endpoint() *url.URL {
	u, err := url.Parse(l.required(EnvEndpoint))
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		l.fail(EnvEndpoint, "must be https://host:port without a path")
		return nil
	}
	return u
}

func (l *loader) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(l.pem(EnvCA)) {
		l.fail(EnvCA, "must hold at least one PEM certificate")
	}
	return pool
}

func (l *loader) tickets() *attest.Keyring {
	keys, err := attest.ParsePublicKeysPEM(l.pem(EnvPublicKeys))
	if err != nil {
		l.fail(EnvPublicKeys, "must hold Ed25519 public keys as PEM")
		return nil
	}
	ring, err := attest.NewVerifier(keys...)
	if err != nil {
		l.fail(EnvPublicKeys, "does not make a usable set of keys")
	}
	return ring
}

func (l *loader) seconds(variable string, fallback time.Duration) time.Duration {
	v := l.getenv(variable)
	if v == "" {
		return fallback
	}
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil || n <= 0 {
		l.fail(variable, "must be a positive number of seconds")
	}
	return time.Duration(n) * time.Second
}

func (l *loader) addresses(variable string) []netip.AddrPort {
	v := l.getenv(variable)
	if v == "" {
		return nil
	}
	var out []netip.AddrPort
	for part := range strings.SplitSeq(v, ",") {
		a, err := netip.ParseAddrPort(part)
		if err != nil {
			l.fail(variable, "must be a list of ip:port, separated by commas")
			return nil
		}
		out = append(out, a)
	}
	return out
}
