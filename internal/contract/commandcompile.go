// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// commandCompiler compiles a command. Its names share one name space.
type commandCompiler struct {
	*effectCompiler
	template *CommandTemplate
	// defaults, mappings and conditionals by name, and which are used.
	defaults     map[string]string
	mappings     map[string]*mapping
	conditionals map[string]*conditional
	used         map[string]bool
}

// command compiles a command template.
func (e *effectCompiler) command(t *CommandTemplate, outputFile string) plan {
	c := &commandCompiler{
		effectCompiler: e, template: t, used: map[string]bool{},
		defaults: map[string]string{}, mappings: map[string]*mapping{}, conditionals: map[string]*conditional{},
	}
	c.checkImage()
	c.declare()
	p := newCommandPlan(c.argv(), CommandCall{Image: t.Image, Env: c.env(), OutputFile: outputFile, WorkingDir: c.workingDir()})
	c.checkProgram(p.items)
	c.checkNamesUsed()
	return p
}

// image is repository, optional tag and optional digest, as registries accept
// them: nothing that could be an option or a path of the runtime.
var (
	imageDigest = regexp.MustCompile(`@sha256:[0-9a-f]{64}\z`)
	imageName   = regexp.MustCompile(`\A[a-z0-9][a-z0-9.-]*(?::[0-9]{1,5})?(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*(?::[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(?:@sha256:[0-9a-f]{64})?\z`)
)

func (c *commandCompiler) checkImage() {
	const field = "spec.command.image"
	switch {
	case !imageName.MatchString(c.template.Image):
		c.add(ReasonInvalidEffect, field, "is not an image reference; write REPOSITORY@sha256:DIGEST")
	case !imageDigest.MatchString(c.template.Image) && !c.allowTags:
		c.add(ReasonImageNotByDigest, field, "names the image by tag, which can be moved after approval; write REPOSITORY@sha256:DIGEST")
	}
}

// declare reads the definitions that argv may use.
func (c *commandCompiler) declare() {
	for i, d := range c.template.Defaults {
		field := fmt.Sprintf("spec.command.defaults[%d]", i)
		c.name(field, d.Name)
		if strings.IndexByte(d.Value.Text(), 0) >= 0 {
			c.add(ReasonInvalidTemplate, field+".value", "contains NUL")
		}
		c.defaults[d.Name] = d.Value.Text()
	}
	for i, m := range c.template.Mappings {
		field := fmt.Sprintf("spec.command.mappings[%d]", i)
		c.name(field, m.Name)
		c.mappings[m.Name] = c.mapping(field, m)
	}
	for i, d := range c.template.Conditionals {
		field := fmt.Sprintf("spec.command.conditionals[%d]", i)
		c.name(field, d.Name)
		c.conditionals[d.Name] = &conditional{
			when:  c.condition(field+".when", d.When),
			words: c.words(field+".template", d.Template),
		}
	}
}

// name records a name and refuses a second meaning of it.
func (c *commandCompiler) name(field, name string) {
	_, isArgument := c.index[name]
	_, isTaken := c.used[name]
	switch {
	case !isName(name):
		c.add(ReasonInvalidTemplate, field+".name", "is not a name of letters, digits and underscores")
	case isArgument || isTaken:
		c.add(ReasonInvalidTemplate, field+".name", "the name %q is taken; choose another", name)
	}
	c.used[name] = false
}

func (c *commandCompiler) mapping(field string, m CommandMapping) *mapping {
	arg, known := c.argument(field+".argument", m.Argument)
	if known {
		c.scalar(field+".argument", arg)
	}
	out := &mapping{arg: arg, words: map[string][]word{}}
	if len(m.Values) == 0 {
		c.add(ReasonInvalidTemplate, field+".values", "is empty, so that every value would be refused")
	}
	for i, v := range m.Values {
		at := fmt.Sprintf("%s.values[%d]", field, i)
		if _, twice := out.words[v.Value]; twice {
			c.add(ReasonInvalidTemplate, at+".value", "occurs twice")
		}
		out.words[v.Value] = c.words(at+".flags", v.Flags)
	}
	return out
}

func (c *commandCompiler) condition(field, text string) []condition {
	parsed, err := parseCondition(text)
	if err != nil {
		c.add(ReasonInvalidTemplate, field, "%v", err)
	}
	var out []condition
	for _, one := range parsed {
		if arg, known := c.argument(field, one.argument); known {
			c.scalar(field, arg)
			out = append(out, condition{arg: arg, comparison: one})
		}
	}
	return out
}

// words splits a text of the manifest into words and compiles each of them. The
// splitting comes first, so that no value is ever split.
func (c *commandCompiler) words(field, text string) []word {
	split, err := SplitWords(text)
	if err != nil {
		c.add(ReasonInvalidTemplate, field, "%v", err)
	}
	var out []word
	for _, w := range split {
		out = append(out, c.word(field, c.pieces(field, w)))
	}
	return out
}

func (c *commandCompiler) pieces(field, text string) []piece {
	pieces, err := parseTemplate(text)
	if err != nil {
		c.add(ReasonInvalidTemplate, field, "%v", err)
	}
	return pieces
}

// word compiles a word of constants, defaults and arguments.
func (c *commandCompiler) word(field string, pieces []piece) word {
	var out word
	length := 0
	for _, p := range pieces {
		if p.name == "" {
			out = append(out, part{text: p.text, arg: constant})
			length += len(p.text)
			continue
		}
		if text, isDefault := c.defaults[p.name]; isDefault {
			c.used[p.name] = true
			out = append(out, part{text: text, arg: constant})
			length += len(text)
			continue
		}
		if arg, known := c.placeholder(field, p); known {
			out = append(out, part{arg: arg})
		}
	}
	if length > MaxWordBytes {
		c.add(ReasonInvalidTemplate, field, "has a word that is longer than %d bytes", MaxWordBytes)
	}
	return out
}

// placeholder looks up an argument that a word may contain.
func (c *commandCompiler) placeholder(field string, p piece) (int, bool) {
	if secret, isSecret := p.secret(); isSecret {
		c.add(ReasonInvalidTemplate, field, "uses the secret %q on the command line, where other processes can read it; use spec.command.env", secret)
		return 0, false
	}
	if _, isFragment := c.used[p.name]; isFragment {
		c.add(ReasonInvalidTemplate, field, "uses {%s} inside a word or another definition; it stands for whole words and must be a word of argv", p.name)
		return 0, false
	}
	return c.argument(field, p.name)
}

func (c *commandCompiler) argv() []argvItem {
	argv := c.template.Argv
	if len(argv) == 0 || len(argv) > MaxWords {
		c.add(ReasonInvalidEffect, "spec.command.argv", "must have between 1 and %d words", MaxWords)
	}
	var items []argvItem
	for i, text := range argv {
		field := fmt.Sprintf("spec.command.argv[%d]", i)
		pieces := c.pieces(field, text)
		if len(pieces) == 1 {
			name := pieces[0].name
			m, cond := c.mappings[name], c.conditionals[name]
			if m != nil || cond != nil {
				c.used[name] = true
				items = append(items, argvItem{mapping: m, conditional: cond})
				continue
			}
		}
		items = append(items, argvItem{word: c.word(field, pieces)})
	}
	return items
}

// checkProgram makes sure that the author, and not the agent, chooses the
// program, and that agents' values do not reach a shell unless the author says
// so.
func (c *commandCompiler) checkProgram(items []argvItem) {
	if len(items) == 0 {
		return
	}
	program, isLiteral := items[0].word.literal()
	if !isLiteral || program == "" {
		c.add(ReasonInvalidEffect, "spec.command.argv[0]", "must be the program, as a constant")
		return
	}
	var constants []string
	for _, item := range items {
		text, _ := item.word.literal()
		constants = append(constants, text)
	}
	if StartsShell(constants) && !c.template.AllowShell && c.anyUsed() {
		c.add(ReasonInvalidEffect, "spec.command.argv[0]",
			"starts a shell, for which a value of the agent can become a program; call the program itself, or set allowShell")
	}
}

func (c *commandCompiler) anyUsed() bool {
	for _, used := range c.usedArgs {
		if used {
			return true
		}
	}
	return false
}

// checkNamesUsed refuses definitions that argv does not use.
func (c *commandCompiler) checkNamesUsed() {
	check := func(list string, i int, name string) {
		if used, known := c.used[name]; known && !used {
			c.add(ReasonInvalidTemplate, fmt.Sprintf("spec.command.%s[%d]", list, i), "%q is not used; use it or remove it", name)
		}
	}
	for i, d := range c.template.Defaults {
		check("defaults", i, d.Name)
	}
	for i, m := range c.template.Mappings {
		check("mappings", i, m.Name)
	}
	for i, d := range c.template.Conditionals {
		check("conditionals", i, d.Name)
	}
}

var envName = regexp.MustCompile(`\A[A-Za-z_][A-Za-z0-9_]*\z`)

// reservedEnv is the prefix of the runner's own variables.
const reservedEnv = "ASSENT_"

func (c *commandCompiler) env() []ResolvedVariable {
	seen := map[string]bool{}
	var out []ResolvedVariable
	for i, v := range c.template.Env {
		field := fmt.Sprintf("spec.command.env[%d]", i)
		switch {
		case !envName.MatchString(v.Name):
			c.add(ReasonInvalidEffect, field+".name", "is not a name of an environment variable")
		case strings.HasPrefix(v.Name, reservedEnv):
			c.add(ReasonInvalidEffect, field+".name", "begins with %s, which is reserved for the runner", reservedEnv)
		case seen[v.Name]:
			c.add(ReasonInvalidEffect, field+".name", "occurs twice")
		}
		seen[v.Name] = true
		out = append(out, c.variable(field, v))
	}
	return out
}

func (c *commandCompiler) variable(field string, v EnvironmentVariable) ResolvedVariable {
	out := ResolvedVariable{Name: v.Name, Value: v.Value}
	if (v.Value == nil) == (v.Secret == "") {
		c.add(ReasonInvalidEffect, field, "set exactly one of value and secret")
		return out
	}
	if v.Value != nil {
		if strings.IndexByte(*v.Value, 0) >= 0 {
			c.add(ReasonInvalidEffect, field+".value", "contains NUL")
		}
		return out
	}
	if s, known := c.secret(field+".secret", v.Secret); known {
		if len(s.Hosts) > 0 {
			c.add(ReasonInvalidEffect, field+".secret", "hosts of a secret have no meaning for a command; bound its network with spec.execution.egress")
		}
		out.Secret = &s
	}
	return out
}

// workingDir returns where the program starts.
func (c *commandCompiler) workingDir() string {
	dir := c.template.WorkingDir
	if !path.IsAbs(dir) || path.Clean(dir) != dir || strings.IndexByte(dir, 0) >= 0 {
		c.add(ReasonInvalidEffect, "spec.command.workingDir", "must be an absolute path without . and .. and doubled slashes")
	}
	return dir
}
