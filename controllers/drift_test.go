// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	// As clients read numbers from the API server.
	if err := json.Unmarshal(raw, &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

const wantedHook = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: assent}
webhooks:
- name: a
  failurePolicy: Fail
  rules: [{apiGroups: [assent.dev], operations: [CREATE, UPDATE], resources: [a]}]
  clientConfig: {service: {name: s, namespace: n, path: /p}}
`

func TestDifference_SeesEveryChangeThatWeakens(t *testing.T) {
	for name, tc := range map[string]struct{ live, want string }{
		"as the API server fills it in": {`
metadata: {name: assent, labels: {a: b}, resourceVersion: "7"}
webhooks:
- name: a
  failurePolicy: Fail
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector: {}
  timeoutSeconds: 7
  rules: [{apiGroups: [assent.dev], operations: [CREATE, UPDATE], resources: [a], scope: "*"}]
  clientConfig: {caBundle: YWJj, service: {name: s, namespace: n, path: /p, port: 443}}
`, ""},
		"it ignores failures":     {`webhooks: [{name: a, failurePolicy: Ignore, rules: [{apiGroups: [assent.dev], operations: [CREATE, UPDATE], resources: [a]}], clientConfig: {service: {name: s, namespace: n, path: /p}}}]`, "webhooks[0].failurePolicy"},
		"it exempts a namespace":  {`webhooks: [{name: a, failurePolicy: Fail, namespaceSelector: {matchLabels: {x: y}}, rules: [{apiGroups: [assent.dev], operations: [CREATE, UPDATE], resources: [a]}], clientConfig: {service: {name: s, namespace: n, path: /p}}}]`, "webhooks[0].namespaceSelector"},
		"it has a condition":      {`webhooks: [{name: a, failurePolicy: Fail, matchConditions: [{name: x, expression: "false"}], rules: [{apiGroups: [assent.dev], operations: [CREATE, UPDATE], resources: [a]}], clientConfig: {service: {name: s, namespace: n, path: /p}}}]`, "webhooks[0].matchConditions"},
		"it misses an operation":  {`webhooks: [{name: a, failurePolicy: Fail, rules: [{apiGroups: [assent.dev], operations: [CREATE], resources: [a]}], clientConfig: {service: {name: s, namespace: n, path: /p}}}]`, "webhooks[0].rules[0].operations"},
		"it asks another service": {`webhooks: [{name: a, failurePolicy: Fail, rules: [{apiGroups: [assent.dev], operations: [CREATE, UPDATE], resources: [a]}], clientConfig: {service: {name: evil, namespace: n, path: /p}}}]`, "webhooks[0].clientConfig.service.name"},
		"it asks a URL":           {`webhooks: [{name: a, failurePolicy: Fail, rules: [{apiGroups: [assent.dev], operations: [CREATE, UPDATE], resources: [a]}], clientConfig: {url: "https://evil.example", service: {name: s, namespace: n, path: /p}}}]`, "webhooks[0].clientConfig.url"},
		"it matches exactly":      {`webhooks: [{name: a, failurePolicy: Fail, matchPolicy: Exact, rules: [{apiGroups: [assent.dev], operations: [CREATE, UPDATE], resources: [a]}], clientConfig: {service: {name: s, namespace: n, path: /p}}}]`, "webhooks[0].matchPolicy"},
		"it has no webhooks":      {`webhooks: []`, "webhooks"},
		"nothing is left":         {`{}`, "webhooks"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := difference(object(t, wantedHook), object(t, tc.live)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestDifference_SeesALoosenedKindAndAWidenedRole(t *testing.T) {
	for name, tc := range map[string]struct{ wanted, live, want string }{
		"a kind as the API server stores it": {
			`spec: {group: g, versions: [{name: v, served: true}]}`,
			`{spec: {group: g, conversion: {strategy: None}, versions: [{name: v, served: true}]}, status: {a: b}}`, "",
		},
		"a rule that is gone": {
			`spec: {schema: {x-kubernetes-validations: [{rule: r}], type: object}}`, `spec: {schema: {type: object}}`, "spec.schema.x-kubernetes-validations",
		},
		"unknown fields that are kept": {
			`spec: {schema: {type: object}}`, `spec: {schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}`, "spec.schema.x-kubernetes-preserve-unknown-fields",
		},
		"a conversion by somebody": {
			`spec: {group: g}`, `spec: {group: g, conversion: {strategy: Webhook}}`, "spec.conversion",
		},
		"one more rule":    {`rules: [{verbs: [get]}]`, `rules: [{verbs: [get]}, {verbs: ["*"]}]`, "rules"},
		"one more subject": {`subjects: [{name: assent}]`, `subjects: [{name: assent}, {name: mallory}]`, "subjects"},
		"another member":   {`rules: []`, `{rules: [], aggregationRule: {clusterRoleSelectors: [{}]}}`, "aggregationRule"},
		"another number":   {`spec: {size: 1}`, `spec: {size: 2}`, "spec.size"},
		"another type":     {`spec: {size: {a: 1}}`, `spec: {size: x}`, "spec.size"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := difference(object(t, tc.wanted), object(t, tc.live)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// broken is an API server that does not answer.
type broken struct{ client.Reader }

func (broken) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no answer")
}

func TestDrift_CountsWhatIsNotKnownAsDrift(t *testing.T) {
	now := time.Unix(1000, 0)
	d := &Drift{Now: func() time.Time { return now }}
	if d.Problem() == "" {
		t.Error("what was never compared passes")
	}
	if err := d.Check(t.Context()); err != nil || d.Problem() != "" {
		t.Errorf("with nothing to compare: %v, %q", err, d.Problem())
	}
	now = now.Add(driftStale)
	if got := d.Problem(); got != "" {
		t.Errorf("at the edge: %q", got)
	}
	now = now.Add(time.Second)
	if d.Problem() == "" {
		t.Error("an old comparison passes")
	}
	d.Live, d.Installed = broken{}, []*unstructured.Unstructured{object(t, wantedHook)}
	if err := d.Check(t.Context()); err == nil || d.Problem() == "" {
		t.Errorf("without an answer: %v, %q", err, d.Problem())
	}
}
