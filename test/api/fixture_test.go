// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit/journal"
	"github.com/assent-dev/assent/internal/job"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/policy"
)

func discard() logr.Logger { return logr.Discard() }

// clock is a clock that tests step by hand. Admission shares it. It starts at
// the real time, since the API server stamps creation times by its own.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
}

func newClock() *clock { return &clock{} }

// Now returns the clock's time.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

// fixture is a namespace with an operator of its own.
type fixture struct {
	t         *testing.T
	ctx       context.Context
	namespace string
	clock     *clock
	shared    *controllers.Config
	proposals *controllers.ProposalReconciler
	policies  *controllers.PolicyReconciler
}

// The people of the tests. The API server knows them by impersonation.
const (
	agent    = "system:serviceaccount:agents:bot"
	approver = "alice"
	other    = "bob"
)

func newFixture(t *testing.T) *fixture {
	t.Helper()
	if server == nil {
		t.Skip("needs an API server: run it by \"make test-api\"")
	}
	ctx := t.Context()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}
	if err := server.admin.Create(ctx, ns); err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	f := &fixture{t: t, ctx: ctx, namespace: ns.Name, clock: newClock()}
	t.Cleanup(f.clear)
	log, err := journal.Open(ctx, journal.Options{Dir: filepath.Join(t.TempDir(), "audit"), Origin: "test", Keys: server.keys, Now: f.clock.Now})
	if err != nil {
		t.Fatalf("opening the audit log: %v", err)
	}
	t.Cleanup(func() { _ = log.Close(context.Background()) })
	f.shared = &controllers.Config{
		Client: server.admin, Live: server.admin,
		Keys:      func() *attest.Keyring { return server.keys },
		Contracts: server.contracts, Policies: &policy.Store{}, Journal: log, Tracer: server.traces.tracer,
		Epoch: func() int64 { return 0 }, Drift: func() string { return "" },
		Now: f.clock.Now, Retention: 24 * time.Hour, Past: &observe.Past{},
		Settings: func() job.Settings {
			return job.Settings{RunnerImage: testRunnerImage, StartTimeout: 10 * time.Minute, Endpoint: job.Endpoint{
				URL: "https://assent-execution.assent-system.svc:8443", CA: "-----BEGIN CERTIFICATE-----\n", PublicKeys: string(attest.EncodePublicKeysPEM(server.keys.PublicKeys()...)),
				Namespace: "assent-system", PodLabels: map[string]string{"app.kubernetes.io/name": "assent"}, Port: 8443,
			}}
		},
	}
	f.policies = &controllers.PolicyReconciler{Config: f.shared}
	f.shared.Behind = f.policies.Behind
	f.proposals = &controllers.ProposalReconciler{Config: f.shared}
	f.allow(agent, "toolproposals")
	f.allow(approver, "toolproposals", "approvalreceipts")
	f.allow(other, "approvalreceipts")
	f.mayApprove(approver)
	f.mayApprove(other)
	return f
}

// clear takes the calls of the namespace away: open calls of the tests' agent
// count against its quota, which is one for the whole cluster.
func (f *fixture) clear() {
	ctx := noCancel(f.t.Context())
	var calls v1alpha1.ToolProposalList
	if err := server.admin.List(ctx, &calls, client.InNamespace(f.namespace)); err != nil {
		f.t.Errorf("listing calls to remove: %v", err)
	}
	for i := range calls.Items {
		p := &calls.Items[i]
		p.Finalizers = nil
		if err := server.admin.Update(ctx, p); client.IgnoreNotFound(err) != nil {
			f.t.Errorf("releasing %s: %v", p.Name, err)
		}
		if err := client.IgnoreNotFound(server.admin.Delete(ctx, p)); err != nil {
			f.t.Errorf("removing %s: %v", p.Name, err)
		}
	}
}

// as returns a client that acts as somebody.
func (f *fixture) as(username string, groups ...string) client.Client {
	f.t.Helper()
	config := rest.CopyConfig(server.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: username, Groups: append(groups, "system:authenticated")}
	c, err := client.New(config, client.Options{Scheme: server.scheme})
	if err != nil {
		f.t.Fatalf("making a client for %s: %v", username, err)
	}
	return c
}

// allow lets somebody create and read objects in the fixture's namespace.
func (f *fixture) allow(username string, resources ...string) {
	f.grant(username, rbacv1.PolicyRule{APIGroups: []string{"assent.dev"}, Resources: resources, Verbs: []string{"create", "get", "list", "watch", "update", "patch"}})
}

// mayApprove gives somebody the virtual verb approve on every manifest.
func (f *fixture) mayApprove(username string) {
	f.grant(username, rbacv1.PolicyRule{APIGroups: []string{"assent.dev"}, Resources: []string{"toolmanifests"}, Verbs: []string{"approve"}})
}

func (f *fixture) grant(username string, rule rbacv1.PolicyRule) {
	f.t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{GenerateName: "r-", Namespace: f.namespace}, Rules: []rbacv1.PolicyRule{rule}}
	f.create(role)
	f.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name, Namespace: f.namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: username, APIGroup: rbacv1.GroupName}},
		RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: role.Name, APIGroup: rbacv1.GroupName},
	})
}

func (f *fixture) create(o client.Object) {
	f.t.Helper()
	if err := server.admin.Create(f.ctx, o); err != nil {
		f.t.Fatalf("creating %T: %v", o, err)
	}
}

const testImage = "registry.example/tool@sha256:1111111111111111111111111111111111111111111111111111111111111111"

// tool creates a manifest for a command with one argument, target.
func (f *fixture) tool(name string, change ...func(*v1alpha1.ToolManifest)) *v1alpha1.ToolManifest {
	f.t.Helper()
	m := &v1alpha1.ToolManifest{}
	text := fmt.Sprintf(`
metadata: {name: %s, namespace: %s}
spec:
  version: "1"
  riskTier: low
  arguments: [{name: target, type: string, required: true, pattern: "[a-z]+"}]
  command: {image: "%s", argv: [tool, --target, "{target}"]}
`, name, f.namespace, testImage)
	if err := yaml.UnmarshalStrict([]byte(text), m); err != nil {
		f.t.Fatalf("reading the manifest: %v", err)
	}
	for _, c := range change {
		c(m)
	}
	f.create(m)
	return m
}

// policy puts Cedar text in force in the fixture's namespace.
func (f *fixture) policy(name, text string) {
	f.t.Helper()
	f.create(&v1alpha1.ToolPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace}, Spec: v1alpha1.PolicySpec{Cedar: text}})
	f.reloadPolicies()
}

func (f *fixture) reloadPolicies() {
	f.t.Helper()
	if _, err := f.policies.Reconcile(f.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: f.namespace, Name: "policies"}}); err != nil {
		f.t.Fatalf("loading policies: %v", err)
	}
}

// newProposal is a call of a tool that was not created yet.
func (f *fixture) newProposal(tool, arguments string) *v1alpha1.ToolProposal {
	return &v1alpha1.ToolProposal{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "call-", Namespace: f.namespace},
		Spec:       v1alpha1.ToolProposalSpec{Tool: tool, Arguments: arguments, CallID: fmt.Sprintf("id-%d", time.Now().UnixNano())},
	}
}

// propose creates a call as the agent.
func (f *fixture) propose(tool, arguments string) *v1alpha1.ToolProposal {
	f.t.Helper()
	p := f.newProposal(tool, arguments)
	if err := f.as(agent).Create(f.ctx, p); err != nil {
		f.t.Fatalf("proposing a call of %s: %v", tool, err)
	}
	return p
}

// step lets the controller look at a call once and returns what it wrote.
func (f *fixture) step(p *v1alpha1.ToolProposal) *v1alpha1.ToolProposal {
	f.t.Helper()
	if _, err := f.proposals.Reconcile(f.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)}); err != nil {
		f.t.Fatalf("reconciling %s: %v", p.Name, err)
	}
	return f.reload(p)
}

func (f *fixture) reload(p *v1alpha1.ToolProposal) *v1alpha1.ToolProposal {
	f.t.Helper()
	now := &v1alpha1.ToolProposal{}
	if err := server.admin.Get(f.ctx, client.ObjectKeyFromObject(p), now); err != nil {
		f.t.Fatalf("reading %s: %v", p.Name, err)
	}
	return now
}

// newReceipt is an approval of exactly this call that was not created yet.
func newReceipt(p *v1alpha1.ToolProposal) *v1alpha1.ApprovalReceipt {
	return &v1alpha1.ApprovalReceipt{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "receipt-", Namespace: p.Namespace},
		Spec: v1alpha1.ApprovalReceiptSpec{
			ProposalRef: v1alpha1.ProposalReference{Name: p.Name, UID: p.UID},
			Fingerprint: p.Spec.Prepared.Fingerprint, Decision: v1alpha1.ReceiptApproved,
		},
	}
}

// outcome is phase and reason of a call.
func outcome(p *v1alpha1.ToolProposal) string {
	return string(p.Status.Phase) + "/" + p.Status.Reason
}

// refusalOf describes an API error by code and the causes that admission gave.
func refusalOf(err error) string {
	var status apierrors.APIStatus
	if err == nil {
		return "accepted"
	}
	if !asStatus(err, &status) {
		return err.Error()
	}
	s := status.Status()
	text := fmt.Sprintf("%d", s.Code)
	if s.Details != nil {
		for _, c := range s.Details.Causes {
			text += fmt.Sprintf(" %s:%s", c.Field, c.Type)
		}
	}
	return text
}

// jsonOf is for messages and searches over whole objects.
func jsonOf(t *testing.T, o any) string {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "\\u003c", "<")
}

func asStatus(err error, into *apierrors.APIStatus) bool { return errors.As(err, into) }

func repeat(s string, n int) string { return strings.Repeat(s, n) }

// noCancel is for cleaning up after a test's own context has ended.
func noCancel(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }
