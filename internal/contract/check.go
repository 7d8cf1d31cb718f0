// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"time"
)

// Argument encodings.
const (
	// EncodingTyped writes numbers and booleans as such.
	EncodingTyped = "Typed"
	// EncodingString writes every value as a JSON string.
	EncodingString = "String"
)

// Risk tiers and output formats.
var (
	riskTiers     = []string{"low", "medium", "high", "critical"}
	outputFormats = []string{FormatText, FormatJSON, FormatJSONL, FormatCSV, FormatXML}
)

// Forms of names, as the CRD has them. They are checked again because a
// manifest also comes from files, and because an object may be older than its
// CRD.
var (
	toolNameForm      = regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9_.-]{0,252}\z`)
	cedarTypeForm     = regexp.MustCompile(`\A[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z_][A-Za-z0-9_]*)*\z`)
	cedarIDForm       = regexp.MustCompile(`\A[A-Za-z_][A-Za-z0-9_]{0,62}\z`)
	dnsSubdomainForm  = regexp.MustCompile(`\A[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*\z`)
	secretKeyForm     = regexp.MustCompile(`\A[A-Za-z0-9._-]{1,253}\z`)
	quantityForm      = regexp.MustCompile(`\A(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?\z`)
	positiveQuantity  = regexp.MustCompile(`\A[0-9.]*[1-9]`)
	labelKeyForm      = regexp.MustCompile(`\A(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?\z`)
	labelValueForm    = regexp.MustCompile(`\A(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?\z`)
	namespaceNameForm = regexp.MustCompile(`\A[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\z`)
)

// maxNameBytes is the longest name of a Kubernetes object.
const maxNameBytes = 253

func isObjectName(name string) bool {
	return len(name) <= maxNameBytes && dnsSubdomainForm.MatchString(name)
}

// checkManifest checks what is neither an argument nor an effect.
func (r *resolver) checkManifest(in Input, m Manifest) {
	require := func(ok bool, field, message string) {
		if !ok {
			r.add(ReasonInvalidManifest, field, "%s", message)
		}
	}
	require(isObjectName(in.Name), "metadata.name", "must be a DNS subdomain")
	require(namespaceNameForm.MatchString(in.Namespace), "metadata.namespace", "must be a DNS label")
	require(m.Version != "" && len(m.Version) <= 64, "spec.version", "must have between 1 and 64 bytes")
	require(m.ToolName == "" || toolNameForm.MatchString(m.ToolName), "spec.toolName", "must begin with a letter or digit and consist of letters, digits, _, . and -")
	require(slices.Contains(riskTiers, m.RiskTier), "spec.riskTier", "must be low, medium, high or critical")
	require(m.ArgumentEncoding == EncodingTyped || m.ArgumentEncoding == EncodingString, "spec.argumentEncoding", "must be Typed or String")
	require(m.ScopeRef == nil || isObjectName(m.ScopeRef.Name), "spec.scopeRef.name", "must be the name of a ToolScope")
	if c := m.Cedar; c != nil {
		require(cedarTypeForm.MatchString(c.Resource) && len(c.Resource) <= maxNameBytes, "spec.cedar.resource", "must be an entity type such as Tool::Fetch")
		require(cedarIDForm.MatchString(c.Action), "spec.cedar.action", "must be a name such as execute")
	}
	r.checkApproval(*m.Approval)
	r.checkExecution(*m.Execution)
	r.checkSecrets(m.Secrets)
}

func (r *resolver) checkApproval(a ApprovalRules) {
	const field = "spec.approval."
	for _, d := range []struct {
		name  string
		value *Duration
	}{{"timeout", a.Timeout}, {"receiptLifetime", a.ReceiptLifetime}} {
		if time.Duration(*d.value) < time.Second {
			r.add(ReasonInvalidManifest, field+d.name, "must be at least one second")
		}
	}
	if len(a.Requirements) > 8 {
		r.add(ReasonInvalidManifest, field+"requirements", "are more than 8")
	}
	seen, people := map[string]bool{}, int64(0)
	for i, q := range a.Requirements {
		at := fmt.Sprintf("%srequirements[%d]", field, i)
		if q.Group == "" || seen[q.Group] {
			r.add(ReasonInvalidManifest, at+".group", "is empty or occurs twice")
		}
		if q.Count < 1 || q.Count > 8 {
			r.add(ReasonInvalidManifest, at+".count", "must lie between 1 and 8")
		}
		seen[q.Group] = true
		people += int64(q.Count)
	}
	if people > MaxReceipts {
		r.add(ReasonInvalidManifest, field+"requirements",
			"demand %d people in all, and no call can have more than %d receipts; lower the counts", people, MaxReceipts)
	}
}

func (r *resolver) checkExecution(x Execution) {
	const field = "spec.execution."
	if t := time.Duration(*x.Timeout); t < time.Second || t > MaxTimeout {
		r.add(ReasonInvalidManifest, field+"timeout", "must lie between 1s and 24h")
	}
	for _, q := range []struct{ name, value string }{
		{"cpu", x.CPU}, {"memory", x.Memory}, {"ephemeralStorage", x.EphemeralStorage},
	} {
		if !isQuantity(q.value) {
			r.add(ReasonInvalidManifest, field+q.name, "must be a positive Kubernetes quantity such as 500m or 256Mi")
		}
	}
	for _, n := range []struct{ name, value string }{
		{"runtimeClassName", x.RuntimeClassName}, {"serviceAccountName", x.ServiceAccountName},
	} {
		if n.value != "" && !isObjectName(n.value) {
			r.add(ReasonInvalidManifest, field+n.name, "must be the name of an object")
		}
	}
	r.checkTTL(field+"ttlSecondsAfterFinished", x.TTLSecondsAfterFinished)
	if len(x.Egress) > 16 {
		r.add(ReasonInvalidManifest, field+"egress", "has more than 16 rules")
	}
	for i, rule := range x.Egress {
		r.checkEgress(fmt.Sprintf("%segress[%d]", field, i), rule)
	}
}

func (r *resolver) checkTTL(field string, seconds *int32) {
	if seconds != nil && (*seconds < 0 || *seconds > 31536000) {
		r.add(ReasonInvalidManifest, field, "must lie between 0 and 31536000")
	}
}

// isQuantity reports whether a text is a positive quantity of Kubernetes.
func isQuantity(text string) bool {
	return quantityForm.MatchString(text) && positiveQuantity.MatchString(text)
}

func (r *resolver) checkEgress(field string, e EgressRule) {
	require := func(ok bool, name, message string) {
		if !ok {
			r.add(ReasonInvalidManifest, field+name, "%s", message)
		}
	}
	require((e.CIDR == "") != (e.Namespace == ""), "", "set exactly one of cidr and namespace")
	require(e.CIDR == "" || isRange(e.CIDR), ".cidr", "must be a range in CIDR notation without host bits")
	require(e.Namespace == "" || namespaceNameForm.MatchString(e.Namespace), ".namespace", "must be the name of a namespace")
	require(len(e.PodLabels) == 0 || e.Namespace != "", ".podLabels", "need a namespace")
	require(len(e.PodLabels) <= 8, ".podLabels", "are more than 8")
	for key, value := range e.PodLabels {
		require(labelKeyForm.MatchString(key) && labelValueForm.MatchString(value), ".podLabels", "must be labels of Kubernetes")
	}
	require(len(e.Ports) > 0 && len(e.Ports) <= 16, ".ports", "must have between 1 and 16 ports")
	for _, port := range e.Ports {
		require(port >= 1 && port <= 65535, ".ports", "must lie between 1 and 65535")
	}
}

// isRange reports whether a text is a range of addresses without host bits.
func isRange(text string) bool {
	p, err := netip.ParsePrefix(text)
	return err == nil && p == p.Masked()
}

func (r *resolver) checkSecrets(secrets []SecretReference) {
	seen := map[string]bool{}
	if len(secrets) > 16 {
		r.add(ReasonInvalidManifest, "spec.secrets", "are more than 16")
	}
	for i, s := range secrets {
		field := fmt.Sprintf("spec.secrets[%d].", i)
		if !isName(s.Name) || seen[s.Name] {
			r.add(ReasonInvalidManifest, field+"name", "must be a name of letters, digits and underscores that occurs once")
		}
		if !isObjectName(s.SecretName) {
			r.add(ReasonInvalidManifest, field+"secretName", "must be the name of a Secret")
		}
		if !secretKeyForm.MatchString(s.Key) {
			r.add(ReasonInvalidManifest, field+"key", "must be a key of a Secret")
		}
		seen[s.Name] = true
	}
}
