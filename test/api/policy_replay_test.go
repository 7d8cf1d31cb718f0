// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
)

// plugin builds the plugin and returns what runs it against the API server, in
// the namespace of the fixture.
func (f *fixture) plugin() func(stdin string, args ...string) (out string, code int) {
	f.t.Helper()
	s := &session{fixture: f}
	program, kubeconfig := filepath.Join(f.t.TempDir(), "kubectl-assent"), s.writeKubeconfig()
	if out, err := exec.CommandContext(f.ctx, "go", "build", "-o", program, repository+"/cmd/kubectl-assent").CombinedOutput(); err != nil {
		f.t.Fatalf("building the plugin: %v\n%s", err, out)
	}
	return func(stdin string, args ...string) (string, int) {
		f.t.Helper()
		cmd := exec.CommandContext(f.ctx, program, append(args, "--kubeconfig", kubeconfig)...)
		var out bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &out
		err := cmd.Run()
		if exit, is := errors.AsType[*exec.ExitError](err); is {
			return out.String(), exit.ExitCode()
		} else if err != nil {
			f.t.Fatal(err)
		}
		return out.String(), 0
	}
}

// callNamed proposes a call under a name of its own and lets it be decided.
func (f *fixture) callNamed(name, tool, arguments string) *v1alpha1.ToolProposal {
	f.t.Helper()
	p := f.newProposal(tool, arguments)
	p.Name, p.GenerateName = name, ""
	if err := f.caller().Create(f.ctx, p); err != nil {
		f.t.Fatal(err)
	}
	return f.step(p)
}

// Stored calls of a real API server are asked about again, as if drafts were
// applied. Contracts have the hash that the operator gave them, so that policies
// which compare it answer as they did.
func TestSimulate_FromCluster_TellsWhichStoredDecisionsWouldChange(t *testing.T) {
	f := newFixture(t)
	m := f.tool("restart")
	f.tool("change", humanApproval)
	for _, name := range []string{"restart", "change"} {
		if _, err := (&controllers.ManifestReconciler{Config: f.shared}).Reconcile(f.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: f.namespace, Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.admin.Get(f.ctx, client.ObjectKeyFromObject(m), m); err != nil {
		t.Fatal(err)
	}
	f.policy("allow", `permit (principal, action, resource == Tool::"change");
		permit (principal, action, resource == Tool::"restart") when { resource.contract_hash == "`+m.Status.ContractHash+`" };`)
	f.policy("guard", `forbid (principal, action, resource) when { context.invocation.arguments.target == "db" };`)
	for name, want := range map[string]string{"a-web": granted, "b-db": "Denied/Forbidden", "c-mail": granted} {
		_, target, _ := strings.Cut(name, "-")
		f.wantOutcome(f.callNamed(name, "restart", `{"target":"`+target+`"}`), want)
	}
	f.wantOutcome(f.callNamed("d-asked", "change", web), "AwaitingApproval/AwaitingApproval")
	run := f.plugin()

	draft := `{apiVersion: assent.dev/v1alpha1, kind: ToolPolicy, metadata: {name: guard}, spec: {cedar: 'forbid (principal, action, resource) when { context.invocation.arguments.target == "mail" };'}}`
	want := "b-db (restart): Deny becomes Allow (Permitted)\n" +
		"c-mail (restart): Allow becomes Deny (Forbidden)\n" +
		"2 of 4 decisions would change\n"
	out, code := run(draft, "simulate", "--from-cluster", "-f", "-", "-o", "text")
	if diff := cmp.Diff(want, out); diff != "" || code != 0 {
		t.Errorf("with a draft: exit code %d (-want +got):\n%s", code, diff)
	}

	out, code = run("", "simulate", "--from-cluster", "--without", f.namespace+"/guard", "-n", f.namespace, "-o", "text")
	if diff := cmp.Diff("b-db (restart): Deny becomes Allow (Permitted)\n1 of 4 decisions would change\n", out); diff != "" || code != 0 {
		t.Errorf("without a policy: exit code %d (-want +got):\n%s", code, diff)
	}

	// The policies in force are the measure, and what was decided under others is said.
	f.policy("late", `forbid (principal, action, resource == Tool::"restart");`)
	out, code = run("", "simulate", "--from-cluster", "--without", f.namespace+"/late", "-o", "json")
	var first struct{ Proposal, Decided, Before, After, Reason, Note string }
	line, _, _ := strings.Cut(out, "\n")
	if err := json.Unmarshal([]byte(line), &first); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v: %s", code, err, out)
	}
	if first.Proposal != "a-web" || first.Decided != "Allow" || first.Before != "Deny" || first.After != "Allow" || first.Note != "" {
		t.Errorf("got %+v", first)
	}

	// A call that cannot be asked about hides no other.
	f.mustDelete(m)
	out, _ = run(draft, "simulate", "--from-cluster", "-f", "-", "-o", "text")
	for _, want := range []string{"a-web (restart): there is no ToolManifest restart", "0 of 4 decisions would change; 3 could not be asked about\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing says %q:\n%s", want, out)
		}
	}

	out, code = run(draft, "simulate", "--from-cluster", "-f", "-", "--as", "nobody")
	if code != 2 || !strings.Contains(out, "cannot list resource") {
		t.Errorf("for somebody without rights: exit code %d: %s", code, out)
	}
}
