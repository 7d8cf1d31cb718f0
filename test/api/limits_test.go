// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// padded is a text with spaces behind it, to a length in bytes.
func padded(text string, length int) string { return text + repeat(" ", length-len(text)) }

func TestArguments_AreAtMost64KiB(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	for name, tc := range map[string]struct {
		length int
		want   string
	}{
		"at the limit":     {64 << 10, "accepted"},
		"beyond the limit": {64<<10 + 1, "422 spec.arguments:TooLarge"},
	} {
		t.Run(name, func(t *testing.T) {
			got := refusalOf(f.as(agent).Create(f.ctx, f.newProposal("restart", padded(`{"target":"web"}`, tc.length)), client.DryRunAll))
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestPolicyText_IsAtMost32KiB(t *testing.T) {
	f := newFixture(t)
	for name, tc := range map[string]struct {
		length int
		want   string
	}{
		"at the limit":     {32 << 10, "accepted"},
		"beyond the limit": {32<<10 + 1, "422 spec.cedar"},
	} {
		t.Run(name, func(t *testing.T) {
			got := refusalOf(server.admin.Create(f.ctx, &v1alpha1.ToolPolicy{
				ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: f.namespace},
				Spec:       v1alpha1.PolicySpec{Cedar: padded(permitAll, tc.length)},
			}, client.DryRunAll))
			if !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestRequester_HasAtMostAHundredOpenCalls(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.session("s")
	c := f.as(f.bot())
	try := func() string {
		return refusalOf(c.Create(f.ctx, f.newProposal("restart", `{"target":"web"}`), client.DryRunAll))
	}
	parallel(99, 16, func(i int) {
		p := f.newProposal("restart", `{"target":"web"}`)
		p.Spec.CallID = fmt.Sprint(i)
		if err := c.Create(f.ctx, p); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	})
	if got, want := try(), "accepted"; got != want {
		t.Errorf("the hundredth: got %s, want %s", got, want)
	}
	f.made(f.newProposal("restart", `{"target":"web"}`))
	// Admission counts in its cache, which is behind for a moment.
	got := ""
	for range 200 {
		if got = try(); got != "accepted" {
			break
		}
	}
	if want := "429 spec.requester:QuotaExceeded"; got != want {
		t.Errorf("one more: got %s, want %s", got, want)
	}
}
