// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
)

// Generate writes the Cedar text to start from for a tool: it permits the tool
// to everybody, once approved where the contract demands it. A tool of high
// risk gets a warning, which also shows how to ask for approval.
//
// The error says why the tool has no Cedar form.
func Generate(tool Tool) (string, error) {
	action, resource, problem := binding(&tool)
	if problem != "" {
		return "", fmt.Errorf("tool %s: %s", tool.Name, problem)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "// Calls of %s, risk tier %s. Narrow who may call it, and with which arguments.\n", tool.name(), tool.RiskTier)
	risky := tool.RiskTier == "high" || tool.RiskTier == "critical"
	if risky {
		fmt.Fprintf(&b, "// WARNING: the risk tier is %s. Review and restrict this policy before it is used.\n", tool.RiskTier)
	}
	if risky && !tool.HumanApproval {
		b.WriteString("// To demand a person's approval, add: when { context.has_human_approval }\n")
	}
	fmt.Fprintf(&b, "permit (\n  principal,\n  action == %s,\n  resource == %s\n)", action, resource)
	if tool.HumanApproval {
		b.WriteString("\nwhen { context.has_human_approval }")
	}
	b.WriteString(";\n")
	return b.String(), nil
}
