// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"github.com/cloudnativelabs/kube-router/v2/pkg/utils"
	"github.com/coreos/go-iptables/iptables"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// policySync is how often all rules are written anew without a change.
const policySync = 5 * time.Minute

// nodePoll is how often the agent looks whether its node is there.
const nodePoll = 100 * time.Millisecond

// policyFlags configure the agent that enforces NetworkPolicies.
type policyFlags struct {
	kubeconfig, node, services, health string
}

// enforcePolicies runs the network policy controller of kube-router, and
// nothing else of it: routes, Services and the CNI configuration are not its.
// It answers on the health address once the controller works.
func enforcePolicies() int {
	var f policyFlags
	flags := flag.NewFlagSet("network-policies", flag.ExitOnError)
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "how to reach the API server")
	flags.StringVar(&f.node, "node", "", "name of this node")
	flags.StringVar(&f.services, "services", "", "range of the addresses of Services")
	flags.StringVar(&f.health, "health", "", "address that answers 200 once the controller works")
	_ = flags.Parse(os.Args[1:]) // ends the process where they are wrong
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := f.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "network-policies:", err)
		return 1
	}
	return 0
}

func (f policyFlags) run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if err := f.awaitNode(ctx, client); err != nil {
		return err
	}
	controller, err := f.controller(ctx, client)
	if err != nil {
		return err
	}
	return serveWhile(ctx, f.health, controller)
}

// awaitNode waits until kubelet has registered the node with its address. The
// controller asks once, when it is made.
func (f policyFlags) awaitNode(ctx context.Context, client kubernetes.Interface) error {
	for {
		node, err := client.CoreV1().Nodes().Get(ctx, f.node, metav1.GetOptions{})
		if err == nil && len(node.Status.Addresses) > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the node %s: %w", f.node, cmp.Or(err, ctx.Err()))
		case <-time.After(nodePoll):
		}
	}
}

// controller makes the controller and connects it with what it watches.
func (f policyFlags) controller(ctx context.Context, client kubernetes.Interface) (*netpol.NetworkPolicyController, error) {
	factory := informers.NewSharedInformerFactory(client, 0)
	pods, namespaces := factory.Core().V1().Pods().Informer(), factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, fmt.Errorf("listing %v: stopped before it was complete", kind)
		}
	}
	tables, err := iptables.NewWithProtocol(iptables.ProtocolIPv4)
	if err != nil {
		return nil, fmt.Errorf("looking for iptables: %w", err)
	}
	sets, err := utils.NewIPSet(false)
	if err != nil {
		return nil, fmt.Errorf("looking for ipset: %w", err)
	}
	controller, err := netpol.NewNetworkPolicyController(client, f.settings(), pods, policies, namespaces, &sync.Mutex{},
		map[corev1.IPFamily]utils.IPTablesHandler{corev1.IPv4Protocol: tables},
		map[corev1.IPFamily]utils.IPSetHandler{corev1.IPv4Protocol: sets})
	if err != nil {
		return nil, fmt.Errorf("making the network policy controller: %w", err)
	}
	return controller, watch(map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		pods: controller.PodEventHandler, namespaces: controller.NamespaceEventHandler, policies: controller.NetworkPolicyEventHandler,
	})
}

func (f policyFlags) settings() *options.KubeRouterConfig {
	s := options.NewKubeRouterConfig()
	s.HostnameOverride, s.ClusterIPCIDRs = f.node, []string{f.services}
	s.EnableIPv4, s.IPTablesSyncPeriod = true, policySync
	return s
}

func watch(handlers map[cache.SharedIndexInformer]cache.ResourceEventHandler) error {
	for informer, handler := range handlers {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watching for changes: %w", err)
		}
	}
	return nil
}

// serveWhile runs the controller and says on the address how it is. The
// controller sends a heartbeat with each synchronisation that it begins.
func serveWhile(ctx context.Context, address string, controller *netpol.NetworkPolicyController) error {
	var beats atomic.Int64
	heart := make(chan *healthcheck.ControllerHeartbeat, 10)
	go func() {
		for range heart {
			beats.Add(1)
		}
	}()
	var running sync.WaitGroup
	running.Add(1)
	go controller.Run(heart, ctx.Done(), &running)
	server := &http.Server{Addr: address, ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if beats.Load() == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answering on %s: %w", address, err)
	}
	running.Wait()
	return nil
}
