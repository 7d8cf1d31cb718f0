// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/snapshot"
)

// plan is a compiled effect.
type plan interface {
	// render resolves the effect for one call and returns it with its canonical
	// text.
	render(v *values) (Effect, string, *snapshot.Error)
}

// effectCompiler compiles templates against the declared arguments and secrets
// and keeps account of what they use.
type effectCompiler struct {
	*problems
	args        []*argument
	index       map[string]int
	usedArgs    []bool
	secrets     []SecretReference
	usedSecrets []bool
	allowTags   bool
}

// argument looks up an argument and marks it as used. It returns false with a
// problem recorded when there is none.
func (e *effectCompiler) argument(field, name string) (int, bool) {
	i, known := e.index[name]
	if !known {
		e.add(ReasonInvalidTemplate, field, "uses {%s}, which is not declared", name)
		return 0, false
	}
	e.usedArgs[i] = true
	return i, true
}

// secret looks up a secret and marks it as used.
func (e *effectCompiler) secret(field, name string) (ResolvedSecret, bool) {
	i := slices.IndexFunc(e.secrets, func(s SecretReference) bool { return s.Name == name })
	if i < 0 {
		e.add(ReasonInvalidTemplate, field, "uses the secret %q, which spec.secrets does not have", name)
		return ResolvedSecret{}, false
	}
	e.usedSecrets[i] = true
	s := e.secrets[i]
	return ResolvedSecret(s), true
}

// checkUsed refuses what is declared and changes nothing: an approver would
// read a value that has no effect.
func (e *effectCompiler) checkUsed() {
	for i, used := range e.usedArgs {
		if !used && e.args[i] != nil {
			e.add(ReasonInvalidTemplate, fmt.Sprintf("spec.arguments[%d]", i),
				"the argument %q is not used by the effect; use it or remove it", e.args[i].name)
		}
	}
	for i, used := range e.usedSecrets {
		if !used {
			e.add(ReasonInvalidTemplate, fmt.Sprintf("spec.secrets[%d]", i),
				"the secret %q is not used by the effect; use it or remove it", e.secrets[i].Name)
		}
	}
}

// mandatory looks up an argument that is in every call. Templates that cannot
// leave a part out accept no other.
func (e *effectCompiler) mandatory(field, name string) (int, bool) {
	i, ok := e.argument(field, name)
	if !ok || e.args[i] == nil {
		return i, false
	}
	if !e.args[i].required && e.args[i].fallback == nil {
		e.add(ReasonInvalidTemplate, field, "uses {%s}, which may be absent; make the argument required or give it a default", name)
		return i, false
	}
	return i, true
}

// scalar refuses structures where only a text can stand.
func (e *effectCompiler) scalar(field string, i int) {
	if a := e.args[i]; a != nil && a.isStructure() {
		e.add(ReasonInvalidTemplate, field, "uses {%s}, which is a structure, where only a text can stand", a.name)
	}
}
