// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

const (
	repository = "../.."
	patience   = 2 * time.Minute
	agent      = "agent-of-the-tests"
	approver   = "approver-of-the-tests"
)

// installed is the cluster with Assent on it.
var installed *cluster

type cluster struct {
	config *rest.Config
	scheme *runtime.Scheme
	admin  client.Client
	images map[string]string
}

func TestMain(m *testing.M) {
	if os.Getenv("KUBECONFIG") == "" {
		fmt.Println("test/e2e needs a cluster: run it by \"make test-e2e\"")
		os.Exit(m.Run())
	}
	c, err := install()
	if err != nil {
		log.Fatalf("installing Assent: %v", err)
	}
	installed = c
	os.Exit(m.Run())
}

func install() (*cluster, error) {
	ctrl.SetLogger(logr.Discard())
	c := &cluster{scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(c.scheme); err != nil {
			return nil, err
		}
	}
	list, err := os.ReadFile(filepath.Join(repository, "dist", "images", "images.json"))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(list, &c.images); err != nil {
		return nil, err
	}
	// A call whose Job cannot start must not be waited for as long as in production.
	out, err := exec.Command(filepath.Join(repository, "hack", "install.sh"), "--set", "extraArgs={--start-deadline=45s}").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	if c.config, err = ctrl.GetConfig(); err != nil {
		return nil, err
	}
	c.config.QPS, c.config.Burst = 100, 200
	c.admin, err = client.New(c.config, client.Options{Scheme: c.scheme})
	return c, err
}

// fixture is a namespace with people and a policy.
type fixture struct {
	t         testing.TB
	ctx       context.Context
	namespace string
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	if installed == nil {
		t.Skip("needs a cluster: run it by \"make test-e2e\"")
	}
	f := &fixture{t: t, ctx: t.Context()}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	f.create(ns)
	f.namespace = ns.Name
	t.Cleanup(func() { _ = installed.admin.Delete(context.WithoutCancel(f.ctx), ns) })
	f.bind(agent, "assent-agent")
	f.bind(approver, "assent-approver")
	f.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "approve", Namespace: f.namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"assent.dev"}, Resources: []string{"toolmanifests"}, Verbs: []string{"approve"}}},
	})
	f.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "approve", Namespace: f.namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: approver, APIGroup: rbacv1.GroupName}},
		RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: "approve", APIGroup: rbacv1.GroupName},
	})
	f.create(&v1alpha1.ToolPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "allow", Namespace: f.namespace},
		Spec:       v1alpha1.PolicySpec{Cedar: `permit (principal, action, resource);`},
	})
	return f
}

func (f *fixture) bind(user, role string) {
	f.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role, Namespace: f.namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user, APIGroup: rbacv1.GroupName}},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: role, APIGroup: rbacv1.GroupName},
	})
}

func (f *fixture) create(o client.Object) {
	f.t.Helper()
	if err := installed.admin.Create(f.ctx, o); err != nil {
		f.t.Fatalf("creating %T: %v", o, err)
	}
}

func (f *fixture) as(user string) client.Client {
	f.t.Helper()
	config := rest.CopyConfig(installed.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(config, client.Options{Scheme: installed.scheme})
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// probe creates a tool that runs one word of the probe with the argument value.
func (f *fixture) probe(name, word string, change ...func(*v1alpha1.ToolManifest)) {
	f.t.Helper()
	f.create(f.newProbe(name, word, change...))
}

// newProbe is such a tool that was not created yet.
func (f *fixture) newProbe(name, word string, change ...func(*v1alpha1.ToolManifest)) *v1alpha1.ToolManifest {
	m := &v1alpha1.ToolManifest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace},
		Spec: v1alpha1.ToolManifestSpec{
			Version: "1", RiskTier: v1alpha1.RiskLow,
			Arguments: []v1alpha1.Argument{{Name: "value", Type: "string", Required: true}},
			Command:   &v1alpha1.CommandTemplate{Image: installed.images["e2e-probe"], Argv: []string{"/probe", word, "{value}"}},
			Execution: &v1alpha1.Execution{Timeout: &metav1.Duration{Duration: 30 * time.Second}, CPU: "100m", Memory: "64Mi", EphemeralStorage: "64Mi"},
		},
	}
	for _, c := range change {
		c(m)
	}
	return m
}

func (f *fixture) propose(tool, value string) *v1alpha1.ToolProposal {
	f.t.Helper()
	arguments, err := json.Marshal(map[string]string{"value": value})
	if err != nil {
		f.t.Fatal(err)
	}
	p := &v1alpha1.ToolProposal{
		ObjectMeta: metav1.ObjectMeta{GenerateName: tool + "-", Namespace: f.namespace},
		Spec:       v1alpha1.ToolProposalSpec{Tool: tool, Arguments: string(arguments), CallID: "e2e"},
	}
	if err := f.as(agent).Create(f.ctx, p); err != nil {
		f.t.Fatalf("proposing: %v", err)
	}
	return p
}

// await waits until the call is in a phase, or has ended.
func (f *fixture) await(p *v1alpha1.ToolProposal, phase v1alpha1.Phase) *v1alpha1.ToolProposal {
	f.t.Helper()
	now := &v1alpha1.ToolProposal{}
	f.eventually(fmt.Sprintf("%s to be %s", p.Name, phase), func() bool {
		if err := installed.admin.Get(f.ctx, client.ObjectKeyFromObject(p), now); err != nil {
			return false
		}
		return now.Status.Phase == phase || now.Status.Phase.Terminal()
	})
	return now
}

func (f *fixture) eventually(what string, held func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) { //nolint:forbidigo // a whole cluster is at work here
		if held() {
			return
		}
	}
	f.t.Fatalf("waited %s for %s", patience, what)
}

func outcome(p *v1alpha1.ToolProposal) string {
	return string(p.Status.Phase) + "/" + p.Status.Reason
}

// kubectl is the development cluster's own, or the one on the PATH.
func kubectl() string {
	if state := os.Getenv("ASSENT_STATE"); state != "" {
		return filepath.Join(state, "bin", "kubectl")
	}
	return "kubectl"
}
