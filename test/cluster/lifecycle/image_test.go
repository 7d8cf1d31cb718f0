// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func writeTar(t *testing.T, members map[string]string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.tar")
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for name, content := range members {
		if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestImageNames_ReadsBothKindsOfFile(t *testing.T) {
	t.Parallel()
	const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for name, test := range map[string]struct {
		members map[string]string
		want    []string
		err     string
	}{
		"an OCI layout": {
			members: map[string]string{"index.json": `{"manifests":[{"annotations":{"io.containerd.image.name":"registry.example/a:1"}}]}`},
			want:    []string{"registry.example/a:1"},
		},
		"an OCI layout whose members begin with a dot": {
			members: map[string]string{"./index.json": `{"manifests":[{"annotations":{"io.containerd.image.name":"registry.example/a:1"}}]}`},
			want:    []string{"registry.example/a:1"},
		},
		"a name by digest": {
			members: map[string]string{"index.json": `{"manifests":[{"annotations":{"io.containerd.image.name":"registry.example/a@` + digest + `"}}]}`},
			want:    []string{"registry.example/a@" + digest},
		},
		"a docker archive with short names": {
			members: map[string]string{"manifest.json": `[{"RepoTags":["demo:v1","demo"]}]`},
			want:    []string{"docker.io/library/demo:v1", "docker.io/library/demo:latest"},
		},
		"a file that is both is read as the container runtime reads it": {
			members: map[string]string{
				"index.json":    `{"manifests":[{"annotations":{"io.containerd.image.name":"registry.example/a:1"}}]}`,
				"manifest.json": `[{"RepoTags":["registry.example/b:1"]}]`,
			},
			want: []string{"registry.example/a:1"},
		},
		"an entry without a name": {
			members: map[string]string{"index.json": `{"manifests":[{}]}`},
			err:     "entry 0 of index.json has no name: add the annotation io.containerd.image.name",
		},
		"no image at all": {
			members: map[string]string{"index.json": `{}`},
			err:     "index.json lists no image",
		},
		"a docker archive without a name": {
			members: map[string]string{"manifest.json": `[{"RepoTags":null}]`},
			err:     "manifest.json names no image: save it with a name and a tag",
		},
		"some other tar file": {
			members: map[string]string{"README": "hello"},
			err:     "it is neither an OCI layout nor a docker archive: it has no index.json and no manifest.json",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			names, err := imageNames(writeTar(t, test.members))
			if got := errorText(err); got != test.err {
				t.Fatalf("error %q, want %q", got, test.err)
			}
			var got []string
			for _, name := range names {
				got = append(got, name.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestWriteImage_GivesTheSameDigestForTheSameProgram(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	program := filepath.Join(folder, "program")
	if err := os.WriteFile(program, []byte("not really"), 0o700); err != nil {
		t.Fatal(err)
	}
	var digests []string
	for _, file := range []string{"one.tar", "two.tar"} {
		digest, err := WriteImage(filepath.Join(folder, file), "registry.example/program:1", program)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("digests %v differ", digests)
	}
	members, err := readMembers(filepath.Join(folder, "one.tar"), "index.json")
	if err != nil {
		t.Fatal(err)
	}
	var index struct {
		Manifests []struct {
			Digest      string            `json:"digest"`
			Annotations map[string]string `json:"annotations"`
		} `json:"manifests"`
	}
	if err := json.Unmarshal(members["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	if len(index.Manifests) != 1 || index.Manifests[0].Digest != digests[0] || index.Manifests[0].Annotations[nameAnnotation] != "registry.example/program:1" {
		t.Errorf("the layout's index is %+v, want one entry with the digest %s", index, digests[0])
	}
}

func TestWithoutRepeats_KeepsOneEntryForEachImage(t *testing.T) {
	t.Parallel()
	got := withoutRepeats([]Loaded{
		{Name: "a:1", Reference: "a@x"},
		{Name: "a@x", Reference: "a@x"},
		{Name: "b@y", Reference: "b@y"},
		{Name: "c:1", Reference: "c@z"},
		{Name: "c:2", Reference: "c@z"},
	})
	want := []Loaded{
		{Name: "a:1", Reference: "a@x"},
		{Name: "b@y", Reference: "b@y"},
		{Name: "c:1", Reference: "c@z"},
		{Name: "c:2", Reference: "c@z"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConfig_RendersWithoutGapsAndParses(t *testing.T) {
	t.Parallel()
	c := &cluster{Layout: newLayout(t)}
	if err := c.writeConfig(c.settings(tools{plugins: "/usr/lib/cni"})); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"kubelet.yaml", "kube-proxy.yaml", "dns.yaml", "cni/10-assent.conflist", "containerd.toml"} {
		data, err := os.ReadFile(c.conf(file))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "<no value>") || strings.Contains(string(data), "{{") {
			t.Errorf("%s has gaps:\n%s", file, data)
		}
		if strings.HasSuffix(file, ".toml") {
			continue // containerd itself checks it when it starts
		}
		for document := range strings.SplitSeq(string(data), "\n---\n") {
			var parsed map[string]any
			if err := yaml.Unmarshal([]byte(document), &parsed); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

func TestProgress_SaysWhatIsDoneAndWhatIsLeft(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		p    *progress
		want string
	}{
		"before anything is known": {&progress{name: "x"}, "x: looking what is to be compiled, 1m0s"},
		"while modules arrive":     {&progress{name: "x", downloads: 3}, "x: 3 modules downloaded, 1m0s"},
		"half way":                 {&progress{name: "x", planned: true, done: 50, total: 100}, "x: 50 of 100 packages compiled (50%), 1m0s"},
		"linking":                  {&progress{name: "x", planned: true, done: 100, total: 100}, "x: all packages compiled, linking, 1m0s"},
		"nothing to compile":       {&progress{name: "x", planned: true}, "x: all packages compiled, linking, 1m0s"},
	} {
		if got := test.p.line(time.Minute); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
