// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// withoutAdmission takes Assent's webhooks away for the rest of the test, as
// an administrator or an outage would.
func (f *fixture) withoutAdmission() {
	f.t.Helper()
	if err := server.hooks.remove(f.ctx, server.admin); err != nil {
		f.t.Fatal(err)
	}
	ctx := f.t.Context()
	f.t.Cleanup(func() {
		ctx = noCancel(ctx)
		if err := server.hooks.install(ctx, server.admin); err != nil {
			f.t.Errorf("installing the webhooks again: %v", err)
		}
		server.awaitAdmission(f.t, true)
	})
	server.awaitAdmission(f.t, false)
}

// awaitAdmission waits until kube-apiserver has noticed that the webhook
// configurations came or went, which it does within a second.
func (s *apiServer) awaitAdmission(t *testing.T, want bool) {
	t.Helper()
	probe := &v1alpha1.ToolProposal{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-", Namespace: "default"},
		Spec:       v1alpha1.ToolProposalSpec{Tool: "nothing", Arguments: "{}", CallID: "probe"},
	}
	for range 200 {
		err := s.admin.Create(noCancel(t.Context()), probe.DeepCopy(), client.DryRunAll)
		if (err != nil) == want {
			return
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // kube-apiserver looks again in its own time
	}
	t.Fatalf("kube-apiserver did not notice that the webhooks are there: %v", want)
}

func TestProposal_WithoutAdmission_IsInvalidAndNothingRuns(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.policy("allow", permitAll)
	sealed := f.propose("restart", `{"target":"web"}`)
	f.withoutAdmission()

	for name, change := range map[string]func(*v1alpha1.ToolProposal){
		"as an agent writes it": func(p *v1alpha1.ToolProposal) {
			p.Spec.Requester, p.Spec.Prepared, p.Spec.Seal = nil, nil, ""
		},
		"with another's stamp and no seal":  func(p *v1alpha1.ToolProposal) { p.Spec.Seal = "" },
		"with a seal that is no envelope":   func(p *v1alpha1.ToolProposal) { p.Spec.Seal = "{}" },
		"with another requester":            func(p *v1alpha1.ToolProposal) { p.Spec.Requester.Username = "system:admin" },
		"with another program":              func(p *v1alpha1.ToolProposal) { p.Spec.Prepared.Effect.Command.Argv[0] = "sh" },
		"with other arguments":              func(p *v1alpha1.ToolProposal) { p.Spec.Arguments = `{"target":"db"}` },
		"with another call ID":              func(p *v1alpha1.ToolProposal) { p.Spec.CallID = "other" },
		"with another contract":             func(p *v1alpha1.ToolProposal) { p.Spec.Prepared.Contract.Version = "9" },
		"with a batch that was not sealed":  func(p *v1alpha1.ToolProposal) { p.Spec.Batch = &v1alpha1.BatchReference{ID: "b", Size: 1} },
		"with a session that is not sealed": func(p *v1alpha1.ToolProposal) { p.Spec.SessionRef = &v1alpha1.SessionReference{Name: "s"} },
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.ToolProposal{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "forged-", Namespace: f.namespace},
				Spec:       *sealed.Spec.DeepCopy(),
			}
			change(p)
			if err := f.as(agent).Create(f.ctx, p); err != nil {
				t.Fatalf("creating: %v", err)
			}
			if got, want := outcome(f.step(p)), "Invalid/Unsealed"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
	if n := len(f.jobs()); n != 0 {
		t.Errorf("forged proposals have %d Jobs", n)
	}
}

func TestProposal_WithACopiedSeal_NeverRunsBesideTheOriginal(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.policy("allow", permitAll)
	original := f.step(f.propose("restart", `{"target":"web"}`))
	if got, want := outcome(original), "Dispatching/Granted"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	f.withoutAdmission()
	clone := &v1alpha1.ToolProposal{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "copy-", Namespace: f.namespace},
		Spec:       *original.Spec.DeepCopy(),
	}
	if err := f.as(agent).Create(f.ctx, clone); err != nil {
		t.Fatalf("creating the copy: %v", err)
	}
	clone = f.step(f.step(clone))
	if got, want := outcome(clone), "Failed/NameSquatted"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	jobs := f.jobs()
	if len(jobs) != 1 || jobs[0].OwnerReferences[0].UID != original.UID {
		t.Errorf("want the original's Job alone, got %d", len(jobs))
	}
}

// Each route is one by which a frozen spec could be changed.
func TestFrozenSpec_CannotBeEditedByAnyRoute(t *testing.T) {
	f := newFixture(t)
	f.tool("change", func(m *v1alpha1.ToolManifest) { m.Spec.HumanApproval = true })
	f.policy("allow", permitAll)
	p := f.step(f.propose("change", `{"target":"web"}`))
	receipt := newReceipt(p)
	if err := f.as(approver).Create(f.ctx, receipt); err != nil {
		t.Fatal(err)
	}
	force := client.ForceOwnership
	type route struct {
		kind    types.PatchType
		body    string
		options []client.PatchOption
		want    string
	}
	proposalRoutes := map[string]route{
		"merge patch":               {types.MergePatchType, `{"spec":{"arguments":"{}"}}`, nil, "422"},
		"merge patch removes spec":  {types.MergePatchType, `{"spec":null}`, nil, "422"},
		"merge patch removes field": {types.MergePatchType, `{"spec":{"prepared":null}}`, nil, "422"},
		"merge patch adds optional": {types.MergePatchType, `{"spec":{"reason":"other"}}`, nil, "422"},
		"JSON patch replaces":       {types.JSONPatchType, `[{"op":"replace","path":"/spec/tool","value":"other"}]`, nil, "422"},
		"JSON patch removes":        {types.JSONPatchType, `[{"op":"remove","path":"/spec/seal"}]`, nil, "422"},
		"JSON patch removes spec":   {types.JSONPatchType, `[{"op":"remove","path":"/spec"}]`, nil, "422"},
		"server-side apply":         {types.ApplyPatchType, `{"apiVersion":"assent.dev/v1alpha1","kind":"ToolProposal","metadata":{"name":"` + p.Name + `"},"spec":{"tool":"other","arguments":"{}","callID":"x"}}`, []client.PatchOption{force, client.FieldOwner("x")}, "422"},
	}
	for name, r := range proposalRoutes {
		t.Run("proposal by "+name, func(t *testing.T) {
			err := server.admin.Patch(f.ctx, p.DeepCopy(), client.RawPatch(r.kind, []byte(r.body)), r.options...)
			if got := refusalOf(err); len(got) < 3 || got[:3] != r.want {
				t.Errorf("got %s, want %s", got, r.want)
			}
		})
	}
	// The rule compares the spec only where the status is the same.
	fresh := f.propose("change", `{"target":"db"}`)
	for name, q := range map[string]*v1alpha1.ToolProposal{"that waits": p, "that nobody looked at": fresh} {
		for change, body := range map[string]string{
			"another status beside it": `{"spec":{"reason":"other"},"status":{"phase":"Pending","reason":"other"}}`,
			"its status taken away":    `{"spec":{"reason":"other"},"status":null}`,
		} {
			t.Run("proposal "+name+" with "+change, func(t *testing.T) {
				err := server.admin.Patch(f.ctx, q.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)))
				if got := refusalOf(err); len(got) < 3 || got[:3] != "422" {
					t.Errorf("got %s, want 422", got)
				}
			})
		}
		t.Run("proposal "+name+" by way of its status", func(t *testing.T) {
			before := jsonOf(t, f.reload(q).Spec)
			body := `{"spec":{"reason":"other"},"status":{"phase":"Pending","message":"other"}}`
			if err := server.admin.Status().Patch(f.ctx, q.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
				t.Fatal(err)
			}
			if got := f.reload(q); jsonOf(t, got.Spec) != before || got.Status.Message != "other" {
				t.Errorf("the status must change and the spec stay: %s", jsonOf(t, got))
			}
		})
	}
	t.Run("proposal by PUT", func(t *testing.T) {
		edited := f.reload(p)
		edited.Spec.Prepared.Effect.Command.Argv[0] = "sh"
		if got := refusalOf(server.admin.Update(f.ctx, edited)); got[:3] != "422" {
			t.Errorf("got %s, want 422", got)
		}
	})
	t.Run("receipt by merge patch", func(t *testing.T) {
		err := server.admin.Patch(f.ctx, receipt.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"reason":"other"}}`)))
		if got := refusalOf(err); got[:3] != "422" {
			t.Errorf("got %s, want 422", got)
		}
	})
	if got, want := jsonOf(t, f.reload(p).Spec), jsonOf(t, p.Spec); got != want {
		t.Errorf("the stored spec changed")
	}
}

func TestStatus_OfAnAgent_CountsForNothing(t *testing.T) {
	f := newFixture(t)
	f.tool("change", func(m *v1alpha1.ToolManifest) { m.Spec.HumanApproval = true })
	f.policy("allow", permitAll)
	p := f.step(f.propose("change", `{"target":"web"}`))

	forged := p.DeepCopy()
	forged.Status.Phase, forged.Status.Reason = v1alpha1.PhaseDispatching, v1alpha1.ReasonApproved
	forged.Status.Approvals = &v1alpha1.Approvals{Summary: "1/1", Approvers: []string{approver}}
	if got, want := refusalOf(f.as(agent).Status().Update(f.ctx, forged)), "403"; got != want {
		t.Errorf("the agent's status update: got %s, want %s", got, want)
	}
	if err := server.admin.Status().Update(f.ctx, forged); err != nil {
		t.Fatalf("an administrator forges the status: %v", err)
	}
	if got, want := outcome(f.step(forged)), "AwaitingApproval/AwaitingApproval"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n := len(f.jobs()); n != 0 {
		t.Errorf("a forged approval made %d Jobs", n)
	}
}

// Whoever can write a status could write a grant there; without the
// operator's key it is none.
func TestGrant_ThatSomebodyElseWrote_MakesNoJob(t *testing.T) {
	f := newFixture(t)
	f.tool("change", func(m *v1alpha1.ToolManifest) { m.Spec.HumanApproval = true })
	f.tool("restart")
	f.policy("allow", permitAll)
	granted := f.step(f.propose("restart", `{"target":"web"}`))
	for name, dispatch := range map[string]*v1alpha1.Dispatch{
		"made up":               {JobNamespace: f.namespace, JobName: "call-1", TemplateHash: repeat("0", 64), KeyID: server.keys.SigningKeyID(), Seal: repeat("0", 64), Time: metav1.Now(), Deadline: metav1.NewTime(time.Now().Add(time.Hour))},
		"copied from a granted": granted.Status.Dispatch,
	} {
		t.Run(name, func(t *testing.T) {
			p := f.step(f.propose("change", `{"target":"web"}`))
			p.Status.Phase, p.Status.Dispatch = v1alpha1.PhaseDispatching, dispatch.DeepCopy()
			if err := server.admin.Status().Update(f.ctx, p); err != nil {
				t.Fatalf("forging the status: %v", err)
			}
			if got, want := outcome(f.step(p)), "Invalid/StatusTampered"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
	if n := len(f.jobs()); n != 1 {
		t.Errorf("want the granted call's Job alone, got %d", n)
	}
}

func TestPolicyText_ThatCannotBeRead_IsRefusedWithItsPlace(t *testing.T) {
	f := newFixture(t)
	for name, tc := range map[string]struct{ text, want string }{
		"syntax error": {"permit (principal, action, resource)\nwhen { context. };", "422 spec.cedar:SyntaxError"},
		"nested deep":  {"permit (principal, action, resource) when { " + repeat("(", 65) + "true" + repeat(")", 65) + " };", "422 spec.cedar:SyntaxError"},
		"a template":   {`permit (principal == ?principal, action, resource);`, "422 spec.cedar:SyntaxError"},
	} {
		t.Run(name, func(t *testing.T) {
			err := server.admin.Create(f.ctx, &v1alpha1.ToolPolicy{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "p-", Namespace: f.namespace}, Spec: v1alpha1.PolicySpec{Cedar: tc.text},
			})
			if got := refusalOf(err); got != tc.want {
				t.Errorf("got %s, want %s (%v)", got, tc.want, err)
			}
		})
	}
}
