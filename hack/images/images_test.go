// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const repository = "registry.example/assent/tool"

var tool = spec{name: "tool", pkg: "cmd/tool", binary: "/bin/tool", title: "Tool", roots: true}

func sample(t *testing.T, s spec, roots []byte) v1.Image {
	t.Helper()
	img, err := assemble(s, "amd64", []byte("program"), roots)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func digestOf(t *testing.T, img v1.Image) string {
	t.Helper()
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func TestAssemble_IsReproducible(t *testing.T) {
	var archives [2]bytes.Buffer
	for i := range archives {
		if err := writeArchive(&archives[i], sample(t, tool, []byte("roots")), repository, "dev"); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0].Bytes(), archives[1].Bytes()) {
		t.Error("two builds of the same program gave different archives")
	}
}

func TestAssemble_RunsAsAnUnprivilegedNumericUser(t *testing.T) {
	cfg, err := sample(t, tool, nil).ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Config.User != "65532:65532" {
		t.Errorf("user %q", cfg.Config.User)
	}
	if diff := cmp.Diff([]string{"/bin/tool"}, cfg.Config.Entrypoint); diff != "" {
		t.Errorf("entrypoint (-want +got):\n%s", diff)
	}
	if cfg.OS != "linux" || cfg.Architecture != "amd64" {
		t.Errorf("platform %s/%s", cfg.OS, cfg.Architecture)
	}
}

// contents lists a flattened image as "mode owner path".
func contents(t *testing.T, img v1.Image) map[string]int64 {
	t.Helper()
	files := map[string]int64{}
	in := tar.NewReader(mutate.Extract(img))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != 0 {
			t.Errorf("%s: owner %d:%d, time %v", h.Name, h.Uid, h.Gid, h.ModTime)
		}
		files[strings.TrimSuffix(h.Name, "/")] = h.Mode
	}
}

func TestAssemble_HoldsTheProgramAndNothingWritable(t *testing.T) {
	base := map[string]int64{
		"etc": 0o755, "etc/passwd": 0o444, "etc/group": 0o444, "bin": 0o755, "bin/tool": 0o555,
	}
	withRoots := map[string]int64{"etc/ssl": 0o755, "etc/ssl/certs": 0o755, "etc/ssl/certs/ca-certificates.crt": 0o444}
	maps.Copy(withRoots, base)
	plain := tool
	plain.roots = false
	cases := map[string]struct {
		spec  spec
		roots []byte
		want  map[string]int64
	}{
		"a program that dials TLS servers gets the authorities": {tool, []byte("roots"), withRoots},
		"a machine without authorities gives none":              {tool, nil, base},
		"a program that does not dial gets none":                {plain, []byte("roots"), base},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, contents(t, sample(t, tc.spec, tc.roots))); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func archive(t *testing.T, img v1.Image) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tool.tar")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeArchive(out, img, repository, "dev"); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func unpack(t *testing.T, path string) string {
	t.Helper()
	dir := t.TempDir()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	files := tar.NewReader(in)
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(target, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		data, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWriteArchive_IsAnOCILayoutThatNamesTagAndDigest(t *testing.T) {
	img := sample(t, tool, nil)
	index, err := layout.ImageIndexFromPath(unpack(t, archive(t, img)))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range manifest.Manifests {
		if m.Digest.String() != digestOf(t, img) {
			t.Errorf("the index lists digest %s", m.Digest)
		}
		got = append(got, m.Annotations["io.containerd.image.name"])
	}
	if diff := cmp.Diff([]string{repository + ":dev", repository + "@" + digestOf(t, img)}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	stored, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contents(t, img), contents(t, stored)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestWriteArchive_IsADockerArchiveOfTheSameImage(t *testing.T) {
	img := sample(t, tool, nil)
	tag, err := name.NewTag(repository + ":dev")
	if err != nil {
		t.Fatal(err)
	}
	stored, err := tarball.ImageFromPath(archive(t, img), &tag)
	if err != nil {
		t.Fatal(err)
	}
	want, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	got, err := stored.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("configuration %s, want %s", got, want)
	}
	if diff := cmp.Diff(contents(t, img), contents(t, stored)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestChoose_NamesWhatIsMissing(t *testing.T) {
	cases := map[string]struct{ only, want string }{
		"a name that is not in the catalog":     {"nginx", `there is no image "nginx"`},
		"an image whose command is not there":   {"assent", "image assent: its command cmd/assent is missing"},
		"every image where no command is there": {"", "is missing (choose others with -only)"},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			_, err := choose(t.TempDir(), tc.only)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestRun_PushesWhatImagesJSONNames(t *testing.T) {
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	out := t.TempDir()
	address := strings.TrimPrefix(server.URL, "http://") + "/team"
	args := []string{"-root", "../..", "-out", out, "-only", "demo-ledgerctl", "-push", address, "-tag", "v1"}
	if err := run(t.Context(), args, io.Discard); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(out, "images.json"))
	if err != nil {
		t.Fatal(err)
	}
	var references map[string]string
	if err := json.Unmarshal(data, &references); err != nil {
		t.Fatal(err)
	}
	reference, err := name.NewDigest(references["demo-ledgerctl"])
	if err != nil {
		t.Fatalf("images.json names %q: %v", references["demo-ledgerctl"], err)
	}
	if want := address + "/demo-ledgerctl"; reference.Context().Name() != want {
		t.Errorf("repository %s, want %s", reference.Context().Name(), want)
	}
	pulled, err := remote.Image(reference)
	if err != nil {
		t.Fatalf("pulling %s: %v", reference, err)
	}
	if _, ok := contents(t, pulled)["ledgerctl"]; !ok {
		t.Error("the pushed image does not hold /ledgerctl")
	}
}
