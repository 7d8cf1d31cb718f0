// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package clad

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/internal/contract"
)

func itoa(i int) string { return strconv.Itoa(i) }

// outputFile and evidenceDir take the place of paths that ToolClad makes up for
// every run: an approved command has to be the one that runs.
const (
	outputFile  = evidenceDir + "/output"
	evidenceDir = contract.DefaultWorkingDir
)

// commandConverter converts [command].
type commandConverter struct {
	*converter
	in *command
	// exec says that the words are given as a list.
	exec bool
	// fragments are the names that stand for a mapping or a conditional, with
	// the name that the result uses for it.
	fragments map[string]string
	// used are the names of defaults and fragments that words use.
	used map[string]bool
}

func (c *converter) convertCommand(in *command) {
	k := &commandConverter{converter: c, in: in, exec: len(in.Exec) > 0, fragments: map[string]string{}, used: map[string]bool{}}
	c.out.Command = &contract.CommandTemplate{Image: c.options.Image}
	if c.options.Image == "" {
		c.fail("command", "needs the image that holds the program; give it with --image")
	}
	if in.Executor != "" {
		c.fail("command.executor", "is a script of the project's, which has no counterpart; put it into the image and start it with exec")
		return
	}
	k.nameFragments()
	k.convertWords()
	k.convertFragments()
	k.convertDefaults()
}

// nameFragments lists the names by which words refer to mappings and
// conditionals. A conditional wins, as it does in ToolClad.
func (k *commandConverter) nameFragments() {
	for name := range k.in.Mappings {
		for _, alias := range mappingAliases(name) {
			k.fragments[alias] = "_" + name
		}
	}
	for name := range k.in.Conditionals {
		k.fragments["_"+name] = "_" + name
	}
}

// mappingAliases are the names of the mapping of an argument.
func mappingAliases(name string) []string {
	aliases := []string{"_" + name + "_flags", "_" + name}
	if prefix, ok := strings.CutSuffix(name, "_type"); ok {
		aliases = append(aliases, "_"+prefix+"_flags")
	}
	return aliases
}

// convertWords converts the words of the command.
func (k *commandConverter) convertWords() {
	key, words := "command.exec", k.in.Exec
	if !k.exec {
		key = "command.template"
		var err error
		if words, err = contract.SplitWords(k.in.Template); err != nil {
			k.fail(key, "%v", err)
		}
	}
	if len(words) == 0 {
		k.fail("command", "must have exec or template")
	}
	for _, w := range words {
		k.convertWord(key, w)
	}
}

// convertWord converts one word. ToolClad leaves an absent argument empty: from
// a template the word disappears when nothing is left of it, from a list it does
// not. Here a word with an absent argument disappears, so that the other cases
// become conditionals.
func (k *commandConverter) convertWord(key, w string) {
	text, names := k.translate(key, w)
	argv := &k.out.Command.Argv
	alone := len(names) == 1 && w == "{"+names[0]+"}"
	if alone && k.fragments[names[0]] != "" {
		k.used[k.fragments[names[0]]] = true
		*argv = append(*argv, "{"+k.fragments[names[0]]+"}")
		return
	}
	k.refuseFragments(key, names)
	absent := filter(names, k.mayBeAbsent)
	vanishes := k.mayVanish(w, names)
	switch {
	case vanishes && alone:
		k.addConditional(names[0], "!=", text)
	case vanishes || len(absent) > 1:
		k.fail(key, "has a word of several arguments that may be absent or empty (%s); give them defaults", strings.Join(unique(names), ", "))
	case len(absent) == 1:
		k.addConditional(absent[0], "!=", text)
		k.addConditional(absent[0], "==", strings.ReplaceAll(text, "{"+absent[0]+"}", ""))
	default:
		*argv = append(*argv, text)
	}
}

// refuseFragments refuses mappings and conditionals inside a word.
func (k *commandConverter) refuseFragments(key string, names []string) {
	for _, name := range names {
		if k.fragments[name] != "" {
			k.fail(key, "uses {%s} inside a word, where it cannot become several words; make it a word of its own", name)
		}
	}
}

// mayVanish reports whether nothing may be left of a word, and ToolClad leaves
// it out then.
func (k *commandConverter) mayVanish(w string, names []string) bool {
	onlyArguments := len(names) > 0 && w == "{"+strings.Join(names, "}{")+"}"
	return onlyArguments && !k.exec && len(filter(names, k.mayBeEmpty)) == len(unique(names))
}

// filter returns the names that a condition holds for, each once.
func filter(names []string, holds func(string) bool) []string {
	return slices.DeleteFunc(unique(names), func(name string) bool { return !holds(name) })
}

func unique(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// addConditional adds a word that is there when an argument is empty, or is
// not.
func (k *commandConverter) addConditional(argument, operator, word string) {
	name := fmt.Sprintf("_word_%d", len(k.out.Command.Argv))
	k.out.Command.Conditionals = append(k.out.Command.Conditionals, contract.CommandConditional{
		Name: name, When: fmt.Sprintf("%s %s ''", argument, operator), Template: quote(word),
	})
	k.out.Command.Argv = append(k.out.Command.Argv, "{"+name+"}")
}

// quote writes one word so that splitting gives it back.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// mayBeAbsent reports whether a call may be without an argument.
func (k *commandConverter) mayBeAbsent(name string) bool {
	i := slices.Index(k.names, name)
	return i >= 0 && !k.out.Arguments[i].Required && k.out.Arguments[i].Default == nil
}

// mayBeEmpty reports whether an argument can be absent, or empty: most kinds
// have no empty value.
func (k *commandConverter) mayBeEmpty(name string) bool {
	i := slices.Index(k.names, name)
	if i < 0 || k.out.Arguments[i].Required {
		return false
	}
	a := k.out.Arguments[i]
	switch k.kind(a.Type) {
	case contract.KindString, contract.KindRegexMatch, contract.KindPath, contract.KindCredentialFile, contract.KindMSFOptions:
		return true
	case contract.KindEnum:
		return a.Default == nil || slices.Contains(k.allowed(a), "")
	default:
		return a.Default == nil
	}
}

// kind follows custom types to the built-in one.
func (k *commandConverter) kind(name string) string {
	for range contract.MaxTypeDepth {
		t, custom := k.types[name]
		if !custom {
			break
		}
		name = t.Base
	}
	return name
}

// allowed are the values that an argument's type lists.
func (k *commandConverter) allowed(a contract.Argument) []string {
	if a.Allowed != nil {
		return a.Allowed
	}
	return k.types[a.Type].Allowed
}

// convertFragments converts the mappings and conditionals that are used.
func (k *commandConverter) convertFragments() {
	for _, name := range slices.Sorted(maps.Keys(k.in.Mappings)) {
		if k.used["_"+name] && k.in.Conditionals[name] == (conditional{}) {
			k.convertMapping(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.in.Conditionals)) {
		if k.used["_"+name] {
			k.convertConditional(name)
			continue
		}
		k.fail("command.conditionals."+name, "is not used by any word, as {_%s}; use it or remove it", name)
	}
}

func (k *commandConverter) convertMapping(name string) {
	key := "command.mappings." + name
	table := k.in.Mappings[name]
	i := slices.Index(k.names, name)
	if i < 0 {
		k.fail(key, "is not an argument")
		return
	}
	m := contract.CommandMapping{Name: "_" + name, Argument: name}
	values := slices.Sorted(maps.Keys(table))
	for _, v := range k.allowed(k.out.Arguments[i]) {
		if _, mapped := table[v]; !mapped {
			values = append(values, v) // no flags in ToolClad, and an error here
		}
	}
	if k.kind(k.out.Arguments[i].Type) != contract.KindEnum {
		k.note(key, "other values than these are refused; ToolClad maps them to nothing")
	}
	for _, v := range values {
		m.Values = append(m.Values, contract.MappedValue{Value: v, Flags: k.fragment(key+"."+v, table[v], "")})
	}
	k.out.Command.Mappings = append(k.out.Command.Mappings, m)
}

func (k *commandConverter) convertConditional(name string) {
	key := "command.conditionals." + name
	in := k.in.Conditionals[name]
	if err := contract.CheckCondition(in.When); err != nil {
		k.fail(key+".when", "%v", err)
	}
	k.out.Command.Conditionals = append(k.out.Command.Conditionals, contract.CommandConditional{
		Name: "_" + name, When: in.When, Template: k.fragment(key+".template", in.Template, in.When),
	})
}

// fragment converts the text of a mapping or a conditional. In a list it stays
// one word, whatever blanks it has.
func (k *commandConverter) fragment(key, text, when string) string {
	translated, names := k.translate(key, text)
	for _, name := range names {
		if k.fragments[name] != "" {
			k.fail(key, "uses {%s}, which stands for several words; only arguments and defaults can be used here", name)
		}
		if k.mayBeAbsent(name) && !strings.Contains(when, name) {
			k.fail(key, "uses {%s}, which may be absent; give args.%s a default", name, name)
		}
	}
	if k.exec {
		return quote(translated)
	}
	return translated
}

// convertDefaults converts the constants that words use.
func (k *commandConverter) convertDefaults() {
	builtin := map[string]any{"_output_file": outputFile, "_evidence_dir": evidenceDir}
	for _, name := range slices.Sorted(maps.Keys(k.used)) {
		value, declared := k.in.Defaults[name]
		if !declared {
			value = builtin[name]
		}
		if v := k.scalar("command.defaults."+name, value); v != nil {
			k.out.Command.Defaults = append(k.out.Command.Defaults, contract.CommandDefault{Name: name, Value: *v})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.in.Defaults)) {
		if !k.used[name] && k.file.Args[name] == nil {
			k.note("command.defaults."+name, "is not used and left out")
		}
	}
	if k.used["_output_file"] {
		k.convertOutputFile()
	}
}

// convertOutputFile makes the file that the command writes to its output. A
// manifest that names a file of its own may name one that nobody can read.
func (k *commandConverter) convertOutputFile() {
	file := outputFile
	if own, isText := k.in.Defaults["_output_file"].(string); isText {
		file = own
	}
	if !contract.IsOutputFile(file) {
		k.note("command.defaults._output_file", "is not below /work, so that standard output is read instead; leave it out")
		return
	}
	if k.out.Output == nil {
		k.out.Output = &contract.Output{}
	}
	k.out.Output.File = file
}
