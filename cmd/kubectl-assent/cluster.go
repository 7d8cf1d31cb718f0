// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// clusterFlags say which cluster a command talks to, in the way of kubectl.
type clusterFlags struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
	output     string
}

func (c *clusterFlags) add(f *pflag.FlagSet) {
	c.addConnection(f)
	f.StringVarP(&c.overrides.Context.Namespace, "namespace", "n", "", "namespace; otherwise the context's")
	f.StringVarP(&c.output, "output", "o", "", "output format: json, or nothing for text")
}

// addConnection adds what a command needs that has its own way with namespaces
// and output.
func (c *clusterFlags) addConnection(f *pflag.FlagSet) {
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "path of the kubeconfig file; otherwise KUBECONFIG, ~/.kube/config or the Pod's own account")
	f.StringVar(&c.overrides.CurrentContext, "context", "", "context of the kubeconfig file")
	f.StringVar(&c.overrides.AuthInfo.Impersonate, "as", "", "username to act as")
	f.StringArrayVar(&c.overrides.AuthInfo.ImpersonateGroups, "as-group", nil, "group to act in, together with --as")
}

// cluster is a connection with the namespace that names are looked up in.
type cluster struct {
	client.WithWatch
	namespace string
	json      bool
}

func (c *clusterFlags) connect() (*cluster, error) {
	if c.output != "" && c.output != "json" {
		return nil, fmt.Errorf("output format must be json or empty, not %q", c.output)
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &c.overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("finding the namespace: %w", err)
	}
	// Warnings of the server are text of others: they do not belong between
	// what an approver reads.
	config.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	connection, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return &cluster{WithWatch: connection, namespace: namespace, json: c.output == "json"}, nil
}

// proposal reads one call.
func (c *cluster) proposal(ctx context.Context, name string) (*v1alpha1.ToolProposal, error) {
	p := &v1alpha1.ToolProposal{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, p); err != nil {
		return nil, serverError(err)
	}
	return p, nil
}

// receipts reads what people decided about one call.
func (c *cluster) receipts(ctx context.Context, p *v1alpha1.ToolProposal) ([]v1alpha1.ApprovalReceipt, error) {
	var list v1alpha1.ApprovalReceiptList
	err := c.List(ctx, &list, client.InNamespace(p.Namespace), client.MatchingFields{"spec.proposalRef.uid": string(p.UID)})
	if err != nil {
		return nil, serverError(err)
	}
	// Creation times are whole seconds; the person settles a tie, so that the
	// same receipts are always shown in the same order.
	slices.SortFunc(list.Items, func(a, b v1alpha1.ApprovalReceipt) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(approverOf(&a), approverOf(&b)), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

func approverOf(r *v1alpha1.ApprovalReceipt) string {
	if r.Spec.Approver == nil {
		return ""
	}
	return r.Spec.Approver.Username
}

// serverError makes an answer of the server safe to print, and a refusal of
// it a refusal of the command.
func serverError(err error) error {
	text := errors.New(escapeText(err.Error()))
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		refusals := []metav1.StatusReason{metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonTooManyRequests}
		if slices.Contains(refusals, status.Status().Reason) {
			return &ExitError{Code: exitRefused, Err: text}
		}
	}
	return text
}

// printObject writes an object as indented JSON that is safe on a terminal.
func printObject(w io.Writer, v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, escapeText(strings.TrimSuffix(line, "\n"))); err != nil {
			return fmt.Errorf("writing the answer: %w", err)
		}
	}
	return nil
}
