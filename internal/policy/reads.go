// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
)

// reads is which parts of the context a policy can observe. Most policies read
// one or two, and making all of them costs more than asking the policies. A part
// that no policy in scope can observe is left out; context.invocation itself and
// context.session always stand there.
type reads uint16

const (
	readApproval reads = 1 << iota // has_human_approval and approved_fingerprint
	readArguments
	readArgumentJSON
	readArgumentLengths
	readArgumentAddresses
	readCanonical
	readContract
	readResolved
	readFingerprint

	readsAll reads = 1<<iota - 1
)

// contextReads gives what a policy can observe. Only the two forms context.a
// and context.invocation.a, and "has" in place of the last point, tell which
// part is meant; whatever else mentions the context or the invocation, such as
// a comparison of the whole, counts as reading everything.
func (s *statement) contextReads() (r reads) {
	for _, condition := range s.tree().Conditions {
		ast.Inspect(ast.NewNode(condition.Body), func(n ast.IsNode) bool {
			switch n := n.(type) {
			case ast.NodeTypeAccess:
				return r.member(n.StrOpNode, readsAll)
			case ast.NodeTypeHas:
				return r.member(n.StrOpNode, 0)
			case ast.NodeTypeVariable:
				if isContext(n) {
					r = readsAll
				}
			default: // reads nothing itself
			}
			return true
		})
	}
	return r
}

// member adds what an access to a member reads, and says whether to look
// inside for what it is a member of. whole is what context.invocation without
// a member behind it counts for.
func (r *reads) member(n ast.StrOpNode, whole reads) (inside bool) {
	switch parent, _ := n.Arg.(ast.NodeTypeAccess); {
	case isContext(n.Arg):
		*r |= contextMember(n.Value, whole)
	case parent.Value == "invocation" && isContext(parent.Arg):
		*r |= invocationMember(n.Value)
	default:
		return true
	}
	return false
}

func isContext(n ast.IsNode) bool {
	variable, ok := n.(ast.NodeTypeVariable)
	return ok && variable.Name == "context"
}

// contextMember: a name that is not here is never left out, or never there.
func contextMember(name types.String, whole reads) reads {
	switch name {
	case "invocation":
		return whole
	case "has_human_approval", "approved_fingerprint":
		return readApproval
	default:
		return 0
	}
}

func invocationMember(name types.String) reads {
	switch name {
	case "arguments":
		return readArguments
	case "argument_json":
		return readArgumentJSON
	case "argument_lengths":
		return readArgumentLengths
	case "argument_addresses":
		return readArgumentAddresses
	case "args_canonical_json":
		return readCanonical
	case "contract":
		return readContract
	case "resolved":
		return readResolved
	case "fingerprint":
		return readFingerprint
	default:
		return 0
	}
}
