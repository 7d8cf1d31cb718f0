// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// A kind that keeps unknown members can be made unreadable as a whole by one
// object that is nested almost as deep as kube-apiserver can read: with
// managedFields it is too deep to be listed or deleted.
const almostTooDeep = 9994

func TestObjects_NestedAlmostTooDeep_PoisonNoKind(t *testing.T) {
	f := newFixture(t)
	core, err := kubernetes.NewForConfig(server.config)
	if err != nil {
		t.Fatal(err)
	}
	var kinds apiextensionsv1.CustomResourceDefinitionList
	if err := server.admin.List(f.ctx, &kinds); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, kind := range kinds.Items {
		if kind.Spec.Group != v1alpha1.GroupVersion.Group {
			continue
		}
		asked++
		path := "/apis/assent.dev/v1alpha1/" + kind.Spec.Names.Plural
		if kind.Spec.Scope == apiextensionsv1.NamespaceScoped {
			path = "/apis/assent.dev/v1alpha1/namespaces/" + f.namespace + "/" + kind.Spec.Names.Plural
		}
		for place, around := range map[string][2]string{
			"beside the spec":   {`"spec":{},"junk":`, ``},
			"in the spec":       {`"spec":{"junk":`, `}`},
			"in the status":     {`"spec":{},"status":{"junk":`, `}`},
			"in the arguments":  {`"spec":{"tool":"t","callID":"c","arguments":`, `}`},
			"in the conditions": {`"spec":{},"status":{"conditions":[{"message":`, `}]}`},
		} {
			junk := strings.Repeat(`{"a":`, almostTooDeep) + "1" + strings.Repeat("}", almostTooDeep)
			body := fmt.Sprintf(`{"apiVersion":"assent.dev/v1alpha1","kind":%q,"metadata":{"generateName":"deep-"},%s}`, kind.Spec.Names.Kind, around[0]+junk+around[1])
			status := code(core.CoreV1().RESTClient().Post().AbsPath(path).Body([]byte(body)).SetHeader("Content-Type", "application/json").Do(f.ctx))
			if status != http.StatusCreated && (status < 400 || status > 499) {
				t.Errorf("%s, %s: status %d, want 201 without the junk or a refusal", kind.Name, place, status)
			}
			if status := code(core.CoreV1().RESTClient().Get().AbsPath(path).Do(f.ctx)); status != http.StatusOK {
				t.Fatalf("%s, %s: listing gives %d from then on", kind.Name, place, status)
			}
		}
	}
	if asked != 8 {
		t.Errorf("%d kinds were asked", asked)
	}
}

func code(r rest.Result) int {
	var status int
	r.StatusCode(&status)
	return status
}
