// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"github.com/vishvananda/netlink"
)

// traces is what a node could leave behind on a machine.
type traces struct {
	Mounts, Interfaces, Tables, Routes []string
	Cgroups, AddressSets               []string
	Sysctls                            map[string]string
	Shims                              int
}

func machine(t *testing.T) traces {
	t.Helper()
	result := traces{Sysctls: map[string]string{}}
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, mount := range mounts {
		result.Mounts = append(result.Mounts, mount.Mountpoint)
	}
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		result.Interfaces = append(result.Interfaces, link.Attrs().Name)
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		t.Fatal(err)
	}
	for _, route := range routes {
		result.Routes = append(result.Routes, route.String())
	}
	if out, err := exec.Command("nft", "list", "tables").Output(); err == nil {
		result.Tables = strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	if out, err := exec.Command("ipset", "list", "-n").Output(); err == nil {
		result.AddressSets = strings.Fields(string(out))
	}
	for _, pattern := range []string{"/sys/fs/cgroup/kubepods", "/sys/fs/cgroup/*/kubepods"} {
		found, _ := filepath.Glob(pattern)
		result.Cgroups = append(result.Cgroups, found...)
	}
	for _, name := range []string{"net/ipv4/ip_forward", "vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops"} {
		value, _ := os.ReadFile(filepath.Join("/proc/sys", name))
		result.Sysctls[name] = string(value)
	}
	result.Shims = len(processesNaming(t, "containerd-shim"))
	for _, list := range [][]string{result.Mounts, result.Interfaces, result.Tables, result.Routes, result.Cgroups, result.AddressSets} {
		sort.Strings(list)
	}
	return result
}

// processesNaming lists the processes with the text in their arguments. One that
// has ended but was not collected by its parent has no arguments any more.
func processesNaming(t *testing.T, text string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(data), text) {
			found = append(found, strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	return found
}
