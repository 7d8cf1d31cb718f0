// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed templates manifests
var files embed.FS

// settings fills the templates and manifests.
type settings struct {
	Root, State, Socket, RuncRoot     string
	PauseImage, DNSImage              string
	PluginFolder, NetworkConfig       string
	NetworkName, AddressData, PodCIDR string
	PKI, PodLogs, VolumePlugins       string
	ResolvConf, DNS, ClusterDomain    string
	NodeName, NodeIP, Kubeconfig      string
}

const (
	dnsDeployment   = "/apis/apps/v1/namespaces/kube-system/deployments/coredns"
	kubeProxyHealth = "http://" + nodeIP + ":10256/healthz"
)

func (c *cluster) settings(found tools) settings {
	return settings{
		Root: c.data("containerd"), State: c.run("containerd"), Socket: c.containerdSocket(), RuncRoot: c.run("runc"),
		PauseImage: pauseImage, DNSImage: dnsImage,
		PluginFolder: found.plugins, NetworkConfig: c.conf("cni"),
		NetworkName: networkName, AddressData: c.data("addresses"), PodCIDR: podCIDR,
		PKI: c.pki(""), PodLogs: c.data("pod-logs"), VolumePlugins: c.data("volume-plugins"),
		ResolvConf: c.conf("resolv.conf"), DNS: dnsServiceIP, ClusterDomain: clusterDomain,
		NodeName: nodeName, NodeIP: nodeIP, Kubeconfig: c.conf("kube-proxy.kubeconfig"),
	}
}

// prepareNode gets the machine ready for a node. Everything that can refuse comes
// before the first change, so that a machine that cannot do it, or has a node
// already, stays as it was.
func (c *cluster) prepareNode(ctx context.Context) error {
	found, err := c.findTools(ctx)
	if err != nil {
		return err
	}
	if err := c.writeConfig(c.settings(found)); err != nil {
		return err
	}
	if err := c.checkBridge(); err != nil {
		return err
	}
	if err := checkRoutes(); err != nil {
		return err
	}
	c.rec.Machine = &machineBefore{Sysctls: readSysctls(), OwnsPodCgroups: len(podCgroups()) == 0, FilterTable: hasFilterTable(ctx)}
	if err := c.save(c.rec); err != nil {
		return err
	}
	return c.makeNetwork(ctx)
}

func (c *cluster) writeConfig(s settings) error {
	for _, dir := range []string{s.NetworkConfig, s.PodLogs, s.VolumePlugins} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("writing the node's configuration: %w", err)
		}
	}
	targets := map[string]string{
		"templates/containerd.toml":  c.conf("containerd.toml"),
		"templates/kubelet.yaml":     c.conf("kubelet.yaml"),
		"templates/kube-proxy.yaml":  c.conf("kube-proxy.yaml"),
		"templates/network.conflist": filepath.Join(s.NetworkConfig, "10-assent.conflist"),
		"manifests/dns.yaml":         c.conf("dns.yaml"),
		"manifests/policies.yaml":    c.conf("policies.yaml"),
	}
	for source, target := range targets {
		text, err := render(source, s)
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, text, 0o600); err != nil {
			return fmt.Errorf("writing the node's configuration: %w", err)
		}
	}
	// Pods with dnsPolicy Default get this: an empty file is a valid one.
	if err := os.WriteFile(s.ResolvConf, nil, 0o644); err != nil {
		return fmt.Errorf("writing the node's configuration: %w", err)
	}
	return nil
}

func render(name string, s settings) ([]byte, error) {
	parsed, err := template.New(filepath.Base(name)).Option("missingkey=error").ParseFS(files, name)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", name, err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, s); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", name, err)
	}
	return out.Bytes(), nil
}

func containerdSpec(l Layout) (spec, error) {
	path, err := lookProgram("containerd")
	if err != nil {
		return spec{}, err
	}
	return spec{
		name: "containerd", path: path,
		args: []string{"--config=" + l.conf("containerd.toml")},
		// containerd looks for runc and its shim in PATH.
		env: []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin"},
	}, nil
}

func (l Layout) kubeletSpec() spec {
	return spec{name: "kubelet", path: l.bin("kubelet"), args: []string{
		"--config=" + l.conf("kubelet.yaml"),
		"--kubeconfig=" + l.conf("kubelet.kubeconfig"),
		"--root-dir=" + l.run("kubelet"),
		"--cert-dir=" + l.run("kubelet-pki"),
		"--hostname-override=" + nodeName,
		"--node-ip=" + nodeIP,
	}}
}

func (l Layout) proxySpec() spec {
	return spec{name: "kube-proxy", path: l.bin("kube-proxy"), args: []string{
		"--config=" + l.conf("kube-proxy.yaml"),
	}}
}

// startNode starts everything beside the control plane. What can start side by
// side is launched first and waited for afterwards.
func (c *cluster) startNode(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	if err := c.startRuntime(ctx); err != nil {
		return err
	}
	// It gets ready as soon as kubelet has registered the node.
	agent, err := c.launch(ctx, c.policyAgentSpec())
	if err != nil {
		return err
	}
	kubelet, err := c.launch(ctx, c.kubeletSpec())
	if err != nil {
		return err
	}
	proxy, err := c.launch(ctx, c.proxySpec())
	if err != nil {
		return err
	}
	if err := c.await(ctx, proxy, "healthy", answersOK(kubeProxyHealth)); err != nil {
		return err
	}
	if err := c.await(ctx, kubelet, "ready", func(ctx context.Context) bool {
		return client.condition(ctx, "/api/v1/nodes/"+nodeName, "Ready")
	}); err != nil {
		return err
	}
	if err := c.await(ctx, agent, "enforcing policies", answersOK(policyAgentHealth)); err != nil {
		return err
	}
	return c.await(ctx, kubelet, "running DNS", func(ctx context.Context) bool {
		return client.condition(ctx, dnsDeployment, "Available")
	})
}

// startRuntime starts the container runtime and gives it the images that the
// node needs itself. The controllers get going meanwhile.
func (c *cluster) startRuntime(ctx context.Context) error {
	containerdSpec, err := containerdSpec(c.Layout)
	if err != nil {
		return err
	}
	containerd, err := c.launch(ctx, containerdSpec)
	if err != nil {
		return err
	}
	for _, s := range []spec{c.controllerManagerSpec(), c.schedulerSpec()} {
		if _, err := c.launch(ctx, s); err != nil {
			return err
		}
	}
	if err := c.applyObjects(ctx); err != nil {
		return err
	}
	if err := c.await(ctx, containerd, "answering", dialable(c.containerdSocket())); err != nil {
		return err
	}
	return c.loadOwnImages(ctx)
}

// applyObjects creates what the cluster itself needs to have. The Pods among it
// wait for the node.
func (c *cluster) applyObjects(ctx context.Context) error {
	apply := exec.CommandContext(ctx, c.bin("kubectl"), "--kubeconfig", c.Kubeconfig(), "apply", "--server-side",
		"-f", c.conf("policies.yaml"), "-f", c.conf("dns.yaml"))
	if out, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("creating the cluster's own objects: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// stopNode ends the node's part in the order in which nothing starts again what
// was just removed: kubelet and the controllers before the Pods, the Pods before
// the container runtime.
func (c *cluster) stopNode(ctx context.Context) error {
	for _, name := range []string{"kubelet", "kube-scheduler", "kube-controller-manager", "kube-proxy", policyAgent} {
		if err := c.stopNamed(name); err != nil {
			return err
		}
	}
	if dialable(c.containerdSocket())(ctx) {
		// Not fatal: what is left is killed and unmounted afterwards.
		if out, err := output(ctx, c.bin("remove-sandboxes"), "unix://"+c.containerdSocket()); err != nil {
			c.say("removing the Pods: %v", err)
		} else {
			c.say("%s", strings.TrimSpace(out))
		}
	}
	return c.stopNamed("containerd")
}

// answersOK makes a check whether a URL answers with status 200.
func answersOK(url string) func(context.Context) bool {
	// A transport without settings uses no proxy.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return func(ctx context.Context) bool {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return false
		}
		response, err := client.Do(request)
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}
}
