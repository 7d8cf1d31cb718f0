// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// inPages gives one object in each answer.
type inPages struct {
	client.Reader
	names []string
}

// List implements [client.Reader].
func (p inPages) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	list, ok := into.(*v1alpha1.ToolPolicyList)
	if !ok || o.Limit != pageSize {
		return errors.New("not this way")
	}
	// What an answer leaves out keeps its value in the list that it is read into.
	at := len(o.Continue)
	list.Items = append(list.Items, v1alpha1.ToolPolicy{ObjectMeta: metav1.ObjectMeta{Name: p.names[at]}})
	list.Continue = ""
	if at+1 < len(p.names) {
		list.Continue = strings.Repeat("x", at+1)
	}
	return nil
}

func TestPages_ReadsEachObjectOnce(t *testing.T) {
	t.Parallel()
	var got []string
	err := pages(t.Context(), inPages{names: []string{"a", "b", "c"}}, &v1alpha1.ToolPolicyList{}, func(l *v1alpha1.ToolPolicyList) {
		for i := range l.Items {
			got = append(got, l.Items[i].Name)
		}
	})
	if diff := cmp.Diff([]string{"a", "b", "c"}, got); diff != "" || err != nil {
		t.Errorf("got %v (-want +got):\n%s", err, diff)
	}
}

func TestOver_PutsDraftsInPlaceAndLeavesOutWhatIsToGo(t *testing.T) {
	t.Parallel()
	policy := func(namespace, name, text string) v1alpha1.ToolPolicy {
		return v1alpha1.ToolPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.PolicySpec{Cedar: text}}
	}
	inForce := &documents{
		Policies:        []v1alpha1.ToolPolicy{policy("shop", "a", "old"), policy("shop", "b", "old")},
		ClusterPolicies: []v1alpha1.ClusterToolPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}},
	}
	drafts := &documents{Policies: []v1alpha1.ToolPolicy{policy("shop", "b", "new"), policy("shop", "c", "new")}}
	for name, tc := range map[string]struct {
		without []string
		want    []string
		err     string
	}{
		"drafts alone":               {nil, []string{"shop/a old", "shop/b new", "shop/c new", "/a"}, ""},
		"without one":                {[]string{"shop/a"}, []string{"shop/b new", "shop/c new", "/a"}, ""},
		"without one of the cluster": {[]string{"/a"}, []string{"shop/a old", "shop/b new", "shop/c new"}, ""},
		"without what is not there":  {[]string{"a"}, nil, "there is no policy object a to leave out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := inForce.over(drafts, tc.without)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range d.Policies {
				got = append(got, d.Policies[i].Namespace+"/"+d.Policies[i].Name+" "+d.Policies[i].Spec.Cedar)
			}
			for i := range d.ClusterPolicies {
				got = append(got, "/"+d.ClusterPolicies[i].Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("got (-want +got):\n%s", diff)
			}
		})
	}
	if inForce.Policies[1].Spec.Cedar != "old" || len(inForce.Policies) != 2 {
		t.Error("what is in force was changed")
	}
}

func TestSimulate_FromClusterRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a.yaml": toolPolicy("p", "permit (principal, action, resource);"), "bad.yaml": "a: ["})
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nothing to change": {[]string{"simulate", "--from-cluster"}, "nothing would change"},
		"a call besides":    {[]string{"simulate", "--from-cluster", "-f", "DIR/a.yaml", "--tool", "x"}, "were all set"},
		"another format":    {[]string{"simulate", "--from-cluster", "-f", "DIR/a.yaml", "-o", "yaml"}, "output format must be json or text"},
		"a broken draft":    {[]string{"simulate", "--from-cluster", "-f", "DIR/bad.yaml"}, "bad.yaml"},
		"no cluster":        {[]string{"simulate", "--from-cluster", "-f", "DIR/a.yaml", "--kubeconfig", "DIR/none"}, "finding the cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := command(dir, "", tc.args...); r.code != exitError || !strings.Contains(r.errs, tc.want) {
				t.Errorf("got %+v, want %q", r, tc.want)
			}
		})
	}
}
