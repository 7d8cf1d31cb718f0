// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/test/cluster/lifecycle"
)

// greeting is what testdata/probe answers.
const greeting = "hello from a Pod"

// smoke is one cluster under test, driven through the command as a user would.
type smoke struct {
	t       *testing.T
	command string
	state   string
}

// TestSmoke_NodeRunsPodsAndLeavesNothing brings up a whole node, which takes
// root, installs packages and changes the machine's network while it runs.
func TestSmoke_NodeRunsPodsAndLeavesNothing(t *testing.T) {
	s := newSmoke(t)
	before := machine(t)
	t.Cleanup(func() { s.try("down") })

	s.timed("up", func() { s.run("up") })
	running := machine(t)
	if kubeconfig := s.run("up"); strings.TrimSpace(kubeconfig) != filepath.Join(s.state, "kubeconfig") {
		t.Errorf("a second up printed %q instead of the kubeconfig's path", kubeconfig)
	}
	if diff := cmp.Diff(running, machine(t)); diff != "" {
		t.Errorf("a second up changed the machine (-before +after):\n%s", diff)
	}
	s.checkSecondNodeIsRefused()
	if diff := cmp.Diff(running, machine(t)); diff != "" {
		t.Errorf("a second node, though refused, changed the machine (-before +after):\n%s", diff)
	}
	var image string
	s.timed("load", func() { image = s.loadProbe() })
	s.timed("server available", func() {
		s.apply("testdata/smoke.yaml", image)
		s.kubectl("-n", "smoke", "wait", "--for=condition=Available", "--timeout=60s", "deployment/server")
	})
	s.checkJob(image)
	s.checkServiceFromHost()
	s.checkServiceFromAPIServer()

	s.timed("down", func() { s.run("down") })
	if diff := cmp.Diff(before, machine(t)); diff != "" {
		t.Errorf("the machine is not as it was (-before +after):\n%s", diff)
	}
	if left := processesNaming(t, s.state); len(left) > 0 {
		t.Errorf("processes were left behind: %q", left)
	}
	s.run("down") // nothing to do, and no error
}

// TestSmoke_ControlPlanesRunBesideEachOther checks the mode that API tests use.
func TestSmoke_ControlPlanesRunBesideEachOther(t *testing.T) {
	first, second := newSmoke(t), newSmoke(t)
	for _, s := range []smoke{first, second} {
		t.Cleanup(func() { s.try("down") })
		s.timed("control plane up", func() { s.run("up", "--control-plane-only") })
	}
	first.kubectl("create", "namespace", "only-here")
	if names := second.kubectl("get", "namespaces", "-o", "name"); strings.Contains(names, "only-here") {
		t.Errorf("both control planes share their data: %s", names)
	}
	kubeconfig := filepath.Join(t.TempDir(), "user")
	if err := os.WriteFile(kubeconfig, []byte(first.run("user", "ann", "--group", "approvers")), 0o600); err != nil {
		t.Fatal(err)
	}
	who := first.kubectl("--kubeconfig", kubeconfig, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username} {.status.userInfo.groups}")
	if want := `ann ["approvers","system:authenticated"]`; who != want {
		t.Errorf("the new user is %s, want %s", who, want)
	}
	for _, s := range []smoke{first, second} {
		s.timed("control plane down", func() { s.run("down") })
		if left := processesNaming(t, s.state); len(left) > 0 {
			t.Errorf("processes were left behind: %q", left)
		}
	}
}

// TestSmoke_RunPassesTheExitStatusAndStops checks what "make test" relies on.
func TestSmoke_RunPassesTheExitStatusAndStops(t *testing.T) {
	s := newSmoke(t)
	cmd := s.cmd("run", "--control-plane-only", "--", "sh", "-c", `test -s "$KUBECONFIG" && exit 7`)
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 7 {
		t.Errorf("exit status %d (%v), want the command's own 7", code, err)
	}
	if left := processesNaming(t, s.state); len(left) > 0 {
		t.Errorf("processes were left behind: %q", left)
	}
}

func newSmoke(t *testing.T) smoke {
	t.Helper()
	if os.Getenv("ASSENT_CLUSTER_SMOKE") != "1" {
		t.Skip("starts real clusters: set ASSENT_CLUSTER_SMOKE=1")
	}
	command := filepath.Join(t.TempDir(), "assent-cluster")
	goBuild(t, command, "./cmd/assent-cluster")
	return smoke{t: t, command: command, state: filepath.Join(t.TempDir(), "state")}
}

func goBuild(t *testing.T, target, source string) {
	t.Helper()
	cmd := exec.Command("go", "build", "-o", target, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", source, err, out)
	}
}

func (s smoke) cmd(args ...string) *exec.Cmd {
	cmd := exec.Command(s.command, args...)
	cmd.Env = append(os.Environ(), "ASSENT_STATE="+s.state)
	cmd.Stderr = os.Stderr
	return cmd
}

func (s smoke) try(args ...string) { _ = s.cmd(args...).Run() }

func (s smoke) run(args ...string) string {
	s.t.Helper()
	out, err := s.cmd(args...).Output()
	if err != nil {
		s.t.Fatalf("assent-cluster %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (s smoke) kubectl(args ...string) string {
	s.t.Helper()
	return s.run(append([]string{"kubectl"}, args...)...)
}

// timed reports how long a step took; nothing depends on it.
func (s smoke) timed(what string, step func()) {
	s.t.Helper()
	started := time.Now()
	step()
	s.t.Logf("%-20s %.1f s", what, time.Since(started).Seconds())
}

// checkSecondNodeIsRefused starts a node from another state folder. The attempt
// must not take anything away from the node that is up.
func (s smoke) checkSecondNodeIsRefused() {
	s.t.Helper()
	other := smoke{t: s.t, command: s.command, state: filepath.Join(s.t.TempDir(), "other")}
	cmd := other.cmd("up")
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err == nil || !strings.Contains(said.String(), "another node is up in \""+s.state+"\"") {
		s.t.Errorf("a second node ended with %v and said %q; want it refused, naming the first one's folder", err, said.String())
	}
}

func (s smoke) loadProbe() string {
	s.t.Helper()
	program := filepath.Join(s.t.TempDir(), "probe")
	goBuild(s.t, program, "./testdata/probe")
	digest, err := lifecycle.WriteImage(program+".tar", "registry.example/probe:1", program)
	if err != nil {
		s.t.Fatal(err)
	}
	want := "registry.example/probe@" + digest
	if got, line := s.run("load", program+".tar"), "registry.example/probe:1 "+want+"\n"; got != line {
		s.t.Fatalf("load printed %q, want %q", got, line)
	}
	return want
}

func (s smoke) apply(file, image string) {
	s.t.Helper()
	manifest, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := s.cmd("kubectl", "apply", "-f", "-")
	cmd.Stdin = bytes.NewReader(bytes.ReplaceAll(manifest, []byte("IMAGE"), []byte(image)))
	if out, err := cmd.Output(); err != nil {
		s.t.Fatalf("applying %s: %v\n%s", file, err, out)
	}
}

// checkJob waits for the Job that asks the Service under its DNS name.
func (s smoke) checkJob(image string) {
	s.t.Helper()
	s.timed("job complete", func() {
		s.apply("testdata/smoke-job.yaml", image)
		s.kubectl("-n", "smoke", "wait", "--for=condition=Complete", "--timeout=90s", "job/by-name")
	})
	said := s.kubectl("-n", "smoke", "get", "pods", "-l", "job-name=by-name", "-o",
		"jsonpath={.items[?(@.status.phase==\"Succeeded\")].status.containerStatuses[0].state.terminated.message}")
	if said != greeting {
		s.t.Errorf("the Job's termination message is %q, want %q", said, greeting)
	}
	if log := s.kubectl("-n", "smoke", "logs", "job/by-name"); strings.TrimSpace(log) == "" {
		s.t.Error("the Job's log is empty")
	}
}

func (s smoke) checkServiceFromHost() {
	s.t.Helper()
	ip := s.kubectl("-n", "smoke", "get", "service", "server", "-o", "jsonpath={.spec.clusterIP}")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+ip+"/", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := (&http.Client{Transport: &http.Transport{}}).Do(request)
	if err != nil {
		s.t.Fatalf("asking the Service at its ClusterIP: %v", err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != greeting {
		s.t.Errorf("the Service answered %q (%v), want %q", body, err, greeting)
	}
}

// checkServiceFromAPIServer goes the way that calls of webhooks go.
func (s smoke) checkServiceFromAPIServer() {
	s.t.Helper()
	if said := s.kubectl("get", "--raw", "/api/v1/namespaces/smoke/services/server:http/proxy/"); said != greeting {
		s.t.Errorf("through the API server the Service answered %q, want %q", said, greeting)
	}
}
