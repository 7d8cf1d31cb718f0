// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
)

const (
	testToken       = "the-projected-token"
	testPodUID      = "pod-uid"
	testProposalUID = "proposal-uid"
)

// service is an execution service of the tests: TLS on loopback, one signing
// key, and a call to give away.
type service struct {
	t      *testing.T
	server *httptest.Server
	keys   *attest.Keyring

	mu      sync.Mutex
	call    attest.Call
	nonces  []string
	tokens  []string
	results []attest.Result
	raw     []string

	// redeemStatus and resultStatus are answered in turn before the service
	// behaves; 0 drops the connection after the request was read.
	redeemStatus, resultStatus []int
	// change may alter the ticket before it is signed, answer the answer after.
	change func(*attest.Ticket)
	answer func(*attest.RedeemResponse)
	// onRedeem is called when a grant is about to be answered.
	onRedeem func()
}

func newService(t *testing.T, effect contract.Effect) *service {
	t.Helper()
	s := &service{t: t, keys: newKeys(t)}
	text, err := contract.EncodeEffect(effect)
	if err != nil {
		t.Fatal(err)
	}
	s.call = attest.Call{
		Agent: "system:serviceaccount:agents:bot", Tool: "tool", ArgsCanonicalJSON: `{"a":"sensitive-argument"}`,
		Namespace: "agents", EffectJSON: text,
		Contract: attest.ContractRef{Name: "tool", Version: "1", Hash: strings.Repeat("c", 64)},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+PathRedeem, s.redeem)
	mux.HandleFunc("POST "+PathResult, s.result)
	s.server = httptest.NewUnstartedServer(mux)
	s.server.Config.ErrorLog = quiet()
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	return s
}

func newKeys(t *testing.T) *attest.Keyring {
	t.Helper()
	seed := sha256.Sum256([]byte(t.Name() + time.Now().String()))
	keys, err := attest.NewKeyring(seed[:])
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// next takes the first of a list of prepared statuses.
func (s *service) next(list *[]int) (int, bool) {
	if len(*list) == 0 {
		return 0, false
	}
	status := (*list)[0]
	*list = (*list)[1:]
	return status, true
}

func (s *service) misbehave(w http.ResponseWriter, list *[]int) bool {
	status, ok := s.next(list)
	switch {
	case !ok:
		return false
	case status == 0:
		panic(http.ErrAbortHandler)
	default:
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "text-of-the-service")
		return true
	}
}

func (s *service) redeem(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	req, err := attest.DecodeRedeemRequest(body)
	if err != nil {
		s.t.Errorf("the redeem request is not canonical: %v", err)
	}
	if r.Header.Get("Content-Type") != "application/json" {
		s.t.Errorf("content type %q", r.Header.Get("Content-Type"))
	}
	want := attest.RedeemRequest{ProposalNamespace: "agents", ProposalName: "call-1", ProposalUID: testProposalUID, Nonce: req.Nonce}
	if req != want {
		s.t.Errorf("redeem request %+v", req)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nonces, s.tokens = append(s.nonces, req.Nonce), append(s.tokens, r.Header.Get("Authorization"))
	if s.misbehave(w, &s.redeemStatus) {
		return
	}
	if s.onRedeem != nil {
		s.onRedeem()
	}
	s.write(w, s.grant(req.Nonce))
}

func (s *service) grant(nonce string) attest.RedeemResponse {
	fingerprint, err := s.call.Fingerprint()
	if err != nil {
		s.t.Error(err)
	}
	now := time.Now()
	ticket := attest.Ticket{
		Proposal: attest.ObjectRef{Namespace: "agents", Name: "call-1", UID: testProposalUID},
		JobUID:   "job-uid", PodUID: testPodUID, NonceDigest: attest.NonceDigest(nonce),
		Fingerprint: fingerprint, Binding: strings.Repeat("b", 64), Call: s.call, Limits: testLimits(),
		IssuedAt: now, Deadline: now.Add(10 * time.Minute),
	}
	if s.change != nil {
		s.change(&ticket)
	}
	envelope, err := s.keys.Sign(attest.KindTicket, "toolproposal", ticket.Fingerprint, ticket)
	if err != nil {
		s.t.Error(err)
	}
	key, err := s.keys.ResultKey(s.keys.SigningKeyID(), testProposalUID, testPodUID, attest.NonceDigest(nonce))
	if err != nil {
		s.t.Error(err)
	}
	response := attest.RedeemResponse{Ticket: envelope, ResultKey: key, KeyID: s.keys.SigningKeyID()}
	if s.answer != nil {
		s.answer(&response)
	}
	return response
}

func (s *service) write(w io.Writer, v any) {
	text, err := attest.Encode(v)
	if err != nil {
		s.t.Error(err)
	}
	_, _ = w.Write(text)
}

func (s *service) result(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = append(s.tokens, r.Header.Get("Authorization"))
	if s.misbehave(w, &s.resultStatus) {
		return
	}
	signed, err := attest.DecodeSignedResult(body)
	if err != nil {
		s.t.Errorf("the result is not canonical: %v", err)
	}
	key, err := s.keys.ResultKey(signed.KeyID, testProposalUID, testPodUID, attest.NonceDigest(s.nonces[len(s.nonces)-1]))
	if err != nil {
		s.t.Error(err)
	}
	result, err := attest.OpenResult(key, signed)
	if err != nil {
		s.t.Errorf("the result is not authentic: %v", err)
	}
	s.results, s.raw = append(s.results, result), append(s.raw, string(body))
}

// only is the one result that was delivered.
func (s *service) only() attest.Result {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.results) != 1 {
		s.t.Fatalf("%d results were delivered, want 1", len(s.results))
	}
	return s.results[0]
}

func (s *service) config() Config {
	s.t.Helper()
	token := filepath.Join(s.t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(testToken+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	endpoint, err := url.Parse(s.server.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.server.Certificate())
	verifier, err := attest.NewVerifier(s.keys.PublicKeys()...)
	if err != nil {
		s.t.Fatal(err)
	}
	return Config{
		Endpoint: endpoint, Roots: roots, Tickets: verifier, PodUID: testPodUID, TokenFile: token, StartLimit: time.Minute,
		Proposal: attest.ObjectRef{Namespace: "agents", Name: "call-1", UID: testProposalUID},
	}
}

// patience lets a number of pauses pass at once and then ends the wait, so
// that no test waits for a clock.
func patience(pauses int) func(context.Context, time.Duration) error {
	return func(ctx context.Context, _ time.Duration) error {
		if pauses--; pauses < 0 {
			return errors.New("the test's patience is over")
		}
		return ctx.Err()
	}
}

func (s *service) runner() *Runner {
	return &Runner{
		Config: s.config(), Environ: []string{"PATH=/bin", "ASSENT_SECRET_key=top-s3cret"},
		Random: strings.NewReader(strings.Repeat("n", 32)), Now: time.Now, Pause: patience(5),
		Resolver: loopback{}, KillGrace: 10 * time.Second, Delivery: time.Minute,
	}
}

// loopback resolves every name to the test's own machine.
type loopback struct{}

func (loopback) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// touchEffect leaves a mark for each time that it is carried out.
func touchEffect(t *testing.T) (contract.Effect, func() int) {
	t.Helper()
	mark := filepath.Join(t.TempDir(), "mark")
	call := toolCall("touch", mark)
	return contract.Effect{Command: &call}, func() int {
		data, err := os.ReadFile(mark)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return len(data)
	}
}

func wantRun(t *testing.T, got Ending, code ExitCode, reason Reason) {
	t.Helper()
	if got.Code != code || got.Reason != reason {
		t.Errorf("ended with %d %q (%v), want %d %q", got.Code, got.Reason, got.Err, code, reason)
	}
	for _, secret := range []string{testToken, "top-s3cret", "sensitive-argument", "text-of-the-service"} {
		if got.Err != nil && strings.Contains(got.Err.Error(), secret) {
			t.Errorf("the error quotes %q: %v", secret, got.Err)
		}
	}
}

func wantMarks(t *testing.T, marks func() int, want int) {
	t.Helper()
	if got := marks(); got != want {
		t.Errorf("the effect was carried out %d times, want %d", got, want)
	}
}

func hexSum(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func otherKeys(t *testing.T) *attest.Keyring {
	t.Helper()
	keys, err := attest.NewKeyring(make([]byte, ed25519.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}
