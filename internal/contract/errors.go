// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"strings"

	"github.com/assent-dev/assent/internal/contract/scope"
	"github.com/assent-dev/assent/snapshot"
)

// CompileReason is a stable word for why a manifest cannot be used. Conditions
// of ToolManifest, ArgumentType and ToolScope carry it.
type CompileReason string

// Reasons of a [CompileError].
const (
	// ReasonMissingReference: an ArgumentType that does not exist.
	ReasonMissingReference CompileReason = "MissingReference"
	// ReasonTypeCycle: an ArgumentType is based on itself.
	ReasonTypeCycle CompileReason = "TypeCycle"
	// ReasonTypeDepth: a chain of more than [MaxTypeDepth] ArgumentTypes.
	ReasonTypeDepth CompileReason = "TypeDepth"
	// ReasonInvalidManifest: a field outside arguments and effect.
	ReasonInvalidManifest CompileReason = "InvalidManifest"
	// ReasonInvalidArgument: an argument or ArgumentType that no value could
	// satisfy, or with constraints that do not apply.
	ReasonInvalidArgument CompileReason = "InvalidArgument"
	// ReasonInvalidTemplate: a template that cannot be read, or that uses what
	// is not declared, or leaves unused what is.
	ReasonInvalidTemplate CompileReason = "InvalidTemplate"
	// ReasonInvalidEffect: an effect that could not run or must not.
	ReasonInvalidEffect CompileReason = "InvalidEffect"
	// ReasonImageNotByDigest: an image that a tag could replace.
	ReasonImageNotByDigest CompileReason = "ImageNotByDigest"
	// ReasonCredentialHostMismatch: a secret and a host that it is not for.
	ReasonCredentialHostMismatch CompileReason = "CredentialHostMismatch"
	// ReasonInvalidScope: a ToolScope with entries that cannot be read.
	ReasonInvalidScope CompileReason = "InvalidScope"
	// ReasonScopeMissing: scope-checked arguments without a ToolScope.
	ReasonScopeMissing CompileReason = "ScopeMissing"
	// ReasonScopeAmbiguous: several ToolScopes and no scopeRef.
	ReasonScopeAmbiguous CompileReason = "ScopeAmbiguous"
)

// CompileError is one thing that is wrong with a manifest or with an object it
// refers to.
type CompileError struct {
	// Reason is the stable word.
	Reason CompileReason
	// Field is the position: a path in the manifest such as
	// "spec.arguments[2].pattern", or "ArgumentType/NAME: spec.base", or
	// "ToolScope/NAME: spec.targets[0]".
	Field string
	// Message says what is wrong and what to change.
	Message string
}

// Error gives field, reason and message.
func (e *CompileError) Error() string {
	return e.Field + ": " + string(e.Reason) + ": " + e.Message
}

// CompileErrors is everything that is wrong, in the order of the manifest. It
// is never empty. errors.As finds each [*CompileError] in it.
type CompileErrors []*CompileError

// Error joins the messages with "; ".
func (e CompileErrors) Error() string {
	parts := make([]string, len(e))
	for i, one := range e {
		parts[i] = one.Error()
	}
	return strings.Join(parts, "; ")
}

// Unwrap returns the errors.
func (e CompileErrors) Unwrap() []error {
	out := make([]error, len(e))
	for i, one := range e {
		out[i] = one
	}
	return out
}

// Reasons at stage schema.
const (
	// ReasonUnexpectedArgument: an argument that the manifest does not have.
	// The error has no name, since it came from the arguments; its path is the
	// position in the sorted arguments.
	ReasonUnexpectedArgument snapshot.Reason = "UnexpectedArgument"
	// ReasonMissingArgument: a required argument is absent.
	ReasonMissingArgument snapshot.Reason = "MissingArgument"
	// ReasonNullArgument: null, which is neither a value nor absence.
	ReasonNullArgument snapshot.Reason = "NullArgument"
	// ReasonWrongType: a JSON value of another type.
	ReasonWrongType snapshot.Reason = "WrongType"
	// ReasonEmptyValue: an empty text where there must be one.
	ReasonEmptyValue snapshot.Reason = "EmptyValue"
	// ReasonNul: a NUL character, which ends a string for most programs.
	ReasonNul snapshot.Reason = "NulCharacter"
	// ReasonShellMetacharacter: one of ; | & $ ` ( ) { } [ ] < > ! and line ends.
	ReasonShellMetacharacter snapshot.Reason = "ShellMetacharacter"
	// ReasonWhiteSpace: white space around a value that has none.
	ReasonWhiteSpace snapshot.Reason = "WhiteSpace"
	// ReasonTextTooLong: longer than maxLength.
	ReasonTextTooLong snapshot.Reason = "TextTooLong"
	// ReasonNotAllowed: not one of the allowed values.
	ReasonNotAllowed snapshot.Reason = "NotAllowed"
	// ReasonPatternMismatch: the pattern does not match the whole value.
	ReasonPatternMismatch snapshot.Reason = "PatternMismatch"
	// ReasonInvalidNumber: no number in decimal notation, or one that cannot
	// be kept exactly.
	ReasonInvalidNumber snapshot.Reason = "InvalidNumber"
	// ReasonOutOfRange: beyond min or max.
	ReasonOutOfRange snapshot.Reason = "OutOfRange"
	// ReasonInvalidDuration: no duration such as 30, 90s or 1h30m.
	ReasonInvalidDuration snapshot.Reason = "InvalidDuration"
	// ReasonInvalidURL: no absolute URL in plain ASCII.
	ReasonInvalidURL snapshot.Reason = "InvalidURL"
	// ReasonURLScheme: a scheme that the manifest does not list.
	ReasonURLScheme snapshot.Reason = "URLScheme"
	// ReasonURLCredentials: user name or password in a URL.
	ReasonURLCredentials snapshot.Reason = "URLCredentials"
	// ReasonAbsolutePath: a path that does not start at the working directory.
	ReasonAbsolutePath snapshot.Reason = "AbsolutePath"
	// ReasonPathTraversal: a path that leaves its root.
	ReasonPathTraversal snapshot.Reason = "PathTraversal"
	// ReasonInvalidOptions: no list of KEY VALUE pairs.
	ReasonInvalidOptions snapshot.Reason = "InvalidOptions"
	// ReasonSchemaViolation: the argument's JSON Schema is not satisfied.
	ReasonSchemaViolation snapshot.Reason = "SchemaViolation"
)

// Reasons at stage scope, besides those of package scope and
// [ReasonScopeMissing] and [ReasonScopeAmbiguous].
const (
	// ReasonNotATarget: a scope-checked text that is no address, range or host.
	ReasonNotATarget snapshot.Reason = "NotATarget"
)

// Reasons at stage effect.
const (
	// ReasonOptionInjection: a value that a program would read as an option.
	ReasonOptionInjection snapshot.Reason = "OptionInjection"
	// ReasonArgTooLong: a word of argv longer than [MaxWordBytes].
	ReasonArgTooLong snapshot.Reason = "ArgTooLong"
	// ReasonTooManyWords: more words than [MaxWords].
	ReasonTooManyWords snapshot.Reason = "TooManyWords"
	// ReasonUnmappedValue: a value that a mapping does not list.
	ReasonUnmappedValue snapshot.Reason = "UnmappedValue"
	// ReasonEmptyPathSegment: a value that would leave a segment of a URL's
	// path empty, and so name the collection in the place of a member.
	ReasonEmptyPathSegment snapshot.Reason = "EmptyPathSegment"
	// ReasonHeaderInjection: a header value with line ends or characters that
	// a header cannot have.
	ReasonHeaderInjection snapshot.Reason = "HeaderInjection"
	// ReasonSecretPlaceholder: a value that would be read as a placeholder of
	// a secret.
	ReasonSecretPlaceholder snapshot.Reason = "SecretPlaceholder"
	// ReasonSecretHost: the call's host is not one that its secrets are for.
	ReasonSecretHost snapshot.Reason = "SecretHost"
	// ReasonEffectTooLarge: the effect exceeds [MaxEffectBytes] or one of its
	// parts exceeds its own limit.
	ReasonEffectTooLarge snapshot.Reason = "EffectTooLarge"
)

// refuse makes the error of one argument.
func refuse(stage snapshot.Stage, reason snapshot.Reason, path string) *snapshot.Error {
	return &snapshot.Error{Stage: stage, Reason: reason, Path: path}
}

// advice says, per reason, what to change. Constant text only, as in package
// snapshot.
var advice = map[snapshot.Reason]string{
	ReasonUnexpectedArgument: "the tool has no such argument; send only the arguments it declares",
	ReasonMissingArgument:    "the argument is required; send it",
	ReasonNullArgument:       "null is not a value; leave the argument out or send a value",
	ReasonWrongType:          "the value has another JSON type than the argument; send the declared type",
	ReasonEmptyValue:         "the value is empty; send one",
	ReasonNul:                "the value contains NUL; remove it",
	ReasonShellMetacharacter: "the value contains a shell metacharacter; remove it",
	ReasonWhiteSpace:         "the value contains or is surrounded by white space; remove it",
	ReasonTextTooLong:        "the value is too long; shorten it",
	ReasonNotAllowed:         "the value is not in the list of allowed values; send one of them",
	ReasonPatternMismatch:    "the whole value must match the argument's pattern",
	ReasonInvalidNumber:      "the value is not a number in decimal notation that can be kept exactly",
	ReasonOutOfRange:         "the value is outside the argument's bounds",
	ReasonInvalidDuration:    "the value is not a duration; send seconds, or a text such as 90s or 1h30m",
	ReasonInvalidURL:         "the value is not an absolute URL in ASCII with a plain host; percent-encode other characters",
	ReasonURLScheme:          "the URL's scheme is not one of the argument's",
	ReasonURLCredentials:     "the URL contains user information; remove it",
	ReasonAbsolutePath:       "the path is absolute; send one relative to the working directory",
	ReasonPathTraversal:      "the path contains a parent segment, plain or encoded; remove it",
	ReasonInvalidOptions:     "the value is not a list of KEY VALUE pairs separated by semicolons",
	ReasonSchemaViolation:    "the value does not satisfy the argument's JSON Schema",
	ReasonNotATarget:         "the argument is scope-checked and must be one address, range or host name",
	ReasonOptionInjection:    "the value would be read as an option; it must not begin with -",
	ReasonArgTooLong:         "a word of the command is too long; shorten the value",
	ReasonTooManyWords:       "the command has too many words",
	ReasonUnmappedValue:      "the tool has no mapping for this value",
	ReasonEmptyPathSegment:   "the value would leave a segment of the URL's path empty; send one",
	ReasonHeaderInjection:    "the value cannot stand in a header; send printable ASCII on one line",
	ReasonSecretPlaceholder:  "the value would be read as a placeholder of a secret; change it",
	ReasonSecretHost:         "the tool's secrets must not be sent to this host",
	ReasonEffectTooLarge:     "the call is too large once resolved; send shorter values",

	snapshot.Reason(scope.ReasonTooLong):     "the target is longer than a host name can be",
	snapshot.Reason(scope.ReasonWildcard):    "patterns are not targets; send one address, range or host name",
	snapshot.Reason(scope.ReasonNonASCII):    "a host name can only have letters of ASCII; others may look like them",
	snapshot.Reason(scope.ReasonPunycode):    "internationalised host names are not accepted, since they can look like others",
	snapshot.Reason(scope.ReasonTrailingDot): "remove the dot at the end of the host name",
	snapshot.Reason(scope.ReasonNumericHost): "an IPv4 address must be four decimal numbers without leading zeros",
	snapshot.Reason(scope.ReasonInvalid):     "the value is not the address, range or host name that the argument asks for",
	snapshot.Reason(scope.ReasonExcluded):    "the target is excluded by the ToolScope; choose another",
	snapshot.Reason(scope.ReasonOutside):     "the target is not wholly inside the ToolScope; choose another",

	snapshot.Reason(ReasonScopeMissing):   "the tool has scope-checked arguments and there is no ToolScope; ask the platform team",
	snapshot.Reason(ReasonScopeAmbiguous): "the namespace has several ToolScopes and the tool names none; ask the platform team",
}
