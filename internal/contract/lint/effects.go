// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/contract"
)

// placeholder finds the names in a template. Doubled braces are removed before.
var placeholder = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// placeholders returns the arguments that a template uses.
func (m *manifest) placeholders(text string) []string {
	var out []string
	text = strings.NewReplacer("{{", "", "}}", "").Replace(text)
	for _, found := range placeholder.FindAllStringSubmatch(text, -1) {
		if _, isArgument := m.args[found[1]]; isArgument {
			out = append(out, found[1])
		}
	}
	return out
}

// interpreters run the word after one of their options as a program.
var interpreters = map[string][]string{
	"python": {"-c"}, "python3": {"-c"}, "perl": {"-e", "-E"}, "ruby": {"-e"}, "node": {"-e", "-p", "--eval"},
	"php": {"-r"}, "lua": {"-e"}, "awk": nil, "gawk": nil, "sed": nil, "osascript": {"-e"}, "deno": {"eval"},
}

func (m *manifest) checkCommand(c *contract.CommandTemplate) {
	if !m.options.AllowImageTags && !strings.Contains(c.Image, "@sha256:") {
		m.find(ruleImageTag, "spec.command.image", "the image %s is named by tag", c.Image)
	}
	m.checkProgram(c)
	m.checkWords(c)
	m.checkDecisions(c)
	m.checkOutputFile(c)
}

// checkOutputFile compares the file that is read with those that the command is
// told of.
func (m *manifest) checkOutputFile(c *contract.CommandTemplate) {
	if m.Output != nil && m.Output.File != "" {
		if file := m.Output.File; !strings.Contains(textOf(c), path.Base(file)) {
			m.find(ruleOutputFile, "spec.output.file", "the command is not told to write to %s", file)
		}
		return
	}
	for i, d := range c.Defaults {
		if contract.IsOutputFile(d.Value.Text()) {
			m.find(ruleOutputFile, fmt.Sprintf("spec.command.defaults[%d].value", i),
				"the command may write to %s, which is not read; name it in spec.output.file", d.Value.Text())
		}
	}
}

// textOf is everything that a command gets from its manifest.
func textOf(c *contract.CommandTemplate) string {
	all := slices.Clone(c.Argv)
	for _, d := range c.Defaults {
		all = append(all, d.Value.Text())
	}
	for _, mapped := range c.Mappings {
		for _, v := range mapped.Values {
			all = append(all, v.Flags)
		}
	}
	for _, d := range c.Conditionals {
		all = append(all, d.Template)
	}
	for _, v := range c.Env {
		if v.Value != nil {
			all = append(all, *v.Value)
		}
	}
	return strings.Join(all, "\n")
}

func (m *manifest) checkProgram(c *contract.CommandTemplate) {
	if contract.StartsShell(c.Argv) && !c.AllowShell {
		m.find(ruleShell, "spec.command.argv[0]", "the command starts a shell; call the program itself, or set allowShell if it must be")
	}
	for i, word := range c.Argv {
		if runsWord(c.Argv, i) && len(m.placeholders(word)) > 0 {
			m.find(ruleInterpreter, fmt.Sprintf("spec.command.argv[%d]", i), "%s runs this word as a program", c.Argv[0])
		}
	}
}

// runsWord reports whether a command is an interpreter that runs its word i as a
// program.
func runsWord(argv []string, i int) bool {
	options, known := interpreters[argv[0][strings.LastIndexByte(argv[0], '/')+1:]]
	if !known || i == 0 {
		return false
	}
	return slices.Contains(options, argv[i-1]) || i == 1 && options == nil
}

// checkWords looks at arguments that are words of their own.
func (m *manifest) checkWords(c *contract.CommandTemplate) {
	terminated := false
	for i, word := range c.Argv {
		terminated = terminated || word == "--"
		if names := m.placeholders(word); len(names) > 0 && strings.HasPrefix(word, "{"+names[0]+"}") {
			m.checkWord(fmt.Sprintf("spec.command.argv[%d]", i), names[0], i == 1, terminated)
		}
	}
}

// checkWord looks at a word that begins with an argument.
func (m *manifest) checkWord(field, name string, first, terminated bool) {
	r := m.args[name]
	isNumber := r.kind == contract.KindInteger || r.kind == contract.KindNumber
	hasOption := slices.ContainsFunc(r.allowed, func(v string) bool { return strings.HasPrefix(v, "-") })
	for _, f := range []struct {
		found         bool
		rule, message string
	}{
		{first && r.isFreeText(), ruleFirstWord, "{%s} is a free text in the place of a subcommand"},
		{r.dash && !terminated && !isNumber, ruleDash, "{%s} may begin with -"},
		{hasOption && !r.dash, ruleEnumOption, "{%s} has allowed values that begin with -"},
		{r.isFreeText() && !terminated, ruleTerminator, "{%s} is a word of its own, and no -- is before it"},
	} {
		if f.found {
			m.find(f.rule, field, f.message, name)
		}
	}
}

// checkDecisions looks at what chooses words.
func (m *manifest) checkDecisions(c *contract.CommandTemplate) {
	for i, mapped := range c.Mappings {
		field := fmt.Sprintf("spec.command.mappings[%d]", i)
		r := m.args[mapped.Argument]
		if r.isFreeText() {
			m.find(ruleDecision, field+".argument", "the free text %s is mapped", mapped.Argument)
		}
		for _, value := range r.allowed {
			if !slices.ContainsFunc(mapped.Values, func(v contract.MappedValue) bool { return v.Value == value }) {
				m.find(ruleUnmapped, field+".values", "the value %q of %s is not mapped", value, mapped.Argument)
			}
		}
	}
	for i, conditional := range c.Conditionals {
		for name, r := range m.args {
			if r.isFreeText() && comparesWithText(conditional.When, name) {
				m.find(ruleDecision, fmt.Sprintf("spec.command.conditionals[%d].when", i), "the free text %s is compared", name)
			}
		}
	}
}

// comparesWithText reports whether a condition compares an argument with a text
// that is not empty. Whether there is a value at all is no decision about it.
func comparesWithText(condition, name string) bool {
	for part := range strings.SplitSeq(condition, " and ") {
		fields := strings.Fields(part)
		if len(fields) > 2 && fields[0] == name && !slices.Contains([]string{"''", `""`}, fields[2]) {
			return true
		}
	}
	return false
}

func (m *manifest) checkRequest(h *contract.HTTPTemplate) {
	usesSecrets := strings.Contains(h.Body, "{_secret:")
	contentType := ""
	for _, header := range h.Headers {
		usesSecrets = usesSecrets || strings.Contains(header.Value, "{_secret:")
		if strings.EqualFold(header.Name, "Content-Type") {
			contentType = strings.ToLower(header.Value)
		}
	}
	if strings.HasPrefix(strings.ToLower(h.URL), "http://") {
		rule, message := rulePlainHTTP, "the request has no TLS"
		if usesSecrets {
			rule, message = ruleSecretPlain, "the request has secrets and no TLS"
		}
		m.find(rule, "spec.http.url", "%s", message)
	}
	if h.AllowPrivate {
		m.find(rulePrivate, "spec.http.allowPrivate", "private addresses are allowed")
	}
	if len(m.placeholders(h.Body)) > 0 && contentType != "" && !isEscaped(contentType) {
		m.find(ruleRawBody, "spec.http.body", "values stand in a body of the type %s as they are", contentType)
	}
}

// isEscaped reports whether values are escaped in bodies of a media type.
func isEscaped(contentType string) bool {
	return strings.Contains(contentType, "json") || strings.HasPrefix(contentType, "application/x-www-form-urlencoded")
}
