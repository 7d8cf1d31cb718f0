// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
	"github.com/assent-dev/assent/execution"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/job"
	"github.com/assent-dev/assent/internal/runner"
)

// loopback is where every name leads in these tests.
type loopback struct{}

func (loopback) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
}

// run lets the project's own runner carry out a call that was granted, in this
// process instead of a Pod's: it has the Pod's token and the Secrets that the
// Pod's environment refers to.
func (f *fixture) run(p *v1alpha1.ToolProposal) runner.Ending {
	f.t.Helper()
	j := f.jobOf(p)
	pod := f.startPod(j)
	s := &execution.Server{
		Live: server.admin, Client: server.admin, Keys: f.shared.Keys, Contracts: f.shared.Contracts,
		ExpectedJob: f.shared.ExpectedJob, Hosts: []string{"127.0.0.1"}, Now: f.shared.Now, Epoch: f.shared.Epoch,
		Log: discard(), Tracer: f.shared.Tracer,
	}
	web := httptest.NewTLSServer(s.Handler())
	defer web.Close()
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	tickets, err := attest.NewVerifier(server.keys.PublicKeys()...)
	if err != nil {
		f.t.Fatal(err)
	}
	at, err := url.Parse(web.URL)
	if err != nil {
		f.t.Fatal(err)
	}
	token := filepath.Join(f.t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(f.token(pod, job.Audience)), 0o600); err != nil {
		f.t.Fatal(err)
	}
	r := runner.Runner{
		Config: runner.Config{
			Endpoint: at, Roots: roots, Tickets: tickets, PodUID: string(pod.UID), TokenFile: token, StartLimit: time.Minute,
			Proposal: attest.ObjectRef{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)},
		},
		Environ: append(f.secretsOf(pod), "PATH="+os.Getenv("PATH")),
		Random:  rand.Reader, Now: time.Now, Pause: runner.Pause, Resolver: loopback{},
		KillGrace: time.Second, Delivery: time.Minute,
	}
	return r.Run(f.ctx)
}

// secretsOf reads the Secrets that a Pod's environment refers to, as the
// kubelet does.
func (f *fixture) secretsOf(pod *corev1.Pod) []string {
	f.t.Helper()
	var out []string
	for _, e := range pod.Spec.Containers[0].Env {
		if e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil {
			continue
		}
		secret := &corev1.Secret{}
		ref := e.ValueFrom.SecretKeyRef
		if err := server.admin.Get(f.ctx, client.ObjectKey{Namespace: pod.Namespace, Name: ref.Name}, secret); err != nil {
			f.t.Fatalf("reading a Secret for the Pod: %v", err)
		}
		out = append(out, e.Name+"="+string(secret.Data[ref.Key]))
	}
	return out
}

// indiscreet is a server that says whatever it was sent, in every place that a
// client might repeat.
type indiscreet struct {
	*httptest.Server
	// told counts the requests that carried the secret.
	told atomic.Int32
	tool *mcp.Tool
}

func newIndiscreet(t *testing.T) *indiscreet {
	t.Helper()
	s := &indiscreet{tool: &mcp.Tool{Name: "search", InputSchema: json.RawMessage(`{"type":"object"}`)}}
	tools := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "v1"}, nil)
	tools.AddTool(s.tool, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		said := req.Extra.Header.Get("Authorization")
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, &mcp.StreamableHTTPOptions{DisableLocalhostProtection: true}))
	mux.HandleFunc("/echo", func(w http.ResponseWriter, req *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, req.Header.Get("Authorization"))
	})
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, req *http.Request) {
		// Without a text: that would be output.
		w.Header().Set("Location", "https://example.com/"+url.PathEscape(req.Header.Get("Authorization")))
		w.WriteHeader(http.StatusFound)
	})
	mux.HandleFunc("/garbage", func(w http.ResponseWriter, req *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 %s\r\n\r\n", req.Header.Get("Authorization"))
			_ = conn.Close()
		}
	})
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.Contains(req.Header.Get("Authorization"), canary) {
			s.told.Add(1)
		}
		mux.ServeHTTP(w, req)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// to is the part of an effect that leads to a path of the server.
func (s *indiscreet) to(path string) string {
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "https://"), ":")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return fmt.Sprintf(`url: "https://example.com:%s%s", headers: [{name: Authorization, value: "Bearer {_secret:key}"}], allowPrivate: true, caBundle: %q`, port, path, ca)
}

func TestSecret_OfASecretObject_IsInNothingTheOperatorOrTheRunnerSays(t *testing.T) {
	f := newFixture(t)
	w := &watched{}
	recorder := record.NewFakeRecorder(100)
	f.shared.Events = &controllers.Events{Recorder: recorder}
	f.shared.Journal = &watchedJournal{f.shared.Journal, t, w}
	read := f.metrics(func() map[v1alpha1.Phase]int { return nil }, func() string { return "" })
	f.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys", Namespace: f.namespace}, StringData: map[string]string{"key": canary}})
	f.policy("allow", permitAll)
	s := newIndiscreet(t)
	digest, err := runner.ToolDigest(s.tool)
	if err != nil {
		t.Fatal(err)
	}
	program := func(script string) string {
		return `command: {image: IMAGE, argv: [sh, -c, "` + script + `"], allowShell: true, workingDir: /, env: [{name: KEY, secret: key}]}`
	}
	tool := `version: "1", secrets: [{name: key, secretName: keys, key: key, hosts: [example.com]}]`
	program2 := strings.Replace(tool, ", hosts: [example.com]", "", 1)
	// A tool that says its secret does so in its output, which is where outputs
	// go unless the manifest says that they are sensitive.
	const quiet = `, output: {sensitive: true}, `
	got := map[string]string{}
	for name, spec := range map[string]string{
		"says-it":        program2 + quiet + program("echo $KEY"),
		"fails-with-it":  program2 + quiet + program("echo $KEY >&2; exit 3"),
		"keeps-it":       program2 + ", " + program("test -n $KEY && echo done"),
		"is-killed":      program2 + ", " + program("kill -9 $$"),
		"http-echo":      tool + quiet + `http: {method: GET, ` + s.to("/echo") + `}`,
		"http-redirect":  tool + `, http: {method: GET, ` + s.to("/redirect") + `}`,
		"http-garbage":   tool + `, http: {method: GET, ` + s.to("/garbage") + `}`,
		"mcp-echo":       tool + quiet + fmt.Sprintf(`mcp: {tool: search, toolDigest: %q, %s}`, digest, s.to("/mcp")),
		"mcp-other-tool": tool + `, ` + fmt.Sprintf(`mcp: {tool: search, toolDigest: %q, %s}`, repeat("0", 64), s.to("/mcp")),
		"mcp-garbage":    tool + `, ` + fmt.Sprintf(`mcp: {tool: search, toolDigest: %q, %s}`, digest, s.to("/garbage")),
		"mcp-refused":    tool + quiet + fmt.Sprintf(`mcp: {tool: search, toolDigest: %q, %s}`, digest, s.to("/echo")),
	} {
		f.create(f.manifest(name, "{"+spec+"}"))
		p := f.stepWatched(w, f.propose(name, `{}`))
		if got, want := outcome(p), "Dispatching/Granted"; got != want {
			t.Fatalf("%s: got %s, want %s: %s", name, got, want, p.Status.Message)
		}
		ending := f.run(p)
		w.add("runner", fmt.Sprintf("%s %v", ending.Reason, ending.Err))
		f.stepWatched(w, p)
		got[name] = outcome(f.stepWatched(w, p))
	}
	want := map[string]string{
		"says-it": "Succeeded/Succeeded", "keeps-it": "Succeeded/Succeeded", "fails-with-it": "Failed/NonZeroExit", "is-killed": "Failed/KilledBySignal",
		"http-echo": "Failed/StatusNotSuccess", "http-redirect": "Failed/StatusNotSuccess", "http-garbage": "Indeterminate/ResponseLost",
		"mcp-echo": "Failed/ToolError", "mcp-other-tool": "Failed/ToolChanged", "mcp-garbage": "Failed/ServerUnusable", "mcp-refused": "Failed/ServerUnusable",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ends of the calls (-want +got):\n%s", diff)
	}
	if n := s.told.Load(); n < 7 {
		t.Errorf("only %d requests carried the secret: the test proves little", n)
	}
	// The operator logs little as long as nothing is wrong.
	f.shared.Journal = &recorderWithout{}
	f.stepWatched(w, f.propose("says-it", `{}`))
	f.hear(w, recorder, read)
	w.check(t)
}

// hear adds what is to be heard at the end.
func (f *fixture) hear(w *watched, recorder *record.FakeRecorder, metrics func() []string) {
	f.t.Helper()
	for _, line := range metrics() {
		w.add("metric", line)
	}
	close(recorder.Events)
	for e := range recorder.Events {
		w.add("event", e)
	}
	for _, s := range server.traces.in(f) {
		w.add("span", jsonOf(f.t, s))
	}
	for _, source := range []string{"log", "status", "record", "metric", "event", "span"} {
		if w.sources()[source] == 0 {
			f.t.Errorf("nothing was heard of source %q: the test proves nothing about it", source)
		}
	}
}
