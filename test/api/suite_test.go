// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/proposal"
	"github.com/assent-dev/assent/webhook"
)

const repository = "../.."

// testRunnerImage is part of every contract in these tests. Nothing pulls it.
const testRunnerImage = "registry.example/assent/runner@sha256:0000000000000000000000000000000000000000000000000000000000000000"

// server is the API server with Assent's admission in front of it, shared by
// the tests of the package. Tests keep apart by namespaces of their own.
var server *apiServer

type apiServer struct {
	config    *rest.Config
	scheme    *runtime.Scheme
	admin     client.WithWatch
	keys      *attest.Keyring
	seed      []byte
	contracts *proposal.Compiler
	informers informers
	clock     *clock
	hooks     hooks
	noop      noop
	traces    *collector
	epoch     atomic.Int64
}

func TestMain(m *testing.M) {
	if os.Getenv("KUBECONFIG") == "" {
		fmt.Println("test/api needs an API server: run it by \"make test-api\"")
		os.Exit(m.Run())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s, err := start(ctx)
	if err != nil {
		log.Fatalf("preparing the API server: %v", err)
	}
	server = s
	code := m.Run()
	cancel()
	os.Exit(code)
}

func start(ctx context.Context) (*apiServer, error) {
	ctrl.SetLogger(discard())
	klog.SetLogger(discard())
	s := &apiServer{scheme: runtime.NewScheme(), clock: newClock()}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s.scheme); err != nil {
			return nil, err
		}
	}
	var err error
	if s.config, err = ctrl.GetConfig(); err != nil {
		return nil, err
	}
	s.config.QPS, s.config.Burst = 1000, 1000
	if s.admin, err = client.NewWithWatch(s.config, client.Options{Scheme: s.scheme}); err != nil {
		return nil, err
	}
	crds := envtest.CRDInstallOptions{Scheme: s.scheme, Paths: []string{filepath.Join(repository, "config", "crd")}, ErrorIfPathMissing: true}
	if _, err := envtest.InstallCRDs(s.config, crds); err != nil {
		return nil, err
	}
	seed, err := attest.GenerateSeed(rand.Reader)
	if err != nil {
		return nil, err
	}
	s.seed = seed
	if s.keys, err = attest.NewKeyring(seed); err != nil {
		return nil, err
	}
	s.contracts = &proposal.Compiler{RunnerImage: testRunnerImage}
	if s.traces, err = newCollector(ctx); err != nil {
		return nil, err
	}
	return s, s.startAdmission(ctx)
}

// startAdmission serves the webhooks on loopback and installs the project's
// own webhook configurations, with that address instead of a Service.
func (s *apiServer) startAdmission(ctx context.Context) error {
	cert, ca, err := newCertificate()
	if err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(s.config, ctrl.Options{
		Scheme:  s.scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: ctrlwebhook.NewServer(ctrlwebhook.Options{Host: "127.0.0.1", Port: port, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }
		}}}),
	})
	if err != nil {
		return err
	}
	if err := observe.RegisterIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	s.informers.Reader = mgr.GetClient()
	err = webhook.Setup(mgr, &webhook.Config{
		Cached: &s.informers, Live: s.admin, Reviews: s.admin,
		Keys: func() *attest.Keyring { return s.keys }, Contracts: s.contracts,
		Now: s.clock.Now, Random: rand.Reader, Epoch: s.epoch.Load,
		MaxReceiptLifetime: 15 * time.Minute, MaxPending: 100, Tracer: s.traces.tracer,
	})
	if err != nil {
		return err
	}
	mgr.GetWebhookServer().Register(noopMutate, s.noop.patcher())
	mgr.GetWebhookServer().Register(noopValidate, s.noop.handler())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return <-stopped
	}
	base := "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := s.hooks.load(base, ca, s.admin); err != nil {
		return err
	}
	s.noop.load(s.hooks, base)
	return nil
}

// informers are what admission reads first. They are as far behind as a test wants
// them to be.
type informers struct {
	client.Reader
	manifests sync.Map
}

// pin makes the informers have a manifest as it is now until the test ends.
func (i *informers) pin(t *testing.T, m *v1alpha1.ToolManifest) {
	t.Helper()
	key := client.ObjectKeyFromObject(m)
	i.manifests.Store(key, m)
	t.Cleanup(func() { i.manifests.Delete(key) })
}

// Get reads an object.
func (i *informers) Get(ctx context.Context, key client.ObjectKey, into client.Object, how ...client.GetOption) error {
	m, isManifest := into.(*v1alpha1.ToolManifest)
	pinned, isPinned := i.manifests.Load(key)
	if !isManifest || !isPinned {
		return i.Reader.Get(ctx, key, into, how...)
	}
	pinned.(*v1alpha1.ToolManifest).DeepCopyInto(m)
	return nil
}

// hooks are the webhook configurations, which some tests take away.
type hooks struct {
	mutating   *admissionregistrationv1.MutatingWebhookConfiguration
	validating *admissionregistrationv1.ValidatingWebhookConfiguration
}

func (h *hooks) load(base string, ca []byte, c client.Client) error {
	f, err := os.Open(filepath.Join(repository, "config", "webhook", "manifests.yaml"))
	if err != nil {
		return err
	}
	defer f.Close()
	decoder := utilyaml.NewYAMLOrJSONDecoder(f, 4096)
	h.mutating, h.validating = &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	for _, into := range []any{h.mutating, h.validating} {
		if err := decoder.Decode(into); err != nil {
			return err
		}
	}
	point := func(cc *admissionregistrationv1.WebhookClientConfig) {
		address := base + *cc.Service.Path
		cc.URL, cc.Service, cc.CABundle = &address, nil, ca
	}
	for i := range h.mutating.Webhooks {
		point(&h.mutating.Webhooks[i].ClientConfig)
	}
	for i := range h.validating.Webhooks {
		point(&h.validating.Webhooks[i].ClientConfig)
	}
	return h.install(context.Background(), c)
}

// install puts the configurations in place of any that an earlier run left.
func (h *hooks) install(ctx context.Context, c client.Client) error {
	if err := h.remove(ctx, c); err != nil {
		return err
	}
	if err := c.Create(ctx, h.mutating.DeepCopy()); err != nil {
		return err
	}
	return c.Create(ctx, h.validating.DeepCopy())
}

func (h *hooks) remove(ctx context.Context, c client.Client) error {
	for _, o := range []client.Object{h.mutating.DeepCopy(), h.validating.DeepCopy()} {
		if err := client.IgnoreNotFound(c.Delete(ctx, o)); err != nil {
			return err
		}
	}
	return nil
}

func newCertificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "assent-test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	u, err := url.Parse("tcp://" + l.Addr().String())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(u.Port())
}
