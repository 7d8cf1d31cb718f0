// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Command assent-kube is every Kubernetes process of the development cluster
// in one binary: it behaves as the program whose name it is started under
// (etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet,
// kube-proxy, kubectl or remove-sandboxes), so that all of them share one
// compile and one link.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// programs maps the name the binary is started under to what it runs.
var programs = map[string]func() int{
	"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
	"kube-apiserver":          command(apiserver.NewAPIServerCommand),
	"kube-controller-manager": command(controllermanager.NewControllerManagerCommand),
	"kube-scheduler":          command(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubelet": command(func() *cobra.Command {
		return kubelet.NewKubeletCommand(context.Background())
	}),
	"kube-proxy": command(proxy.NewProxyCommand),
	"kubectl":    command(kubectlcmd.NewDefaultKubectlCommand),
	// Not a Kubernetes program either way: kube-router's controller alone.
	"network-policies": enforcePolicies,
	// Not a Kubernetes program: what a stopping node needs from the container
	// runtime, here because the kubelet has already linked the client for it.
	"remove-sandboxes": removeSandboxes,
}

func command(build func() *cobra.Command) func() int {
	return func() int { return cli.Run(build()) }
}

func main() {
	run, ok := programs[filepath.Base(os.Args[0])]
	if !ok {
		names := make([]string, 0, len(programs))
		for name := range programs {
			names = append(names, name)
		}
		sort.Strings(names)
		fmt.Fprintf(os.Stderr, "start this binary through a link named %s\n", strings.Join(names, ", "))
		os.Exit(2)
	}
	os.Exit(run())
}
