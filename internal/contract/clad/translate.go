// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package clad

import (
	"regexp"
	"slices"
	"strings"
)

// token is a placeholder as ToolClad's runners recognise it, a name in doubled
// braces, which its examples use for a placeholder of the program's own, or any
// other brace.
var token = regexp.MustCompile(`\{\{[A-Za-z0-9_]+\}\}|\{(?:_secret:)?[A-Za-z0-9_]+\}|[{}]`)

// translate writes a text of words with the placeholders and braces of a
// command here. It returns the placeholders in order.
func (k *commandConverter) translate(key, text string) (string, []string) {
	var names []string
	translated := token.ReplaceAllStringFunc(text, func(found string) string {
		switch {
		case strings.HasPrefix(found, "{{"):
			return found // which is one brace on each side here
		case len(found) == 1:
			return found + found
		}
		name := found[1 : len(found)-1]
		if !k.known(key, name) {
			return ""
		}
		names = append(names, name)
		return found
	})
	return translated, names
}

// known reports whether a placeholder stands for something, and records an error
// otherwise.
func (k *commandConverter) known(key, name string) bool {
	_, isDefault := k.in.Defaults[name]
	switch {
	case k.fragments[name] != "" || slices.Contains(k.names, name):
		return true
	case isDefault || name == "_output_file" || name == "_evidence_dir":
		k.used[name] = true
		return true
	case name == "_scan_id":
		k.fail(key, "uses {_scan_id}, which is another one for every run; an approved command has to be the one that runs, so use a constant")
	case strings.HasPrefix(name, "_secret:"):
		k.fail(key, "uses {%s} on the command line, where other processes can read it; let the program read a variable of its environment", name)
	default:
		k.fail(key, "uses {%s}, which is neither an argument nor a default, a mapping or a conditional; write {{%s}} if it is meant for the program", name, name)
	}
	return false
}
