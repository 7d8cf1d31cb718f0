// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/policy"
)

// options are the operator's flags. Defaults suit the chart.
type options struct {
	namespace     string
	runnerImage   string
	executionURL  string
	signingSecret string
	publicKeys    string
	certSecret    string
	certDir       string
	auditDir      string
	auditOrigin   string
	webhookConfig string

	leaderElect    bool
	metricsAddress string
	healthAddress  string
	webhookPort    int
	executionPort  int

	allowImageTags     bool
	maxReceiptLifetime time.Duration
	maxPending         int
	maxPolicyObjects   int
	startDeadline      time.Duration
	retention          time.Duration
	auditTimeout       time.Duration
	auditAnchors       anchorList
	epoch              int64
	otlpEndpoint       string

	admissionPolicies bool

	requestRate  float64
	requestBurst int

	identityRegexp  string
	identityMapFile string
}

func parseOptions(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("assent", flag.ContinueOnError)
	f.StringVar(&o.namespace, "namespace", os.Getenv("POD_NAMESPACE"), "Namespace the operator runs in. Its keys and certificates are kept there.")
	f.StringVar(&o.runnerImage, "runner-image", "", "Image of the runner, by digest. Part of every contract.")
	f.StringVar(&o.executionURL, "execution-url", "", "URL at which Pods of calls reach the execution endpoint.")
	f.StringVar(&o.signingSecret, "signing-secret", "assent-signing", "Secret with the signing key. Created on the first start.")
	f.StringVar(&o.publicKeys, "public-keys-configmap", "assent-public-keys", "ConfigMap that the public keys are published in.")
	f.StringVar(&o.certSecret, "webhook-cert-secret", "assent-webhook-cert", "Secret with the serving certificate. Filled and rotated by the operator.")
	f.StringVar(&o.certDir, "cert-dir", "/tmp/assent-certs", "Directory that the serving certificate is written to.")
	f.StringVar(&o.auditDir, "audit-dir", "/var/lib/assent/audit", "Directory of the audit log.")
	f.StringVar(&o.auditOrigin, "audit-origin", "assent.dev/audit", "Name of the audit log in its checkpoints. It must not change.")
	f.StringVar(&o.webhookConfig, "webhook-configuration", "assent", "Name of the webhook configurations whose CA the operator fills in.")
	f.BoolVar(&o.leaderElect, "leader-elect", true, "Let one replica at a time run the controllers. For efficiency only.")
	f.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "Address of the metrics endpoint.")
	f.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081", "Address of the health endpoint.")
	f.IntVar(&o.webhookPort, "webhook-port", 9443, "Port of the admission webhooks.")
	f.IntVar(&o.executionPort, "execution-port", 8443, "Port of the execution endpoint.")
	f.BoolVar(&o.allowImageTags, "allow-image-tags", false, "Accept command images by tag. Another program can then run under the same contract.")
	f.DurationVar(&o.maxReceiptLifetime, "max-receipt-lifetime", 15*time.Minute, "Upper bound of the lifetime of approval receipts.")
	f.IntVar(&o.maxPending, "max-pending", 100, "How many proposals of one requester may be open at once.")
	f.IntVar(&o.maxPolicyObjects, "max-policy-objects", policy.DefaultObjects, "How many ToolPolicies one namespace may have, and how many ClusterToolPolicies the cluster. With more, no call is permitted there.")
	f.DurationVar(&o.startDeadline, "start-deadline", 10*time.Minute, "How long a granted call may take until its runner fetches it.")
	f.DurationVar(&o.retention, "retention", 24*time.Hour, "How long ended calls are kept where their manifest does not say.")
	f.DurationVar(&o.auditTimeout, "audit-timeout", 10*time.Second, "How long an audit record may take to become durable.")
	f.BoolVar(&o.admissionPolicies, "admission-policies", true, "Whether the ValidatingAdmissionPolicies of the chart are installed. If so, nothing is granted while they differ.")
	f.Float64Var(&o.requestRate, "request-rate", 10, "How many proposals per second one requester may create, dry runs included, at each replica.")
	f.IntVar(&o.requestBurst, "request-burst", 100, "How many proposals one requester may create at once.")
	f.StringVar(&o.identityRegexp, "identity-regexp", "", "RE2 expression with one group. Where it matches a whole username, the group is the person behind it.")
	f.StringVar(&o.identityMapFile, "identity-map-file", "", "YAML or JSON file that maps usernames to the people behind them. It goes before --identity-regexp.")
	f.Var(&o.auditAnchors, "audit-anchor", "File, or URL that answers GET and PUT, in which the latest checkpoint of the audit log is remembered. May be repeated.")
	f.Int64Var(&o.epoch, "epoch", 0, "Restore epoch. Raise it after the cluster or the audit log was restored from a backup: it voids every earlier call and receipt.")
	f.StringVar(&o.otlpEndpoint, "otlp-endpoint", "", "URL of an OpenTelemetry collector that takes traces by OTLP over HTTP. Without it, and without OTEL_EXPORTER_OTLP_ENDPOINT, there are none.")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	return o, o.check()
}

func (o *options) check() error {
	for flagName, value := range map[string]string{
		"namespace": o.namespace, "runner-image": o.runnerImage, "execution-url": o.executionURL, "audit-dir": o.auditDir,
	} {
		if value == "" {
			return fmt.Errorf("--%s must be set", flagName)
		}
	}
	for flagName, port := range map[string]int{"webhook-port": o.webhookPort, "execution-port": o.executionPort} {
		if port < 1 || port > math.MaxUint16 {
			return fmt.Errorf("--%s must be a port, from 1 to %d", flagName, math.MaxUint16)
		}
	}
	if o.maxPolicyObjects < 1 {
		return errors.New("--max-policy-objects must be at least 1")
	}
	return nil
}

// anchorList is a flag that may be given several times.
type anchorList []string

// String implements [flag.Value].
func (l *anchorList) String() string { return strings.Join(*l, ",") }

// Set implements [flag.Value].
func (l *anchorList) Set(v string) error {
	if v == "" {
		return errors.New("must name a file or a URL")
	}
	*l = append(*l, v)
	return nil
}
