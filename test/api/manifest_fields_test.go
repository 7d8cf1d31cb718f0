// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// A manifest has no field for what the Pod of a call must not have. What
// somebody writes there all the same is refused, or is not there afterwards.
func TestToolManifest_HasNoFieldForWhatAPodMustNotHave(t *testing.T) {
	const command = `image: "registry.example/tool@sha256:1111111111111111111111111111111111111111111111111111111111111111", argv: [tool], env: [{name: T, secret: t}]`
	f := newFixture(t)
	for name, tc := range map[string]struct{ field, in, value string }{
		"a path of the host":            {"volumes", "execution", `[{hostPath: {path: /}}]`},
		"a Pod template":                {"podTemplate", "spec", `{spec: {hostNetwork: true}}`},
		"the host's network":            {"hostNetwork", "execution", `true`},
		"a security context":            {"securityContext", "command", `{privileged: true}`},
		"a user":                        {"runAsUser", "command", `0`},
		"a Secret of another namespace": {"namespace", "secret", `other`},
		"Secrets by their labels":       {"selector", "secret", `{matchLabels: {a: b}}`},
	} {
		t.Run(name, func(t *testing.T) {
			at := map[string]string{tc.in: ", " + tc.field + ": " + tc.value}
			spec := `{version: "1"` + at["spec"] + `, command: {` + command + at["command"] + `}, execution: {timeout: 1m` + at["execution"] +
				`}, secrets: [{name: t, secretName: s, key: k` + at["secret"] + `}]}`
			create := func(o ...client.CreateOption) (*unstructured.Unstructured, error) {
				m := &unstructured.Unstructured{}
				text := `{apiVersion: assent.dev/v1alpha1, kind: ToolManifest, metadata: {generateName: fields-, namespace: ` + f.namespace + `}, spec: ` +
					spec + `}`
				if err := yaml.Unmarshal([]byte(text), &m.Object); err != nil {
					t.Fatal(err)
				}
				return m, server.admin.Create(f.ctx, m, o...)
			}
			if _, err := create(client.FieldValidation("Strict")); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "unknown field") {
				t.Errorf("strictly: got %v, want the field to be unknown", err)
			}
			m, err := create(client.FieldValidation("Ignore"))
			if err != nil {
				t.Fatal(err)
			}
			if stored := jsonOf(t, m.Object["spec"]); strings.Contains(stored, `"`+tc.field+`"`) {
				t.Errorf("it was stored: %s", stored)
			}
		})
	}
}
