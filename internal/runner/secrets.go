// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import "strings"

// EnvSecretPrefix begins the environment variables in which the Pod carries
// the secrets of its effect: ASSENT_SECRET_<name>.
const EnvSecretPrefix = "ASSENT_SECRET_"

// secretStore holds secrets by the name that the manifest gave them. It has no
// String method and appears in no error, so that a value cannot slip out.
type secretStore struct{ values map[string]string }

// secretsFrom picks the secrets out of an environment in the form of
// os.Environ.
func secretsFrom(environ []string) secretStore {
	s := secretStore{values: make(map[string]string)}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if short, ok := strings.CutPrefix(name, EnvSecretPrefix); ok {
			s.values[short] = value
		}
	}
	return s
}

func (s secretStore) value(name string) (string, error) {
	v, ok := s.values[name]
	if !ok {
		return "", refuse(ReasonSecretMissing, "secret %s is not mounted in the Pod", name)
	}
	return v, nil
}

// lookup returns a variable of an environment in the form of os.Environ.
func lookup(environ []string, name string) string {
	for _, entry := range environ {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value
		}
	}
	return ""
}
