// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// documents are the objects of YAML or JSON files, as kubectl apply would take
// them: what offline commands work on in place of a cluster.
type documents struct {
	Manifests       []v1alpha1.ToolManifest
	Types           []v1alpha1.ArgumentType
	Scopes          []v1alpha1.ToolScope
	Policies        []v1alpha1.ToolPolicy
	ClusterPolicies []v1alpha1.ClusterToolPolicy
	Sessions        []v1alpha1.AgentSession
	Proposals       []v1alpha1.ToolProposal

	seen map[string]string // kind/namespace/name to the file it came from
}

// maxDocumentBytes bounds one file: trusted, but not worth all memory.
const maxDocumentBytes = 64 << 20

// loadDocuments reads files, the YAML and JSON files directly in folders, and
// standard input for "-". Everything in them must be of a kind of Assent's, or
// a List; fields that do not exist, and objects that occur twice, are errors.
func loadDocuments(paths []string, in io.Reader) (*documents, error) {
	d := &documents{seen: map[string]string{}}
	for _, path := range paths {
		names, err := filesOf(path)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if err := d.loadFile(name, in); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

// filesOf lists the files that a path stands for.
func filesOf(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			names = append(names, filepath.Join(path, entry.Name()))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("folder %s holds no .yaml, .yml or .json file", path)
	}
	return names, nil
}

func (d *documents) loadFile(name string, in io.Reader) error {
	text, err := readInput(name, maxDocumentBytes, Streams{In: in})
	if err != nil {
		return err
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for i := 1; ; i++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = d.add(name, document)
		}
		if err != nil {
			return fmt.Errorf("%s, document %d: %w", name, i, err)
		}
	}
}

// add reads one document.
func (d *documents) add(file string, document []byte) error {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return err
	}
	if string(text) == "null" { // only comments
		return nil
	}
	var meta metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &meta); err != nil {
		return err
	}
	if strings.HasSuffix(meta.Kind, "List") {
		return d.addList(file, text)
	}
	if meta.APIVersion != v1alpha1.GroupVersion.String() {
		return fmt.Errorf("apiVersion %q, kind %q is not one of Assent's; use %s", meta.APIVersion, meta.Kind, v1alpha1.GroupVersion)
	}
	return d.addKind(meta.Kind, file, text)
}

func (d *documents) addKind(kind, file string, text []byte) error {
	switch kind {
	case "ToolManifest":
		return appendObject(d, file, text, &d.Manifests)
	case "ArgumentType":
		return appendObject(d, file, text, &d.Types)
	case "ToolScope":
		return appendObject(d, file, text, &d.Scopes)
	case "ToolPolicy":
		return appendObject(d, file, text, &d.Policies)
	case "ClusterToolPolicy":
		return appendObject(d, file, text, &d.ClusterPolicies)
	case "AgentSession":
		return appendObject(d, file, text, &d.Sessions)
	case "ToolProposal":
		return appendObject(d, file, text, &d.Proposals)
	default:
		return fmt.Errorf("kind %q takes no part in this; leave it out", kind)
	}
}

// addList reads the items of a List of any kind, as kubectl get -o yaml prints
// them.
func (d *documents) addList(file string, text []byte) error {
	var list struct {
		Items []runtime.RawExtension `json:"items"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &list); err != nil {
		return err
	}
	for i, item := range list.Items {
		if err := d.add(file, item.Raw); err != nil {
			return fmt.Errorf("items[%d]: %w", i, err)
		}
	}
	return nil
}

// appendObject reads one object as strictly as kube-apiserver does when asked
// to. PT is *T; it is what has the methods.
func appendObject[T any, PT interface {
	*T
	metav1.Object
	runtime.Object
}](d *documents, file string, text []byte, to *[]T) error {
	var object T
	strict, err := kjson.UnmarshalStrict(text, &object)
	if err = errors.Join(append(strict, err)...); err != nil {
		return err
	}
	p := PT(&object)
	if p.GetName() == "" {
		return errors.New("metadata.name is missing")
	}
	id := fmt.Sprintf("%s %s/%s", p.GetObjectKind().GroupVersionKind().Kind, p.GetNamespace(), p.GetName())
	if other, twice := d.seen[id]; twice {
		return fmt.Errorf("%s occurs twice, first in %s", id, other)
	}
	d.seen[id] = file
	*to = append(*to, object)
	return nil
}
