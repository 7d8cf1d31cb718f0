// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// maxXMLDepth bounds nesting, as snapshot.MaxDepth does for JSON.
const maxXMLDepth = 64

// element is an element that is being read.
type element struct {
	name string
	// members are attributes, child elements and text.
	members map[string]any
	text    strings.Builder
}

// parseXML turns a document into JSON. Namespace prefixes are dropped. There are
// no entities but the predefined ones, so that a small document stays small.
func parseXML(text string) (any, error) {
	d := xml.NewDecoder(strings.NewReader(text))
	root := &element{members: map[string]any{}}
	open := []*element{root}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && len(root.members) > 0 {
			return root.members, nil
		}
		if err != nil || len(open) > maxXMLDepth {
			return nil, badOutput("the output is not an XML document")
		}
		current := open[len(open)-1]
		switch t := token.(type) {
		case xml.StartElement:
			open = append(open, newElement(t))
		case xml.EndElement:
			open = open[:len(open)-1]
			open[len(open)-1].add(current)
		case xml.CharData:
			current.text.Write(t)
		}
	}
}

func newElement(t xml.StartElement) *element {
	e := &element{name: t.Name.Local, members: make(map[string]any, len(t.Attr))}
	for _, a := range t.Attr {
		e.members["@"+a.Name.Local] = a.Value
	}
	return e
}

// add puts a finished child into its parent.
func (e *element) add(child *element) {
	if text := strings.TrimSpace(child.text.String()); text != "" {
		child.members["#text"] = text
	}
	switch known := e.members[child.name].(type) {
	case nil:
		e.members[child.name] = child.members
	case []any:
		e.members[child.name] = append(known, child.members)
	default:
		e.members[child.name] = []any{known, child.members}
	}
}
