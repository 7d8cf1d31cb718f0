// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Command assent-dns is CoreDNS with only the plugins that the development
// cluster's Corefile names. The stock build links dozens of plugins for clouds
// and tracing services that a cluster without an outside network cannot use.
//
// A plugin is registered by its import; lifecycle/manifests/dns.yaml holds the
// Corefile that uses them.
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	coremain.Run()
}
