// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
	"github.com/assent-dev/assent/execution"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/job"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/proposal"
	"github.com/assent-dev/assent/internal/tracing"
	"github.com/assent-dev/assent/webhook"
)

// operator is everything that is wired together.
type operator struct {
	options *options
	mgr     ctrl.Manager
	live    client.Client
	// reads is live as well, for reads that many do at once.
	reads     *observe.Shared
	keys      *signingKeys
	cert      *servingCert
	contracts *proposal.Compiler
	journal   *journal
	drift     *controllers.Drift
	tracer    *tracing.Tracer
	watermark *controllers.Watermark
	// person maps a username to the person behind it.
	person func(username string) string
}

func run(ctx context.Context, o *options) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("building the scheme: %w", err)
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	// No limit of our own: it would only make calls wait. The API server has
	// its priorities for whoever asks too much.
	config.QPS = -1
	live, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	op := &operator{options: o, live: live, reads: observe.Share(live)}
	defer op.closeTraces()
	if op.person, err = o.persons(); err != nil {
		return err
	}
	op.cert = &servingCert{live: live, key: types.NamespacedName{Namespace: o.namespace, Name: o.certSecret}, dir: o.certDir}
	if op.mgr, err = ctrl.NewManager(config, op.managerOptions(scheme)); err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	op.keys = &signingKeys{
		client: live, live: live, namespace: o.namespace, secret: o.signingSecret, configMap: o.publicKeys,
		now: time.Now, random: rand.Reader, startDeadline: o.startDeadline,
	}
	if err := op.keys.load(ctx); err != nil {
		return fmt.Errorf("loading the signing keys: %w", err)
	}
	objects, err := installed(o.namespace, o.admissionPolicies)
	if err != nil {
		return err
	}
	op.drift = &controllers.Drift{Live: live, Installed: objects, Now: time.Now}
	op.contracts = &proposal.Compiler{RunnerImage: o.runnerImage, AllowImageTags: o.allowImageTags}
	if err := op.wire(ctx); err != nil {
		return err
	}
	if err := op.mgr.Start(ctx); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}

func (op *operator) managerOptions(scheme *runtime.Scheme) ctrl.Options {
	o := op.options
	calls, err := labels.Parse(v1alpha1.LabelRun)
	if err != nil {
		panic(err) // a constant
	}
	return ctrl.Options{
		Scheme:                        scheme,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              "assent-controllers",
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.healthAddress,
		WebhookServer: ctrlwebhook.NewServer(ctrlwebhook.Options{
			Port: o.webhookPort,
			TLSOpts: []func(*tls.Config){func(c *tls.Config) {
				c.MinVersion, c.GetCertificate = tls.VersionTLS13, op.cert.get
			}},
		}),
		Cache: cache.Options{
			ByObject:         map[client.Object]cache.ByObject{&batchv1.Job{}: {Label: calls}},
			DefaultTransform: cache.TransformStripManagedFields(),
		},
		// Secrets, ConfigMaps, Pods and Namespaces are read live and rarely: an
		// informer would need the right to list all of them.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{
			&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Pod{}, &corev1.Namespace{},
		}}},
	}
}

func (op *operator) wire(ctx context.Context) error {
	if err := observe.RegisterIndexes(ctx, op.mgr.GetFieldIndexer()); err != nil {
		return err
	}
	settings, hosts, err := op.settings(ctx)
	if err != nil {
		return err
	}
	if err := op.openTraces(ctx); err != nil {
		return err
	}
	op.journal = &journal{
		dir: op.options.auditDir, origin: op.options.auditOrigin, keys: op.keys.current, timeout: op.options.auditTimeout,
		version: version, epoch: op.options.epoch, anchors: op.options.auditAnchors,
	}
	shared := op.shared(settings)
	shared.Events = controllers.NewEvents(ctx, op.mgr.GetClient())
	if shared.Metrics, err = controllers.NewMetrics(ctrlmetrics.Registry, op.queue, func() string { return shared.Drift() }); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	for _, step := range []func() error{
		func() error { return addRotator(op.mgr, op.options, hosts) },
		func() error { return op.wireWebhooks() },
		func() error { return op.wireControllers(shared) },
		func() error { return op.wireEndpoint(ctx, shared, hosts) },
		func() error { return op.wireHealth(shared.Policies) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	for _, r := range []manager.Runnable{op.keys, op.cert, op.journal, op.drift} {
		if err := op.mgr.Add(r); err != nil {
			return fmt.Errorf("adding a runnable: %w", err)
		}
	}
	return nil
}

// epoch is the operator's restore epoch.
func (op *operator) epoch() int64 { return op.options.epoch }

func (op *operator) shared(settings func() job.Settings) *controllers.Config {
	return &controllers.Config{
		Client:    op.mgr.GetClient(),
		Live:      op.reads,
		Keys:      op.keys.current,
		Contracts: op.contracts,
		Policies:  &policy.Store{},
		Journal:   op.journal,
		Epoch:     op.epoch,
		Drift:     op.drift.Problem,
		Restored:  op.restored(),
		Now:       time.Now,
		Retention: op.options.retention,
		Settings:  settings,
		Wake:      &controllers.Wake{},

		SamePerson: op.person,
		Tracer:     op.tracer,
	}
}

func (op *operator) wireWebhooks() error {
	return webhook.Setup(op.mgr, &webhook.Config{
		Cached: op.mgr.GetClient(), Live: op.reads, Reviews: op.live,
		Keys: op.keys.current, Contracts: op.contracts,
		Now: time.Now, Random: rand.Reader, Epoch: op.epoch,
		MaxReceiptLifetime: op.options.maxReceiptLifetime,
		MaxPending:         op.options.maxPending,
		SamePerson:         op.person,
		Rate:               webhook.NewRate(op.options.requestRate, op.options.requestBurst),
		Tracer:             op.tracer,
	})
}

func (op *operator) wireControllers(shared *controllers.Config) error {
	policies := &controllers.PolicyReconciler{Config: shared, Limits: policy.Limits{Objects: op.options.maxPolicyObjects}}
	shared.Behind = policies.Behind
	for _, c := range []interface{ SetupWithManager(ctrl.Manager) error }{
		policies,
		&controllers.ManifestReconciler{Config: shared},
		&controllers.ArgumentTypeReconciler{Config: shared},
		&controllers.ToolScopeReconciler{Config: shared},
		&controllers.SessionReconciler{Config: shared},
		&controllers.ProposalReconciler{Config: shared},
		&controllers.BatchReconciler{Config: shared},
		&controllers.EgressReconciler{Config: shared},
	} {
		if err := c.SetupWithManager(op.mgr); err != nil {
			return fmt.Errorf("setting up a controller: %w", err)
		}
	}
	// Without any policy in the cluster nothing would wake the controller that
	// loads them, and no call could even be denied.
	return op.mgr.Add(manager.RunnableFunc(policies.Load))
}

func (op *operator) wireEndpoint(ctx context.Context, shared *controllers.Config, hosts []string) error {
	// Every replica hands out calls, so that every replica remembers them.
	calls, err := op.mgr.GetCache().GetInformer(ctx, &v1alpha1.ToolProposal{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching proposals: %w", err)
	}
	if _, err := calls.AddEventHandler(shared.Past); err != nil {
		return fmt.Errorf("watching proposals: %w", err)
	}
	server := &execution.Server{
		Live: op.reads, Client: op.live, Keys: op.keys.current, Contracts: op.contracts,
		ExpectedJob: shared.ExpectedJob, Hosts: hosts, Now: time.Now, Epoch: op.epoch, Restored: op.watermark.Look,
		Log: ctrl.Log.WithName("execution"), Past: shared.Past, Tracer: op.tracer,
	}
	return op.mgr.Add(&endpoint{port: op.options.executionPort, handler: server.Handler(), cert: op.cert})
}

func (op *operator) wireHealth(policies *policy.Store) error {
	if err := op.mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the health check: %w", err)
	}
	if err := policies.SelfTest(); err != nil {
		// Restarting mends nothing: the operator stays, denies and is not ready.
		ctrl.Log.Error(err, "every call is denied")
	}
	err := op.mgr.AddReadyzCheck("serving", readiness(policies, op.cert.ready, op.mgr.GetWebhookServer().StartedChecker()))
	if err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	return nil
}

// readiness lets nobody ask an operator whose policy engine answers wrongly, or
// that does not serve yet.
func readiness(policies *policy.Store, cert func() error, started healthz.Checker) healthz.Checker {
	return func(req *http.Request) error {
		return errors.Join(policies.SelfTest(), cert(), started(req))
	}
}

// settings are the operator's share of every Job, and the names that the
// serving certificate is for.
func (op *operator) settings(ctx context.Context) (func() job.Settings, []string, error) {
	o := op.options
	u, err := url.Parse(o.executionURL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return nil, nil, fmt.Errorf("--execution-url must be https://host:port")
	}
	host := u.Hostname()
	hosts := []string{"assent-webhook." + o.namespace + ".svc", "assent-webhook." + o.namespace + ".svc.cluster.local", host}
	addresses, err := op.serviceAddresses(ctx, host)
	if err != nil {
		return nil, nil, err
	}
	canaries, err := op.canaries(ctx)
	if err != nil {
		return nil, nil, err
	}
	return func() job.Settings {
		return job.Settings{
			RunnerImage:  o.runnerImage,
			StartTimeout: o.startDeadline,
			Canaries:     canaries,
			Endpoint: job.Endpoint{
				URL: o.executionURL, CA: op.cert.ca(), PublicKeys: string(attest.EncodePublicKeysPEM(op.keys.current().PublicKeys()...)),
				Addresses: addresses, Namespace: o.namespace,
				PodLabels: map[string]string{"app.kubernetes.io/name": "assent"}, Port: int32(o.executionPort), //nolint:gosec // checked to be a port
			},
		}
	}, hosts, nil
}

// serviceAddresses are the cluster IPs of the Service behind the execution
// endpoint's name. Pods get them as host aliases, so that a call whose
// manifest allows no DNS finds the endpoint all the same.
func (op *operator) serviceAddresses(ctx context.Context, host string) ([]string, error) {
	name, rest, _ := strings.Cut(host, ".")
	if !strings.HasPrefix(rest, op.options.namespace+".svc") {
		return nil, nil
	}
	s := &corev1.Service{}
	if err := op.live.Get(ctx, client.ObjectKey{Namespace: op.options.namespace, Name: name}, s); err != nil {
		return nil, fmt.Errorf("reading the Service of the execution endpoint: %w", err)
	}
	return s.Spec.ClusterIPs, nil
}

// canaries are addresses that answer in an open network and that no call may
// reach: the operator's own webhooks, which only the API server asks.
func (op *operator) canaries(ctx context.Context) ([]string, error) {
	s := &corev1.Service{}
	if err := op.live.Get(ctx, client.ObjectKey{Namespace: op.options.namespace, Name: webhookService}, s); err != nil {
		return nil, fmt.Errorf("reading the Service of the webhooks: %w", err)
	}
	var out []string
	for _, ip := range s.Spec.ClusterIPs {
		for _, p := range s.Spec.Ports {
			out = append(out, net.JoinHostPort(ip, strconv.Itoa(int(p.Port))))
		}
	}
	return out, nil
}
