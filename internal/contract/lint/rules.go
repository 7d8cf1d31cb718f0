// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import "slices"

// Level says how a finding is to be taken.
type Level string

// Levels, as SARIF names them.
const (
	// Error is something that must be changed or excused.
	Error Level = "error"
	// Warning is something that an author should have a reason for.
	Warning Level = "warning"
	// Note is something to know.
	Note Level = "note"
)

// Rule is one thing that is looked for.
type Rule struct {
	// ID is stable. It is what --disable takes.
	ID string
	// Level of its findings.
	Level Level
	// Summary says what is found.
	Summary string
	// Why says what can happen, with a source where there is one.
	Why string
}

// IDs of the rules.
const (
	ruleCompile         = "does-not-compile"
	ruleImageTag        = "image-tag"
	ruleShell           = "shell"
	ruleInterpreter     = "interpreter"
	ruleRisk            = "risk-without-approval"
	ruleSecretHosts     = "secret-without-hosts"
	ruleSecretPlain     = "secret-over-http"
	ruleFirstWord       = "free-text-first-word"
	ruleDecision        = "free-text-decides"
	ruleUnanchored      = "unanchored-pattern"
	ruleMultiline       = "multiline-pattern"
	ruleDash            = "leading-dash"
	ruleTerminator      = "no-option-terminator"
	ruleEnumOption      = "enum-option"
	ruleUnmapped        = "unmapped-value"
	rulePlainHTTP       = "plain-http"
	rulePrivate         = "private-addresses"
	ruleNoScopeCheck    = "no-scope-check"
	ruleWideScope       = "wide-scope"
	ruleWideEgress      = "wide-egress"
	ruleRawBody         = "raw-body"
	ruleOpenObject      = "open-object"
	ruleFormat          = "format-not-enforced"
	ruleSensitive       = "sensitive-name"
	ruleRobotApproval   = "robot-approval"
	ruleClusterIdentity = "cluster-identity"
	ruleRequiredDefault = "required-default"
	ruleOutputSchema    = "no-output-schema"
	ruleOutputFile      = "output-file"
	ruleUnused          = "unused-object"
	ruleNoScope         = "no-scope"
)

// Rules returns all rules, sorted by ID.
func Rules() []Rule {
	all := slices.Concat(errorRules, warningRules, noteRules)
	slices.SortFunc(all, func(a, b Rule) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return all
}

var errorRules = []Rule{
	{
		ruleCompile, Error, "The object cannot be used.",
		"A manifest that does not compile is not Ready, and its calls are refused at admission.",
	},
	{
		ruleImageTag, Error, "A command's image is named by tag.",
		"A tag can be moved after the approval, so that other code runs than was looked at (CVE-2022-47633 fetched an image twice).",
	},
	{
		ruleShell, Error, "A command starts a shell.",
		"A shell reads its words as a program. What an approver sees as an argument can be one too.",
	},
	{
		ruleInterpreter, Error, "An interpreter gets a value of the agent's as its program.",
		"Such a tool is a shell by another name: python -c, perl -e and node -e run what they are given.",
	},
	{
		ruleRisk, Error, "A high or critical tool needs nobody's approval.",
		"riskTier alone changes nothing. Without humanApproval, one permit policy lets every such call run unseen.",
	},
	{
		ruleSecretHosts, Error, "A secret has no hosts that it may be sent to.",
		"Whoever can edit the URL of a request can send its secrets elsewhere (CVE-2026-40161).",
	},
	{
		ruleSecretPlain, Error, "A secret is sent without TLS.",
		"Everybody on the way can read it.",
	},
}

var warningRules = []Rule{
	{
		ruleNoScope, Warning, "There is no ToolScope for scope-checked arguments among the files.",
		"No scope never means everything: every call is refused until there is one.",
	},
	{
		ruleFirstWord, Warning, "The first word after the program is a free text.",
		"Many programs read a subcommand there, so that the agent chooses what the tool does and not only on what. Add a pattern or a list.",
	},
	{
		ruleDecision, Warning, "A free text decides which words a command gets.",
		"A condition or mapping compares texts byte for byte; with a list of allowed values its author sees all cases.",
	},
	{
		ruleUnanchored, Warning, "A pattern accepts anything around the part that is meant.",
		"Patterns match the whole value. One that begins or ends with .* or .+, or that has only one anchor, suggests that its author expected a search.",
	},
	{
		ruleMultiline, Warning, "A pattern uses the flag m or s.",
		"With them, ^ and $ match inside the value, and . matches line ends.",
	},
	{
		ruleDash, Warning, "A value may begin with - where it is a word of its own.",
		"The program may read it as an option: git fetch --upload-pack=… runs a program (CVE-2026-40938 in a pipeline).",
	},
	{
		ruleEnumOption, Warning, "An allowed value begins with - and can never be used.",
		"A word of an agent's value may not look like an option, even when the manifest lists it. Use a mapping, or allowLeadingDash.",
	},
	{
		ruleUnmapped, Warning, "A mapping leaves out an allowed value.",
		"A call with that value is refused at stage effect, after its arguments were accepted.",
	},
	{
		rulePlainHTTP, Warning, "A request is sent without TLS.",
		"Arguments and answers can be read and changed on the way.",
	},
	{
		rulePrivate, Warning, "A request may go to private addresses.",
		"Cloud metadata services and the cluster's own API are there (CVE-2020-8562 reached them through a proxy).",
	},
	{
		ruleNoScopeCheck, Warning, "A network target is not scope-checked.",
		"The agent chooses freely where the tool connects to.",
	},
	{
		ruleWideScope, Warning, "A scope permits a very large part of the network.",
		"A scope is what keeps scope-checked arguments in bounds; the whole of IPv4 or a whole top-level domain keeps out nothing.",
	},
	{
		ruleWideEgress, Warning, "A Pod may connect to everything.",
		"A tool that is tricked can send what it reads anywhere.",
	},
	{
		ruleRawBody, Warning, "A value of the agent's is put into a body without escaping.",
		"Only JSON and form bodies are escaped. In any other format the value may become structure.",
	},
	{
		ruleOpenObject, Warning, "An object accepts members that its schema does not describe.",
		"Without additionalProperties or unevaluatedProperties set to false the agent adds what it likes.",
	},
	{
		ruleFormat, Warning, "A JSON Schema uses format, which asserts nothing.",
		"In JSON Schema 2020-12 format is an annotation (section 7.2.1 of its validation specification). Use pattern.",
	},
	{
		ruleSensitive, Warning, "An argument that sounds like a secret is not marked sensitive.",
		"Its value appears in records, Events and on approvers' screens. Better not to take secrets from agents at all: use spec.secrets.",
	},
	{
		ruleRobotApproval, Warning, "ServiceAccounts may approve calls of a tool that demands a person's approval.",
		"humanApproval then means no more than a second program's approval.",
	},
}

var noteRules = []Rule{
	{
		ruleTerminator, Note, "A text is a word of its own and no -- is before it.",
		"A value may not begin with - in any case. Programs that know -- are safe from other prefixes too, such as + or @.",
	},
	{
		ruleClusterIdentity, Note, "The tool has an identity in the cluster.",
		"Everything that its ServiceAccount may do is within reach of a tool that is tricked.",
	},
	{
		ruleRequiredDefault, Note, "A required argument has a default.",
		"It is never missing: the default is used.",
	},
	{
		ruleOutputSchema, Note, "A structured output has no schema.",
		"Whatever the tool prints in that format is passed on to the agent.",
	},
	{
		ruleOutputFile, Note, "A command writes its result to a file that is not read, or the file that is read is not named to it.",
		"Standard output is the result unless spec.output.file names a file, and a call that leaves no such file fails.",
	},
	{
		ruleUnused, Note, "An ArgumentType or ToolScope is not used by any manifest among the files.",
		"It may be left over.",
	},
}
