// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import "slices"

// The built-in types. They are the values of [ArgumentInfo.Kind].
const (
	KindString         = "string"
	KindInteger        = "integer"
	KindNumber         = "number"
	KindBoolean        = "boolean"
	KindPort           = "port"
	KindEnum           = "enum"
	KindURL            = "url"
	KindPath           = "path"
	KindIPAddress      = "ip_address"
	KindCIDR           = "cidr"
	KindScopeTarget    = "scope_target"
	KindDuration       = "duration"
	KindRegexMatch     = "regex_match"
	KindMSFOptions     = "msf_options"
	KindCredentialFile = "credential_file"
	KindObject         = "object"
	KindArray          = "array"
)

// jsonType is the JSON type of a kind under the encoding Typed.
type jsonType string

const (
	jsonString  jsonType = "string"
	jsonInteger jsonType = "integer"
	jsonNumber  jsonType = "number"
	jsonBoolean jsonType = "boolean"
	jsonObject  jsonType = "object"
	jsonArray   jsonType = "array"
)

// constraint is one field of ArgumentConstraints, as a bit.
type constraint uint16

const (
	canAllow constraint = 1 << iota
	canMatch
	canBound
	canScheme
	canScope
	canLimit
	canDash
	canSchema
)

// kindSpec says how values of a built-in type are read.
type kindSpec struct {
	json jsonType
	// applies are the constraints that mean something for the type. Sensitive
	// applies to every type.
	applies constraint
	// normalise checks a text and returns the one spelling of it that is
	// hashed, decided on and run. Only for types of JSON type string.
	normalise func(a *argument, text string) (string, refusal)
	// needsPattern and needsAllowed mark constraints that are mandatory.
	needsPattern, needsAllowed bool
	// format is that of JSON Schema, for tool definitions.
	format string
}

// anyText are the constraints of every kind whose values are free texts.
const anyText = canAllow | canMatch | canLimit

// The kinds that share a specification, and those that stand alone. They are
// never changed: each argument of each contract refers to one of them.
var (
	kindText    = &kindSpec{json: jsonString, applies: anyText | canScope | canDash, normalise: normaliseString}
	kindRegex   = &kindSpec{json: jsonString, applies: anyText | canScope | canDash, normalise: normaliseString, needsPattern: true}
	kindChoice  = &kindSpec{json: jsonString, applies: canAllow | canScope | canDash, normalise: normaliseEnum, needsAllowed: true}
	kindFile    = &kindSpec{json: jsonString, applies: anyText | canDash, normalise: normalisePath}
	kindOptions = &kindSpec{json: jsonString, applies: anyText | canDash, normalise: normaliseOptions}
	kindLink    = &kindSpec{json: jsonString, applies: anyText | canScheme | canScope, normalise: normaliseURL, format: "uri"}
	kindTarget  = &kindSpec{json: jsonString, applies: anyText | canScope, normalise: normaliseTarget}
	kindAddress = &kindSpec{json: jsonString, applies: anyText | canScope, normalise: normaliseAddress}
	kindRange   = &kindSpec{json: jsonString, applies: anyText | canScope, normalise: normaliseRange}
	kindLength  = &kindSpec{json: jsonString, applies: canAllow | canBound, normalise: normaliseDuration}
	kindWhole   = &kindSpec{json: jsonInteger, applies: canAllow | canBound | canDash}
	kindNumeric = &kindSpec{json: jsonNumber, applies: canAllow | canBound | canDash}
	kindTruth   = &kindSpec{json: jsonBoolean}
	kindMap     = &kindSpec{json: jsonObject, applies: canSchema}
	kindList    = &kindSpec{json: jsonArray, applies: canSchema}
)

// kindOf returns the built-in type of a name, or nil.
func kindOf(name string) *kindSpec {
	switch name {
	case KindString:
		return kindText
	case KindRegexMatch:
		return kindRegex
	case KindEnum:
		return kindChoice
	case KindPath, KindCredentialFile:
		return kindFile
	case KindMSFOptions:
		return kindOptions
	case KindURL:
		return kindLink
	case KindScopeTarget:
		return kindTarget
	case KindIPAddress:
		return kindAddress
	default:
		return otherKind(name)
	}
}

// otherKind is the rest of [kindOf].
func otherKind(name string) *kindSpec {
	switch name {
	case KindCIDR:
		return kindRange
	case KindDuration:
		return kindLength
	case KindInteger, KindPort:
		return kindWhole
	case KindNumber:
		return kindNumeric
	case KindBoolean:
		return kindTruth
	case KindObject:
		return kindMap
	case KindArray:
		return kindList
	default:
		return nil
	}
}

// Kinds returns the names of the built-in types, sorted.
//
// A policy engine maps them by JSON type: integer and port to a 64-bit integer,
// number to a decimal, boolean to a boolean, object and array by their JSON
// value, and all others to a string. Under the encoding String every value is a
// string, whatever the kind: see [ArgumentInfo.ValueKind].
func Kinds() []string {
	return slices.Sorted(slices.Values([]string{
		KindString, KindInteger, KindNumber, KindBoolean, KindPort, KindEnum, KindURL, KindPath,
		KindIPAddress, KindCIDR, KindScopeTarget, KindDuration, KindRegexMatch, KindMSFOptions,
		KindCredentialFile, KindObject, KindArray,
	}))
}
