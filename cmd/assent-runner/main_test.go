// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/runner"
)

// asRunner in the environment makes the test binary assent-runner itself, so
// that tests see a real process: its exit code, its log, its signals.
const asRunner = "ASSENT_TEST_AS_RUNNER"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asRunner) != "":
		syscall.Exit(int(execute(os.Args[1:], os.Stderr)))
	case len(os.Args) > 2 && os.Args[1] == "tool":
		syscall.Exit(tool(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// sight is what a tool sees of itself and of the runner that started it.
type sight struct {
	Env                    []string
	UID                    int
	Environ, Memory, Files bool
}

// tool prints its environment and what it can read of its parent, then ends,
// or waits for a signal when it is told to.
func tool(args []string) int {
	parent := "/proc/" + strconv.Itoa(os.Getppid())
	_, environErr := os.ReadFile(parent + "/environ")
	_, memoryErr := os.Open(parent + "/mem")
	_, fdErr := os.ReadDir(parent + "/fd")
	_ = json.NewEncoder(os.Stdout).Encode(sight{
		Env: os.Environ(), UID: os.Getuid(), Environ: environErr == nil, Memory: memoryErr == nil, Files: fdErr == nil,
	})
	if args[0] == "wait" {
		// The pipe stays open for as long as the tool lives.
		f, err := os.OpenFile(args[1], os.O_WRONLY, 0)
		if err != nil {
			return 1
		}
		_, _ = f.WriteString(strconv.Itoa(os.Getpid()) + "\n")
		for {
			_ = syscall.Pause()
		}
	}
	return 0
}

// service grants one call and takes its result.
type service struct {
	*httptest.Server
	t    *testing.T
	keys *attest.Keyring
	call attest.Call

	mu      sync.Mutex
	nonce   string
	results []attest.Result
	done    chan struct{}
}

func newService(t *testing.T, effect contract.Effect) *service {
	t.Helper()
	seed, err := attest.GenerateSeed(strings.NewReader(strings.Repeat("s", 64)))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := attest.NewKeyring(seed)
	if err != nil {
		t.Fatal(err)
	}
	text, err := contract.EncodeEffect(effect)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, keys: keys, done: make(chan struct{}, 1), call: attest.Call{
		Agent: "agent", Tool: "tool", ArgsCanonicalJSON: `{"a":"sensitive-argument"}`, Namespace: "agents", EffectJSON: text,
		Contract: attest.ContractRef{Name: "tool", Version: "1", Hash: strings.Repeat("c", 64)},
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+runner.PathRedeem, s.redeem)
	mux.HandleFunc("POST "+runner.PathResult, s.result)
	s.Server = httptest.NewUnstartedServer(mux)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *service) redeem(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	req, err := attest.DecodeRedeemRequest(body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nonce != "" && s.nonce != req.Nonce {
		w.WriteHeader(http.StatusConflict)
		return
	}
	s.nonce = req.Nonce
	fingerprint, _ := s.call.Fingerprint()
	digest := attest.NonceDigest(req.Nonce)
	envelope, err := s.keys.Sign(attest.KindTicket, "toolproposal", fingerprint, attest.Ticket{
		Proposal: attest.ObjectRef{Namespace: "agents", Name: "call", UID: "uid"}, JobUID: "job", PodUID: "pod",
		NonceDigest: digest, Fingerprint: fingerprint, Binding: strings.Repeat("b", 64), Call: s.call,
		Limits:   attest.Limits{TimeoutSeconds: 60, OutputMaxBytes: 1 << 20, StatusMaxBytes: 32 << 10},
		IssuedAt: time.Now(), Deadline: time.Now().Add(time.Minute),
	})
	if err != nil {
		s.t.Error(err)
	}
	key, err := s.keys.ResultKey(s.keys.SigningKeyID(), "uid", "pod", digest)
	if err != nil {
		s.t.Error(err)
	}
	answer, err := attest.Encode(attest.RedeemResponse{Ticket: envelope, ResultKey: key, KeyID: s.keys.SigningKeyID()})
	if err != nil {
		s.t.Error(err)
	}
	_, _ = w.Write(answer)
}

func (s *service) result(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	signed, err := attest.DecodeSignedResult(body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key, _ := s.keys.ResultKey(signed.KeyID, "uid", "pod", attest.NonceDigest(s.nonce))
	result, err := attest.OpenResult(key, signed)
	if err != nil {
		s.t.Error(err)
	}
	s.results = append(s.results, result)
}

// process is assent-runner as the container would start it.
func (s *service) process(ctx context.Context) (*exec.Cmd, *bytes.Buffer) {
	s.t.Helper()
	token := filepath.Join(s.t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("the-token"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "run")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Env = []string{
		asRunner + "=1",
		"PATH=/bin",
		"ASSENT_SECRET_token=top-s3cret",
		"ASSENT_SECRET_other=0ther-s3cret",
		runner.EnvEndpoint + "=" + s.URL,
		runner.EnvCA + "=" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})),
		runner.EnvPublicKeys + "=" + string(attest.EncodePublicKeysPEM(s.keys.PublicKeys()...)),
		runner.EnvProposal + "=agents/call",
		runner.EnvProposalUID + "=uid",
		runner.EnvPodUID + "=pod",
		runner.EnvTokenFile + "=" + token,
	}
	return cmd, &log
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit == nil {
		return 0
	}
	return exit.ExitCode()
}

func (s *service) only() attest.Result {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.results) != 1 {
		s.t.Fatalf("%d results, want 1", len(s.results))
	}
	return s.results[0]
}

func commandEffect(t *testing.T, words ...string) contract.Effect {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return contract.Effect{Command: &contract.CommandCall{
		Image: "unused", Argv: append([]string{self, "tool"}, words...), WorkingDir: "/",
		Env: []contract.ResolvedVariable{{Name: "TOKEN", Secret: &contract.ResolvedSecret{Name: "token", SecretName: "s", Key: "k"}}},
	}}
}

func TestRunner_CarriesOutOneCallAndSaysNothingSecret(t *testing.T) {
	t.Parallel()
	s := newService(t, commandEffect(t, "now"))
	cmd, log := s.process(t.Context())
	if code := exitCode(t, cmd.Run()); code != 0 {
		t.Fatalf("exit code %d: %s", code, log)
	}
	result := s.only()
	if result.Outcome != attest.OutcomeSucceeded {
		t.Errorf("result %+v", result)
	}
	var seen sight
	if err := json.Unmarshal([]byte(result.Stdout), &seen); err != nil {
		t.Fatal(err)
	}
	slices.Sort(seen.Env)
	if want := []string{"HOME=/work", "PATH=/bin", "TOKEN=top-s3cret"}; !slices.Equal(seen.Env, want) {
		t.Errorf("the tool's environment is %q, want %q", seen.Env, want)
	}
	for _, secret := range []string{"s3cret", "the-token", "sensitive-argument"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log contains %q: %s", secret, log)
		}
	}
}

func TestRunner_GivesASecondProcessNothing(t *testing.T) {
	t.Parallel()
	s := newService(t, commandEffect(t, "now"))
	first, _ := s.process(t.Context())
	if code := exitCode(t, first.Run()); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	second, log := s.process(t.Context())
	if code := exitCode(t, second.Run()); code != int(runner.ExitClaimDenied) || !strings.Contains(log.String(), "ClaimDenied") {
		t.Errorf("exit code %d, want %d: %s", code, runner.ExitClaimDenied, log)
	}
	s.only()
}

func TestRunner_StopsItsToolAndReportsWhenThePodStops(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "ready")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newService(t, commandEffect(t, "wait", pipe))
	cmd, log := s.process(t.Context())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitTool(t, pipe)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Errorf("exit code %d: %s", code, log)
	}
	if got := s.only(); got.Outcome != attest.OutcomeFailed || got.Reason != string(runner.ReasonTerminated) {
		t.Errorf("result %+v", got)
	}
}

// TestRunner_KeepsItsMemoryFromItsTool: both run as one user, and the runner
// holds the key that makes a result believed.
func TestRunner_KeepsItsMemoryFromItsTool(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to start a process as the user of the Pods; root itself may read everything")
	}
	dir := filepath.Join(t.TempDir(), "image")
	for d := dir; strings.HasPrefix(d, os.TempDir()+"/"); d = filepath.Dir(d) {
		if err := errors.Join(os.MkdirAll(d, 0o755), os.Chmod(d, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if code := execute([]string{"install", dir}, io.Discard); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	effect := commandEffect(t, "now")
	effect.Command.Argv[0] = filepath.Join(dir, runner.BinaryName)
	s := newService(t, effect)
	cmd, log := s.process(t.Context())
	cmd.Path = effect.Command.Argv[0]
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("the-token"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, runner.EnvTokenFile+"="+token)
	if code := exitCode(t, cmd.Run()); code != 0 {
		t.Fatalf("exit code %d: %s", code, log)
	}
	var seen sight
	if err := json.Unmarshal([]byte(s.only().Stdout), &seen); err != nil {
		t.Fatal(err)
	}
	if seen.UID != 65532 || seen.Environ || seen.Memory || seen.Files {
		t.Errorf("the tool, as user %d, can read environment %v, memory %v, files %v", seen.UID, seen.Environ, seen.Memory, seen.Files)
	}
}

// TestRunner_TakesItsToolAlongWhenItIsKilled: when the runner is killed outright the tool does
// not go on without it.
func TestRunner_TakesItsToolAlongWhenItIsKilled(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "ready")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newService(t, commandEffect(t, "wait", pipe))
	cmd, _ := s.process(t.Context())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	held, pid := awaitTool(t, pipe)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	// Only the tool holds the other end. A tool that lives on would hold it
	// until the deadline, which bounds the test and measures nothing.
	if err := held.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := held.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Errorf("the tool was still running: %v", err)
	}
}

// awaitTool returns the reading end of the pipe when the tool has written its
// process ID to it.
func awaitTool(t *testing.T, pipe string) (*os.File, int) {
	t.Helper()
	f, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	line := make([]byte, 32)
	n, err := f.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	if err != nil {
		t.Fatal(err)
	}
	return f, pid
}

func TestRunner_RefusesWordsThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"help"}, {"install"}, {"run", "x"}, {"install", "a", "b"}} {
		var log bytes.Buffer
		if code := execute(args, &log); code != runner.ExitUsage || !strings.HasPrefix(log.String(), "usage:") {
			t.Errorf("%q: %d, %s", args, code, log.String())
		}
	}
}

func TestRunner_NamesWhatIsMissingInItsConfiguration(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = []string{asRunner + "=1"}
	out, err := cmd.CombinedOutput()
	if code := exitCode(t, err); code != int(runner.ExitUsage) || !strings.Contains(string(out), runner.EnvEndpoint) {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestRunner_InstallsItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// A process of its own installs: one that starts others meanwhile could
	// hand them the copy while it is still open for writing, and the kernel
	// refuses to run such a file.
	install := exec.CommandContext(t.Context(), os.Args[0], "install", dir)
	install.Env = []string{asRunner + "=1"}
	if code := exitCode(t, install.Run()); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, runner.BinaryName), "help")
	cmd.Env = []string{asRunner + "=1"}
	if code := exitCode(t, cmd.Run()); code != int(runner.ExitUsage) {
		t.Errorf("the copy ended with %d", code)
	}
	var log bytes.Buffer
	if code := execute([]string{"install", filepath.Join(dir, "none")}, &log); code != runner.ExitUsage || log.Len() == 0 {
		t.Errorf("into nowhere: %d, %q", code, log.String())
	}
}
