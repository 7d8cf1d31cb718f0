// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/contract/clad"
)

// importOptions are the flags of kubectl assent import.
type importOptions struct {
	types, scope, image string
	namespace           string
	servers, digests    map[string]string
	output              string
}

// newImportCommand turns files of ToolClad into objects.
func newImportCommand(streams Streams) *cobra.Command {
	var o importOptions
	c := &cobra.Command{
		Use:   "import FILE.clad.toml…",
		Short: "Turn ToolClad manifests into objects",
		Long: "Turn ToolClad manifests, their project's types and a scope file into ToolManifest, ArgumentType and ToolScope\n" +
			"objects on standard output. What has no counterpart is an error that names the key and says what to do\n" +
			"instead; decisions that an author should know are notes on standard error.",
		Example: "  kubectl assent import tools/*.clad.toml --types toolclad.toml --scope scope/scope.toml \\\n" +
			"    --image registry.example/tools@sha256:… > tools.yaml",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args, streams) },
	}
	f := c.Flags()
	f.StringVar(&o.types, "types", "", "toolclad.toml with the project's types")
	f.StringVar(&o.scope, "scope", "", "file with a [scope] table: targets, domains, exclude")
	f.StringVar(&o.image, "image", "", "image that holds the programs of imported commands, by digest")
	f.StringToStringVar(&o.servers, "mcp-server", nil, "NAME=URL of an MCP server that manifests name; can be given several times")
	f.StringToStringVar(&o.digests, "mcp-tool-digest", nil, "TOOL=SHA256 of an MCP tool's definition; can be given several times")
	f.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the objects; none by default, as for kubectl apply -n")
	f.StringVarP(&o.output, "output", "o", "yaml", "output format: yaml, or json for one List")
	return c
}

func (o *importOptions) run(files []string, streams Streams) error {
	if o.output != "yaml" && o.output != "json" {
		return fmt.Errorf("output format must be yaml or json, not %q", o.output)
	}
	manifests := make([]clad.Source, 0, len(files))
	for _, name := range files {
		s, err := o.source(name, streams)
		if err != nil {
			return err
		}
		manifests = append(manifests, s)
	}
	types, err := o.source(o.types, streams)
	if err != nil {
		return err
	}
	scope, err := o.source(o.scope, streams)
	if err != nil {
		return err
	}
	result, err := clad.Import(manifests, givenSource(types), givenSource(scope), clad.Options{Image: o.image, MCPServers: o.servers, MCPToolDigests: o.digests})
	if err != nil {
		return importFailure(err, streams.Err)
	}
	for _, n := range result.Notes {
		_, _ = fmt.Fprintf(streams.Err, "note: %s\n", n)
	}
	if err := o.print(result, streams.Out); err != nil {
		return fmt.Errorf("writing the objects: %w", err)
	}
	return nil
}

// source reads a file. Without a name there is none.
func (o *importOptions) source(name string, streams Streams) (clad.Source, error) {
	if name == "" {
		return clad.Source{}, nil
	}
	text, err := readInput(name, clad.MaxFileBytes+1, streams)
	return clad.Source{Path: name, Text: text}, err
}

// givenSource is nil for no file.
func givenSource(s clad.Source) *clad.Source {
	if s.Path == "" {
		return nil
	}
	return &s
}

// importFailure prints one line for everything that cannot be imported.
func importFailure(err error, to io.Writer) error {
	joined, several := err.(interface{ Unwrap() []error })
	if !several {
		return err
	}
	for _, one := range joined.Unwrap() {
		if _, err := fmt.Fprintf(to, "error: %v\n", one); err != nil {
			return errors.Join(one, err)
		}
	}
	return &ExitError{Code: exitError}
}

// object is an object without the fields that a cluster adds.
type object struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Metadata   objectMeta `json:"metadata"`
	Spec       any        `json:"spec"`
}

type objectMeta struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

func (o *importOptions) object(kind, name string, spec any) object {
	return object{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Metadata: objectMeta{Name: name, Namespace: o.namespace}, Spec: spec}
}

func (o *importOptions) print(r *clad.Result, to io.Writer) error {
	var objects []object
	for _, t := range r.Types {
		objects = append(objects, o.object("ArgumentType", t.Name, t.Spec))
	}
	if r.Scope != nil {
		objects = append(objects, o.object("ToolScope", r.Scope.Name, r.Scope.Spec))
	}
	for _, m := range r.Manifests {
		objects = append(objects, o.object("ToolManifest", m.Name, m.Spec))
	}
	if o.output == "json" {
		text, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}, "", "  ")
		if err != nil {
			return err
		}
		_, err = to.Write(append(text, '\n'))
		return err
	}
	documents := make([]string, len(objects))
	for i := range objects {
		text, err := yaml.Marshal(objects[i])
		if err != nil {
			return err
		}
		documents[i] = string(text)
	}
	_, err := io.WriteString(to, strings.Join(documents, "---\n"))
	return err
}
