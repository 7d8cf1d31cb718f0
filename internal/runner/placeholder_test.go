// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/contract"
)

func testFiller() filler {
	return filler{
		host:  "API.example",
		store: secretsFrom([]string{`ASSENT_SECRET_key=a"b\c` + "\u00e9&=+ ", "ASSENT_SECRET_lines=a\nb", "ASSENT_SECRET_bytes=\xff", "ASSENT_SECRET_nested={_secret:key}", "ASSENT_SECRET_other=x"}),
		secrets: []contract.ResolvedSecret{
			{Name: "key", Hosts: []string{"elsewhere.example", "api.example"}},
			{Name: "lines", Hosts: []string{"api.example."}},
			{Name: "bytes", Hosts: []string{"api.example"}},
			{Name: "nested", Hosts: []string{"api.example"}},
			{Name: "foreign", Hosts: []string{"elsewhere.example"}},
			{Name: "nowhere"},
			{Name: "empty", Hosts: []string{""}},
			{Name: "missing", Hosts: []string{"api.example"}},
		},
	}
}

func TestFiller_PutsSecretsIntoTheirPlaces(t *testing.T) {
	t.Parallel()
	plain, json, form := bodyEscape("text/plain"), bodyEscape("application/json; charset=utf-8"), bodyEscape("application/x-www-form-urlencoded")
	for name, tc := range map[string]struct {
		text   string
		escape func(string) (string, error)
		want   string
		reason Reason
	}{
		"no place":                        {"{not} {secret:key}", plain, "{not} {secret:key}", ""},
		"as it is":                        {"<{_secret:key}>", plain, "<a\"b\\c\u00e9&=+ >", ""},
		"twice":                           {"{_secret:lines}{_secret:lines}", plain, "a\nba\nb", ""},
		"inside a JSON string":            {`{"k":"{_secret:key}"}`, json, `{"k":"a\"b\\cé&=+ "}`, ""},
		"a line break in JSON":            {`"{_secret:lines}"`, json, `"a\nb"`, ""},
		"in a form":                       {"k={_secret:key}&x=1", form, "k=a%22b%5Cc%C3%A9%26%3D%2B+&x=1", ""},
		"a vendor's JSON type":            {`"{_secret:lines}"`, bodyEscape("application/vnd.x+json"), `"a\nb"`, ""},
		"no type":                         {"{_secret:lines}", bodyEscape(""), "a\nb", ""},
		"what a secret says is no place":  {"{_secret:nested}", plain, "{_secret:key}", ""},
		"bytes that are no text, in JSON": {`"{_secret:bytes}"`, json, "", ReasonSecretUnusable},
		"a line break in a header":        {"{_secret:lines}", headerText, "", ReasonSecretUnusable},
		"a letter that is no ASCII":       {"{_secret:key}", headerText, "", ReasonSecretUnusable},
		"another host":                    {"{_secret:foreign}", plain, "", ReasonCredentialHostMismatch},
		"no host":                         {"{_secret:nowhere}", plain, "", ReasonCredentialHostMismatch},
		"an empty host":                   {"{_secret:empty}", plain, "", ReasonCredentialHostMismatch},
		"a secret the effect lacks":       {"{_secret:other}", plain, "", ReasonEffectInvalid},
		"a secret the Pod lacks":          {"{_secret:missing}", plain, "", ReasonSecretMissing},
		"a place without an end":          {"{_secret:key", plain, "", ReasonEffectInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := testFiller().fill(tc.text, tc.escape)
			var r *refusal
			if errors.As(err, &r); got != tc.want || (err == nil) != (tc.reason == "") || (r != nil && r.reason != tc.reason) {
				t.Errorf("fill = %q, %v; want %q, %q", got, err, tc.want, tc.reason)
			}
			if err != nil && (strings.Contains(err.Error(), `a"b`) || strings.Contains(err.Error(), "a\nb")) {
				t.Errorf("the error quotes a secret: %v", err)
			}
		})
	}
}
