// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/proposal"
)

// newGenerateCommand holds what writes files to start from.
func newGenerateCommand(streams Streams) *cobra.Command {
	c := &cobra.Command{Use: "generate", Short: "Write files to start from"}
	c.AddCommand(newGeneratePolicyCommand(streams))
	return c
}

type generatePolicyOptions struct {
	offlineOptions
	tools  []string
	output string
}

func newGeneratePolicyCommand(streams Streams) *cobra.Command {
	var o generatePolicyOptions
	c := &cobra.Command{
		Use:   "policy -f FILES… [--tool NAME…]",
		Short: "Write a ToolPolicy to start from for each ToolManifest",
		Long: "Write a ToolPolicy to start from for each ToolManifest: it permits the tool to everybody, once approved\n" +
			"where the manifest says humanApproval, and warns about tools of high risk. Narrow it before you use it.",
		Example: "  kubectl assent generate policy -f deploy/ --tool pay > pay-policy.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			o.files = append(o.files, args...)
			return o.run(streams)
		},
	}
	o.flags(c, &o.offlineOptions)
	c.Flags().StringArrayVar(&o.tools, "tool", nil, "name of a ToolManifest; all when it is not given")
	c.Flags().StringVarP(&o.output, "output", "o", "yaml", "output format: yaml, json, or cedar for the text alone")
	return c
}

func (o *generatePolicyOptions) run(streams Streams) error {
	if !slices.Contains([]string{"yaml", "json", "cedar"}, o.output) {
		return fmt.Errorf("output format must be yaml, json or cedar, not %q", o.output)
	}
	if len(o.files) == 0 {
		return errors.New("no files: name them with -f")
	}
	w, err := o.load(streams)
	if err != nil {
		return err
	}
	names := o.tools
	if len(names) == 0 {
		for i := range w.documents.Manifests {
			names = append(names, w.documents.Manifests[i].Name)
		}
	}
	for _, name := range names {
		text, err := o.generate(w, name)
		if err != nil {
			return err
		}
		if _, err := streams.Out.Write(text); err != nil {
			return fmt.Errorf("writing the policy: %w", err)
		}
	}
	return nil
}

func (o *generatePolicyOptions) generate(w *offline, name string) ([]byte, error) {
	c, err := w.contract(name)
	if err != nil {
		return nil, err
	}
	cedar, err := policy.Generate(proposal.PolicyTool(w.namespace, c))
	if err != nil {
		return nil, err
	}
	if o.output == "cedar" {
		return []byte(cedar), nil
	}
	// Not the API type itself: it would print an empty status, too.
	object := struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
		Spec v1alpha1.PolicySpec `json:"spec"`
	}{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ToolPolicy"},
		Spec:     v1alpha1.PolicySpec{Cedar: cedar},
	}
	object.Metadata.Name, object.Metadata.Namespace = name, w.namespace
	if o.output == "json" {
		text, err := yaml.Marshal(object)
		if err != nil {
			return nil, err
		}
		text, err = yaml.YAMLToJSON(text)
		return append(text, '\n'), err
	}
	text, err := yaml.Marshal(object)
	return append([]byte("---\n"), text...), err
}
