// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"errors"
	"fmt"

	"github.com/assent-dev/assent/snapshot"
)

// The whole way: the schema step fills in a default, once, and what it returns
// is frozen.
func ExamplePrepare() {
	withDefaults := func(tree any) (any, error) {
		arguments, ok := tree.(map[string]any)
		if !ok {
			return nil, &snapshot.Error{Stage: snapshot.StageSchema, Reason: "NotAnObject"}
		}
		if _, given := arguments["mode"]; !given {
			arguments["mode"] = 420
		}
		return arguments, nil
	}
	s, err := snapshot.Prepare(`{"path": "/etc/motd", "lines": [1, 2.0]}`, withDefaults)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Canonical())
	fmt.Println(s.Digest())
	// Output:
	// {"lines":[1,2],"mode":420,"path":"/etc/motd"}
	// 16ae140a0d86573b215a341bd35a7eb9bd4f475b9eeb745d049592a432b51c8a
}

func ExampleDecode() {
	tree, err := snapshot.Decode(`{"replicas": 3, "labels": ["a", "b"]}`)
	fmt.Println(tree, err)
	// Output: map[labels:[a b] replicas:3] <nil>
}

// An error tells where and why, and nothing about the arguments.
func ExampleDecode_refused() {
	_, err := snapshot.Decode(`{"account": 9007199254740993}`)
	fmt.Println(err)

	if refused, ok := errors.AsType[*snapshot.Error](err); ok {
		fmt.Println(refused.Stage, refused.Reason, refused.Path)
	}
	// Output:
	// refused at stage decode: UnsafeInteger at /0: an integer cannot be kept exactly; send it as a string
	// decode UnsafeInteger /0
}

func ExampleNew() {
	s, err := snapshot.New(map[string]any{"b": 2, "a": []any{1.5, nil}})
	fmt.Println(s.Canonical(), err)

	_, err = snapshot.New(map[string]any{"when": struct{}{}})
	fmt.Println(err)
	// Output:
	// {"a":[1.5,null],"b":2} <nil>
	// refused at stage snapshot: UnsupportedType at /0: a value is not JSON data; use nil, bool, string, float64, an integer, []any or map[string]any
}

// Stored text is taken back only if it is the canonical text itself.
func ExampleParse() {
	s, err := snapshot.Parse(`{"a":1}`)
	fmt.Println(s.Canonical(), err)

	_, err = snapshot.Parse(`{"a":1.0}`)
	fmt.Println(err)
	// Output:
	// {"a":1} <nil>
	// refused at stage snapshot: NotCanonical: the text is not in canonical form (RFC 8785); prepare the call again
}

// Each reader gets a view of its own; what one does to it, no other can see.
func ExampleSnapshot_View() {
	s, _ := snapshot.Parse(`{"path":"/srv"}`)
	policy, tool := s.View(), s.View()
	policy.(map[string]any)["path"] = "/etc/shadow"
	fmt.Println(tool)
	// Output: map[path:/srv]
}

func ExampleSnapshot_Matches() {
	s, _ := snapshot.Parse(`{"path":"/srv"}`)
	view := s.View()
	fmt.Println(s.Matches(view))

	view.(map[string]any)["path"] = "/etc/shadow"
	fmt.Println(s.Matches(view))
	// Output:
	// <nil>
	// refused at stage snapshot: policy_mutated_arguments: the view differs from the snapshot; a policy must not change its input
}

func ExampleProposalHash() {
	hash, err := snapshot.ProposalHash("a", "t", "{}")
	fmt.Println(hash, err)
	// Output: ed594f1a871fb2c2ac1cc8284018860aac3850cad1e9bc934f27096f0e739f50 <nil>
}

func ExampleHash() {
	hash, err := snapshot.Hash("example", map[string]any{"name": "fetch", "version": "1.0.0"})
	fmt.Println(hash, err)
	// Output: 6c2536874f7bcaecf8d0759123234ae14cd3b76584c5c304f8affc4e28ab88ca <nil>
}

func ExampleCanonicalObject() {
	text, err := snapshot.CanonicalObject(map[string]any{"version": "1.0.0", "name": "fetch"})
	fmt.Println(text, err)
	// Output: {"name":"fetch","version":"1.0.0"} <nil>
}
