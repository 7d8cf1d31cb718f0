// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// result is what a run of the program left behind.
type result struct {
	Code     int
	Out, Err string
}

// runWith runs the program with standard input.
func runWith(t *testing.T, input string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(args, Streams{In: strings.NewReader(input), Out: &out, Err: &errs})
	return result{code, out.String(), errs.String()}
}

// writeFile puts text into a new file.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "input.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const digestOfEmptyObject = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"

func TestSnapshot_PrintsCanonicalTextOrRefusal(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "{ \"b\": 1.0, \"a\": \"<é>\" }\n")
	for name, c := range map[string]struct {
		input string
		args  []string
		want  result
	}{
		"a file":                      {"", []string{file}, result{0, `{"a":"<é>","b":1}`, ""}},
		"standard input":              {" {} ", []string{"-"}, result{0, "{}", ""}},
		"standard input by default":   {"[1e2]\n", nil, result{0, "[100]", ""}},
		"a digest":                    {"{ }", []string{"--digest"}, result{0, digestOfEmptyObject + "\n", ""}},
		"U+FFFD is data in a file":    {"\"\uFFFD\"", nil, result{0, "\"\uFFFD\"", ""}},
		"U+FFFD is not in a proposal": {"\"\uFFFD\"", []string{"--proposal"}, result{2, "", `{"stage":"decode","reason":"ReplacementChar"}` + "\n"}},
		"a proposal":                  {"{ }", []string{"--proposal"}, result{0, "{}", ""}},
		"a name twice":                {`{"a":1,"a":2}`, nil, result{2, "", `{"stage":"decode","reason":"DuplicateKey"}` + "\n"}},
		"nothing":                     {"", nil, result{2, "", `{"stage":"decode","reason":"Syntax"}` + "\n"}},
		"a text that grows":           {"[" + strings.Repeat("1e20,", 3999) + "1e20]", nil, result{2, "", `{"stage":"snapshot","reason":"TooLarge"}` + "\n"}},
		"a digest of what is refused": {"nul", []string{"--digest"}, result{2, "", `{"stage":"decode","reason":"Syntax"}` + "\n"}},
		"JSON":                        {"{ }", []string{"-o", "json"}, result{0, `{"argsCanonicalJson":"{}","argsDigest":"` + digestOfEmptyObject + `"}` + "\n", ""}},
		"JSON without HTML escapes":   {`"<&>"`, []string{"-o", "json"}, result{0, `{"argsCanonicalJson":"\"<&>\"","argsDigest":"9e7b000e9d486793cba49fcb8d3796df9c24450388a997250c4e644198a082bb"}` + "\n", ""}},
		"a refusal in JSON": {`["\ud800"]`, []string{"-o", "json"}, result{2, "", `{"stage":"decode","reason":"LoneSurrogate","path":"/0",` +
			`"message":"refused at stage decode: LoneSurrogate at /0: an escape denotes half of a surrogate pair; send both halves"}` + "\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runWith(t, c.input, append([]string{"snapshot"}, c.args...)...)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("run (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSnapshot_FailsWithCode1WhenItCannotWork(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a file that is missing":    {[]string{missing}, "reading the text"},
		"two files":                 {[]string{"a", "b"}, "at most 1 arg"},
		"an unknown format":         {[]string{"-o", "yaml"}, "output format"},
		"an unknown flag":           {[]string{"--colour"}, "unknown flag"},
		"vectors and a digest":      {[]string{"--vectors", "-", "--digest"}, "vectors"},
		"vectors and a file":        {[]string{"--vectors", "-", "x.json"}, "takes the place of FILE"},
		"vectors that are missing":  {[]string{"--vectors", missing}, "reading the vectors"},
		"vectors that are no array": {[]string{"--vectors", writeFile(t, "{}")}, "reading the vectors"},
		"vectors that are no bytes": {[]string{"--vectors", writeFile(t, `[{"input_base64":"%"}]`)}, "reading the vectors"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runWith(t, "", append([]string{"snapshot"}, c.args...)...)
			if got.Code != 1 || got.Out != "" || !strings.HasPrefix(got.Err, "error: ") || !strings.Contains(got.Err, c.want) {
				t.Errorf("got %+v, want code 1 and an error with %q", got, c.want)
			}
		})
	}
}

// vectorFile is the file that other implementations are tested with.
const vectorFile = "../../snapshot/testdata/json_vectors.json"

func TestSnapshot_AnswersEveryVectorExactly(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Name, Canonical string
		Accept          bool
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	got := runWith(t, "", "snapshot", "--vectors", vectorFile)
	if got.Code != 0 || got.Err != "" {
		t.Fatalf("code %d, error %s", got.Code, got.Err)
	}
	lines := strings.Split(strings.TrimSuffix(got.Out, "\n"), "\n")
	if len(lines) != len(vectors) {
		t.Fatalf("%d lines for %d vectors", len(lines), len(vectors))
	}
	for i, line := range lines {
		var a map[string]any
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		reason, _ := a["reason"].(string)
		delete(a, "reason")
		want := map[string]any{"name": vectors[i].Name, "accept": vectors[i].Accept, "canonical": vectors[i].Canonical}
		if diff := cmp.Diff(want, a); diff != "" {
			t.Errorf("line (-want +got):\n%s", diff)
		}
		if (reason == "") != vectors[i].Accept {
			t.Errorf("%s: reason %q", vectors[i].Name, reason)
		}
	}
}

func TestSnapshot_ReadsVectorsFromStandardInput(t *testing.T) {
	t.Parallel()
	got := runWith(t, `[{"name":"a","input_base64":"WyA8XQ==","extra":1},{"name":"b","input_base64":"WyI8Il0="}]`, "snapshot", "--vectors", "-")
	want := result{0, `{"name":"a","accept":false,"canonical":"","reason":"Syntax"}` + "\n" +
		`{"name":"b","accept":true,"canonical":"[\"<\"]","reason":""}` + "\n", ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
}

// endless never ends; it counts what is read of it.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '['
	}
	e.read += len(p)
	return len(p), nil
}

func TestSnapshot_RefusesEndlessInputWithoutReadingOn(t *testing.T) {
	t.Parallel()
	var in endless
	var errs bytes.Buffer
	code := run([]string{"snapshot"}, Streams{In: &in, Out: io.Discard, Err: &errs})
	if code != 2 || errs.String() != `{"stage":"decode","reason":"TooLarge"}`+"\n" {
		t.Errorf("code %d, %s", code, errs.String())
	}
	if in.read > 1<<20 {
		t.Errorf("%d bytes were read", in.read)
	}
}

// broken is a stream that cannot be written to.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestSnapshot_ReportsOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		input string
		args  []string
	}{
		"text":    {"{}", nil},
		"digest":  {"{}", []string{"--digest"}},
		"JSON":    {"{}", []string{"-o", "json"}},
		"vectors": {`[{"name":"a","input_base64":""}]`, []string{"--vectors", "-"}},
	} {
		var errs bytes.Buffer
		code := run(append([]string{"snapshot"}, c.args...), Streams{In: strings.NewReader(c.input), Out: broken{}, Err: &errs})
		if code != 1 || !strings.Contains(errs.String(), "disk full") {
			t.Errorf("%s: code %d, %s", name, code, errs.String())
		}
	}
	if code := run([]string{"snapshot"}, Streams{In: strings.NewReader("{"), Out: io.Discard, Err: broken{}}); code != 1 {
		t.Errorf("a refusal that cannot be written: code %d", code)
	}
}

func TestFinish_MapsErrorsToExitCodes(t *testing.T) {
	t.Parallel()
	plain := errors.New("no cluster")
	for name, c := range map[string]struct {
		err  error
		code int
		text string
	}{
		"nothing":                       {nil, 0, ""},
		"a plain error":                 {plain, 1, "error: no cluster\n"},
		"a refusal already printed":     {&ExitError{Code: 2}, 2, ""},
		"a refusal to print":            {&ExitError{Code: 2, Err: plain}, 2, "error: no cluster\n"},
		"a wrapped refusal":             {fmt.Errorf("deny: %w", &ExitError{Code: 2, Err: plain}), 2, "error: deny: no cluster\n"},
		"a wrapped one already printed": {fmt.Errorf("deny: %w", &ExitError{Code: 3}), 3, ""},
	} {
		var errs bytes.Buffer
		if code := finish(c.err, Streams{Err: &errs}); code != c.code || errs.String() != c.text {
			t.Errorf("%s: code %d, %q; want %d, %q", name, code, errs.String(), c.code, c.text)
		}
	}
	if !errors.Is(&ExitError{Code: 2, Err: plain}, plain) {
		t.Error("an ExitError hides its cause")
	}
	if text := (&ExitError{Code: 2}).Error(); text != "exit code 2" {
		t.Errorf("an ExitError without a cause says %q", text)
	}
}
