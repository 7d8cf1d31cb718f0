// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func TestRun_DeliversTheResultOfTheCallThatWasDecidedOn(t *testing.T) {
	t.Parallel()
	call := toolCall("say", "out", "err")
	s := newService(t, contract.Effect{Command: &call})
	wantRun(t, s.runner().Run(t.Context()), ExitDelivered, "")
	got := s.only()
	fingerprint, err := s.call.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	if got.StartedAt.IsZero() || got.DurationMillis < 0 {
		t.Errorf("started %v, took %d ms", got.StartedAt, got.DurationMillis)
	}
	got.StartedAt, got.DurationMillis = time.Time{}, 0
	want := attest.Result{
		ProposalUID: testProposalUID, PodUID: testPodUID, Fingerprint: fingerprint,
		Outcome: attest.OutcomeSucceeded, ExitCode: new(int32(0)),
		Stdout: "out", Stderr: "err", StdoutSHA256: hexSum("out"), StderrSHA256: hexSum("err"), StdoutBytes: 3, StderrBytes: 3,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	for _, token := range s.tokens {
		if token != "Bearer "+testToken {
			t.Errorf("a request was made with the authorization %q", token)
		}
	}
}

func TestRun_DeliversFailuresAsWell(t *testing.T) {
	t.Parallel()
	call := toolCall("exit", "4")
	s := newService(t, contract.Effect{Command: &call})
	wantRun(t, s.runner().Run(t.Context()), ExitDelivered, ReasonNonZeroExit)
	if got := s.only(); got.Outcome != attest.OutcomeFailed || *got.ExitCode != 4 {
		t.Errorf("result %+v", got)
	}
}

func TestRun_ReportsOutputThatIsNoText(t *testing.T) {
	t.Parallel()
	call := toolCall("say", "a\x1b[2K</script>\u202e", strings.Repeat("e", 5000))
	s := newService(t, contract.Effect{Command: &call})
	s.change = func(ticket *attest.Ticket) { ticket.Limits.StatusMaxBytes = 100 }
	wantRun(t, s.runner().Run(t.Context()), ExitDelivered, "")
	got := s.only()
	if got.Stdout != "a\x1b[2K</script>\u202e" || len(got.Stderr) != 100 || got.StderrBytes != 5000 || !got.Truncated {
		t.Errorf("stdout %q, %d of %d bytes of stderr, truncated %v", got.Stdout, len(got.Stderr), got.StderrBytes, got.Truncated)
	}
}

func TestRun_ShowsLessOfStderr(t *testing.T) {
	t.Parallel()
	call := toolCall("say", strings.Repeat("o", 5000), strings.Repeat("e", 5000))
	s := newService(t, contract.Effect{Command: &call})
	wantRun(t, s.runner().Run(t.Context()), ExitDelivered, "")
	if got := s.only(); len(got.Stdout) != 5000 || len(got.Stderr) != stderrMaxBytes || !got.Truncated {
		t.Errorf("%d bytes of stdout, %d of stderr, truncated %v", len(got.Stdout), len(got.Stderr), got.Truncated)
	}
}

func TestRun_AsksAgainWithTheSameNonceUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	effect, marks := touchEffect(t)
	s := newService(t, effect)
	s.redeemStatus = []int{500, 0, 503, 429, 408}
	s.resultStatus = []int{500, 0}
	r := s.runner()
	r.Pause = patience(10)
	wantRun(t, r.Run(t.Context()), ExitDelivered, "")
	wantMarks(t, marks, 1)
	if len(s.nonces) != 6 || len(slices.Compact(slices.Clone(s.nonces))) != 1 {
		t.Errorf("nonces %q, want the same one six times", s.nonces)
	}
	s.only()
}

func TestRun_GivesUpWithoutEffectWhenItIsRefused(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 403, 404, 409, 410, 422, 302} {
		effect, marks := touchEffect(t)
		s := newService(t, effect)
		s.redeemStatus = []int{status}
		wantRun(t, s.runner().Run(t.Context()), ExitClaimDenied, ReasonClaimDenied)
		wantMarks(t, marks, 0)
		if len(s.nonces) != 1 {
			t.Errorf("status %d: asked %d times", status, len(s.nonces))
		}
	}
}

func TestRun_GivesUpWithoutEffectWhenNobodyAnswers(t *testing.T) {
	t.Parallel()
	effect, marks := touchEffect(t)
	s := newService(t, effect)
	s.redeemStatus = []int{500, 500, 500, 500}
	r := s.runner()
	r.Pause = patience(2)
	wantRun(t, r.Run(t.Context()), ExitUnavailable, ReasonEndpointUnavailable)
	wantMarks(t, marks, 0)
	if len(s.nonces) != 3 {
		t.Errorf("asked %d times, want 3", len(s.nonces))
	}
}

func TestRun_ShowsItsTokenToNobodyElse(t *testing.T) {
	t.Parallel()
	effect, marks := touchEffect(t)
	s := newService(t, effect)
	r := s.runner()
	r.Config.Roots = x509.NewCertPool()
	wantRun(t, r.Run(t.Context()), ExitUnavailable, ReasonEndpointUnavailable)
	wantMarks(t, marks, 0)
	if len(s.tokens) != 0 {
		t.Error("the token was shown to a service that nobody vouches for")
	}
	// net/http never uses a proxy for an address of this machine, so that no
	// test can see one being asked.
	transport, ok := newEndpoint(r.Config, r.Now, r.Pause).client.Transport.(*http.Transport)
	if !ok || transport.Proxy != nil {
		t.Error("a proxy of the environment would be asked")
	}
}

func TestRun_RefusesTicketsThatAreNotForThisCall(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		arrange func(*service, *Runner)
		reason  Reason
		reports bool
	}{
		"another signing key": {func(s *service, r *Runner) {
			verifier, err := attest.NewVerifier(otherKeys(s.t).PublicKeys()...)
			if err != nil {
				s.t.Fatal(err)
			}
			r.Config.Tickets = verifier
		}, ReasonTicketInvalid, false},
		"a changed byte": {func(s *service, _ *Runner) {
			s.answer = func(a *attest.RedeemResponse) { a.Ticket = flip(a.Ticket) }
		}, ReasonTicketInvalid, false},
		"bytes behind it": {func(s *service, _ *Runner) {
			s.answer = func(a *attest.RedeemResponse) { a.Ticket += "\n" }
		}, ReasonTicketInvalid, false},
		"no ticket": {func(s *service, _ *Runner) {
			s.answer = func(a *attest.RedeemResponse) { a.Ticket = "{}" }
		}, ReasonTicketInvalid, false},
		"a seal in place of a ticket": {func(s *service, _ *Runner) {
			s.answer = func(a *attest.RedeemResponse) {
				a.Ticket = strings.ReplaceAll(a.Ticket, "assent-ticket", "assent-audit-record")
			}
		}, ReasonTicketInvalid, false},
		"another proposal": {func(s *service, _ *Runner) {
			s.change = func(t *attest.Ticket) { t.Proposal.Name = "call-2" }
		}, ReasonTicketForeign, true},
		"another life of the proposal": {func(s *service, _ *Runner) {
			s.change = func(t *attest.Ticket) { t.Proposal.UID = "other" }
		}, ReasonTicketForeign, true},
		"another Pod": {func(s *service, _ *Runner) {
			s.change = func(t *attest.Ticket) { t.PodUID = "other" }
		}, ReasonTicketForeign, true},
		"another nonce": {func(s *service, _ *Runner) {
			s.change = func(t *attest.Ticket) { t.NonceDigest = strings.Repeat("0", 64) }
		}, ReasonTicketForeign, true},
		"other arguments": {func(s *service, _ *Runner) {
			s.change = func(t *attest.Ticket) { t.Call.ArgsCanonicalJSON = `{"a":"x"}` }
		}, ReasonFingerprintMismatch, true},
		"another effect": {func(s *service, _ *Runner) {
			s.change = func(t *attest.Ticket) { t.Call.EffectJSON = strings.Replace(t.Call.EffectJSON, "touch", "exit", 1) }
		}, ReasonFingerprintMismatch, true},
		"another agent": {func(s *service, _ *Runner) {
			s.change = func(t *attest.Ticket) { t.Call.Agent = "other" }
		}, ReasonFingerprintMismatch, true},
		"another contract": {func(s *service, _ *Runner) {
			s.change = func(t *attest.Ticket) { t.Call.Contract.Hash = strings.Repeat("d", 64) }
		}, ReasonFingerprintMismatch, true},
		"a call that the Pod was not made for": {func(_ *service, r *Runner) {
			r.Config.Fingerprint = strings.Repeat("e", 64)
		}, ReasonFingerprintMismatch, true},
		"an effect of a newer version": {func(s *service, _ *Runner) {
			s.call.EffectJSON = `{"command":{"argv":["x"],"image":"x","newMember":1,"workingDir":"/"}}`
		}, ReasonEffectInvalid, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			effect, marks := touchEffect(t)
			s := newService(t, effect)
			r := s.runner()
			tc.arrange(s, r)
			wantRun(t, r.Run(t.Context()), ExitMismatch, tc.reason)
			wantMarks(t, marks, 0)
			if tc.reports != (len(s.results) == 1) {
				t.Fatalf("%d results", len(s.results))
			}
			if tc.reports && (s.results[0].Outcome != attest.OutcomeRefused || s.results[0].Reason != string(tc.reason)) {
				t.Errorf("result %s %s", s.results[0].Outcome, s.results[0].Reason)
			}
		})
	}
}

// flip changes one bit of the payload in a DSSE envelope and leaves its form
// intact.
func flip(envelope string) string {
	const before = `{"payload":"`
	payload, rest, _ := strings.Cut(strings.TrimPrefix(envelope, before), `"`)
	raw, err := base64.StdEncoding.DecodeString(payload)
	if err != nil {
		panic(err)
	}
	raw[len(raw)/2] ^= 1
	return before + base64.StdEncoding.EncodeToString(raw) + `"` + rest
}

func TestRun_RefusesAnAnswerThatIsNotOne(t *testing.T) {
	t.Parallel()
	effect, marks := touchEffect(t)
	s := newService(t, effect)
	s.redeemStatus = []int{200} // with a text that is no answer
	wantRun(t, s.runner().Run(t.Context()), ExitMismatch, ReasonTicketInvalid)
	wantMarks(t, marks, 0)
}

func TestRun_DoesNotBeginAfterTheDeadline(t *testing.T) {
	t.Parallel()
	for name, arrange := range map[string]func(*service, *Runner){
		"by the node's clock": func(s *service, _ *Runner) {
			s.change = func(t *attest.Ticket) {
				t.IssuedAt = t.IssuedAt.Add(-time.Hour)
				t.Deadline = t.IssuedAt.Add(30 * time.Minute)
			}
		},
		// The clock of the node is far behind the operator's; the process
		// was stopped for longer than the ticket is good for.
		"by the time that has passed": func(s *service, r *Runner) {
			s.change = func(t *attest.Ticket) {
				t.IssuedAt = t.IssuedAt.Add(24 * time.Hour)
				t.Deadline = t.IssuedAt.Add(10 * time.Minute)
			}
			redeemed := false
			s.onRedeem = func() { redeemed = true }
			r.Now = func() time.Time {
				if redeemed {
					return time.Now().Add(11 * time.Minute)
				}
				return time.Now()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			effect, marks := touchEffect(t)
			s := newService(t, effect)
			r := s.runner()
			arrange(s, r)
			wantRun(t, r.Run(t.Context()), ExitDelivered, ReasonDeadlinePassed)
			wantMarks(t, marks, 0)
			if got := s.only(); got.Outcome != attest.OutcomeRefused {
				t.Errorf("outcome %s", got.Outcome)
			}
		})
	}
}

func TestTimeLeft_IsTheShortestOfItsThreeBounds(t *testing.T) {
	t.Parallel()
	issued := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		timeout     int64
		asked, now  time.Duration // after issue, by the node's clock
		deadline    time.Duration // after issue
		wantSeconds float64
	}{
		"the effect's own limit":           {60, 0, 0, time.Hour, 60},
		"the deadline":                     {3600, 0, 0, time.Minute, 60},
		"less the time that it took":       {3600, 0, 10 * time.Second, time.Minute, 50},
		"a node whose clock is ahead":      {3600, time.Hour, time.Hour, time.Minute, -3540},
		"a node whose clock is behind":     {3600, -time.Hour, -time.Hour, time.Minute, 60},
		"a process that was stopped there": {3600, -time.Hour, -58 * time.Minute, time.Minute, -60},
	} {
		r := &Runner{Now: func() time.Time { return issued.Add(tc.now) }}
		ticket := attest.Ticket{IssuedAt: issued, Deadline: issued.Add(tc.deadline), Limits: attest.Limits{TimeoutSeconds: tc.timeout}}
		if got := r.timeLeft(ticket, issued.Add(tc.asked)).Seconds(); got != tc.wantSeconds {
			t.Errorf("%s: %v seconds, want %v", name, got, tc.wantSeconds)
		}
	}
}

func TestRun_StopsTheEffectAtItsTimeLimit(t *testing.T) {
	t.Parallel()
	call := toolCall("sleep", "-")
	s := newService(t, contract.Effect{Command: &call})
	s.change = func(ticket *attest.Ticket) { ticket.Limits.TimeoutSeconds = 1 }
	wantRun(t, s.runner().Run(t.Context()), ExitDelivered, ReasonTimedOut)
	if got := s.only(); got.Outcome != attest.OutcomeTimedOut || got.ExitCode != nil {
		t.Errorf("result %+v", got)
	}
}

func TestRun_EndsWithoutEffectWhenThePodStopsFirst(t *testing.T) {
	t.Parallel()
	effect, marks := touchEffect(t)
	s := newService(t, effect)
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	wantRun(t, s.runner().Run(stopped), ExitUnavailable, ReasonEndpointUnavailable)
	if len(s.nonces) != 0 {
		t.Error("the call was asked for although the Pod stops")
	}

	// The stop arrives together with the grant: the grant is answered for.
	late, cancelLate := context.WithCancel(t.Context())
	s.onRedeem = cancelLate
	wantRun(t, s.runner().Run(late), ExitDelivered, ReasonTerminated)
	if got := s.only(); got.Outcome != attest.OutcomeRefused {
		t.Errorf("outcome %s", got.Outcome)
	}
	wantMarks(t, marks, 0)
}

func TestRun_SaysWhenAResultCouldNotBeDelivered(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string][]int{
		"nobody answers": {500, 500, 500},
		"it is refused":  {409},
	} {
		effect, marks := touchEffect(t)
		s := newService(t, effect)
		s.resultStatus = tc
		r := s.runner()
		r.Pause = patience(2)
		got := r.Run(t.Context())
		if got.Code != ExitUndelivered {
			t.Errorf("%s: code %d", name, got.Code)
		}
		wantMarks(t, marks, 1)
	}
}

func TestRun_RefusesLimitsThatNoResultCanKeep(t *testing.T) {
	t.Parallel()
	effect, marks := touchEffect(t)
	s := newService(t, effect)
	s.change = func(ticket *attest.Ticket) { ticket.Limits.StatusMaxBytes = attest.MaxResultTextBytes + 1 }
	wantRun(t, s.runner().Run(t.Context()), ExitDelivered, ReasonEffectInvalid)
	wantMarks(t, marks, 0)
}

func TestRun_NeedsRandomness(t *testing.T) {
	t.Parallel()
	effect, marks := touchEffect(t)
	s := newService(t, effect)
	r := s.runner()
	r.Random = strings.NewReader("too short")
	wantRun(t, r.Run(t.Context()), ExitUsage, ReasonBadConfiguration)
	wantMarks(t, marks, 0)
	if len(s.nonces) != 0 {
		t.Error("a call was asked for with a nonce that can be guessed")
	}
}

func TestRun_NeedsItsToken(t *testing.T) {
	t.Parallel()
	effect, marks := touchEffect(t)
	s := newService(t, effect)
	r := s.runner()
	if err := os.Remove(r.Config.TokenFile); err != nil {
		t.Fatal(err)
	}
	wantRun(t, r.Run(t.Context()), ExitUnavailable, ReasonEndpointUnavailable)
	wantMarks(t, marks, 0)
}

func TestRun_ReadsTheTokenAnewForEachAttempt(t *testing.T) {
	t.Parallel()
	effect, _ := touchEffect(t)
	s := newService(t, effect)
	s.redeemStatus = []int{500}
	r := s.runner()
	r.Pause = func(context.Context, time.Duration) error {
		return os.WriteFile(r.Config.TokenFile, []byte("renewed"), 0o600)
	}
	wantRun(t, r.Run(t.Context()), ExitDelivered, "")
	if diff := cmp.Diff([]string{"Bearer " + testToken, "Bearer renewed", "Bearer renewed"}, s.tokens); diff != "" {
		t.Error(diff)
	}
}

// canary is a listener that a closed network would not reach.
func canary(t *testing.T) (netip.AddrPort, net.Listener) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return netip.MustParseAddrPort(l.Addr().String()), l
}

func TestRun_AsksForNothingInAnOpenNetwork(t *testing.T) {
	t.Parallel()
	effect, marks := touchEffect(t)
	s := newService(t, effect)
	open, _ := canary(t)
	closed, l := canary(t)
	_ = l.Close()
	r := s.runner()
	r.Config.Canaries = []netip.AddrPort{closed, open}
	r.Pause = patience(1000)
	wantRun(t, r.Run(t.Context()), ExitNotIsolated, ReasonEgressNotIsolated)
	wantMarks(t, marks, 0)
	if len(s.nonces) != 0 {
		t.Error("the call was asked for")
	}
}

func TestRun_WaitsForTheNetworkToClose(t *testing.T) {
	t.Parallel()
	effect, marks := touchEffect(t)
	s := newService(t, effect)
	address, l := canary(t)
	r := s.runner()
	r.Config.Canaries = []netip.AddrPort{address}
	pauses := 0
	r.Pause = func(context.Context, time.Duration) error {
		if pauses++; pauses == 3 {
			return l.Close() // the policy is programmed now
		}
		return nil
	}
	wantRun(t, r.Run(t.Context()), ExitDelivered, "")
	wantMarks(t, marks, 1)
	if pauses != 3 {
		t.Errorf("%d pauses, want 3", pauses)
	}
}

func TestRun_DoesNotTakeADeadNetworkForAClosedOne(t *testing.T) {
	t.Parallel()
	effect, marks := touchEffect(t)
	s := newService(t, effect)
	closed, l := canary(t)
	_ = l.Close()
	r := s.runner()
	r.Config.Canaries = []netip.AddrPort{closed}
	s.server.Close()
	wantRun(t, r.Run(t.Context()), ExitUnavailable, ReasonEndpointUnavailable)
	wantMarks(t, marks, 0)
}

// TestRun_TriesTheCanariesInANetworkThatIsUp: while the Pod's network is still
// being set up, every connection fails, the forbidden ones too.
func TestRun_TriesTheCanariesInANetworkThatIsUp(t *testing.T) {
	t.Parallel()
	effect, marks := touchEffect(t)
	s := newService(t, effect)
	forbidden, l := canary(t)
	front, f := canary(t)
	_, _ = l.Close(), f.Close()
	r := s.runner()
	r.Config.Endpoint.Host = front.String()
	r.Config.Canaries = []netip.AddrPort{forbidden}
	up := false
	r.Pause = func(context.Context, time.Duration) error {
		if !up {
			up = true
			listen(t, forbidden.String(), "")
			listen(t, front.String(), s.server.Listener.Addr().String())
		}
		return nil
	}
	wantRun(t, r.Run(t.Context()), ExitNotIsolated, ReasonEgressNotIsolated)
	wantMarks(t, marks, 0)
}

// listen accepts connections and passes them on, to nowhere without a target.
func listen(t *testing.T, address, target string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go pass(conn, target)
		}
	}()
}

func pass(conn net.Conn, target string) {
	defer func() { _ = conn.Close() }()
	if target == "" {
		return
	}
	other, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer func() { _ = other.Close() }()
	go func() { _, _ = io.Copy(other, conn) }()
	_, _ = io.Copy(conn, other)
}

func TestRun_NeverFollowsARedirectOfTheService(t *testing.T) {
	t.Parallel()
	effect, marks := touchEffect(t)
	s := newService(t, effect)
	other := newService(t, effect)
	s.server.Config.Handler = http.RedirectHandler(other.server.URL+PathRedeem, http.StatusTemporaryRedirect)
	wantRun(t, s.runner().Run(t.Context()), ExitClaimDenied, ReasonClaimDenied)
	wantMarks(t, marks, 0)
	if len(other.tokens) != 0 {
		t.Error("the token was sent to where the redirect points")
	}
}

func TestPause_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if err := Pause(ctx, time.Hour); !errors.Is(err, cause) {
		t.Errorf("Pause = %v", err)
	}
	if err := Pause(t.Context(), 0); err != nil {
		t.Errorf("Pause = %v", err)
	}
}

func TestReason_OnlyALostResponseIsUnknown(t *testing.T) {
	t.Parallel()
	if !ReasonResponseLost.Unknown() || ReasonTimedOut.Unknown() || ReasonNonZeroExit.Unknown() || Reason("").Unknown() {
		t.Error("Unknown must hold for ResponseLost and for nothing else")
	}
}

func TestRun_CarriesOutEveryKindOfEffect(t *testing.T) {
	t.Parallel()
	web := newTarget(t, answer(200, "application/json", `{"ok":true}`))
	tools := newMCPTarget(t, said("found"), nil, searchTool())
	http, mcp := web.call("/"), tools.call(t)
	for name, tc := range map[string]struct {
		effect contract.Effect
		stdout string
		media  string
		status int32
	}{
		"http": {contract.Effect{HTTP: &http}, `{"ok":true}`, "application/json", 200},
		"mcp":  {contract.Effect{MCP: &mcp}, "found", "text/plain", 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, tc.effect)
			wantRun(t, s.runner().Run(t.Context()), ExitDelivered, "")
			got := s.only()
			if got.Outcome != attest.OutcomeSucceeded || got.Stdout != tc.stdout || got.MediaType != tc.media || *got.HTTPStatus != tc.status {
				t.Errorf("result %+v", got)
			}
		})
	}
}
