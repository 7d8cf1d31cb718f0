// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/policy"
)

type schemaOptions struct {
	offlineOptions
	cedar        bool
	tool, format string
}

// newSchemaCommand prints what is derived from manifests for other tools.
func newSchemaCommand(streams Streams) *cobra.Command {
	var o schemaOptions
	c := &cobra.Command{
		Use:   "schema -f FILES…",
		Short: "Print the definitions of the tools for agents, or their Cedar schema",
		Long: "Print the definitions of the tools of a namespace as an agent's model takes them: name, description and a JSON\n" +
			"Schema of the arguments. A definition describes; what it cannot say, such as the scope, is enforced all the same.\n\n" +
			"With --cedar, print their Cedar schema: what policies may read, for each action. Editors and other Cedar tools\n" +
			"take it; the operator checks policies against the same schema.",
		Example: "  kubectl assent schema -n shop -f deploy/ --tool pay --format openai\n" +
			"  kubectl assent schema --cedar -n shop -f deploy/ > shop.cedarschema",
		RunE: func(_ *cobra.Command, args []string) error {
			o.files = append(o.files, args...)
			return o.run(streams)
		},
	}
	o.flags(c, &o.offlineOptions)
	c.Flags().BoolVar(&o.cedar, "cedar", false, "print the Cedar schema")
	c.Flags().StringVar(&o.tool, "tool", "", "print the definition of this ToolManifest only")
	c.Flags().StringVar(&o.format, "format", formatMCP, "form of the definitions: mcp, openai or anthropic")
	return c
}

func (o *schemaOptions) run(streams Streams) error {
	if len(o.files) == 0 {
		return errors.New("no files: name them with -f")
	}
	w, err := o.load(streams)
	if err != nil {
		return err
	}
	if err := w.sound(); err != nil {
		return err
	}
	if !o.cedar {
		return o.toolDefinitions(w, streams)
	}
	text, err := cedarSchema(w)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(streams.Out, text); err != nil {
		return fmt.Errorf("writing the schema: %w", err)
	}
	return nil
}

// cedarSchema gives the Cedar schema of the tools in files: what policies may
// read. Session attributes are those that the policies in the files declare.
func cedarSchema(w *offline) (string, error) {
	return policy.Schema(w.namespace, w.tools(), w.sessionAttributes())
}

// sessionAttributes unites what the policies declare: an attribute that one of
// them does not require is optional, and one with two types is left out.
func (w *offline) sessionAttributes() []policy.SessionAttribute {
	var all []policy.SessionAttribute
	index, clashes := map[string]int{}, map[string]bool{}
	for _, namespace := range []string{"", w.namespace} {
		for _, c := range w.set.Sources(namespace) {
			for _, a := range c.SessionAttributes() {
				i, known := index[a.Name]
				switch {
				case !known:
					index[a.Name] = len(all)
					all = append(all, a)
				case all[i].Type != a.Type:
					clashes[a.Name] = true
				default:
					all[i].Required = all[i].Required && a.Required
				}
			}
		}
	}
	kept := all[:0]
	for _, a := range all {
		if !clashes[a.Name] {
			kept = append(kept, a)
		}
	}
	return kept
}
