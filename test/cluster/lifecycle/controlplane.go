// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"net"
	"strconv"
)

// Addresses of the cluster. The node has an address of its own on a bridge
// without members, because kubelet refuses loopback addresses and the machine's
// other addresses are none of this cluster's business.
const (
	nodeName      = "assent-node"
	nodeIP        = "172.31.250.1"
	podCIDR       = "10.244.0.0/24"
	serviceCIDR   = "10.96.0.0/16"
	apiServiceIP  = "10.96.0.1"
	dnsServiceIP  = "10.96.0.10"
	clusterDomain = "cluster.local"
	nodeAPIPort   = 6443
)

// kubernetesVersion is what the module requires and what the binary reports.
const kubernetesVersion = "1.37.2"

// kubePrograms are the names under which the multi-call binary is linked.
var kubePrograms = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
	"kubelet", "kube-proxy", "kubectl", "remove-sandboxes", policyAgent,
}

// address of the API server: in a control plane a free port on loopback, so
// that several can run beside each other; on a node the usual port on the
// node's address, where Pods reach it through the Service "kubernetes".
func (m Mode) address(ctx context.Context) (ip string, port int, err error) {
	if m == ModeNode {
		return nodeIP, nodeAPIPort, nil
	}
	port, err = freePort(ctx, "127.0.0.1")
	return "127.0.0.1", port, err
}

// freePort picks a port below the range from which the kernel takes the local
// ports of outgoing connections, so that none of those can take it between
// here and the start of the server.
func freePort(ctx context.Context, ip string) (int, error) {
	for range 100 {
		offset, err := rand.Int(rand.Reader, big.NewInt(12000))
		if err != nil {
			return 0, fmt.Errorf("choosing a port: %w", err)
		}
		port := 20000 + int(offset.Int64())
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(ip, strconv.Itoa(port)))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("no free port found on %s", ip)
}

// etcd listens on a socket that only the owner can reach: it holds every Secret
// and knows no users here.
func (l Layout) etcdSpec(mode Mode) spec {
	socket := "unix://" + l.etcdSocket()
	args := []string{
		"--name=assent",
		"--data-dir=" + l.data("etcd"),
		"--listen-client-urls=" + socket,
		"--advertise-client-urls=" + socket,
		// One member has no peers; the listener cannot be turned off.
		"--listen-peer-urls=http://127.0.0.1:0",
		"--log-level=warn",
	}
	if mode == ModeControlPlane {
		// What API tests store need not survive a power failure.
		args = append(args, "--unsafe-no-fsync")
	}
	return spec{name: "etcd", path: l.bin("etcd"), args: args}
}

func (l Layout) apiServerSpec(mode Mode, ip string, port int) spec {
	args := []string{
		"--etcd-servers=unix://" + l.etcdSocket(),
		"--bind-address=" + ip,
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + l.pki("apiserver.crt"),
		"--tls-private-key-file=" + l.pki("apiserver.key"),
		"--client-ca-file=" + l.pki("ca.crt"),
		"--authorization-mode=Node,RBAC",
		"--service-account-issuer=https://kubernetes.default.svc." + clusterDomain,
		"--service-account-key-file=" + l.pki("service-account.pub"),
		"--service-account-signing-key-file=" + l.pki("service-account.key"),
		"--service-cluster-ip-range=" + serviceCIDR,
		"--allow-privileged=true",
		"--requestheader-client-ca-file=" + l.pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + l.pki("front-proxy-client.crt"),
		"--proxy-client-key-file=" + l.pki("front-proxy-client.key"),
	}
	if mode == ModeControlPlane {
		args = append(args,
			// No Service leads here, and a loopback address may not be published.
			"--endpoint-reconciler-type=none",
			// No controller makes the "default" service accounts, without
			// which this plugin refuses every Pod.
			"--disable-admission-plugins=ServiceAccount",
		)
	} else {
		args = append(args,
			"--advertise-address="+ip,
			"--enable-admission-plugins=NodeRestriction",
			// Webhooks and aggregated APIs are called at a Pod's address.
			"--enable-aggregator-routing=true",
			// The node's name is in no DNS.
			"--kubelet-preferred-address-types=InternalIP",
			"--kubelet-certificate-authority="+l.pki("ca.crt"),
			"--kubelet-client-certificate="+l.pki("apiserver-kubelet-client.crt"),
			"--kubelet-client-key="+l.pki("apiserver-kubelet-client.key"),
		)
	}
	return spec{name: "kube-apiserver", path: l.bin("kube-apiserver"), args: args}
}

func (l Layout) controllerManagerSpec() spec {
	return spec{
		name: "kube-controller-manager",
		path: l.bin("kube-controller-manager"),
		args: []string{
			"--kubeconfig=" + l.conf("kube-controller-manager.kubeconfig"),
			"--service-account-private-key-file=" + l.pki("service-account.key"),
			"--root-ca-file=" + l.pki("ca.crt"),
			"--cluster-signing-cert-file=" + l.pki("ca.crt"),
			"--cluster-signing-key-file=" + l.pki("ca.key"),
			"--use-service-account-credentials=true",
			"--leader-elect=false",
			"--secure-port=0",
			// With its own default the program waits for its rate limit for
			// five seconds before its first controller runs.
			"--kube-api-qps=200",
			"--kube-api-burst=400",
		},
	}
}

func (l Layout) schedulerSpec() spec {
	return spec{
		name: "kube-scheduler",
		path: l.bin("kube-scheduler"),
		args: []string{
			"--kubeconfig=" + l.conf("kube-scheduler.kubeconfig"),
			"--leader-elect=false",
			"--secure-port=0",
		},
	}
}

// startControlPlane starts etcd and kube-apiserver and returns when the API
// server is ready.
func (c *cluster) startControlPlane(ctx context.Context) error {
	ip, port, err := c.rec.Mode.address(ctx)
	if err != nil {
		return err
	}
	c.rec.Server = "https://" + net.JoinHostPort(ip, strconv.Itoa(port))
	if err := c.makeCredentials(c.rec.Server, c.now()); err != nil {
		return err
	}
	return c.startServers(ctx, ip, port)
}

// startServers starts etcd and kube-apiserver, which belong to the credentials
// that are there.
func (c *cluster) startServers(ctx context.Context, ip string, port int) error {
	etcd, err := c.launch(ctx, c.etcdSpec(c.rec.Mode))
	if err != nil {
		return err
	}
	if err := c.await(ctx, etcd, "answering", dialable(c.etcdSocket())); err != nil {
		return err
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	apiserver, err := c.launch(ctx, c.apiServerSpec(c.rec.Mode, ip, port))
	if err != nil {
		return err
	}
	return c.await(ctx, apiserver, "ready", client.ready)
}

// dialable makes a check whether anything accepts connections at a socket.
func dialable(socket string) func(context.Context) bool {
	return func(ctx context.Context) bool {
		connection, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		return err == nil && connection.Close() == nil
	}
}
