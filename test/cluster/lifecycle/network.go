// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
)

// bridgeName is the interface that carries the node's address. It has no
// members: Pods hang on the machine by one veth pair each.
const bridgeName = "assent0"

// networkName is the Pod network's name in its configuration.
const networkName = "assent"

// masqueradeTable holds the one rule that lets Pods reach other machines. Its
// name marks it as this cluster's, so that it can be removed without a trace.
const masqueradeTable = "assent-cluster"

// networkTables are the nftables tables that exist only while a node is up:
// ours, and kube-proxy's, which leaves its own behind when it is stopped.
var networkTables = [][2]string{
	{"ip", masqueradeTable}, {"ip", "kube-proxy"}, {"ip6", "kube-proxy"},
}

// sysctls are the kernel settings that a node changes: forwarding by us, the
// others by kubelet when it starts. They are put back by "down".
var sysctls = []string{
	"net/ipv4/ip_forward",
	"vm/overcommit_memory", "vm/panic_on_oom",
	"kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// makeNetwork gives the node its address and the Pods their way out.
func (c *cluster) makeNetwork(ctx context.Context) error {
	if err := makeBridge(c.State); err != nil {
		return err
	}
	if err := writeSysctl("net/ipv4/ip_forward", "1"); err != nil {
		return err
	}
	return nft(ctx, fmt.Sprintf(`table ip %[1]s
delete table ip %[1]s
table ip %[1]s {
	chain postrouting {
		type nat hook postrouting priority srcnat
		ip saddr %[2]s ip daddr != { %[2]s, %[3]s, %[4]s } masquerade
	}
}
`, masqueradeTable, podCIDR, serviceCIDR, nodeIP))
}

// checkBridge refuses to share the machine with the node of another state
// folder, whose path is kept in the bridge's alias.
func (c *cluster) checkBridge() error {
	link, err := netlink.LinkByName(bridgeName)
	if _, absent := errors.AsType[netlink.LinkNotFoundError](err); absent {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for the interface %s: %w", bridgeName, err)
	}
	owner := link.Attrs().Alias
	if owner == c.State {
		return nil
	}
	return fmt.Errorf("the interface %s exists already: another node is up in %q; stop it with \"assent-cluster down --state %s\"", bridgeName, owner, owner)
}

// checkRoutes refuses address ranges that lead somewhere already.
func checkRoutes() error {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("listing the routes: %w", err)
	}
	bridge := -1
	if link, err := netlink.LinkByName(bridgeName); err == nil {
		bridge = link.Attrs().Index
	}
	for _, cidr := range []string{nodeIP + "/32", podCIDR, serviceCIDR} {
		_, wanted, err := net.ParseCIDR(cidr)
		if err != nil {
			return err
		}
		for _, route := range routes {
			if route.LinkIndex != bridge && overlaps(route.Dst, wanted) {
				return fmt.Errorf("the cluster's addresses %s overlap with the route to %s: remove that route, or use another machine", cidr, route.Dst)
			}
		}
	}
	return nil
}

// overlaps ignores default routes, which overlap with everything.
func overlaps(route, wanted *net.IPNet) bool {
	if route == nil {
		return false
	}
	if ones, _ := route.Mask.Size(); ones == 0 {
		return false
	}
	return route.Contains(wanted.IP) || wanted.Contains(route.IP)
}

func makeBridge(owner string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = bridgeName
	bridge := &netlink.Bridge{LinkAttrs: attrs}
	if err := netlink.LinkAdd(bridge); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("making the interface %s: %w", bridgeName, err)
	}
	link, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return fmt.Errorf("making the interface %s: %w", bridgeName, err)
	}
	if err := netlink.LinkSetAlias(link, owner); err != nil {
		return fmt.Errorf("marking the interface %s: %w", bridgeName, err)
	}
	address, err := netlink.ParseAddr(nodeIP + "/32")
	if err != nil {
		return err
	}
	if err := netlink.AddrReplace(link, address); err != nil {
		return fmt.Errorf("giving %s the address %s: %w", bridgeName, nodeIP, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("starting the interface %s: %w", bridgeName, err)
	}
	return nil
}

// removeNetwork undoes makeNetwork and removes what kube-proxy and the Pods'
// network left.
func (c *cluster) removeNetwork(ctx context.Context) error {
	var failures []error
	for _, table := range networkTables {
		// Adding first makes the deletion of an absent table no error.
		name := table[0] + " " + table[1]
		failures = append(failures, nft(ctx, "add table "+name+"\ndelete table "+name+"\n"))
	}
	failures = append(failures, c.removePolicies(ctx), removePodLinks(ctx))
	if link, err := netlink.LinkByName(bridgeName); err == nil && link.Attrs().Alias == c.State {
		failures = append(failures, netlink.LinkDel(link))
	}
	for name, value := range c.rec.Machine.Sysctls {
		failures = append(failures, writeSysctl(name, value))
	}
	return errors.Join(failures...)
}

// removePodLinks deletes the machine's ends of the Pods' veth pairs. The plugin
// that made them removes them as a rule; the kernel does so a moment after the
// last process of a network namespace has gone. Only links that carry a route
// into the Pods' range are this cluster's.
func removePodLinks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_ = poll(ctx, func() (bool, error) {
		links, err := podLinks()
		return len(links) == 0, err
	})
	links, err := podLinks()
	if err != nil {
		return err
	}
	var failures []error
	for _, link := range links {
		failures = append(failures, netlink.LinkDel(link))
	}
	return errors.Join(failures...)
}

func podLinks() ([]netlink.Link, error) {
	_, pods, err := net.ParseCIDR(podCIDR)
	if err != nil {
		return nil, err
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("listing the routes: %w", err)
	}
	var links []netlink.Link
	for _, route := range routes {
		if route.Dst == nil || !pods.Contains(route.Dst.IP) {
			continue
		}
		link, err := netlink.LinkByIndex(route.LinkIndex)
		if err == nil && link.Type() == "veth" {
			links = append(links, link)
		}
	}
	return links, nil
}

// nft runs a script in one transaction.
func nft(ctx context.Context, script string) error {
	program, err := lookProgram("nft")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, "-f", "-")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("changing nftables: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

func readSysctls() map[string]string {
	values := map[string]string{}
	for _, name := range sysctls {
		if data, err := os.ReadFile(filepath.Join("/proc/sys", name)); err == nil {
			values[name] = strings.TrimSpace(string(data))
		}
	}
	return values
}

// writeSysctl leaves a value alone that is right already: some may not be
// written on every machine.
func writeSysctl(name, value string) error {
	path := filepath.Join("/proc/sys", name)
	if data, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(data)) == value {
		return nil
	}
	if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
		return fmt.Errorf("setting %s: %w", name, err)
	}
	return nil
}
