// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/assent-dev/assent/config"
)

// webhookService is the Service of the chart behind the admission webhooks.
const webhookService = "assent-webhook"

// installed are the cluster-wide objects that enforce the rules, as the charts
// install them for an operator in this namespace.
func installed(namespace string, policies bool) ([]*unstructured.Unstructured, error) {
	crds, err := fs.Glob(config.Files, "crd/*.yaml")
	if err != nil {
		return nil, err
	}
	files := append([]string{"rbac/role.yaml", "webhook/manifests.yaml"}, crds...)
	if policies {
		files = append(files, "admission/policies.yaml")
	}
	out := []*unstructured.Unstructured{operatorBinding(namespace)}
	for _, name := range files {
		text, err := config.Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		text = bytes.ReplaceAll(text, []byte("system:serviceaccount:system:assent"), []byte("system:serviceaccount:"+namespace+":assent"))
		objects, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, o := range objects {
			if err := place(o, namespace); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		out = append(out, objects...)
	}
	// The operator's own Role changes nothing for anybody else.
	return slices.DeleteFunc(out, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Role" }), nil
}

func decode(text []byte) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var out []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("reading what was installed: %w", err)
		case len(o.Object) > 0:
			out = append(out, o)
		}
	}
}

// place puts the Service of the chart where the markers have names of their own.
func place(o *unstructured.Unstructured, namespace string) error {
	webhooks, found, err := unstructured.NestedSlice(o.Object, "webhooks")
	if err != nil || !found {
		return err
	}
	for _, w := range webhooks {
		hook, ok := w.(map[string]any)
		if !ok {
			return errors.New("a webhook is not an object")
		}
		for field, value := range map[string]string{"name": webhookService, "namespace": namespace} {
			if err := unstructured.SetNestedField(hook, value, "clientConfig", "service", field); err != nil {
				return fmt.Errorf("placing a webhook: %w", err)
			}
		}
	}
	return unstructured.SetNestedSlice(o.Object, webhooks, "webhooks")
}

func operatorBinding(namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
		"metadata": map[string]any{"name": "assent"},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "assent"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "assent", "namespace": namespace}},
	}}
}
