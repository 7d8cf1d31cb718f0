// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// policyAgent is the program that enforces NetworkPolicies.
const policyAgent = "network-policies"

const (
	policyAgentAddress = nodeIP + ":20244"
	policyAgentHealth  = "http://" + policyAgentAddress
)

// The agent's chains and sets of addresses begin with these.
var (
	policyChains = []string{"KUBE-ROUTER-", "KUBE-POD-FW-", "KUBE-NWPLCY-"}
	policySets   = []string{"KUBE-SRC-", "KUBE-DST-"}
)

func (l Layout) policyAgentSpec() spec {
	return spec{
		name: policyAgent, path: l.bin(policyAgent),
		args: []string{
			"--kubeconfig=" + l.conf(policyAgent+".kubeconfig"),
			"--node=" + nodeName,
			"--services=" + serviceCIDR,
			"--health=" + policyAgentAddress,
		},
		// It looks for iptables and ipset in PATH.
		env: []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin"},
	}
}

// hasFilterTable reports whether nftables has the table that iptables filters
// in. Where iptables is the older one, the table is no object of its own and
// there is none to remove.
func hasFilterTable(ctx context.Context) bool {
	program, err := lookProgram("nft")
	if err != nil {
		return false
	}
	return exec.CommandContext(ctx, program, "list", "table", "ip", "filter").Run() == nil
}

// removePolicies removes the agent's rules, then the sets that they refer to.
func (c *cluster) removePolicies(ctx context.Context) error {
	rules, err := system(ctx, "", "iptables", "-S")
	if err != nil {
		return err
	}
	if script := removalOf(rules); script != "" {
		if _, err := system(ctx, script, "iptables-restore", "--noflush"); err != nil {
			return err
		}
	}
	// Asking is enough for iptables to make its table.
	if !c.rec.Machine.FilterTable && hasFilterTable(ctx) {
		if err := nft(ctx, "delete table ip filter\n"); err != nil {
			return err
		}
	}
	sets, err := system(ctx, "", "ipset", "list", "-n")
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(sets) {
		if !hasPrefix(name, policySets) {
			continue
		}
		if _, err := system(ctx, "", "ipset", "destroy", name); err != nil {
			return err
		}
	}
	return nil
}

// removalOf turns the rules that "iptables -S" lists into a script that
// removes the agent's chains and every rule that leads into one of them.
func removalOf(rules string) string {
	var jumps, flushes, deletions strings.Builder
	for line := range strings.Lines(rules) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		chain := words[1]
		switch {
		case words[0] == "-N" && hasPrefix(chain, policyChains):
			fmt.Fprintf(&flushes, "-F %s\n", chain)
			fmt.Fprintf(&deletions, "-X %s\n", chain)
		case words[0] == "-A" && !hasPrefix(chain, policyChains) && hasPrefix(words[len(words)-1], policyChains):
			jumps.WriteString("-D" + strings.TrimPrefix(strings.TrimSpace(line), "-A") + "\n")
		}
	}
	if deletions.Len() == 0 {
		return ""
	}
	return "*filter\n" + jumps.String() + flushes.String() + deletions.String() + "COMMIT\n"
}

func hasPrefix(text string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

// system runs one of the machine's own programs with an input.
func system(ctx context.Context, input, name string, args ...string) (string, error) {
	program, err := lookProgram(name)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = strings.NewReader(input)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(problems.String()))
	}
	return string(out), nil
}
