// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/proposal"
)

const (
	repository  = "../.."
	runnerImage = "registry.example/assent/runner@sha256:0000000000000000000000000000000000000000000000000000000000000000"
	toolName    = "restart"
)

var (
	admin client.WithWatch
	// server is how the API server is reached.
	server *rest.Config
	keys   *attest.Keyring
)

func TestMain(m *testing.M) {
	beTool()
	if os.Getenv("KUBECONFIG") == "" {
		fmt.Println("most of test/fault needs an API server: run it by \"make test-api\"")
		os.Exit(m.Run())
	}
	if err := connect(); err != nil {
		log.Fatalf("preparing the API server: %v", err)
	}
	os.Exit(m.Run())
}

func connect() error {
	ctrl.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	// What limits these tests is the machine.
	config.QPS = -1
	server = config
	if admin, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	crds := envtest.CRDInstallOptions{Paths: []string{filepath.Join(repository, "config", "crd")}, ErrorIfPathMissing: true}
	if _, err := envtest.InstallCRDs(config, crds); err != nil {
		return err
	}
	seed, err := attest.GenerateSeed(rand.Reader)
	if err != nil {
		return err
	}
	if keys, err = attest.NewKeyring(seed); err != nil {
		return err
	}
	// These tests seal by themselves; admission of an earlier suite is gone.
	ctx := context.Background()
	return errors.Join(
		admin.DeleteAllOf(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{}),
		admin.DeleteAllOf(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{}),
	)
}

// world is one namespace with operators, a kubelet of a kind, and a target.
type world struct {
	t         testing.TB
	ctx       context.Context
	namespace string
	record    record
	faults    *faults
	contract  *contract.Contract
	target    *httptest.Server
	plain     *httptest.Server
	endpoint  *httptest.Server
	calls     map[types.UID]expectation

	mu       sync.Mutex
	offset   time.Duration
	serving  *operator
	started  map[string]bool
	runners  sync.WaitGroup
	active   atomic.Int32
	approval bool
}

func newWorld(t testing.TB, approval bool) *world {
	t.Helper()
	return newWorldOf(t, overHTTP, approval)
}

func newWorldOf(t testing.TB, how way, approval bool) *world {
	t.Helper()
	if admin == nil {
		t.Skip("needs an API server: run it by \"make test-api\"")
	}
	w := &world{t: t, ctx: t.Context(), faults: &faults{}, calls: map[types.UID]expectation{}, started: map[string]bool{}, approval: approval}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "fault-"}}
	w.create(ns)
	w.namespace = ns.Name
	w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: ns.Name}})
	w.create(&v1alpha1.ToolPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "allow", Namespace: ns.Name},
		Spec:       v1alpha1.PolicySpec{Cedar: "permit (principal, action, resource);"},
	})
	w.startTarget()
	w.endpoint = httptest.NewUnstartedServer(http.HandlerFunc(w.serve))
	w.endpoint.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	w.endpoint.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.endpoint.StartTLS()
	t.Cleanup(w.endpoint.Close)
	m := &v1alpha1.ToolManifest{
		ObjectMeta: metav1.ObjectMeta{Name: toolName, Namespace: ns.Name},
		Spec: v1alpha1.ToolManifestSpec{
			Version: "1", RiskTier: v1alpha1.RiskLow, HumanApproval: approval,
			Arguments: []v1alpha1.Argument{{Name: "call", Type: "string", Required: true}},
		},
	}
	w.setEffect(how, &m.Spec)
	w.create(m)
	compiled, err := (&proposal.Compiler{RunnerImage: runnerImage}).Compile(m, proposal.Tools{})
	if err != nil {
		t.Fatal(err)
	}
	w.contract = compiled
	return w
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	if err := admin.Create(w.ctx, o); err != nil {
		w.t.Fatalf("creating %T: %v", o, err)
	}
}

// Now is the world's time: the real one, moved on by the test.
func (w *world) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.offset)
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.offset += d
}

// propose creates a sealed call, as admission would, with its receipt where
// the tool needs one.
func (w *world) propose() *v1alpha1.ToolProposal {
	w.t.Helper()
	p := w.sealed()
	w.create(p)
	w.mu.Lock()
	w.calls[p.UID] = expectation{value: p.Spec.CallID, fingerprint: p.Spec.Prepared.Fingerprint, needsApproval: w.approval}
	w.mu.Unlock()
	if w.approval {
		w.approve(p)
	}
	return p
}

// sealed is a call as admission would hand it to the API server.
func (w *world) sealed() *v1alpha1.ToolProposal {
	w.t.Helper()
	compiled := w.contract
	value := "call-" + randomHex(w.t)
	p := &v1alpha1.ToolProposal{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "call-", Namespace: w.namespace},
		Spec:       v1alpha1.ToolProposalSpec{Tool: toolName, Arguments: fmt.Sprintf(`{"call":%q}`, value), CallID: value},
	}
	p.Spec.Requester = &v1alpha1.Identity{Username: "agent"}
	prepared, err := compiled.Prepare(p.Spec.Requester.Username, p.Spec.Arguments)
	if err != nil {
		w.t.Fatal(err)
	}
	if p.Spec.Prepared, err = proposal.PreparedCall(compiled, prepared); err != nil {
		w.t.Fatal(err)
	}
	controllerutil.AddFinalizer(p, v1alpha1.FinalizerOutcome)
	stamp := proposal.Stamp{Namespace: w.namespace, SealID: randomHex(w.t), Now: time.Now()}
	if err := proposal.Seal(keys, p, stamp); err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) approve(p *v1alpha1.ToolProposal) {
	w.t.Helper()
	expires := metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second))
	r := &v1alpha1.ApprovalReceipt{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "receipt-", Namespace: w.namespace},
		Spec: v1alpha1.ApprovalReceiptSpec{
			ProposalRef: v1alpha1.ProposalReference{Name: p.Name, UID: p.UID},
			Fingerprint: p.Spec.Prepared.Fingerprint, Decision: v1alpha1.ReceiptApproved,
			Approver:  &v1alpha1.Identity{Username: "alice", Groups: []string{"system:masters"}},
			ExpiresAt: &expires,
		},
	}
	if err := proposal.SealReceipt(keys, r, proposal.Stamp{Namespace: w.namespace, SealID: randomHex(w.t), Now: time.Now()}); err != nil {
		w.t.Fatal(err)
	}
	w.create(r)
}

func randomHex(t testing.TB) string {
	t.Helper()
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(b[:])
}
