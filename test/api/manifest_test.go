// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
	"github.com/assent-dev/assent/internal/proposal"
)

// object reads one object of the fixture's namespace. IMAGE stands for an
// image by digest.
func object[T client.Object](f *fixture, o T, name, spec string) T {
	f.t.Helper()
	text := strings.ReplaceAll(fmt.Sprintf("metadata: {name: %s}\nspec: %s\n", name, spec), "IMAGE", `"`+testImage+`"`)
	if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
		f.t.Fatalf("reading %s: %v\n%s", name, err, text)
	}
	o.SetNamespace(f.namespace)
	return o
}

func (f *fixture) manifest(name, spec string) *v1alpha1.ToolManifest {
	f.t.Helper()
	return object(f, &v1alpha1.ToolManifest{}, name, spec)
}

func (f *fixture) argumentType(name, spec string) *v1alpha1.ArgumentType {
	f.t.Helper()
	return object(f, &v1alpha1.ArgumentType{}, name, spec)
}

func (f *fixture) scope(name, spec string) *v1alpha1.ToolScope {
	f.t.Helper()
	return object(f, &v1alpha1.ToolScope{}, name, spec)
}

// lookAt lets the controller of an object's kind look at it once, and returns
// what it says: the status and reason of Ready, and the message.
func (f *fixture) lookAt(o client.Object) (ready, message string) {
	f.t.Helper()
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)}
	var err error
	switch o.(type) {
	case *v1alpha1.ToolManifest:
		_, err = (&controllers.ManifestReconciler{Config: f.shared}).Reconcile(f.ctx, request)
	case *v1alpha1.ArgumentType:
		_, err = (&controllers.ArgumentTypeReconciler{Config: f.shared}).Reconcile(f.ctx, request)
	case *v1alpha1.ToolScope:
		_, err = (&controllers.ToolScopeReconciler{Config: f.shared}).Reconcile(f.ctx, request)
	case *v1alpha1.ToolPolicy:
		request.Name = "policies"
		_, err = f.policies.Reconcile(f.ctx, request)
	case *v1alpha1.ClusterToolPolicy:
		request.Namespace, request.Name = "", "policies"
		_, err = f.policies.Reconcile(f.ctx, request)
	}
	if err != nil {
		f.t.Fatalf("reconciling %T %s: %v", o, o.GetName(), err)
	}
	return f.ready(o)
}

// ready reads the condition Ready of an object, which must speak of it as it is.
func (f *fixture) ready(o client.Object) (ready, message string) {
	f.t.Helper()
	if err := server.admin.Get(f.ctx, client.ObjectKeyFromObject(o), o); err != nil {
		f.t.Fatalf("reading %T %s: %v", o, o.GetName(), err)
	}
	var conditions []metav1.Condition
	switch o := o.(type) {
	case *v1alpha1.ToolManifest:
		conditions = o.Status.Conditions
	case *v1alpha1.ArgumentType:
		conditions = o.Status.Conditions
	case *v1alpha1.ToolScope:
		conditions = o.Status.Conditions
	case *v1alpha1.ToolPolicy:
		conditions = o.Status.Conditions
	case *v1alpha1.ClusterToolPolicy:
		conditions = o.Status.Conditions
	}
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	if c == nil || c.ObservedGeneration != o.GetGeneration() {
		return "Unknown", ""
	}
	return string(c.Status) + "/" + c.Reason, c.Message
}

// wantReady lets the controller look at an object and compares. The message of
// an object that is not ready must name the field.
func (f *fixture) wantReady(o client.Object, want, field string) {
	f.t.Helper()
	got, message := f.lookAt(o)
	if got != want || !strings.Contains(message, field) {
		f.t.Errorf("%s: got %s: %s, want %s naming %q", o.GetName(), got, message, want, field)
	}
}

const oneCommand = `command: {image: IMAGE, argv: [tool, "{v}"]}`

// withArgument is the spec of a command whose one argument, v, is as given.
func withArgument(argument string) string {
	return fmt.Sprintf(`{version: "1", arguments: [{name: v, required: true, %s}], %s}`, argument, oneCommand)
}

// Each row is a manifest that other objects of its namespace can mend or
// break, so that it is stored whatever they are.
func TestToolManifest_ThatOthersKeepFromBeingReady_SaysWhyAndTakesNoCalls(t *testing.T) {
	type row struct {
		types, scopes map[string]string
		spec          string
		want, field   string
		call          string
	}
	notReady := "422 spec.tool:ToolNotReady"
	deep := map[string]string{}
	for i := range 18 {
		deep[fmt.Sprintf("t%d", i)] = fmt.Sprintf("{base: t%d}", i+1)
	}
	deep["t18"] = "{base: string}"
	for name, r := range map[string]row{
		"a type that does not exist": {
			spec: withArgument("type: hostname"), want: "False/MissingReference", field: "spec.arguments[0].type", call: notReady,
		},
		"a type whose base does not exist": {
			types: map[string]string{"hostname": "{base: name}"}, spec: withArgument("type: hostname"),
			want: "False/MissingReference", field: "ArgumentType/hostname: spec.base", call: notReady,
		},
		"types that are based on each other": {
			types: map[string]string{"a": "{base: b}", "b": "{base: a}"}, spec: withArgument("type: a"),
			want: "False/TypeCycle", field: "a -> b -> a", call: notReady,
		},
		"a chain of too many types": {
			types: deep, spec: withArgument("type: t0"), want: "False/TypeDepth", field: "ArgumentType/t15: spec.base", call: notReady,
		},
		"bounds that the type does not leave room for": {
			types: map[string]string{"small": "{base: integer, max: 3}"}, spec: withArgument("type: small, min: 5"),
			want: "False/InvalidArgument", field: "spec.arguments[0].min", call: notReady,
		},
		"a default that the type refuses": {
			types: map[string]string{"lower": `{base: string, pattern: "[a-z]+"}`},
			spec:  `{version: "1", arguments: [{name: v, type: lower, default: ABC}], ` + oneCommand + `}`,
			want:  "False/InvalidArgument", field: "spec.arguments[0].default", call: notReady,
		},
		"a URL of a type that is none": {
			types: map[string]string{"link": "{base: string}"},
			spec:  `{version: "1", arguments: [{name: v, type: link, required: true, scopeCheck: true}], http: {method: GET, url: "{v}"}}`,
			want:  "False/InvalidEffect", field: "spec.http.url", call: notReady,
		},
		"no scope": {
			spec: withArgument("type: scope_target"), want: "False/ScopeMissing", field: "spec.scopeRef", call: "422 spec.arguments:ScopeMissing",
		},
		"the scope that it names is not there": {
			scopes: map[string]string{"other": "{targets: [10.0.0.0/8]}"},
			spec:   `{version: "1", scopeRef: {name: lab}, arguments: [{name: v, type: scope_target, required: true}], ` + oneCommand + `}`,
			want:   "False/ScopeMissing", field: "spec.scopeRef", call: "422 spec.arguments:ScopeMissing",
		},
		"several scopes and none named": {
			scopes: map[string]string{"a": "{targets: [10.0.0.0/8]}", "b": "{targets: [10.1.0.0/16]}"}, spec: withArgument("type: scope_target"),
			want: "False/ScopeAmbiguous", field: "spec.scopeRef", call: "422 spec.arguments:ScopeAmbiguous",
		},
		"a type that demands a scope further up the chain": {
			types: map[string]string{"victim": "{base: box}", "box": "{base: ip_address, scopeCheck: true}"}, spec: withArgument("type: victim"),
			want: "False/ScopeMissing", field: "spec.scopeRef", call: "422 spec.arguments:ScopeMissing",
		},
		"nothing wrong": {
			types: map[string]string{"box": "{base: ip_address, scopeCheck: true}"}, scopes: map[string]string{"lab": "{targets: [10.0.0.0/8]}"},
			spec: withArgument("type: box"), want: "True/Ready", call: "accepted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for _, n := range slices.Sorted(maps.Keys(r.types)) {
				f.create(f.argumentType(n, r.types[n]))
			}
			for n, spec := range r.scopes {
				f.create(f.scope(n, spec))
			}
			m := f.manifest("tool", r.spec)
			f.create(m)
			f.wantReady(m, r.want, r.field)
			if ready := r.want == "True/Ready"; ready != (m.Status.ContractHash != "") && !strings.Contains(r.want, "Scope") {
				t.Errorf("the contract's hash is %q", m.Status.ContractHash)
			}
			err := f.as(agent).Create(f.ctx, f.newProposal("tool", `{"v":"10.0.0.1"}`))
			if got := refusalOf(err); got != r.call {
				t.Fatalf("a call: got %s, want %s (%v)", got, r.call, err)
			}
			if reason := r.want[strings.Index(r.want, "/")+1:]; err != nil && !strings.Contains(err.Error(), reason) {
				t.Errorf("the refusal does not say %s: %v", reason, err)
			}
			if strings.Contains(r.want, "Scope") && !strings.Contains(err.Error(), "stage scope") {
				t.Errorf("the refusal names another stage: %v", err)
			}
		})
	}
}

// neverReady are manifests that no other object can mend.
var neverReady = map[string]struct{ spec, cause, reason string }{
	"an image by tag": {
		`{version: "1", command: {image: "registry.example/tool:1", argv: [tool]}}`, "spec.command.image", "ImageNotByDigest",
	},
	"a placeholder that is not declared": {
		`{version: "1", command: {image: IMAGE, argv: [tool, "{other}"]}}`, "spec.command.argv[1]", "InvalidTemplate",
	},
	"an argument that nothing uses": {
		`{version: "1", arguments: [{name: v, type: string}], command: {image: IMAGE, argv: [tool]}}`, "spec.arguments[0]", "InvalidTemplate",
	},
	"an argument for the program": {
		`{version: "1", arguments: [{name: v, type: string, required: true}], command: {image: IMAGE, argv: ["{v}"]}}`, "spec.command.argv[0]", "InvalidEffect",
	},
	"a shell that reads an argument": {
		`{version: "1", arguments: [{name: v, type: string, required: true}], command: {image: IMAGE, argv: [sh, -c, "{v}"]}}`, "spec.command.argv[0]", "InvalidEffect",
	},
	"an expression that is none": {withArgument(`type: string, pattern: "("`), "spec.arguments[0].pattern", "InvalidArgument"},
	"a list of nothing":          {withArgument(`type: enum`), "spec.arguments[0].allowed", "InvalidArgument"},
	"a timeout of a week": {
		`{version: "1", execution: {timeout: 168h}, command: {image: IMAGE, argv: [tool]}}`, "spec.execution.timeout", "InvalidManifest",
	},
	"a secret for another host": {
		`{version: "1", secrets: [{name: key, secretName: keys, key: k, hosts: [other.example.com]}], http: {method: GET, url: "https://api.example.com/", headers: [{name: X-Key, value: "{_secret:key}"}]}}`,
		"spec.secrets[0].hosts", "CredentialHostMismatch",
	},
	"a secret in the URL": {
		`{version: "1", secrets: [{name: key, secretName: keys, key: k, hosts: [api.example.com]}], http: {method: GET, url: "https://api.example.com/?k={_secret:key}"}}`,
		"spec.http.url", "InvalidTemplate",
	},
}

func TestToolManifest_ThatCanNeverCompile_IsRefused(t *testing.T) {
	f := newFixture(t)
	for name, r := range neverReady {
		t.Run(name, func(t *testing.T) {
			err := server.admin.Create(f.ctx, f.manifest("tool", r.spec))
			if got, want := refusalOf(err), "422 "+r.cause+":"+r.reason; !strings.HasPrefix(got, want) {
				t.Errorf("got %s, want %s (%v)", got, want, err)
			}
		})
	}
	for name, spec := range map[string]string{
		"no effect":    `{version: "1"}`,
		"two effects":  `{version: "1", command: {image: IMAGE, argv: [tool]}, http: {method: GET, url: "https://api.example.com/"}}`,
		"no version":   `{command: {image: IMAGE, argv: [tool]}}`,
		"unknown tier": `{version: "1", riskTier: none, command: {image: IMAGE, argv: [tool]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			err := server.admin.Create(f.ctx, f.manifest("tool", spec))
			if got := refusalOf(err); !strings.HasPrefix(got, "422") {
				t.Errorf("got %s, want 422 (%v)", got, err)
			}
		})
	}
}

// What got past admission is not trusted for it.
func TestToolManifest_ThatCanNeverCompile_IsNotReadyWhereAdmissionWasAbsent(t *testing.T) {
	f := newFixture(t)
	f.withoutAdmission()
	for name, r := range neverReady {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			m := f.manifest("tool-"+strings.ReplaceAll(name, " ", "-"), r.spec)
			m.Name = strings.ToLower(m.Name)
			f.create(m)
			f.wantReady(m, "False/"+r.reason, r.cause)
			if m.Status.ContractHash != "" {
				t.Error("it has a contract")
			}
		})
	}
}

func TestToolManifest_ByTag_IsReadyOnlyWhereTagsAreAllowed(t *testing.T) {
	f := newFixture(t)
	f.withoutAdmission()
	m := f.manifest("tool", `{version: "1", command: {image: "registry.example/tool:1", argv: [tool]}}`)
	f.create(m)
	f.wantReady(m, "False/ImageNotByDigest", "spec.command.image")
	f.shared.Contracts = &proposal.Compiler{RunnerImage: testRunnerImage, AllowImageTags: true}
	f.wantReady(m, "True/Ready", "")
}

func TestToolManifest_ThatWasDeleted_IsForgotten(t *testing.T) {
	f := newFixture(t)
	f.shared.Contracts = &proposal.Compiler{RunnerImage: testRunnerImage}
	m := f.tool("restart")
	f.wantReady(m, "True/Ready", "")
	kept := m.DeepCopy()
	before, err := f.shared.Contracts.Compile(kept, proposal.Tools{})
	if err != nil {
		t.Fatal(err)
	}
	f.mustDelete(m)
	if _, err := (&controllers.ManifestReconciler{Config: f.shared}).Reconcile(f.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)}); err != nil {
		t.Fatal(err)
	}
	if after, _ := f.shared.Contracts.Compile(kept, proposal.Tools{}); after == before {
		t.Error("the contract of the deleted manifest is still there")
	}
}

// running starts the controllers of tools and policies as the operator has
// them, with informers of their own for the fixture's namespace.
func (f *fixture) running() {
	f.t.Helper()
	mgr, err := ctrl.NewManager(server.config, ctrl.Options{
		Scheme: server.scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{f.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	own := &controllers.Config{Client: mgr.GetClient(), Live: server.admin, Contracts: f.shared.Contracts, Policies: f.shared.Policies, Now: f.clock.Now}
	policies := &controllers.PolicyReconciler{Config: own}
	for _, c := range []interface{ SetupWithManager(ctrl.Manager) error }{
		&controllers.ManifestReconciler{Config: own}, &controllers.ArgumentTypeReconciler{Config: own},
		&controllers.ToolScopeReconciler{Config: own}, policies,
	} {
		if err := c.SetupWithManager(mgr); err != nil {
			f.t.Fatal(err)
		}
	}
	f.shared.Behind = policies.Behind
	ctx, cancel := context.WithCancel(noCancel(f.ctx))
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	f.t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			f.t.Errorf("the controllers ended with %v", err)
		}
	})
}

// becomes waits until an object says something of itself as it is.
func (f *fixture) becomes(o client.Object, want string) {
	f.t.Helper()
	f.until(fmt.Sprintf("%T %s is %s", o, o.GetName(), want), func() bool {
		got, _ := f.ready(o)
		return got == want
	})
}

func TestToolManifest_IsLookedAtAgainWhenWhatItRestsOnComesChangesOrGoes(t *testing.T) {
	f := newFixture(t)
	f.running()
	m := f.manifest("scan", withArgument("type: box"))
	f.create(m)
	f.becomes(m, "False/MissingReference")

	box := f.argumentType("box", "{base: machine, scopeCheck: true}")
	f.create(box)
	f.becomes(box, "False/MissingReference")
	machine := f.argumentType("machine", "{base: ip_address}")
	f.create(machine)
	f.becomes(box, "True/Ready")
	f.becomes(m, "False/ScopeMissing")

	lab := f.scope("lab", "{targets: [10.0.0.0/8]}")
	f.create(lab)
	f.becomes(lab, "True/Ready")
	f.becomes(m, "True/Ready")
	hash := m.Status.ContractHash

	lab.Spec.Exclude = []string{"10.0.0.1"}
	f.mustUpdate(lab)
	f.until("the contract is another one", func() bool {
		ready, _ := f.ready(m)
		return ready == "True/Ready" && m.Status.ContractHash != hash
	})
	f.create(f.scope("second", "{targets: [10.0.0.0/8]}"))
	f.becomes(m, "False/ScopeAmbiguous")
	f.mustDelete(lab)
	f.becomes(m, "True/Ready")
	f.mustDelete(machine)
	f.becomes(box, "False/MissingReference")
	f.becomes(m, "False/MissingReference")
}

// Agents often propose right after a manifest was applied.
func TestToolManifest_CreatedAMomentAgo_TakesCalls(t *testing.T) {
	f := newFixture(t)
	bot := f.caller()
	for i := range 20 {
		name := fmt.Sprintf("tool-%d", i)
		f.create(f.argumentType(fmt.Sprintf("type-%d", i), `{base: string, pattern: "[a-z]+"}`))
		f.create(f.manifest(name, withArgument(fmt.Sprintf("type: type-%d", i))))
		if err := bot.Create(f.ctx, f.newProposal(name, `{"v":"web"}`)); err != nil {
			t.Fatalf("a call of %s: %v", name, err)
		}
	}
}
