// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// doctorOptions are the flags of kubectl assent doctor.
type doctorOptions struct {
	clusterFlags

	operator string
	all      bool
}

// newDoctorCommand looks for what admission cannot see.
func newDoctorCommand(streams Streams) *cobra.Command {
	var o doctorOptions
	c := &cobra.Command{
		Use:   "doctor",
		Short: "List who could get around Assent, and what is missing of it",
		Long: "List who may impersonate approvers, write what only the operator should write, enter the Pods of\n" +
			"calls, read the signing key or take admission away, and what of Assent's own admission is missing.\n" +
			"It reads RBAC and nothing else: other authorizers may grant more. Exit code 2 when it finds something.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), streams) },
	}
	o.clusterFlags.add(c.Flags())
	c.Flags().StringVar(&o.operator, "operator-namespace", "assent-system", "namespace of the operator")
	c.Flags().BoolVar(&o.all, "all", false, "list the cluster's own components and the operator as well")
	return c
}

// diagnosis is what doctor finds.
type diagnosis struct {
	Missing  []string  `json:"missing"`
	Findings []finding `json:"findings"`
}

func (o *doctorOptions) run(ctx context.Context, streams Streams) error {
	c, err := o.connect()
	if err != nil {
		return err
	}
	a, err := c.access(ctx, o.operator)
	if err != nil {
		return err
	}
	d := diagnosis{Missing: []string{}, Findings: []finding{}}
	if d.Missing, err = c.missing(ctx); err != nil {
		return err
	}
	for _, f := range a.findings() {
		if o.all || !f.Expected {
			d.Findings = append(d.Findings, f)
		}
	}
	if c.json {
		err = printObject(streams.Out, d)
	} else {
		err = d.print(streams.Out)
	}
	if err != nil {
		return err
	}
	return d.verdict()
}

func (d diagnosis) verdict() error {
	if len(d.Missing) > 0 {
		return &ExitError{Code: exitRefused, Err: errors.New("some of Assent's admission is missing")}
	}
	for _, f := range d.Findings {
		if !f.Expected {
			return &ExitError{Code: exitRefused, Err: errors.New("somebody could get around Assent")}
		}
	}
	return nil
}

func (d diagnosis) print(w io.Writer) error {
	s := &screen{width: 8}
	for _, m := range d.Missing {
		s.title("MISSING " + escapeName(m))
	}
	power := ""
	for _, f := range d.Findings {
		if f.Power != power {
			s.title(f.Power + ": " + f.Why)
			power = f.Power
		}
		where := "everywhere"
		if f.Namespace != "" {
			where = "in " + f.Namespace
		}
		if f.Expected {
			where += ", as expected"
		}
		s.line("who", fmt.Sprintf("%s %s by %s of %s", escapeName(f.Subject), escapeName(where), escapeName(f.Binding), escapeName(f.Role)))
	}
	if s.b.Len() == 0 {
		s.title("Nobody was found who could get around Assent.")
	}
	if _, err := io.WriteString(w, s.b.String()); err != nil {
		return fmt.Errorf("writing the diagnosis: %w", err)
	}
	return nil
}

// access reads the cluster's RBAC.
func (c *cluster) access(ctx context.Context, operator string) (*access, error) {
	var (
		clusterRoles        rbacv1.ClusterRoleList
		roles               rbacv1.RoleList
		clusterRoleBindings rbacv1.ClusterRoleBindingList
		roleBindings        rbacv1.RoleBindingList
		manifests           v1alpha1.ToolManifestList
		namespaces          corev1.NamespaceList
	)
	for _, list := range []client.ObjectList{&clusterRoles, &roles, &clusterRoleBindings, &roleBindings, &manifests, &namespaces} {
		if err := c.List(ctx, list); err != nil {
			return nil, serverError(err)
		}
	}
	tools := map[string]bool{}
	for i := range manifests.Items {
		tools[manifests.Items[i].Namespace] = true
	}
	for i := range namespaces.Items {
		if namespaces.Items[i].Labels[v1alpha1.LabelServes] != "" {
			tools[namespaces.Items[i].Name] = true
		}
	}
	return &access{
		clusterRoles: clusterRoles.Items, roles: roles.Items, clusterRoleBindings: clusterRoleBindings.Items,
		roleBindings: roleBindings.Items, operator: operator, tools: tools,
	}, nil
}

// missing names what of Assent's admission is not there or does not refuse.
func (c *cluster) missing(ctx context.Context) ([]string, error) {
	out := []string{}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "assent"}}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "assent"}}
	for _, o := range []client.Object{mutating, validating} {
		err := c.Get(ctx, client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			out = append(out, fmt.Sprintf("%T assent", o)[len("*v1."):])
		} else if err != nil {
			return nil, serverError(err)
		}
	}
	for _, w := range mutating.Webhooks {
		if open(w.FailurePolicy) {
			out = append(out, "failurePolicy Fail of webhook "+w.Name)
		}
	}
	for _, w := range validating.Webhooks {
		if open(w.FailurePolicy) {
			out = append(out, "failurePolicy Fail of webhook "+w.Name)
		}
	}
	return out, nil
}

func open(p *admissionregistrationv1.FailurePolicyType) bool {
	return p != nil && *p != admissionregistrationv1.Fail
}
