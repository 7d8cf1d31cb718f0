// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// options are the command's flags.
type options struct {
	root         string
	out          string
	repository   string
	push         string
	tag          string
	only         string
	arch         string
	roots        string
	reproducible bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, log io.Writer) error {
	var o options
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", ".", "folder of the module")
	flags.StringVar(&o.out, "out", "dist/images", "folder that the archives and images.json are written to")
	flags.StringVar(&o.repository, "repository", "registry.example/assent", "prefix of the images' names")
	flags.StringVar(&o.push, "push", "", "registry and path to push to, such as registry.example/team; replaces -repository")
	flags.StringVar(&o.tag, "tag", "dev", "tag of the images, and the version their programs report")
	flags.StringVar(&o.only, "only", "", "comma-separated names of the images to build (default all)")
	flags.StringVar(&o.arch, "arch", runtime.GOARCH, "processor architecture of the images")
	flags.StringVar(&o.roots, "roots", rootsPath, "PEM file of certificate authorities to include where it exists")
	flags.BoolVar(&o.reproducible, "reproducible", false, "keep the names of folders out of the binaries (compiles everything anew)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.push != "" {
		o.repository = o.push
	}
	return build(ctx, o, log)
}

// build makes the chosen images one after the other, then writes images.json:
// a file that names an image which could not be built would be worse than none.
func build(ctx context.Context, o options, log io.Writer) error {
	specs, err := choose(o.root, o.only)
	if err != nil {
		return err
	}
	roots, err := systemRoots(o.roots)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return fmt.Errorf("creating the output folder: %w", err)
	}
	references := map[string]string{}
	for _, s := range specs {
		start := time.Now()
		_, _ = fmt.Fprintf(log, "%-15s compiling %s\n", s.name, s.pkg)
		program, err := compile(ctx, o, s)
		if err != nil {
			return err
		}
		img, err := assemble(s, o.arch, program, roots)
		if err != nil {
			return err
		}
		reference, err := publish(ctx, o, s, img)
		if err != nil {
			return err
		}
		references[s.name] = reference
		_, _ = fmt.Fprintf(log, "%-15s %5.1f MB  %4.0f s  %s\n", s.name, float64(len(program))/1e6, time.Since(start).Seconds(), reference)
	}
	return writeReferences(filepath.Join(o.out, "images.json"), references)
}

// compile builds the spec's command and returns the program.
func compile(ctx context.Context, o options, s spec) ([]byte, error) {
	dir, err := os.MkdirTemp("", "assent-images-")
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", s.name, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	target := filepath.Join(dir, "program")

	args := []string{"build", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X main.version=" + o.tag, "-o", target}
	if o.reproducible {
		args = append(args, "-trimpath")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+s.pkg)...)
	cmd.Dir = o.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+o.arch)
	if output, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("image %s: compiling %s: %w\n%s", s.name, s.pkg, err, output)
	}
	program, err := os.ReadFile(target)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", s.name, err)
	}
	return program, nil
}

// publish writes the image's archive, pushes it where asked, and returns its
// reference by digest.
func publish(ctx context.Context, o options, s spec, img v1.Image) (string, error) {
	repository, err := name.NewRepository(o.repository + "/" + s.name)
	if err != nil {
		return "", fmt.Errorf("image %s: %w", s.name, err)
	}
	if _, err := name.NewTag(repository.Name() + ":" + o.tag); err != nil {
		return "", fmt.Errorf("image %s: %w", s.name, err)
	}
	digest, err := img.Digest()
	if err != nil {
		return "", fmt.Errorf("image %s: %w", s.name, err)
	}
	out, err := os.Create(filepath.Join(o.out, s.name+".tar"))
	if err != nil {
		return "", fmt.Errorf("image %s: %w", s.name, err)
	}
	if err := writeArchive(out, img, repository.Name(), o.tag); err != nil {
		_ = out.Close()
		return "", fmt.Errorf("image %s: %w", s.name, err)
	}
	if err := out.Close(); err != nil {
		return "", fmt.Errorf("image %s: %w", s.name, err)
	}
	if o.push != "" {
		if err := remote.Write(repository.Tag(o.tag), img, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return "", fmt.Errorf("image %s: pushing: %w", s.name, err)
		}
	}
	return repository.Name() + "@" + digest.String(), nil
}

func writeReferences(path string, references map[string]string) error {
	data, err := json.MarshalIndent(references, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding image references: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing image references: %w", err)
	}
	return nil
}
