// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// writes counts the requests that changed something, as the API server counts
// them itself: by resource or resource/subresource, and verb.
type writes map[string]int

func (f *fixture) writes() writes {
	f.t.Helper()
	set, err := kubernetes.NewForConfig(installed.config)
	if err != nil {
		f.t.Fatal(err)
	}
	text, err := set.RESTClient().Get().AbsPath("/metrics").DoRaw(f.ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	out := writes{}
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, "apiserver_request_total{")
		if !ok {
			continue
		}
		labels, value, _ := strings.Cut(rest, "} ")
		l := map[string]string{}
		for pair := range strings.SplitSeq(labels, ",") {
			name, text, _ := strings.Cut(pair, "=")
			l[name] = strings.Trim(text, `"`)
		}
		if !slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE"}, l["verb"]) || !strings.HasPrefix(l["code"], "2") || l["dry_run"] != "" {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil {
			f.t.Fatalf("reading the metrics: %v", err)
		}
		out[strings.TrimSuffix(l["resource"]+"/"+l["subresource"], "/")+" "+l["verb"]] += n
	}
	return out
}

// of is how much more of these there were since an earlier count.
func (w writes) of(before writes, names ...string) (n int) {
	for _, name := range names {
		n += w[name] - before[name]
	}
	return n
}

// The promise is per call: four writes beside its Job where policy allows it,
// seven where a person approves it, and two Events. Nobody but the operator
// writes the status of calls and receipts, or a Job itself; its status and its
// Pods are Kubernetes' own.
func TestCall_CostsNoMoreWritesThanPromised(t *testing.T) {
	const calls = 5
	f := newFixture(t)
	f.alone()
	for name, tc := range map[string]struct {
		human  bool
		budget int
	}{
		"a call that policy allows":     {false, 4},
		"a call that a person approved": {true, 7},
	} {
		t.Run(name, func(t *testing.T) {
			tool := fmt.Sprintf("print-%t", tc.human)
			f.probe(tool, "print", func(m *v1alpha1.ToolManifest) { m.Spec.HumanApproval = tc.human })
			run := func() {
				p := f.propose(tool, "hello")
				if tc.human {
					f.approve(f.await(p, v1alpha1.PhaseAwaitingApproval))
				}
				if got, want := outcome(f.await(p, v1alpha1.PhaseSucceeded)), "Succeeded/Succeeded"; got != want {
					t.Fatalf("got %s, want %s", got, want)
				}
			}
			run() // makes what later calls share
			before, eventsBefore := f.writes(), f.events()
			for range calls {
				run()
			}
			after := f.writes()
			status := after.of(before,
				"toolproposals/status PUT", "toolproposals/status PATCH", "toolproposals PUT", "toolproposals PATCH", "toolproposals DELETE",
				"approvalreceipts/status PUT", "approvalreceipts/status PATCH", "approvalreceipts PUT", "approvalreceipts PATCH", "approvalreceipts DELETE")
			jobs := after.of(before, "jobs PUT", "jobs PATCH", "jobs DELETE")
			network := after.of(before, "networkpolicies POST", "networkpolicies PUT", "networkpolicies PATCH")
			created, events := after.of(before, "jobs POST"), f.events()-eventsBefore
			t.Logf("%d calls: %d Jobs, %d writes of calls and receipts, %d other writes of Jobs, %d of NetworkPolicies, %d Events",
				calls, created, status, jobs, network, events)
			if got := status + jobs + network; created != calls || got > tc.budget*calls {
				t.Errorf("%d Jobs and %d other writes for %d calls, want %d and at most %d", created, got, calls, calls, tc.budget*calls)
			}
			if events > 2*calls {
				t.Errorf("%d Events for %d calls, want at most %d", events, calls, 2*calls)
			}
		})
	}
}

// alone waits until the calls of other tests are gone: the API server counts
// for the whole cluster.
func (f *fixture) alone() {
	f.t.Helper()
	f.eventually("the namespaces of other tests to be gone", func() bool {
		var list corev1.NamespaceList
		if installed.admin.List(f.ctx, &list) != nil {
			return false
		}
		for i := range list.Items {
			if name := list.Items[i].Name; strings.HasPrefix(name, "e2e-") && name != f.namespace {
				return false
			}
		}
		return true
	})
}

// events counts the operator's Events in the namespace.
func (f *fixture) events() (n int) {
	f.t.Helper()
	var list eventsv1.EventList
	if err := installed.admin.List(f.ctx, &list, client.InNamespace(f.namespace)); err != nil {
		f.t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].ReportingController == "assent" {
			n++
		}
	}
	return n
}
