// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// needs maps each program that a node is made of, beside Kubernetes, to the
// Debian package that brings it. iptables and ipset are for the network policy
// agent alone: kube-proxy runs in nftables mode and the Pods' way out is a rule
// of our own.
var needs = map[string]string{
	"containerd":              "containerd",
	"ctr":                     "containerd",
	"containerd-shim-runc-v2": "containerd",
	"runc":                    "runc",
	"nft":                     "nftables",
	"iptables":                "iptables",
	"iptables-save":           "iptables",
	"iptables-restore":        "iptables",
	"ipset":                   "ipset",
	"mount":                   "mount",
	"umount":                  "mount",
}

// networkPlugins are the CNI plugins that the Pod network is made of.
var networkPlugins = []string{"ptp", "host-local", "loopback"}

const networkPluginPackage = "containernetworking-plugins"

// pluginFolders are where distributions put CNI plugins, Debian's first.
var pluginFolders = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// tools is what the machine was found to have.
type tools struct {
	plugins string
}

// errNotRoot is the answer to a full node without the rights for it.
var errNotRoot = errors.New("a full node makes network interfaces, mounts and cgroups and needs root; " +
	"use --control-plane-only, or set KUBECONFIG to another cluster and run the tests there")

// findTools looks for everything a node needs and, on Debian, installs what is
// missing.
func (c *cluster) findTools(ctx context.Context) (tools, error) {
	if os.Geteuid() != 0 {
		return tools{}, errNotRoot
	}
	missing, packages := missingTools()
	if len(missing) > 0 {
		if err := c.install(ctx, missing, packages); err != nil {
			return tools{}, err
		}
		if missing, _ = missingTools(); len(missing) > 0 {
			return tools{}, fmt.Errorf("still missing after the packages were installed: %s", strings.Join(missing, ", "))
		}
	}
	return tools{plugins: pluginFolder()}, nil
}

func missingTools() (programs, packages []string) {
	wanted := map[string]bool{}
	for program, from := range needs {
		if _, err := lookProgram(program); err != nil {
			programs = append(programs, program)
			wanted[from] = true
		}
	}
	if pluginFolder() == "" {
		programs = append(programs, "the CNI plugins "+strings.Join(networkPlugins, ", "))
		wanted[networkPluginPackage] = true
	}
	slices.Sort(programs)
	return programs, slices.Sorted(maps.Keys(wanted))
}

// pluginFolder is the first folder that holds all the plugins, or "".
func pluginFolder() string {
	for _, folder := range pluginFolders {
		complete := true
		for _, plugin := range networkPlugins {
			if _, err := os.Stat(filepath.Join(folder, plugin)); err != nil {
				complete = false
			}
		}
		if complete {
			return folder
		}
	}
	return ""
}

// lookProgram also looks where only root's PATH leads.
func lookProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, folder := range []string{"/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

// install uses the system's own package sources. It does not start services: a
// containerd that runs by itself would be in nobody's way, but nobody asked for
// it either.
func (c *cluster) install(ctx context.Context, missing, packages []string) error {
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return fmt.Errorf("missing on this machine: %s; install them (Debian calls the packages %s) and try again",
			strings.Join(missing, ", "), strings.Join(packages, ", "))
	}
	c.say("installing %s (missing: %s)", strings.Join(packages, ", "), strings.Join(missing, ", "))
	install := append([]string{"install", "-y", "-qq", "--no-install-recommends"}, packages...)
	if err := c.apt(ctx, apt, install); err == nil {
		return nil
	}
	// The package lists of a fresh machine are empty or old.
	if err := c.apt(ctx, apt, []string{"update", "-qq"}); err != nil {
		return err
	}
	return c.apt(ctx, apt, install)
}

func (c *cluster) apt(ctx context.Context, apt string, args []string) error {
	log, err := os.OpenFile(c.Log("apt"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("installing packages: %w", err)
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, apt, args...)
	cmd.Stdout, cmd.Stderr = log, log
	// RUNLEVEL makes Debian's service helpers believe that the machine is in
	// single-user mode, in which they start nothing (invoke-rc.d(8)).
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("apt-get %s: %w; the end of %s:\n%s", args[0], err, c.Log("apt"), tail(c.Log("apt")))
	}
	return nil
}
