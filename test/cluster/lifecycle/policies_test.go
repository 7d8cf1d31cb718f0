// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRemoval_LeavesRulesOfOthersAlone(t *testing.T) {
	for name, tc := range map[string]struct{ rules, want string }{
		"the agent's chains and what leads there": {
			`-P INPUT ACCEPT
-P FORWARD DROP
-N DOCKER
-N KUBE-NWPLCY-DEFAULT
-N KUBE-POD-FW-AAAA
-N KUBE-ROUTER-FORWARD
-A FORWARD -m comment --comment "kube-router netpol - TEMC" -j KUBE-ROUTER-FORWARD
-A FORWARD -o docker0 -j DOCKER
-A KUBE-ROUTER-FORWARD -s 10.244.0.5/32 -j KUBE-POD-FW-AAAA
`,
			`*filter
-D FORWARD -m comment --comment "kube-router netpol - TEMC" -j KUBE-ROUTER-FORWARD
-F KUBE-NWPLCY-DEFAULT
-F KUBE-POD-FW-AAAA
-F KUBE-ROUTER-FORWARD
-X KUBE-NWPLCY-DEFAULT
-X KUBE-POD-FW-AAAA
-X KUBE-ROUTER-FORWARD
COMMIT
`,
		},
		"nothing where the agent was not": {"-P INPUT ACCEPT\n-N DOCKER\n-A INPUT -j DOCKER\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, removalOf(tc.rules)); diff != "" {
				t.Errorf("script (-want +got):\n%s", diff)
			}
		})
	}
}
