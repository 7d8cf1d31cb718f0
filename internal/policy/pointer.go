// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

// lookup follows a local JSON pointer "#/a/b" (RFC 6901) through objects; nil
// when it leads nowhere. Percent-encoding and arrays do not occur in the
// references that schemas use for their own definitions.
func lookup(root any, ref string) any {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	if path == "" {
		return root
	}
	path, ok = strings.CutPrefix(path, "/")
	if !ok {
		return nil
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for part := range strings.SplitSeq(path, "/") {
		node, ok := root.(map[string]any)
		if !ok {
			return nil
		}
		if root, ok = node[unescape.Replace(part)]; !ok {
			return nil
		}
	}
	return root
}
