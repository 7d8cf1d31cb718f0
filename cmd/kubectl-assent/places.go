// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/assent-dev/assent/internal/contract/lint"
)

// places knows where objects are written.
type places struct {
	objects   map[string]place
	namespace string
}

// place is an object in a file.
type place struct {
	file string
	node *yaml.Node
}

// findPlaces reads files once more, for lines. It only looks for objects that
// have been read already, so that what is odd in a file is no error here.
func findPlaces(paths []string, namespace string, input []byte) (*places, error) {
	p := &places{objects: map[string]place{}, namespace: namespace}
	for _, path := range paths {
		names, err := filesOf(path)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text := input
			if name != "-" {
				if text, err = readInput(name, maxDocumentBytes, Streams{}); err != nil {
					return nil, err
				}
			}
			p.addFile(name, text)
		}
	}
	return p, nil
}

func (p *places) addFile(name string, text []byte) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document yaml.Node
		if decoder.Decode(&document) != nil {
			return // the end, or text that only the other reader can read
		}
		if len(document.Content) == 1 {
			p.addObject(name, document.Content[0])
		}
	}
}

// addObject records an object, or the items of a List.
func (p *places) addObject(file string, node *yaml.Node) {
	if items := child(node, "items"); items != nil && strings.HasSuffix(value(node, "kind"), "List") {
		for _, item := range items.Content {
			p.addObject(file, item)
		}
		return
	}
	metadata := child(node, "metadata")
	namespace := cmp.Or(value(metadata, "namespace"), p.namespace)
	p.objects[value(node, "kind")+"/"+namespace+"/"+value(metadata, "name")] = place{file, node}
}

// of returns file and line of a finding: the line of its field, or of the last
// field on the way to it that is written at all.
func (p *places) of(f lint.Finding) (file string, line int) {
	at := p.objects[f.Kind+"/"+f.Namespace+"/"+f.Name]
	node := at.node
	for _, step := range strings.FieldsFunc(f.Field, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next := child(node, step)
		if next == nil {
			break
		}
		node = next
	}
	if node == nil {
		return at.file, 0
	}
	return at.file, node.Line
}

// child is the value of a key of a mapping, or an element of a sequence.
func child(node *yaml.Node, key string) *yaml.Node {
	switch {
	case node == nil:
		return nil
	case node.Kind == yaml.SequenceNode:
		i, err := strconv.Atoi(key)
		if err != nil || i >= len(node.Content) {
			return nil
		}
		return node.Content[i]
	case node.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == key {
				return node.Content[i+1]
			}
		}
	}
	return nil
}

func value(node *yaml.Node, key string) string {
	if c := child(node, key); c != nil {
		return c.Value
	}
	return ""
}
