// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Binaries is what a cluster is made of that this module builds itself.
type Binaries struct {
	// Kube is the multi-call binary.
	Kube string
	// Images are tar files of the images that a node runs itself.
	Images []string
}

// BuildOptions says where to build from and where to keep the result.
type BuildOptions struct {
	// Source is the folder of this Go module.
	Source string
	// Cache is the folder that keeps results; clusters in any state folder
	// share it.
	Cache    string
	Progress io.Writer
}

// Linking settings. Changing one of them never compiles a package again.
var kubeLinkFlags = strings.Join([]string{
	"-s", "-w",
	"-X k8s.io/component-base/version.gitVersion=v" + kubernetesVersion,
	"-X k8s.io/component-base/version.gitMajor=1",
	"-X k8s.io/component-base/version.gitMinor=37",
}, " ")

// commands are the programs of this module that a cluster runs, in the order in
// which they are built: the big one first, so that the others find most of their
// packages compiled.
var commands = []string{"assent-kube", "assent-dns", "assent-pause"}

// ownImages maps the programs that run as images to their names.
var ownImages = map[string]string{"assent-dns": dnsImage, "assent-pause": pauseImage}

// builder builds into a folder named after everything that the result depends
// on, so that an existing folder is a finished result.
type builder struct {
	BuildOptions
	folder string
}

// Build compiles what a cluster needs, unless the cache holds it already.
func Build(ctx context.Context, o BuildOptions) (Binaries, error) {
	b := builder{BuildOptions: o}
	key, err := b.key(ctx)
	if err != nil {
		return Binaries{}, err
	}
	b.folder = filepath.Join(o.Cache, key)
	result := b.result()
	if result.complete() {
		return result, b.markUsed(time.Now())
	}
	// Of two commands that need the same result, one builds and one waits.
	release, err := lockFile(filepath.Join(o.Cache, "lock"))
	if err != nil {
		return Binaries{}, err
	}
	defer release()
	if result.complete() {
		return result, b.markUsed(time.Now())
	}
	if err := os.MkdirAll(b.folder, 0o755); err != nil {
		return Binaries{}, fmt.Errorf("creating the build cache: %w", err)
	}
	for _, command := range commands {
		if err := b.build(ctx, command); err != nil {
			return Binaries{}, err
		}
	}
	return result, b.removeUnused(time.Now())
}

func (b builder) result() Binaries {
	result := Binaries{Kube: filepath.Join(b.folder, commands[0])}
	for _, command := range commands[1:] {
		result.Images = append(result.Images, filepath.Join(b.folder, command+".tar"))
	}
	return result
}

func (r Binaries) complete() bool {
	for _, file := range append([]string{r.Kube}, r.Images...) {
		if _, err := os.Stat(file); err != nil {
			return false
		}
	}
	return true
}

// key is a hash over the module's requirements, the programs' sources, the
// toolchain and the settings.
func (b builder) key(ctx context.Context) (string, error) {
	sources := []string{"go.mod", "go.sum"}
	for _, command := range commands {
		found, err := filepath.Glob(filepath.Join(b.Source, "cmd", command, "*.go"))
		if err != nil {
			return "", err
		}
		for _, file := range found {
			relative, err := filepath.Rel(b.Source, file)
			if err != nil {
				return "", err
			}
			sources = append(sources, relative)
		}
	}
	slices.Sort(sources)
	version, err := b.goCommand(ctx, "env", "GOVERSION").Output()
	if err != nil {
		return "", fmt.Errorf("asking for the Go version: %w", err)
	}
	hash := sha256.New()
	fmt.Fprintln(hash, strings.TrimSpace(string(version)), runtime.GOARCH, kubeLinkFlags)
	for _, source := range sources {
		content, err := os.ReadFile(filepath.Join(b.Source, source))
		if err != nil {
			return "", fmt.Errorf("reading the cluster's module: %w", err)
		}
		fmt.Fprintf(hash, "%s %x\n", source, sha256.Sum256(content))
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// goCommand always builds for this machine, whatever the environment asks for:
// the result is to be run here.
func (b builder) goCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.Source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+runtime.GOARCH, "GOWORK=off")
	return cmd
}

func (b builder) build(ctx context.Context, command string) error {
	started := time.Now()
	target := filepath.Join(b.folder, command)
	temporary := target + ".new"
	flags := []string{"-ldflags", kubeLinkFlags, "-o", temporary, "./cmd/" + command}
	progress := newProgress(b.Progress, command)
	defer progress.close()
	total, err := b.countCompiles(ctx, progress, flags)
	if err != nil {
		return err
	}
	progress.compiling(total)
	if err := b.watch(b.goCommand(ctx, append([]string{"build", "-v"}, flags...)...), progress); err != nil {
		// An interrupt is no fault of the package that was being compiled.
		return fmt.Errorf("compiling %s: %w", command, cmp.Or(context.Cause(ctx), err))
	}
	if err := b.finish(command, temporary, target); err != nil {
		return fmt.Errorf("finishing %s: %w", command, err)
	}
	progress.finish(fmt.Sprintf("%s built in %s", command, time.Since(started).Round(100*time.Millisecond)))
	return nil
}

// finish turns a program into its image, if it runs as one. The final name
// appears in one step.
func (b builder) finish(command, temporary, target string) error {
	if err := os.Rename(temporary, target); err != nil {
		return err
	}
	name, isImage := ownImages[command]
	if !isImage {
		return nil
	}
	if _, err := WriteImage(target+".tar", name, target); err != nil {
		return err
	}
	return os.Remove(target)
}

// countCompiles asks the go command what it would do. It knows which packages
// are in its cache, so the number is the work ahead and not the size of the
// program. Missing modules are downloaded on the way.
func (b builder) countCompiles(ctx context.Context, p *progress, flags []string) (int, error) {
	cmd := b.goCommand(ctx, append([]string{"build", "-n"}, flags...)...)
	reader, writer, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer reader.Close()
	cmd.Stdout, cmd.Stderr = writer, writer
	if err := cmd.Start(); err != nil {
		_ = writer.Close()
		return 0, fmt.Errorf("starting the go command: %w", err)
	}
	_ = writer.Close()
	count := 0
	last := eachLine(reader, func(line string) {
		switch {
		case strings.HasPrefix(line, "go: downloading "):
			p.downloaded()
		case strings.Contains(line, "/compile "):
			count++
		}
	})
	if err := cmd.Wait(); err != nil {
		return 0, fmt.Errorf("planning the compile: %w\n%s", err, last)
	}
	return count, nil
}

// watch runs a verbose build; the go command prints the name of each package
// that it compiles, and nothing else unless something fails.
func (b builder) watch(cmd *exec.Cmd, p *progress) error {
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	last := eachLine(stderr, func(string) { p.compiled() })
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w\n%s", err, last)
	}
	return nil
}

// keepUnused is how long a result of other requirements is kept: long enough for
// somebody who goes back and forth between two branches.
const keepUnused = 24 * time.Hour

// markUsed keeps a result from being removed. A result that belongs to another
// user cannot be marked, and need not be.
func (b builder) markUsed(now time.Time) error {
	if err := os.Chtimes(b.folder, now, now); err != nil && !errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("marking the build as used: %w", err)
	}
	return nil
}

// removeUnused deletes results that nobody has used lately: each has 200 MB. A
// running cluster keeps a link of its own to what it was started from.
func (b builder) removeUnused(now time.Time) error {
	entries, err := os.ReadDir(b.Cache)
	if err != nil {
		return fmt.Errorf("cleaning the build cache: %w", err)
	}
	var failures []error
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !entry.IsDir() || now.Sub(info.ModTime()) < keepUnused {
			continue
		}
		failures = append(failures, os.RemoveAll(filepath.Join(b.Cache, entry.Name())))
	}
	return errors.Join(failures...)
}

// longestLine is more than the longest command that the go command prints.
const longestLine = 16 << 20

// eachLine calls visit for each line and returns the last few.
func eachLine(reader io.Reader, visit func(string)) string {
	var last []string
	scanner := bufio.NewScanner(reader)
	scanner.Buffer(nil, longestLine)
	for scanner.Scan() {
		visit(scanner.Text())
		last = append(last, scanner.Text())
		if len(last) > tailLines {
			last = last[1:]
		}
	}
	return strings.Join(last, "\n")
}
