// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
)

var writeTranscripts = flag.Bool("write-transcripts", false, "write the transcripts in docs anew")

const (
	prompt = "type the first 8 characters of its fingerprint: "
	looks  = "<!-- the operator looks -->"
)

// session runs the commands of a transcript. What differs from run to run has
// other names in the page: hashes, UIDs, times and the namespace.
type session struct {
	*fixture
	program, kubeconfig string
	call                *v1alpha1.ToolProposal
	hashes              map[string]string
	names               map[string]string
}

var (
	hash     = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
	uid      = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	instant  = regexp.MustCompile(`\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\b`)
	receipts = regexp.MustCompile(`\breceipt-[a-z0-9]{5}\b`)
)

func (s *session) normalize(text string) string {
	text = strings.ReplaceAll(text, s.namespace, "payments")
	text = hash.ReplaceAllStringFunc(text, s.stableHash)
	text = uid.ReplaceAllString(text, "0b5c7a1e-0000-4000-8000-000000000001")
	text = instant.ReplaceAllString(text, "2026-03-04T05:06:07Z")
	return receipts.ReplaceAllStringFunc(text, func(name string) string {
		if _, ok := s.names[name]; !ok {
			s.names[name] = fmt.Sprintf("receipt-%d", len(s.names)+1)
		}
		return s.names[name]
	})
}

// stableHash gives each hash one that depends only on its place in the page.
func (s *session) stableHash(actual string) string {
	if strings.Trim(actual, "0") == "" {
		return actual
	}
	if _, ok := s.hashes[actual]; !ok {
		sum := sha256.Sum256([]byte{byte(len(s.hashes))})
		s.hashes[actual] = hex.EncodeToString(sum[:])
	}
	return s.hashes[actual]
}

// actual puts the real fingerprint in place of the page's.
func (s *session) actual(text string) string {
	fingerprint := s.call.Spec.Prepared.Fingerprint
	text = strings.ReplaceAll(text, "FINGERPRINT", fingerprint)
	return strings.ReplaceAll(text, s.stableHash(fingerprint), fingerprint)
}

// run executes one block and returns it as the page should show it.
func (s *session) run(block string) string {
	s.t.Helper()
	line, expected, _ := strings.Cut(block, "\n")
	who, command, ok := strings.Cut(line, "$ kubectl assent ")
	if !ok {
		s.t.Fatalf("not a command of the plugin: %s", line)
	}
	args := append(words(s.actual(command)), "--kubeconfig", s.kubeconfig)
	args = append(args, s.person(who)...)
	cmd := exec.CommandContext(s.ctx, s.program, args...)
	typed := ""
	if _, after, asked := strings.Cut(expected, prompt); asked {
		typed, _, _ = strings.Cut(after, "\n")
		cmd.Stdin = strings.NewReader(s.actual(typed) + "\n")
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	text := strings.Replace(out.String(), prompt, prompt+typed+"\n", 1)
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		text += fmt.Sprintf("[exit code %d]\n", exit.ExitCode())
	} else if err != nil {
		s.t.Fatal(err)
	}
	return strings.ReplaceAll(line, "FINGERPRINT", s.stableHash(s.call.Spec.Prepared.Fingerprint)) + "\n" + s.normalize(text)
}

func (s *session) person(who string) []string {
	switch who {
	case "bot":
		return []string{"--as", agent, "--as-group", "system:serviceaccounts"}
	default:
		return []string{"--as", who, "--as-group", "finance"}
	}
}

// words splits a command line; quotation marks hold words together.
func words(line string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`"([^"]*)"|(\S+)`).FindAllStringSubmatch(line, -1) {
		out = append(out, m[1]+m[2])
	}
	return out
}

func newSession(t *testing.T) *session {
	t.Helper()
	s := &session{fixture: newFixture(t), hashes: map[string]string{}, names: map[string]string{}}
	s.program = filepath.Join(t.TempDir(), "kubectl-assent")
	if out, err := exec.CommandContext(s.ctx, "go", "build", "-o", s.program, repository+"/cmd/kubectl-assent").CombinedOutput(); err != nil {
		t.Fatalf("building the plugin: %v\n%s", err, out)
	}
	s.kubeconfig = s.writeKubeconfig()
	s.tool("refund", func(m *v1alpha1.ToolManifest) {
		m.Spec.RiskTier, m.Spec.Description, m.Spec.HumanApproval = v1alpha1.RiskHigh, "Pays a customer back.", true
		m.Spec.Approval = &v1alpha1.ApprovalRules{Requirements: []v1alpha1.ApprovalRequirement{{Group: "finance", Count: 2}}}
	})
	manifests := &controllers.ManifestReconciler{Config: s.shared}
	if _, err := manifests.Reconcile(s.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: s.namespace, Name: "refund"}}); err != nil {
		t.Fatal(err)
	}
	s.policy("refunds", permitAll)
	read := rbacv1.PolicyRule{APIGroups: []string{"assent.dev"}, Resources: []string{"toolproposals", "toolmanifests", "approvalreceipts"}, Verbs: []string{"get", "list", "watch"}}
	for _, who := range []string{approver, other, agent} {
		s.grant(who, read)
	}
	s.allow(agent, "approvalreceipts")
	s.mayApprove(agent)
	p := s.newProposal("refund", `{"target":"invoice"}`)
	p.Name, p.GenerateName, p.Spec.CallID, p.Spec.Reason = "refund-1", "", "turn-7", "the customer asked for it"
	if err := s.as(agent, "system:serviceaccounts").Create(s.ctx, p); err != nil {
		t.Fatal(err)
	}
	s.call = s.step(p)
	return s
}

func (s *session) writeKubeconfig() string {
	s.t.Helper()
	c := rest.CopyConfig(server.config)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData, CertificateAuthority: c.CAFile}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: c.CertData, ClientKeyData: c.KeyData, ClientCertificate: c.CertFile, ClientKey: c.KeyFile, Token: c.BearerToken,
	}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: s.namespace}
	config.CurrentContext = "x"
	name := filepath.Join(s.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, name); err != nil {
		s.t.Fatal(err)
	}
	return name
}

func TestApprovingPage_ShowsWhatThePluginDoes(t *testing.T) {
	s := newSession(t)
	name := filepath.Join(repository, "docs", "approving.md")
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```console\n(.*?)```|" + looks)
	got := block.ReplaceAllStringFunc(string(page), func(found string) string {
		if found == looks {
			s.call = s.step(s.call)
			return found
		}
		inside := strings.TrimSuffix(strings.TrimPrefix(found, "```console\n"), "```")
		return "```console\n" + s.run(inside) + "```"
	})
	if *writeTranscripts {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(page), got); diff != "" {
		t.Errorf("docs/approving.md (-page +now):\n%s", diff)
	}
}
