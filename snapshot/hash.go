// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import "maps"

// schemeVersion is the member "v" of everything that is hashed. Another number
// means another scheme, and therefore another hash for the same content.
const schemeVersion = 1

// ProposalHash binds an agent, a tool and canonical arguments (RFC-0016,
// "Proposal Hash And Approval"). It is the lower-case hexadecimal SHA-256 of
// the canonical text of
//
//	{"agent":agent,"argsCanonicalJson":argsCanonicalJSON,"tool":tool,"v":1}
//
// in which the arguments are a JSON string, not a JSON value: so the hash
// covers their bytes and needs no framing of its own.
//
// It fails with an [*Error] of [StageSnapshot] if argsCanonicalJSON is not
// canonical (see [Parse]) or a name is not valid text.
func ProposalHash(agent, tool, argsCanonicalJSON string) (string, error) {
	if _, err := Parse(argsCanonicalJSON); err != nil {
		return "", err
	}
	_, digest, err := record(map[string]any{
		"agent":             agent,
		"argsCanonicalJson": argsCanonicalJSON,
		"tool":              tool,
		"v":                 schemeVersion,
	})
	return digest, err
}

// Hash returns the lower-case hexadecimal SHA-256 of the canonical text of
// members together with "v":1 and "kind":kind. The kind keeps hashes of one
// purpose from being taken for hashes of another. Members follow the rules of
// [New] under the limits of records ([MaxRecordBytes], [MaxRecordValues],
// [MaxRecordStringBytes], [MaxDepth]); they are not changed.
//
// It fails with an [*Error] of [StageSnapshot]; with [ReasonReservedMember] if
// members contains "v" or "kind".
func Hash(kind string, members map[string]any) (string, error) {
	all := maps.Clone(members)
	if all == nil {
		return "", refuse(ReasonTypedNil).at(StageSnapshot)
	}
	for _, reserved := range []string{"v", "kind"} {
		if _, taken := all[reserved]; taken {
			return "", refuse(ReasonReservedMember).at(StageSnapshot)
		}
	}
	all["v"], all["kind"] = schemeVersion, kind
	_, digest, err := record(all)
	return digest, err
}

// CanonicalObject returns the canonical text of an object under the limits of
// records. It is the text that [Hash] hashes once "v" and "kind" are among the
// members, and serves other records that are signed or compared as text.
//
// It fails with an [*Error] of [StageSnapshot].
func CanonicalObject(members map[string]any) (string, error) {
	text, _, err := record(members)
	return text, err
}

// record canonicalises an object under the limits of records.
func record(members map[string]any) (text, digest string, err error) {
	text, digest, f := standard().canonicalOf(members, recordLimits())
	if f != nil {
		return "", "", f.at(StageSnapshot)
	}
	return text, digest, nil
}
